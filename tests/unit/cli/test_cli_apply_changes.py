"""The command line: `apply-changes`."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_lake import Lake
from new_lakes import new_lake

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        ("day", pa.date32()),
    ]
)
DAY = dt.date(2026, 1, 2)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.orders", SCHEMA, key=["customer", "order"])
        table.append(
            pa.table({"customer": ["ann", "ann"], "order": [1, 2], "day": pa.array([None, None], pa.date32())})
        )
        catalog.create_table("db.keyless", SCHEMA).append(table.scan().to_arrow())
    return Lake(tmp_path / "lake")


def rows(lake: Lake, name: str = "db.orders") -> list[tuple[Any, ...]]:
    with lake.table(name) as table:
        found = table.scan().to_arrow().sort_by([("customer", "ascending"), ("order", "ascending")])
        return [tuple(row.values()) for row in found.to_pylist()]


def lines(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def test_events_of_files_are_applied_once(lake: Lake, tmp_path: Path) -> None:
    csv = tmp_path / "events.csv"
    csv.write_text("op,lsn,customer,order,day\nD,1,ann,1,\nU,3,ann,2,2026-01-02\nU,2,ann,2,2026-01-01\n")
    command = ("apply-changes", "db.orders", csv, "--op-column", "op", "--order-by", "lsn")
    tried = lake.json(*command, "--dry-run")
    assert (tried["deleted_row_count"], rows(lake)) == (2, [("ann", 1, None), ("ann", 2, None)])
    assert "Dry run: 2 rows would be deleted and 1 row added;" in lake.run(*command, "--dry-run").stdout
    named = ("--application-id", "loader", "--batch-id", "7")
    assert lake.run(*command, *named).stdout.startswith("1 file applied to db.orders.\nSnapshot ")
    assert rows(lake) == [("ann", 2, DAY)]
    more = lines(tmp_path / "more.jsonl", {"customer": "bob", "order": 1, "day": "2026-01-02", "_op": "insert"})
    lake.json("apply-changes", "db.orders", more, "--in-order")
    assert lake.json(*command, *named)["already_applied"]
    assert rows(lake) == [("ann", 2, DAY), ("bob", 1, DAY)]


@pytest.mark.parametrize("wraps", [False, True])
def test_debezium_envelope(lake: Lake, tmp_path: Path, wraps: bool) -> None:
    """CF-14: values inside the row images are converted to the column types."""
    row = {"customer": "ann", "order": 1, "day": "2026-01-02"}
    events: list[dict[str, Any]] = [
        {"before": None, "after": row, "op": "u", "source": {"lsn": 5}},
        {"before": {"customer": "ann", "order": 2, "day": None}, "after": None, "op": "d", "source": {"lsn": 4}},
    ]
    given = lines(tmp_path / "events.json", *({"payload": event} if wraps else event for event in events))
    lake.json("apply-changes", "db.orders", given, "--envelope", "debezium")
    assert rows(lake) == [("ann", 1, DAY)]


@pytest.mark.parametrize("wraps", [False, True])
def test_files_with_different_image_fields(lake: Lake, tmp_path: Path, wraps: bool) -> None:
    """CF-14: a file of deletes has no image after, and its images before may have the key alone."""
    row = {"customer": "ann", "order": 2, "day": "2026-01-02"}
    groups: list[list[dict[str, Any]]] = [
        [{"before": {"order": 1, "customer": "ann"}, "after": None, "op": "d", "source": {"lsn": 4, "xmin": None}}],
        [{"before": None, "after": row, "op": "u", "source": {"lsn": 5}}],
        [{"before": row, "after": {**row, "order": 3}, "op": "u", "source": {"lsn": 6, "xmin": 1}}],
    ]
    given = [
        lines(tmp_path / f"{place}.json", *({"payload": event} if wraps else event for event in events))
        for place, events in enumerate(groups)
    ]
    lake.json("apply-changes", "db.orders", *given, "--envelope", "debezium")
    assert rows(lake) == [("ann", 3, DAY)]
    text = lines(tmp_path / "text.json", {"before": None, "after": {**row, "item": "x"}, "op": "u", "source": 1})
    other = lines(tmp_path / "other.json", {"before": None, "after": {**row, "item": 1}, "op": "u", "source": "1"})
    wrapped = lines(tmp_path / "wrapped.json", {"payload": groups[1][0], "before": None})
    for more in (other, wrapped):
        refused = lake.error("apply-changes", "db.orders", text, more, "--envelope", "debezium", "--in-order")
        assert "have the same columns" in refused["message"]


def test_truncate_event_alone_empties_the_table(lake: Lake, tmp_path: Path) -> None:
    """CF-13"""
    given = lines(tmp_path / "events.json", {"before": None, "after": None, "op": "t", "source": {"lsn": 5}})
    lake.json("apply-changes", "db.orders", given, "--envelope", "debezium")
    assert rows(lake) == []


def test_keyless_rows_are_matched_by_all_columns(lake: Lake, tmp_path: Path) -> None:
    """CF-15"""
    gone = lines(tmp_path / "gone.jsonl", {"customer": "ann", "order": 1, "day": None, "_op": "D", "_ts": 1})
    assert "key=None" in lake.error("apply-changes", "db.keyless", gone)["message"]
    lake.json("apply-changes", "db.keyless", gone, "--whole-rows")
    assert rows(lake, "db.keyless") == [("ann", 2, None)]
    assert lake.error("apply-changes", "db.keyless", gone, "--whole-rows")["type"] == "RowNotFoundError"


def test_invalid_option_combinations_are_rejected(lake: Lake, tmp_path: Path) -> None:
    some = lines(tmp_path / "some.jsonl", {"customer": "ann", "order": 1, "_op": "U", "_ts": 1})
    assert lake.run("apply-changes", "db.orders", some, "--order-by", "_ts", "--in-order").status == 2
    assert "lack 'day'" in lake.error("apply-changes", "db.orders", some)["message"]
    lake.json("apply-changes", "db.orders", some, "--missing", "keep", "--branch", "main")
    assert rows(lake) == [("ann", 1, None), ("ann", 2, None)]


def test_if_unchanged_since_rejects_concurrent_changes(lake: Lake, tmp_path: Path) -> None:
    with lake.table("db.orders") as table:
        read = str(table.snapshot_id)
    event = lines(tmp_path / "event.jsonl", {"customer": "ann", "order": 1, "_op": "delete"})
    command = ("apply-changes", "db.orders", event, "--in-order", "--if-unchanged-since")
    lake.json("load", "db.orders", lines(tmp_path / "row.jsonl", {"customer": "ann", "order": 1}))
    assert lake.error(*command, read)["type"] == "ScopeChangedError"
    with lake.table("db.orders") as table:
        read = str(table.snapshot_id)
    assert lake.json(*command, read)["deleted_row_count"] is None
    assert rows(lake) == [("ann", 2, None)]


def test_stale_rows_with_order_column_are_skipped(lake: Lake, tmp_path: Path) -> None:
    """CP-69: load as well."""
    with lake.table("db.orders") as table:
        table.set_properties({"tableformat.order-column": "day"})
    newer = lines(tmp_path / "newer.jsonl", {"customer": "ann", "order": 1, "day": "2026-01-02"})
    older = lines(tmp_path / "older.jsonl", {"customer": "ann", "order": 1, "day": "2026-01-01"})
    events = lines(tmp_path / "events.jsonl", {"customer": "ann", "order": 1, "day": "2026-01-01", "_op": "delete"})
    lake.json("load", "db.orders", newer, "--upsert", "--on-stale", "error")
    assert lake.json("apply-changes", "db.orders", events, "--in-order")["stale_row_count"] == 1
    failing = ("apply-changes", "db.orders", events, "--in-order", "--on-stale", "error")
    assert lake.error(*failing)["type"] == "StaleRowsError"
    for option in (("--upsert",), ("--replace-prefix", "customer,order")):
        command = ("load", "db.orders", older, *option)
        assert lake.json(*command)["stale_row_count"] == 1
        assert lake.error(*command, "--on-stale", "error")["type"] == "StaleRowsError"
    assert rows(lake) == [("ann", 1, DAY), ("ann", 2, None)]
    assert lake.run("load", "db.orders", older, "--on-stale", "error").status == 2
