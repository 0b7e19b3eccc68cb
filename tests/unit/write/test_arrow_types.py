"""Arrow types of callers: those a table can be created from, and whether their values are read back unchanged."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, MapType, NestedField, StringType, StructType, UUIDType

import tableformat as tf
from tableformat.errors import InvalidArgumentError, SchemaMismatchError

ONE: Final = uuid.UUID(int=5)
MOMENT: Final = dt.datetime(2026, 1, 2, 3, 4, 5)


def extension(kind: pa.BaseExtensionType, stored: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, stored)


KINDS: Final[dict[str, tuple[pa.Array, str, list[Any]]]] = {
    "uint8": (pa.array([255], pa.uint8()), "int", [255]),
    "uint16": (pa.array([2**16 - 1], pa.uint16()), "int", [2**16 - 1]),
    "uint32": (pa.array([2**32 - 1], pa.uint32()), "long", [2**32 - 1]),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), "decimal(20, 0)", [Decimal(2**64 - 1)]),
    "float16": (pa.array([np.float16(1.5)], pa.float16()), "float", [1.5]),
    "decimal32": (pa.array([Decimal("1.5")], pa.decimal32(5, 1)), "decimal(5, 1)", [Decimal("1.5")]),
    "decimal64": (pa.array([Decimal("1.5")], pa.decimal64(15, 1)), "decimal(15, 1)", [Decimal("1.5")]),
    "decimal256": (pa.array([Decimal("1.5")], pa.decimal256(38, 1)), "decimal(38, 1)", [Decimal("1.5")]),
    "bool8": (extension(pa.bool8(), pa.array([1, 0], pa.int8())), "boolean", [True, False]),
    "json": (extension(pa.json_(), pa.array(["{}"])), "string", ["{}"]),
    "run ends": (pc.run_end_encode(pa.array(["a", "a"])), "string", ["a", "a"]),
    "run ends in a struct": (
        pa.StructArray.from_arrays([pc.run_end_encode(pa.array([1, 1]))], names=["a"]),
        "struct<3: a: optional long>",
        [{"a": 1}, {"a": 1}],
    ),
    "run ends in a list": (
        pa.ListArray.from_arrays([0, 2], pc.run_end_encode(pa.array([1, 1]))),
        "list<long>",
        [[1, 1]],
    ),
    "dictionary": (pa.array(["a", "b"]).dictionary_encode(), "string", ["a", "b"]),
    "string view": (pa.array(["a"], pa.string_view()), "string", ["a"]),
    "binary view": (pa.array([b"a"], pa.binary_view()), "binary", [b"a"]),
    "list view": (pa.array([[1], None], pa.list_view(pa.int64())), "list<long>", [[1], None]),
    "large list view": (pa.array([[1]], pa.large_list_view(pa.int64())), "list<long>", [[1]]),
    "fixed size list": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "list<long>", [[1, 2]]),
    "date64": (pa.array([MOMENT.date()], pa.date64()), "date", [MOMENT.date()]),
    "time32": (pa.array([MOMENT.time()], pa.time32("s")), "time", [MOMENT.time()]),
    "time64": (pa.array([MOMENT.time()], pa.time64("ns")), "time", [MOMENT.time()]),
    "seconds": (pa.array([MOMENT], pa.timestamp("s")), "timestamp", [MOMENT]),
    "zone": (
        pa.array([MOMENT.replace(tzinfo=dt.UTC)], pa.timestamp("ms", "Europe/Berlin")),
        "timestamptz",
        [MOMENT.replace(tzinfo=dt.UTC)],
    ),
    "map": (pa.array([[(1.5, 2)]], pa.map_(pa.float64(), pa.int64())), "map<double, long>", [[(1.5, 2)]]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_table_created_from_arrow_type_accepts_its_values(catalog: tf.Catalog, kind: str) -> None:
    values, iceberg_type, read = KINDS[kind]
    rows = pa.table({"n": pa.array(range(len(values))), "x": values})
    table = catalog.create_table("db.t", rows.schema, key=["n"])
    assert str(table.iceberg.schema().find_type("x")) == iceberg_type
    table.append(rows)
    table.upsert(rows)
    table.merge(rows, on="n").when_matched_update_all().when_not_matched_insert_all().execute()
    table.apply_changes(rows.append_column("_op", pa.array(["U"] * len(rows))), order_by=None)
    assert table.scan().to_arrow().sort_by("n")["x"].to_pylist() == read


@pytest.mark.parametrize("stored", ["list view", "large list view", "fixed size list", "zone", "dictionary", "json"])
def test_file_with_foreign_arrow_type_is_added(catalog: tf.Catalog, tmp_path: Path, stored: str) -> None:
    values, _, read = KINDS[stored]
    rows = pa.table({"x": values})
    table = catalog.create_table("db.t", rows.schema)
    pq.write_table(rows, tmp_path / "of_others.parquet")
    table.add_files([str(tmp_path / "of_others.parquet")])
    assert table.scan().to_arrow()["x"].to_pylist() == read
    assert not table.maintenance.verify(deep=True).findings


def test_all_unsupported_types_are_listed_in_one_error(catalog: tf.Catalog) -> None:
    inside = pa.struct([("wide", pa.decimal256(50, 2)), ("none", pa.null())])
    schema = pa.schema([("took", pa.duration("s")), ("part", inside), ("gap", pa.month_day_nano_interval())])
    with pytest.raises(InvalidArgumentError) as refusal:
        catalog.create_table("db.t", schema)
    for column in ("'took'", "'part.wide'", "'part.none'", "'gap'"):
        assert column in str(refusal.value)
    assert not catalog.table_exists("db.t")


def test_all_mismatched_columns_are_listed_in_one_error(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.date32()), ("c", pa.string())]))
    with pytest.raises(SchemaMismatchError) as refusal:
        table.append(pa.table({"a": ["x"], "b": [1], "c": ["fits"]}))
    assert "'a'" in str(refusal.value)
    assert "'b'" in str(refusal.value)
    assert "'c'" not in str(refusal.value)


def test_files_with_unsupported_types_are_rejected(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: all columns that are concerned are named."""
    columns = {
        "half": pa.array([np.float16(1)], pa.float16()),
        "time": pa.array([MOMENT.time()], pa.time32("ms")),
        "count": pa.array([1], pa.uint32()),
        "flag": extension(pa.bool8(), pa.array([1], pa.int8())),
    }
    rows = pa.table(columns)
    table = catalog.create_table("db.t", rows.schema)
    pq.write_table(rows, tmp_path / "of_others.parquet")
    with pytest.raises(InvalidArgumentError) as refusal:
        table.add_files([str(tmp_path / "of_others.parquet")])
    assert all(f"{name!r} as" in str(refusal.value) for name in columns)
    table.append(rows)
    assert table.scan().count() == 1


