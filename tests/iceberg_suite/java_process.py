"""Compiles the classes that stand in for Iceberg's, and runs classes of tests in Java processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from spark_ext.jar import compile_jar, find_compiler, spark_version

HERE: Final = Path(__file__).parent
REPOSITORY: Final = HERE.parents[1]
BUILD: Final = REPOSITORY / "build" / "iceberg-suite"
"""Not part of the repository: jars, classes, lakes, results."""
SPARK_JARS: Final = REPOSITORY / ".spark-4.1" / "pyspark" / "jars"
CLASSES_A_PROCESS: Final = 8
SECONDS_A_CLASS: Final = int(os.environ.get("ICEBERG_SUITE_SECONDS", "900"))
"""A class that takes longer is ended, and its rest counts as failed."""

_OPENED: Final = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
"""Packages of java.base that Spark reaches into (its JavaModuleOptions)."""


def compile_all() -> str:
    """The class path: our stand-ins first, then our jar, Iceberg's tests, Spark."""
    sources = sorted((HERE / "java").rglob("*.java"))
    classes = BUILD / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    jar = compile_jar(BUILD / spark_version(SPARK_JARS).jar_name, SPARK_JARS)
    path = [str(classes), str(jar), f"{BUILD / 'jars'}/*", f"{SPARK_JARS}/*"]
    command = [str(find_compiler()), "-nowarn", "-proc:none", "--release", "17", "-cp", os.pathsep.join(path[1:])]
    subprocess.run([*command, "-d", str(classes), *map(str, sources)], check=True)
    return os.pathsep.join(path)


def run(command: Sequence[str], classes: Sequence[str], results: Path) -> None:
    """Run the classes, some a process; `results` gets a line of JSON for each invocation, and one for each class.

    `command` starts Java with a main class that gets the file of results and the classes (`ClassRunner`).
    """
    waiting = list(classes)
    while waiting:
        batch = waiting[:CLASSES_A_PROCESS]
        log = results.with_suffix(".log")
        with log.open("ab") as sink, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*command, str(results), *batch],
                stdout=sink,
                stderr=sink,
                env=_environment(),
                cwd=results.parent,
                timeout=SECONDS_A_CLASS * len(batch),
                check=False,
            )
        done = {line["class"] for line in lines(results) if line["status"] == "done"}
        ended = [name for name in batch if name not in done]
        if ended:
            with results.open("a") as file:
                unfinished = {"class": ended[0], "method": "", "invocation": "", "status": "failed"}
                file.write(json.dumps({**unfinished, "error": "the process ended within this class"}) + "\n")
                file.write(json.dumps({"class": ended[0], "status": "done"}) + "\n")
        waiting = [name for name in waiting if name not in {*done, *ended[:1]}]


def lines(results: Path) -> Iterator[dict[str, Any]]:
    if results.exists():
        yield from map(json.loads, results.read_text().splitlines())


def spark_command(class_path: str) -> list[str]:
    """Starts the suite of Spark tests."""
    scratch = BUILD / "lakes"
    scratch.mkdir(exist_ok=True)
    settings = {
        "suite.lakes": scratch,
        "suite.python": sys.executable,
        "suite.sets": os.environ.get("ICEBERG_SUITE_SETS", "covering"),
        "java.io.tmpdir": scratch,
        "derby.system.home": scratch,
        "spark.sql.warehouse.dir": scratch / "spark-warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "spark.log.level": "ERROR",
        # As in a session of `configure`. Tests of Iceberg's extension set their own, for which `java` has a stand-in.
        "spark.sql.extensions": "tableformat.spark.SqlExtensions",
        "jdk.attach.allowAttachSelf": "true",
    }
    return [
        "java",
        "-Xmx3g",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        *(f"-D{name}={value}" for name, value in settings.items()),
        "-cp",
        class_path,
        "tableformat.suite.RunSuite",
    ]


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
