"""Iceberg's compiled tests of its Spark catalog, run against ours on Spark 4.1: `make test-iceberg-suite`.

    python tests/iceberg_suite/run_suite.py                    every class of classes.toml
    python tests/iceberg_suite/run_suite.py TestTagDDL ...     these, or single methods: TestTagDDL#testDropTag
    python tests/iceberg_suite/run_suite.py --from FILE        compare what an earlier run wrote, and run nothing

Iceberg publishes the tests as jars (pom.xml). A few classes stand in for Iceberg's (`java/`): whatever catalog a test
asks for is ours, and the catalog with which it looks at tables is Iceberg's JDBC catalog on the same SQLite file. What
may differ is in two lists: `differences.toml`, methods that fail, each with its reason, and `other-errors.json`, those
that pass but for the class or the words of an error. The command fails on any difference that is not listed, and on a
listed one that is gone. With ICEBERG_SUITE_SETS=all every set of parameters is run (`ParameterSets`).
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path

import java_process
from outcomes import compare, results_of, share_passed, write_other_errors

CLASSES = java_process.HERE / "classes.toml"


def suite_classes() -> list[str]:
    """Full names of the classes that are in."""
    groups = tomllib.loads(CLASSES.read_text())["in"]
    return [f"{package}.{name}" for package, names in groups.items() for name in names]


def classes_in_no_list() -> list[str]:
    """Classes of the published jars that `classes.toml` does not name."""
    lists = tomllib.loads(CLASSES.read_text())
    out = [pattern for entry in lists["out"] for pattern in entry["classes"]]
    known = set(suite_classes())
    published = [
        entry.removesuffix(".class").replace("/", ".")
        for jar in (java_process.BUILD / "jars").glob("iceberg-spark-*-tests.jar")
        for entry in zipfile.ZipFile(jar).namelist()
        if re.search(r"/Test[^/$]*\.class$", entry)
    ]
    return [
        name
        for name in published
        if name not in known and not any(fnmatchcase(name if "." in each else _short(name), each) for each in out)
    ]


def _chosen(wanted: list[str]) -> list[str]:
    """Full names of classes, and of methods behind `#`. Two classes may have one name in two packages."""
    return [
        full + sign + method
        for full in suite_classes()
        for name, sign, method in (each.partition("#") for each in wanted)
        if name == full.rpartition(".")[2]
    ]


def _short(full: str) -> str:
    return full.partition("#")[0].rpartition(".")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="*", help="names without package; all by default")
    parser.add_argument("--results", type=Path, default=java_process.BUILD / "results.jsonl")
    parser.add_argument("--from", dest="earlier", type=Path, help="results of an earlier run")
    parser.add_argument("--write-other-errors", action="store_true", help="take the other errors into their list")
    arguments = parser.parse_args()
    if missing := classes_in_no_list():
        parser.error(f"{CLASSES.name} says nothing of {', '.join(missing)}")
    chosen = _chosen(arguments.classes) if arguments.classes else suite_classes()
    if unknown := {name.partition("#")[0] for name in arguments.classes} - {_short(name) for name in chosen}:
        parser.error(f"not in {CLASSES.name}: {', '.join(sorted(unknown))}")
    if arguments.earlier is None:
        arguments.results.unlink(missing_ok=True)
        java_process.run(java_process.spark_command(java_process.compile_all()), chosen, arguments.results.resolve())
    results = results_of(java_process.lines(arguments.earlier or arguments.results))
    if arguments.write_other_errors:
        write_other_errors(results)
    problems = compare(results)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(f"{share_passed(results)} {len(problems)} differences from the lists.\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
