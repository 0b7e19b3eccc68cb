"""Keys with other Arrow types than the table's: every operation accepts the values that `append` accepts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf

DAYS = [dt.datetime(2026, 1, day) for day in (1, 2, 3)]
TEXTS = ["a", "b", "c"]
GIVEN: dict[str, tuple[pa.DataType, pa.Array]] = {
    "bytes of a uuid": (pa.uuid(), pa.array([each.encode() * 16 for each in TEXTS], pa.binary(16))),
    "view of text": (pa.string(), pa.array(TEXTS, pa.string_view())),
    "dictionary": (pa.string(), pa.array(TEXTS).dictionary_encode()),
    "view of bytes": (pa.binary(), pa.array([b"a", b"b", b"c"], pa.binary_view())),
    "another zone": (pa.timestamp("us", "UTC"), pa.array(DAYS, pa.timestamp("us", "Europe/Berlin"))),
    "whole numbers": (pa.decimal128(9, 2), pa.array([1, 2, 3])),
}
VERBS: dict[str, Callable[[tf.Table, pa.Table], Any]] = {
    "apply_changes": lambda table, rows: table.apply_changes(rows, order_by=None),
    "upsert": lambda table, rows: table.upsert(rows.drop_columns(["_op"])),
    "upsert that keeps": lambda table, rows: table.upsert(rows.select(["k"]), missing="keep"),
    "append that ignores": lambda table, rows: table.append(rows.drop_columns(["_op"]), on_duplicate="ignore"),
    "replace": lambda table, rows: table.replace(rows.drop_columns(["_op"])),
}


@pytest.mark.parametrize("blind", ["on", "off"])
@pytest.mark.parametrize("given", GIVEN)
def test_operations_accept_the_types_that_append_accepts(tmp_path: Path, given: str, blind: str) -> None:
    """Deletes among change events: their keys used to be compared with the keys of other events before the conversion
    to the column type."""
    key_type, keys = GIVEN[given]
    rows = pa.table({"k": keys, "v": [1, 2, 3], "_op": ["U", "D", "U"]})
    catalog = new_lake(tmp_path / "lake")
    for number, (verb, run) in enumerate(VERBS.items()):
        schema = pa.schema([pa.field("k", key_type, nullable=False), ("v", pa.int64())])
        properties = {"write.delete.blind": "off"} if blind == "off" else {}
        table = catalog.create_table(f"db.t{number}", schema, key=["k"], properties=properties)
        table.append(rows.drop_columns(["_op"]))
        run(table, rows)
        left = [1, 3] if verb == "apply_changes" else [1, 2, 3]
        assert sorted(table.scan().to_arrow()["v"].to_pylist()) == left, verb


@pytest.mark.parametrize("is_lazy", [False, True])
def test_polars_string_views_are_accepted(tmp_path: Path, is_lazy: bool) -> None:
    """Polars exports string views, from which PyArrow cannot take rows: changes, kept columns and merges used to
    fail."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.string()), ("l", pa.list_(pa.string()))])
    table = catalog.create_table("db.t", schema, key=["k"])
    frame = pl.DataFrame({"k": ["a", "b", "a"], "v": ["x", "y", "z"], "_op": ["I", "D", "I"], "l": [["p"], ["q"], []]})
    rows = frame.select("k", "v", "l").head(2)
    given, events = (rows.lazy(), frame.lazy()) if is_lazy else (rows, frame)
    table.append(given)
    table.apply_changes(events, order_by=None)
    assert table.scan().to_arrow().to_pylist() == [{"k": "a", "v": "z", "l": []}]
    table.upsert(given.select("k", "v"), missing="keep")
    table.merge(given, on="k").when_matched_update({"v": "source.v || '!'"}).execute()
    found = sorted(table.scan().to_arrow().to_pylist(), key=str)
    assert found == [{"k": "a", "v": "x!", "l": []}, {"k": "b", "v": "y!", "l": None}]
