"""The Java part of the catalog, compiled by plain javac against the jars of the pyspark package.

Spark changes its interfaces with each minor version, so each has its own jar. All jars share one source tree. `src` is
part of every jar, `since-4.2` of the jars from that version on, and `before-4.2` of older ones. Code that depends on
Spark's changes exists twice, and is small.

A wheel contains the jars, so a Java runtime is sufficient. If it has no jar (an editable install, or another Spark
version), the sources are compiled once into the user's cache. They are always installed.

The build hook loads this module directly from its file, so it imports only the standard library.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_JAVA: Final = Path(__file__).parent / "java"
_RESOURCES: Final = _JAVA / "resources"
"""Files that are added to the jar besides classes, at the same path."""
PACKAGED_JARS: Final = _JAVA / "jars"
_SPARK_CATALYST: Final = re.compile(r"spark-catalyst_(?P<scala>[\d.]+)-(?P<version>.+)\.jar")
_SOURCE_ROOT: Final = re.compile(r"(since-(?P<since>[\d.]+))?-?(before-(?P<before>[\d.]+))?|scala-(?P<scala>[\d.]+)")
OLDEST_SPARK: Final = (3, 5)
_RELEASE: Final = "17"
_VERSION_FILE: Final = "tableformat/spark/spark-version"
"""The file with the Spark version of a jar, which its classes read."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The modification time of every file in a jar. It is constant so that the same sources produce the same bytes."""


class JarError(RuntimeError):
    """No jar exists for this Spark and none can be compiled. The message names the software to install."""


@dataclass(frozen=True, slots=True)
class SparkVersion:
    """A Spark version for which a jar is built."""

    version: str
    """The full version, such as "4.3.0"."""
    scala: str
    """The Scala version of Spark, such as "2.13"."""

    @property
    def minor(self) -> tuple[int, int]:
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    @property
    def jar_name(self) -> str:
        """The name of the packaged jar. Spark's private classes are only stable within a minor version."""
        return f"tableformat-spark-{'.'.join(map(str, self.minor))}_{self.scala}.jar"


def catalog_jar(running: str | None = None) -> Path:
    """The jar for the installed Spark: the packaged one, otherwise one that is compiled once into the user's cache.

    `running` is the version of a different Spark, such as a Connect server: "4.1.2", or "4.1". Raises JarError if that
    Spark has no packaged jar and none can be compiled.
    """
    if running is not None and not _is_installed(running):
        return _packaged_jar(running)
    jars = spark_jars()
    spark = spark_version(jars)
    packaged = PACKAGED_JARS / spark.jar_name
    if packaged.exists():
        return packaged
    cached = _cache_directory() / _digest(spark) / spark.jar_name
    if not cached.exists():
        compile_jar(cached, jars)
    return cached


def _is_installed(running: str) -> bool:
    try:
        installed = spark_version(spark_jars())
    except JarError:
        return False
    return installed.minor == SparkVersion(running, installed.scala).minor


def main(arguments: Sequence[str]) -> None:
    """`python spark_ext/jar.py TARGET JARS...`: a jar in the directory TARGET for each directory of Spark's jars."""
    target, *spark_directories = map(Path, arguments)
    for jars in spark_directories:
        made = compile_jar(target / spark_version(jars).jar_name, jars)
        sys.stdout.write(f"{made}\n")


def _packaged_jar(running: str) -> Path:
    major, minor = SparkVersion(running, "").minor
    # Spark 3 is usually packaged with Scala 2.12. Spark 4 only supports 2.13.
    spark = SparkVersion(running, "2.12" if major < 4 else "2.13")
    packaged = PACKAGED_JARS / spark.jar_name
    if not packaged.exists():
        raise JarError(
            f"the package has no jar of the catalog for Spark {running}. Install pyspark=={major}.{minor}.* and a "
            "JDK, or set SPARK_HOME to this Spark; the jar is then compiled."
        )
    return packaged


def spark_jars() -> Path:
    """The directory of Spark's own jars: below SPARK_HOME if it is set, otherwise in the installed pyspark."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarError("Spark is not installed: pip install 'tableformat[spark]', or set SPARK_HOME.")
    return Path(spec.origin).parent / "jars"


def spark_version(jars: Path) -> SparkVersion:
    """The version of the Spark in this directory of jars."""
    for jar in jars.glob("spark-catalyst_*.jar"):
        match = _SPARK_CATALYST.fullmatch(jar.name)
        if match:
            return SparkVersion(match["version"], match["scala"])
    raise JarError(f"{jars} does not contain the jars of Spark (no spark-catalyst_*.jar).")


def compile_jar(target: Path, jars: Path) -> Path:
    """Compile the sources against Spark's jars into `target`. Raises JarError without a compiler, or with the
    compiler's output."""
    spark, compiler = spark_version(jars), find_compiler()
    if spark.minor < OLDEST_SPARK:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise JarError(f"Spark {spark.version} is older than {oldest}, the oldest version that the catalog supports.")
    if compiler is None:
        raise JarError(
            f"the package has no jar of the catalog for Spark {spark.version}, and no Java compiler was found to "
            "compile one. Install a JDK 17 or newer (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: "
            "brew install openjdk@17) and set JAVA_HOME, or install a wheel of tableformat built for this Spark."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        classes = Path(scratch) / "classes"
        command = [str(compiler), "-nowarn", "-proc:none", "--release", _RELEASE, "-encoding", "UTF-8"]
        command += ["-cp", str(jars / "*"), "-d", str(classes), *map(str, _sources(spark))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise JarError(f"the Java part does not compile against {jars}:\n{done.stderr}")
        (classes / _VERSION_FILE).write_text(f"{spark.version}\n")
        shutil.copytree(_RESOURCES, classes, dirs_exist_ok=True)
        finished = Path(scratch) / target.name
        _zip(classes, finished)
        # Another process may have created the same file concurrently. Both are identical.
        finished.replace(target)
    return target


def find_compiler() -> Path | None:
    """The `javac` of JAVA_HOME, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("javac", path=str(Path(home) / "bin")) if home else None) or shutil.which("javac")
    return Path(found) if found else None


def source_roots(spark: SparkVersion) -> list[Path]:
    """The source directories of the jar for this Spark. Each class is in only one of them."""
    return sorted(root for root in _JAVA.iterdir() if _is_for(root.name, spark))


def _is_for(root: str, spark: SparkVersion) -> bool:
    match = _SOURCE_ROOT.fullmatch(root)
    if match is None:
        return root == "src"
    if match["scala"]:
        return match["scala"] == spark.scala
    return (match["since"] is None or spark.minor >= SparkVersion(match["since"], "").minor) and (
        match["before"] is None or spark.minor < SparkVersion(match["before"], "").minor
    )


def _sources(spark: SparkVersion) -> list[Path]:
    return [source for root in source_roots(spark) for source in sorted(root.rglob("*.java"))]


def _digest(spark: SparkVersion) -> str:
    digest = hashlib.sha256(f"{spark.version} {spark.scala}".encode())
    resources = sorted(path for path in _RESOURCES.rglob("*") if path.is_file())
    for source in (*_sources(spark), *resources):
        digest.update(source.relative_to(_JAVA).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:20]


def _cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    directory = (Path(root) if root else Path.home() / ".cache") / "tableformat"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _zip(directory: Path, target: Path) -> None:
    """Create the jar as a zip file. This needs no `jar` tool, and the same classes give the same bytes."""
    with contextlib.closing(zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)) as archive:
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(directory).as_posix(), _EPOCH)
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(sys.argv[1:])
