"""Iceberg's compiled tests of catalogs, run by Java's REST client against `tableformat serve`: `make test-rest-suite`.

    python tests/rest_suite/run_rest_suite.py                              every class
    python tests/rest_suite/run_rest_suite.py ServedViewCatalogTest ...    these, or single methods: Class#method

Iceberg publishes the tests in a jar (pom.xml). The classes in `java/` connect them to the server, and drop everything
in the catalog before each test. The lake is new at each run. `differences.toml` lists the methods that fail, each with
its reason. The command fails if another method fails, or if a listed one passes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import tableformat as tf
from spark_ext.jar import find_compiler

HERE: Final = Path(__file__).parent
SHARED: Final = HERE.parent / "iceberg_suite"
sys.path.insert(0, str(SHARED))

import java_process  # noqa: E402 a module of the other suite
from outcomes import compare_failures, results_of, share_passed  # noqa: E402

BUILD: Final = java_process.REPOSITORY / "build" / "rest-suite"
PACKAGE: Final = "tableformat.suite"
CLASSES: Final = ("ServedCatalogTest", "ServedCatalogOptionsTest", "ServedViewCatalogTest")


def compile_all() -> str:
    """The class path: our classes, then Iceberg's tests and what they need."""
    classes = BUILD / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    jars = f"{BUILD / 'jars'}/*"
    sources = [*(HERE / "java").rglob("*.java"), *SHARED.rglob("ClassRunner.java")]
    command = [str(find_compiler()), "-nowarn", "-proc:none", "--release", "17", "-cp", jars, "-d", str(classes)]
    subprocess.run([*command, *map(str, sources)], check=True)
    return os.pathsep.join((str(classes), jars))


def run(chosen: list[str], results: Path) -> None:
    """Run the classes against a server on a new lake."""
    class_path = compile_all()
    with TemporaryDirectory(dir=BUILD, prefix="lake-") as directory:
        catalog = tf.open_catalog(f"{directory}/lake")
        with tf.serve(catalog, freshness_seconds=0) as server:
            settings = {
                "suite.server": server.url,
                "suite.tables": f"file:{directory}/tables",
                "java.io.tmpdir": directory,
                "org.slf4j.simpleLogger.defaultLogLevel": "warn",
            }
            options = [f"-D{name}={value}" for name, value in settings.items()]
            command = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options]
            java_process.run([*command, "-cp", class_path, f"{PACKAGE}.RunRestSuite"], chosen, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", default=CLASSES, help="all by default")
    parser.add_argument("--results", type=Path, default=BUILD / "results.jsonl")
    arguments = parser.parse_args()
    if unknown := {name.partition("#")[0] for name in arguments.classes} - set(CLASSES):
        parser.error(f"no such class: {', '.join(sorted(unknown))}")
    results = arguments.results.resolve()
    results.unlink(missing_ok=True)
    run([f"{PACKAGE}.{name}" for name in arguments.classes], results)
    found = results_of(java_process.lines(results))
    problems = compare_failures(found, HERE / "differences.toml")
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(f"{share_passed(found)} {len(problems)} differences from the list.\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
