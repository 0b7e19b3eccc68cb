"""Puts the corpus of specs/ into the wheel, and the Java part of `spark_ext`, compiled: a jar for each version of Spark
that there is one of.

Released wheels (`make dist`) carry the jars of the directory TABLEFORMAT_JARS, which `make jars` fills, one for each
version of Spark. Without it the wheel carries one, for the Spark that the build finds. Without a Java compiler or
Spark's jars it carries none, with a warning: `spark_ext.jar` then compiles the sources, which are always in the wheel,
at first use. TABLEFORMAT_REQUIRE_JAR=1 makes that an error and pyspark, 450 MB, something that the build requires: with
build isolation it is downloaded.

Spark's jars are those of SPARK_HOME, else of the pyspark in the environment that runs the build. Build isolation hides
that from imports, so it is looked for by its path as well.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PYSPARK: Final = "pyspark>=4.3,<4.4"
"""The Spark whose jar a wheel has to have that is built alone: a jar serves one minor version."""
SPARKS: Final = frozenset({(3, 5), (4, 0), (4, 1), (4, 2), (4, 3)})
"""The versions of Spark that a released wheel has jars for; the Makefile's SPARKS."""
RULE_DOCUMENTS: Final = ("delete-application.md", "range-deletes.md", "range-partitions.md")
"""Those that `tableformat/corpus/specification.py` looks for."""


class JarBuildHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        is_there = not _is_required() or os.environ.get("SPARK_HOME")
        return [] if is_there else [PYSPARK]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        for path in _specification(Path(self.root)):
            build_data["force_include"][str(path)] = f"tableformat/{path.relative_to(self.root).as_posix()}"
        made = os.environ.get("TABLEFORMAT_JARS")
        if made:
            for packaged in _released_jars(Path(made)):
                build_data["force_include"][str(packaged)] = f"spark_ext/java/jars/{packaged.name}"
            return
        jar = _jar_module(Path(self.root))
        try:
            jars = _spark_jars(jar)
            self._scratch = tempfile.TemporaryDirectory()
            name = jar.spark_version(jars).jar_name
            compiled = jar.compile_jar(Path(self._scratch.name) / name, jars)
        except jar.JarError as error:
            if _is_required():
                raise
            self.app.display_warning(f"the wheel has no compiled jar: {error}")
            return
        build_data["force_include"][str(compiled)] = f"spark_ext/java/jars/{name}"


def _specification(root: Path) -> list[Path]:
    """What `tableformat corpus` reads: the cases, and the documents whose rules decide them."""
    cases = sorted((root / "specs" / "corpus").glob("*.json"))
    documents = [root / "specs" / name for name in RULE_DOCUMENTS]
    missing = [str(path) for path in documents if not path.is_file()]
    if missing or not cases:
        raise RuntimeError(f"the specification is not whole: {', '.join(missing) or 'no cases'}")
    return [*cases, *documents]


def _released_jars(directory: Path) -> list[Path]:
    """A jar for each version of Spark, or an error that says which are not there."""
    jars = {path.name: path for path in directory.glob("tableformat-spark-*.jar")}
    found = {tuple(map(int, name.removeprefix("tableformat-spark-").split("_")[0].split("."))) for name in jars}
    if found != SPARKS:
        missing = ", ".join(".".join(map(str, version)) for version in sorted(SPARKS - found))
        raise RuntimeError(f"{directory} has jars for other versions of Spark; missing: {missing or 'none'}. make jars")
    return [jars[name] for name in sorted(jars)]


def _is_required() -> bool:
    return bool(os.environ.get("TABLEFORMAT_REQUIRE_JAR"))


def _jar_module(root: Path) -> ModuleType:
    """`spark_ext.jar` from its file: the package's own imports are not there in a build."""
    spec = importlib.util.spec_from_file_location("tableformat_jar", root / "spark_ext" / "jar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _spark_jars(jar: ModuleType) -> Path:
    beside = Path(sysconfig.get_path("purelib")) / "pyspark" / "jars"
    if not os.environ.get("SPARK_HOME") and beside.is_dir():
        return beside
    jars: Path = jar.spark_jars()
    return jars
