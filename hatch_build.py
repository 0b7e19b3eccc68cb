"""Puts the Java part of `spark_ext`, compiled, into the wheel.

A build without a Java compiler or without Spark's jars gives a wheel without it, with a warning: `spark_ext.jar`
then compiles the sources, which are always in the wheel, at first use. Released wheels are built with
TABLEFORMAT_REQUIRE_JAR=1, which makes that an error and pyspark, 450 MB, something that the build requires: with build
isolation it is downloaded, without (`make dist`) it is the one that is installed.

Spark's jars are those of SPARK_HOME, else of the pyspark in the environment that runs the build. Build isolation hides
that from imports, so it is looked for by its path as well.
"""

from __future__ import annotations

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PYSPARK: Final = "pyspark>=4.3,<4.4"
"""The Spark that released wheels are for: a jar serves one minor version."""


class JarBuildHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        is_there = not _is_required() or os.environ.get("SPARK_HOME")
        return [] if is_there else [PYSPARK]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        jar = _jar_module(Path(self.root))
        try:
            jars = _spark_jars(jar)
            self._scratch = tempfile.TemporaryDirectory()
            name = jar.jar_name(jar.spark_version(jars))
            compiled = jar.compile_jar(Path(self._scratch.name) / name, jars)
        except jar.JarError as error:
            if _is_required():
                raise
            self.app.display_warning(f"the wheel has no compiled jar: {error}")
            return
        build_data["force_include"][str(compiled)] = f"spark_ext/java/jars/{name}"


def _is_required() -> bool:
    return bool(os.environ.get("TABLEFORMAT_REQUIRE_JAR"))


def _jar_module(root: Path) -> ModuleType:
    """`spark_ext.jar` from its file: the package's own imports are not there in a build."""
    spec = importlib.util.spec_from_file_location("tableformat_jar", root / "spark_ext" / "jar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _spark_jars(jar: ModuleType) -> Path:
    beside = Path(sysconfig.get_path("purelib")) / "pyspark" / "jars"
    if not os.environ.get("SPARK_HOME") and beside.is_dir():
        return beside
    jars: Path = jar.spark_jars()
    return jars
