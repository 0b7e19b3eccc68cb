"""The Java part of the catalog: compiled by plain javac against the jars of the pyspark package.

A wheel carries the jar, so that a run-time Java is enough. Without it (an editable install, another Spark than the
one the wheel was built for) the sources, which are always there, are compiled once into the user's cache.

The build hook loads this module on its own, from its file: it imports nothing outside the standard library.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Final

PACKAGED_JARS: Final = Path(__file__).parent / "java" / "jars"
SOURCES: Final = Path(__file__).parent / "java" / "src"
_SPARK_CATALYST: Final = re.compile(r"spark-catalyst_[\d.]+-(?P<version>.+)\.jar")
_RELEASE: Final = "17"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a jar: the same sources give the same bytes."""


class JarError(RuntimeError):
    """There is no jar for this Spark and none can be made; says what to install."""


def catalog_jar() -> Path:
    """The jar for the installed Spark: the packaged one, else one compiled once into the user's cache.

    Raises JarError when neither a packaged jar for this Spark nor a Java compiler is there.
    """
    jars = spark_jars()
    version = spark_version(jars)
    packaged = PACKAGED_JARS / jar_name(version)
    if packaged.exists():
        return packaged
    cached = _cache_directory() / f"{_digest(version)}.jar"
    if not cached.exists():
        compile_jar(cached, jars)
    return cached


def jar_name(version: str) -> str:
    """The packaged jar's name. Spark keeps its private classes stable within a minor version only."""
    return f"tableformat-spark-{'.'.join(version.split('.')[:2])}.jar"


def spark_jars() -> Path:
    """The directory of Spark's own jars: of SPARK_HOME, else of the installed pyspark."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarError("Spark is not installed: pip install 'tableformat[spark]', or set SPARK_HOME.")
    return Path(spec.origin).parent / "jars"


def spark_version(jars: Path) -> str:
    """The version of the Spark whose jars these are, such as "4.3.0"."""
    for jar in jars.glob("spark-catalyst_*.jar"):
        match = _SPARK_CATALYST.fullmatch(jar.name)
        if match:
            return match["version"]
    raise JarError(f"{jars} holds no jars of Spark (no spark-catalyst_*.jar).")


def compile_jar(target: Path, jars: Path) -> Path:
    """Compile the sources against Spark's jars into `target`. JarError without a compiler, or with what it says."""
    compiler = find_compiler()
    if compiler is None:
        raise JarError(
            f"no jar of the catalog for Spark {spark_version(jars)} is packaged, and there is no Java compiler to make "
            "one. Install a JDK 17 or newer (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: brew install "
            "openjdk@17) and set JAVA_HOME, or install a wheel of tableformat built for this Spark."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        classes = Path(scratch) / "classes"
        command = [str(compiler), "-nowarn", "-proc:none", "--release", _RELEASE, "-encoding", "UTF-8"]
        command += ["-cp", str(jars / "*"), "-d", str(classes), *map(str, _sources())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise JarError(f"the Java part does not compile against {jars}:\n{done.stderr}")
        finished = Path(scratch) / target.name
        _zip(classes, finished)
        # Another process may have made the same file meanwhile; both are equal.
        finished.replace(target)
    return target


def find_compiler() -> Path | None:
    """The `javac` of JAVA_HOME, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("javac", path=str(Path(home) / "bin")) if home else None) or shutil.which("javac")
    return Path(found) if found else None


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def _digest(version: str) -> str:
    digest = hashlib.sha256(version.encode())
    for source in _sources():
        digest.update(source.relative_to(SOURCES).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:20]


def _cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    directory = (Path(root) if root else Path.home() / ".cache") / "tableformat"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _zip(directory: Path, target: Path) -> None:
    """A jar is a zip file; made here, no `jar` tool is needed and the same classes give the same bytes."""
    with contextlib.closing(zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)) as archive:
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(directory).as_posix(), _EPOCH)
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
