"""A small lake, and a runner for the command line on it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer.main
import typer.testing
from new_lakes import new_lake
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("num_cal", pa.int32(), nullable=False),
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("note", pa.string()),
    ]
)
TABLE = "db.calendars"

# The runner builds the command again for each call, which takes longer than most calls.
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]


def calendar_rows(*id1s: str) -> pa.Table:
    """Two rows for each of (id1, 0) and (id1, 1); the last note of an id1 is null."""
    rows = [
        {
            "id1": id1,
            "id2": number // 2,
            "num_cal": number,
            "ts": dt.datetime(2026, 1, 1 + number, 12, tzinfo=dt.UTC),
            "amount": Decimal("12.50"),
            "note": None if number == 3 else f"[red]line {number}",
        }
        for id1 in id1s
        for number in range(4)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@dataclass(frozen=True)
class Run:
    """The exit status and output of one command."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        assert self.stderr == "", self.stderr
        assert self.status == 0
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """The error that `--output json` reports; nothing is on stdout then."""
        assert self.status == 1
        assert self.stdout == ""
        error: dict[str, str] = json.loads(self.stderr)["error"]
        return error


@dataclass(frozen=True)
class Lake:
    """A catalog directory and the command line over it."""

    directory: Path

    def run(self, *arguments: str | int | Path, columns: int | None = None) -> Run:
        environment = {"TABLEFORMAT_CATALOG": str(self.directory), "COLUMNS": None if columns is None else str(columns)}
        result = CliRunner(env=environment).invoke(app, [str(argument) for argument in arguments])
        return Run(result.exit_code, result.stdout, result.stderr)

    def json(self, *arguments: str | int | Path) -> Any:
        return self.run(*arguments, "--output", "json").document

    def error(self, *arguments: str | int | Path) -> dict[str, str]:
        return self.run(*arguments, "--output", "json").error

    @contextmanager
    def table(self, name: str = TABLE) -> Iterator[tf.Table]:
        """The table as Python sees it."""
        with tf.open_catalog(str(self.directory)) as catalog:
            yield catalog.load_table(name)


def make_lake(directory: Path) -> Lake:
    """`db.calendars`: three snapshots, tag `first`, a range and an equality delete, 9 live rows of 12; `db.empty`."""
    with new_lake(directory) as catalog:
        table = catalog.create_table(
            TABLE,
            SCHEMA,
            key=["id1", "id2", "num_cal"],
            partition_by=["bucket(4, id1)"],
            properties={"owner": "[bold]me"},
        )
        table.append(calendar_rows("A", "B", "C"))
        table.create_tag("first")
        table.delete_prefix({"id1": "A", "id2": 0})
        table.delete_rows(pa.table({"note": ["[red]line 1"], "id1": ["B"]}))
        catalog.create_table("db.empty", pa.schema([pa.field("id", pa.int64(), nullable=False)]), key=["id"])
    return Lake(directory)
