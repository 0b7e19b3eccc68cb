"""The command line: `load`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_lake import Lake
from new_lakes import new_lake

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        ("at", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("code", pa.string()),
    ]
)
AT = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
ROWS = [
    {"id": 1, "day": dt.date(2026, 1, 1), "at": AT, "amount": Decimal("1.50"), "code": "007"},
    {"id": 2, "day": dt.date(2026, 1, 2), "at": None, "amount": None, "code": None},
]
FILES = {
    "rows.csv": "id,day,at,amount,code\n1,2026-01-01,2026-01-02T03:00:00Z,1.50,007\n2,2026-01-02,,,\n",
    "rows.jsonl": '{"id": 1, "day": "2026-01-01", "at": "2026-01-02T03:00:00Z", "amount": "1.50", "code": "007"}\n'
    '{"id": 2, "day": "2026-01-02"}\n',
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    with new_lake(tmp_path / "lake") as catalog:
        catalog.create_table("db.t", SCHEMA, key=["id", "day"])
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), tmp_path / "rows.parquet")
    return Lake(tmp_path / "lake")


def rows(lake: Lake) -> list[dict[str, Any]]:
    with lake.table("db.t") as table:
        found: list[dict[str, Any]] = (
            table.scan().to_arrow().sort_by([("id", "ascending"), ("day", "ascending")]).to_pylist()
        )
        return found


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_values_are_converted_to_column_types(lake: Lake, tmp_path: Path, name: str) -> None:
    """Text that looks like a number stays text; empty or missing values are null."""
    loaded = lake.json("load", "db.t", tmp_path / name)
    assert (loaded["added_row_count"], loaded["files"]) == (2, [str(tmp_path / name)])
    assert rows(lake) == ROWS


def test_rows_are_replaced_by_key_or_by_prefix(lake: Lake, tmp_path: Path) -> None:
    assert lake.json("load", "db.t", tmp_path / "rows.csv")["added_row_count"] == 2
    (tmp_path / "one.csv").write_text('id,day,at,amount,code\n1,2026-01-01,,,""\n')
    lake.json("load", "db.t", tmp_path / "one.csv", "--upsert")
    assert [row["code"] for row in rows(lake)] == ["", None]
    (tmp_path / "two.csv").write_text("id,day,at,amount,code\n2,2026-03-01,,,x\n")
    run = lake.run("load", "db.t", tmp_path / "two.csv", tmp_path / "one.csv", "--replace-prefix", "id")
    assert run.stdout.startswith("2 files loaded into db.t.\nSnapshot ")
    assert [(row["id"], row["day"], row["code"]) for row in rows(lake)] == [
        (1, dt.date(2026, 1, 1), ""),
        (2, dt.date(2026, 3, 1), "x"),
    ]


def test_the_newest_rows_of_each_prefix_or_key_are_loaded(lake: Lake, tmp_path: Path) -> None:
    """CP-66"""
    (tmp_path / "old.csv").write_text("id,day,code\n1,2026-01-01,old\n2,2026-01-01,old\n3,2026-01-01,old\n")
    lake.json("load", "db.t", tmp_path / "old.csv")
    day = '"day": "2026-01-0'
    (tmp_path / "new.jsonl").write_text(
        f'{{"id": 1, {day}2", "code": "a", "offset": 7}}\n{{"id": 1, {day}3", "code": "b", "offset": 8}}\n'
        '{"id": 2, "day": null, "code": null, "offset": 9}\n'
    )
    lake.json("load", "db.t", tmp_path / "new.jsonl", "--replace-prefix", "id", "--order-by", "offset")
    assert [(row["id"], row["day"].day, row["code"]) for row in rows(lake)] == [(1, 3, "b"), (3, 1, "old")]
    (tmp_path / "twice.csv").write_text("id,day,at,amount,code,offset\n3,2026-01-01,,,z,2\n3,2026-01-01,,,y,1\n")
    (tmp_path / "same.csv").write_text("id,day,at,amount,code\n3,2026-01-01,,,\n3,2026-01-01,,,\n")
    assert "order_by" in lake.error("load", "db.t", tmp_path / "same.csv", "--upsert")["message"]
    lake.json("load", "db.t", tmp_path / "twice.csv", "--upsert", "--order-by", "offset")
    assert [row["code"] for row in rows(lake)] == ["b", "z"]
    assert lake.run("load", "db.t", tmp_path / "twice.csv", "--order-by", "offset").status == 2


def test_named_batches_are_committed_once(lake: Lake, tmp_path: Path) -> None:
    """CP-14: run, change something else, run again with the same names."""
    named = ("--application-id", "loader", "--batch-id")
    path = tmp_path / "rows.csv"
    commands = (
        ("load", "db.t", path, *named, "1"),
        ("load", "db.t", path, "--upsert", *named, "2"),
        ("load", "db.t", path, "--replace-prefix", "id", *named, "3"),
        ("delete-prefix", "db.t", "id=7", *named, "4"),
        ("delete-range", "db.t", "--lower", "7", *named, "5"),
    )
    (tmp_path / "late.csv").write_text("id,day\n1,2026-01-01\n7,2026-01-01\n")
    for command in commands:
        assert lake.json(*command)["already_applied"] is False
        lake.json("load", "db.t", tmp_path / "late.csv")
        before = rows(lake)
        assert lake.json(*command)["already_applied"] is True
        assert lake.run(*command).stdout.strip() == "This batch was already committed; nothing was changed."
        assert rows(lake) == before
    assert lake.run("load", "db.t", path, "--batch-id", "9").status == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rows.txt", "", "files of one format"),
        ("bad.csv", "id,day\nx,2026-01-01\n", "x"),
        ("late.csv", "id,day\n" + "1,2026-01-01\n" * 100_000 + "x,2026-01-01\n", "cannot be read: In CSV column #0"),
        ("bad.json", '{"id": 1', "cannot be read"),
        ("array.json", '[{"id": 1, "day": "2026-01-01"}]', "without an array around them"),
        (
            "nulls.csv",
            "id,day\n,2026-01-01\n2,\n",
            "Rejected: row 0: id is null in a required column; row 1: day is null in a required column.",
        ),
        ("dates.json", '{"id": 1, "day": "soon"}', "cannot be read"),
        ("more.csv", "id,day,more\n1,2026-01-01,2\n", "more"),
        ("less.csv", "id\n1\n", "day"),
    ],
)
def test_unreadable_file_is_rejected(lake: Lake, tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    assert message in lake.error("load", "db.t", tmp_path / name)["message"]
    assert rows(lake) == []


def test_mixed_file_formats_are_rejected(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "less.csv").write_text("id,day\n1,2026-01-01\n")
    both = lake.error("load", "db.t", tmp_path / "rows.csv", tmp_path / "rows.parquet")
    assert "one format" in both["message"]
    assert "same columns" in lake.error("load", "db.t", tmp_path / "rows.csv", tmp_path / "less.csv")["message"]
    assert "lack" in lake.error("load", "db.t", tmp_path / "less.csv", "--upsert")["message"]
    assert lake.run("load", "db.t", tmp_path / "rows.csv", "--upsert", "--replace-prefix", "id").status == 2
    assert rows(lake) == []
