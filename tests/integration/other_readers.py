"""Reads an Iceberg table with readers that do not support range deletes, and classifies their answers."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb_iceberg_env
import polars as pl
from pyiceberg.table import StaticTable

Row = tuple[Any, ...]

COLUMNS: Final = ("id1", "id2", "num_cal", "payload")
QUERIES: Final[Mapping[str, str]] = {
    "rows": "SELECT * FROM {table}",
    "count": "SELECT count(*) FROM {table}",
    "rows that deletes reach": "SELECT * FROM {table} WHERE num_cal >= 2",
    "rows that no delete reaches": "SELECT * FROM {table} WHERE id1 = 'B'",
}
"""Each query has another shortcut that might ignore deletes: none, totals of the summary, pruning by bounds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a reader to one query: rows in any order, or the text of its error."""

    rows: tuple[Row, ...] | None = None
    error: str | None = None


Answers = Mapping[str, Answer]
Reader = Callable[[str, int | None], Answers]
"""Takes the location of a metadata file and a snapshot id, None for the current one."""


def expected_answers(rows: Sequence[Row]) -> dict[str, tuple[Row, ...]]:
    """The sorted results of the queries over a table with these live rows."""
    return {
        "rows": tuple(sorted(rows)),
        "count": ((len(rows),),),
        "rows that deletes reach": tuple(sorted(row for row in rows if row[2] >= 2)),
        "rows that no delete reaches": tuple(sorted(row for row in rows if row[0] == "B")),
    }


def outcome(answers: Answers, live_rows: Sequence[Row]) -> str:
    """`right`, `refused`, `partly refused`, or `wrong` if one query returned other rows without an error."""
    expected = expected_answers(live_rows)
    assert answers.keys() == expected.keys()
    verdicts = set()
    for query, answer in answers.items():
        if answer.rows is None:
            verdicts.add("refused")
        else:
            verdicts.add("right" if tuple(sorted(answer.rows)) == expected[query] else "wrong")
    if "wrong" in verdicts:
        return "wrong"
    return verdicts.pop() if len(verdicts) == 1 else "partly refused"


def read_with_pyiceberg(location: str, snapshot_id: int | None) -> Answers:
    def rows(filter_text: str | None = None) -> Iterator[Row]:
        scan = StaticTable.from_metadata(location).scan(snapshot_id=snapshot_id)
        filtered = scan if filter_text is None else scan.filter(filter_text)
        return (tuple(row[name] for name in COLUMNS) for row in filtered.to_arrow().to_pylist())

    def count() -> Iterator[Row]:
        yield (StaticTable.from_metadata(location).scan(snapshot_id=snapshot_id).count(),)

    return {
        "rows": _answer(rows),
        "count": _answer(count),
        "rows that deletes reach": _answer(lambda: rows("num_cal >= 2")),
        "rows that no delete reaches": _answer(lambda: rows("id1 = 'B'")),
    }


def read_with_polars(location: str, snapshot_id: int | None) -> Answers:
    def scan() -> pl.LazyFrame:
        return pl.scan_iceberg(location, snapshot_id=snapshot_id)

    return {
        "rows": _answer(lambda: scan().select(COLUMNS).collect().rows()),
        "count": _answer(lambda: scan().select(pl.len()).collect().rows()),
        "rows that deletes reach": _answer(lambda: scan().filter(pl.col("num_cal") >= 2).collect().rows()),
        "rows that no delete reaches": _answer(lambda: scan().filter(pl.col("id1") == "B").collect().rows()),
    }


def read_with_duckdb(location: str, snapshot_id: int | None) -> Answers:
    return ask_duckdb(location, snapshot_id, QUERIES)


def ask_duckdb(location: str, snapshot_id: int | None, queries: Mapping[str, str]) -> Answers:
    """Run the queries in a separate process: it uses another DuckDB version than the library, and may crash."""
    snapshot = "" if snapshot_id is None else f", snapshot_from_id = {snapshot_id}"
    table = f"iceberg_scan('{location.removeprefix('file://')}'{snapshot})"
    script = Path(__file__).with_name("duckdb_iceberg_reader.py")
    process = subprocess.run(
        [duckdb_iceberg_env.environment_python(), script],
        input=json.dumps({"table": table, "queries": queries}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, f"the DuckDB reader ended with {process.returncode}: {process.stderr}"
    given = json.loads(process.stdout)
    return {
        query: Answer(error=result["error"]) if "error" in result else Answer(tuple(map(tuple, result["rows"])))
        for query, result in given.items()
    }


READERS: Final[Mapping[str, Reader]] = {
    "pyiceberg": read_with_pyiceberg,
    "polars": read_with_polars,
    "duckdb": read_with_duckdb,
}


def _answer(read: Callable[[], Iterator[Row] | Sequence[Row]]) -> Answer:
    with _other_peoples_warnings():
        try:
            return Answer(tuple(read()))
        except Exception as error:  # noqa: BLE001 - any error is a refusal; the test looks at its text
            return Answer(error=f"{type(error).__name__}: {error}")


@contextmanager
def _other_peoples_warnings() -> Iterator[None]:
    """Without it pytest would turn a reader's warning into an error, and that would pass for a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
