"""The combinations that worked in a run of these tests: operation, job, statement or reader by catalog and format
version.

They are written to docs/reference/estate.md if every test has passed and none was skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
PYTHON: Final = "Verbs, jobs and readers, from Python"
SPARK: Final = "Statements and procedures of Spark"
FLINK_JOBS: Final = "Jobs beside a stream of Flink"
FLINK_READERS: Final = "Readers beside a stream of Flink"
INTRODUCTIONS: Final = {
    PYTHON: "After each step the rows are those of a lake with which the same was done; *yes* where they were. "
    "Of REST and Glue the files are in S3.",
    SPARK: "The same, statement by statement. Files are on a disk unless the catalog's name says S3.",
    FLINK_JOBS: "How often the job ran while Flink committed every second, and Flink went on. `p`: partitioned.",
    FLINK_READERS: "How many snapshots were read, each with the rows that the stream had by then. DuckDB's extension "
    "was not asked where Flink had put several deletion vectors into one file, which it reads wrong.",
}
COUNTED: Final = frozenset({FLINK_JOBS, FLINK_READERS})
HEADER: Final = """# What was seen on which catalog

Written by the tests of `make test-estate` out of what has passed, nothing of it by hand. What each catalog takes and
how it is opened is in [the catalogs](catalogs.md). A dash: not measured there.

{versions}.
"""


@dataclass(slots=True)
class Matrix:
    """Cells by section, row and column; rows and columns are in the order in which they were added."""

    cells: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    columns: dict[str, dict[str, None]] = field(default_factory=dict)

    def seen(self, section: str, row: str, column: str) -> None:
        """It worked, once more."""
        self.columns.setdefault(section, {})[column] = None
        self.cells.setdefault(section, {}).setdefault(row, Counter())[column] += 1

    def to_markdown(self) -> str:
        return "\n".join([HEADER.format(versions=", ".join(_versions())), *self._sections()]).rstrip() + "\n"

    def _sections(self) -> Iterator[str]:
        for section, rows in self.cells.items():
            columns = list(self.columns[section])
            yield f"## {section}\n\n{INTRODUCTIONS[section]}\n"
            yield "| | " + " | ".join(columns) + " |"
            yield "|---" * (len(columns) + 1) + "|"
            for row, found in rows.items():
                yield f"| {row} | " + " | ".join(_cell(found[each], section in COUNTED) for each in columns) + " |"
            yield ""


def _cell(count: int, is_counted: bool) -> str:
    if count == 0:
        return "–"
    return str(count) if is_counted else "yes"


def statement_name(statement: str) -> str:
    """The name of a row: the procedure of a CALL, or the first keywords of the statement."""
    called = re.match(r"CALL \{c\}\.system\.(\w+)", statement)
    if called is not None:
        return f"`CALL {called[1]}`"
    words = re.sub(r"\{c\}\S+", "", statement.split("(", maxsplit=1)[0]).split()
    keywords = [word for word in words if word.isupper()]
    return f"`{' '.join(keywords[: 4 if keywords[0] in ('ALTER', 'CREATE', 'REPLACE') else 2])}`"


def _versions() -> Iterator[str]:
    """The versions of all components."""
    for name, distribution in (
        ("tableformat", "tableformat"),
        ("PyIceberg", "pyiceberg"),
        ("Polars", "polars"),
        ("DuckDB", "duckdb"),
        ("Spark", "pyspark"),
        ("moto for S3 and Glue", "moto"),
    ):
        yield f"{name} {version(distribution)}"
    for directory, name, artifact in (
        ("rest_server", "Iceberg's REST adapter", "iceberg"),
        ("flink", "Flink 2.1 with Iceberg", "iceberg"),
    ):
        text = (HERE / directory / "pom.xml").read_text()
        found = re.search(rf"<{artifact}>([\d.]+)</{artifact}>", text)
        assert found is not None, directory
        yield f"{name} {found[1]}"
    yield "a metastore of Hive 3.1.3"


def write_if_complete(matrix: Matrix, target: Path, session: pytest.Session, exit_status: int) -> None:
    """Nothing is written of a run that failed or lacked a part."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", ())) if reporter is not None else 0
    if exit_status == 0 and not skipped:
        target.write_text(matrix.to_markdown())
    elif reporter is not None:
        reporter.write_line(f"{target} is as it was: {skipped} tests were skipped, status {exit_status}")