def test_file_with_int96_timestamps_is_rejected(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: INT96 is deprecated, and its files have no bounds."""
    rows = pa.table({"at": pa.array([MOMENT], pa.timestamp("us"))})
    table = catalog.create_table("db.t", rows.schema)
    pq.write_table(rows, tmp_path / "of_spark.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(InvalidArgumentError, match="'at' as INT96"):
        table.add_files([str(tmp_path / "of_spark.parquet")])


def test_nested_uuids_round_trip(catalog: tf.Catalog) -> None:
    inside = StructType(NestedField(6, "u", UUIDType(), required=False))
    schema = Schema(
        NestedField(1, "l", ListType(2, UUIDType(), element_required=False), required=False),
        NestedField(3, "m", MapType(4, StringType(), 5, UUIDType(), value_required=False), required=False),
        NestedField(7, "s", inside, required=False),
    )
    table = catalog.create_table("db.t", schema)
    row = {"l": [ONE, None], "m": [("k", ONE)], "s": {"u": ONE}}
    table.append([row, {}])
    table.append([{"l": [str(ONE), None]}])
    read = table.scan().to_arrow().to_pylist()
    expected = [row, dict.fromkeys(row), {**dict.fromkeys(row), "l": [ONE, None]}]
    assert sorted(map(repr, read)) == sorted(map(repr, expected))
    frame = table.scan("s IS NOT NULL").to_pandas()
    assert list(frame["l"][0]) == [ONE.bytes, None]
    assert frame["s"][0] == {"u": ONE.bytes}
