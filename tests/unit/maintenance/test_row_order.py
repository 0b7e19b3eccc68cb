"""Sort orders and z-orders that the caller of a compaction requests, for tables without a key."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.sort_marker import sorted_by
from tableformat.maintenance.compaction.row_order import (
    ORDER_COLUMN,
    OrderBytes,
    row_order,
)
from tableformat.properties import WRITE_MEMORY_BYTES
from tableformat.testing.table_files import live_data_files

POINTS = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("name", pa.string()), ("v", pa.float64())])
_DAY = dt.date(2026, 1, 1)
_NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
VALUES: dict[Any, list[Any]] = {
    LongType(): [None, -(2**63), -1, 0, 7, 2**63 - 1],
    DoubleType(): [None, -math.inf, -1.5, 0.0, 1e-300, math.inf, math.nan],
    DecimalType(20, 2): [None, Decimal("-1.5"), Decimal("0"), Decimal("0.01"), Decimal("9e15")],
    StringType(): [None, "", "a", "a\0", "ab", "b", "\ue000", "\U0001f600"],
    BinaryType(): [None, b"", b"\0", b"\0\xff", b"\xff", b"\xff\xff"],
    BooleanType(): [None, False, True],
    DateType(): [None, _DAY - dt.timedelta(40_000), _DAY],
    TimestamptzType(): [None, _NOON, _NOON + dt.timedelta(microseconds=1)],
}
"""In rising order, nulls first."""


def ordered(rows: pa.Table, schema: Schema, order: Any) -> pa.Table:
    (batch,) = rows.to_batches()
    placed = pa.Table.from_batches([OrderBytes(order, schema, []).with_order(batch)])
    return placed.sort_by(ORDER_COLUMN).drop_columns([ORDER_COLUMN])


@pytest.mark.parametrize("value_type", VALUES, ids=str)
def test_sort_by_every_type_and_direction(value_type: Any) -> None:
    """MT-93: the order of RD-4, turned over, with nulls at either end; the second column decides between equals."""
    from tableformat.metadata.arrow_schema import arrow_schema

    schema = Schema(NestedField(1, "x", value_type), NestedField(2, "n", LongType()))
    values = VALUES[value_type]
    shuffled = np.random.default_rng(1).permutation(np.repeat(np.arange(len(values)), 2))
    table = pa.table(
        {"x": [values[place] for place in shuffled], "n": np.arange(len(shuffled))}, schema=arrow_schema(schema)
    )
    ranks = dict(zip(range(len(table)), shuffled.tolist(), strict=True))
    for direction, nulls in (("ASC", "FIRST"), ("ASC", "LAST"), ("DESC", "FIRST"), ("DESC", "LAST")):
        order = row_order(schema, sort_by=[f"x {direction} nulls {nulls.lower()}", "n desc"])
        rising = list(range(1, len(values)))[:: 1 if direction == "ASC" else -1]
        wanted = [0, *rising] if nulls == "FIRST" else [*rising, 0]
        numbers = ordered(table, schema, order)["n"].to_pylist()
        assert [ranks[number] for number in numbers] == np.repeat(wanted, 2).tolist()
        assert all(one > other for one, other in zip(numbers[::2], numbers[1::2], strict=True))


def test_default_null_order_is_icebergs() -> None:
    schema = Schema(NestedField(1, "x", LongType()))
    told = row_order(schema, sort_by=["x"]), row_order(schema, sort_by=["`x` DESC"])
    assert [each.columns[0].nulls_first for each in told if each is not None] == [True, False]


def points(tmp_path: Path, *, version: int = 2, properties: dict[str, str] | None = None) -> tf.Table:
    """1,024 points of a grid in 4 files, in no order, and a row of nulls; names begin alike."""
    catalog = new_lake(tmp_path)
    given = {"format-version": str(version), **(properties or {})}
    table = catalog.create_table("db.points", POINTS, properties=given)
    a, b = (each.ravel() for each in np.meshgrid(np.arange(32), np.arange(32)))
    shuffled = np.random.default_rng(2).permutation(len(a))
    for part in np.split(shuffled, 4):
        names = [f"customer-{number:05}" for number in b[part]]
        table.append(
            pa.table({"a": a[part] * 1_000, "b": b[part], "name": names, "v": part.astype(float)}, schema=POINTS)
        )
    table.append(pa.table([[None]] * 4, schema=POINTS))
    return table


def stored(table: tf.Table) -> pa.Table:
    """The rows as they follow one another, file by file."""
    return table.refresh().scan().to_arrow()


@pytest.mark.parametrize("version", [2, 3])
def test_files_are_sorted_as_requested(tmp_path: Path, version: int) -> None:
    """MT-93, FM-7, MT-49: rows and their ids stay, deleted ones go, and no marker promises the order of a key."""
    table = points(tmp_path, version=version, properties={WRITE_MEMORY_BYTES: "200000"})
    table.delete("v = 5", mode="scan")
    ids = ["_row_id"] if version == 3 else []
    before = table.scan(columns=[*POINTS.names, *ids]).to_arrow()
    result = table.maintenance.compact(sort_by=["name DESC NULLS FIRST", "a"], rewrite_all=True)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (5, 1)
    after = table.refresh().scan(columns=[*POINTS.names, *ids]).to_arrow()
    keys = [("name", "descending", "at_start"), ("a", "ascending", "at_start")]
    assert after.select(POINTS.names) == before.select(POINTS.names).sort_by(keys).combine_chunks()
    assert after.sort_by("v") == before.sort_by("v")
    (data,) = live_data_files(table)
    assert sorted_by(pq.read_metadata(data.file_path.removeprefix("file://")).metadata) is None
    assert data.sort_order_id is None


def shares_read(tmp_path: Path, filters: tuple[str, ...], **order: Any) -> list[float]:
    """The share of files that a scan reads for each filter; each filter matches a row or a column of the grid."""
    table = points(tmp_path)
    size = sum(data.file_size_bytes for data in live_data_files(table)) // 40
    together = {"rewrite_all": True, "max_file_group_size_bytes": 10**9}
    table.maintenance.compact(target_file_size_bytes=size, **together, **order)
    assert stored(table)["a"][0].as_py() in (None, 0), "nulls are where the smallest value is"
    files = len(live_data_files(table))
    assert files > 20
    assert [table.scan(where).count() for where in filters] == [32, 32]
    return [len(table.scan(where).plan().tasks) / files for where in filters]


def test_z_order_clusters_both_columns(tmp_path: Path) -> None:
    """MT-94: a filter on either column reads few of the files; a sort serves the first column alone."""
    filters = ("a = 9000", "b = 9")
    by_first, by_second = shares_read(tmp_path / "sort", filters, sort_by=["a", "b"])
    assert by_first < 0.15
    assert by_second > 0.6
    assert max(shares_read(tmp_path / "z-order", filters, z_order=["a", "b"])) < 0.4


def test_invalid_sort_orders_are_rejected(tmp_path: Path) -> None:
    """MT-93, FM-6."""
    table = points(tmp_path)
    nested = table.catalog.create_table(  # type: ignore[union-attr]
        "db.nested", pa.schema([("s", pa.struct([("x", pa.int64())])), ("n", pa.int64())])
    )
    compact = table.maintenance.compact
    with pytest.raises(UnknownColumnError):
        compact(sort_by=["nam"])
    with pytest.raises(InvalidArgumentError, match="has no order"):
        nested.maintenance.compact(z_order=["s", "n"])
    for arguments, message in (
        ({"sort_by": "a"}, "must be a list of columns"),
        ({"sort_by": []}, "must be a list of columns"),
        ({"sort_by": ["a down"]}, "not a sort column"),
        ({"sort_by": ["a"], "z_order": ["a", "v"]}, "rows have only one order"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            compact(**arguments)  # type: ignore[arg-type]


def test_keyed_table_only_accepts_its_key_order(tmp_path: Path) -> None:
    """MT-93, FM-6: its leading columns may be named; the files keep the marker."""
    with new_lake(tmp_path) as catalog:
        table = catalog.create_table("db.t", POINTS, key=["a", "name"])
        for number in (2, 1):
            table.append(pa.table({"a": [number], "b": [0], "name": ["x"], "v": [0.0]}))
        for order in ({"sort_by": ["name"]}, {"sort_by": ["a DESC"]}, {"z_order": ["a", "name"]}):
            with pytest.raises(InvalidArgumentError, match=r"sorted by the key, 'a, name'.*Omit the order"):
                table.maintenance.compact(rewrite_all=True, **order)  # type: ignore[arg-type]
        table.maintenance.compact(rewrite_all=True, sort_by=["a"])
        (data,) = live_data_files(table)
        assert sorted_by(pq.read_metadata(data.file_path.removeprefix("file://")).metadata) is not None
        assert stored(table)["a"].to_pylist() == [1, 2]
