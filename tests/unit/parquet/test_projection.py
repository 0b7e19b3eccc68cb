"""Mapping columns of data files to columns of scans: by field id, at every level, for files of any writer."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from tableformat.errors import CorruptFileError
from tableformat.parquet.projection import FileProjection


def field(name: str, data_type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, data_type, metadata={"PARQUET:field_id": str(field_id)})


def optional(field_id: int, name: str, field_type: IcebergType, **options: Any) -> NestedField:
    return NestedField(field_id, name, field_type, required=False, **options)


def read(path: Path, stored: pa.Table, wanted: Schema, constants: dict[int, Any] | None = None) -> pa.Table:
    """Write the table to Parquet and read it in the wanted schema, through two row groups."""
    pq.write_table(stored, path / "f.parquet", row_group_size=max(1, stored.num_rows // 2))
    file = pq.ParquetFile(path / "f.parquet")
    projection = FileProjection.of(file.schema_arrow, wanted, "f.parquet", constants or {})
    rows = file.reader.read_row_groups(
        list(range(file.num_row_groups)), column_indices=list(projection.leaf_indices), use_threads=False
    )
    result = projection.apply(rows, stored.num_rows)
    result.validate(full=True)
    file.close()
    return result


def test_renamed_reordered_dropped_and_swapped_columns(tmp_path: Path) -> None:
    """By id, never by name: a and b have been swapped."""
    stored = pa.table(
        [[1, 2], ["x", "y"], [True, False]],
        schema=pa.schema([field("a", pa.int64(), 1), field("b", pa.string(), 2), field("c", pa.bool_(), 3)]),
    )
    wanted = Schema(optional(2, "a", StringType()), optional(1, "b", LongType()))
    assert read(tmp_path, stored, wanted).to_pydict() == {"a": ["x", "y"], "b": [1, 2]}


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        (pa.array([1, None], pa.int32()), LongType(), [1, None]),
        (pa.array([1, None], pa.int8()), IntegerType(), [1, None]),
        (pa.array([1.5, None], pa.float32()), DoubleType(), [1.5, None]),
        (pa.array([Decimal("1.25")], pa.decimal128(4, 2)), DecimalType(10, 2), [Decimal("1.25")]),
        (pa.array(["a"], pa.large_string()), StringType(), ["a"]),
        (pa.array(["a", "a"]).dictionary_encode(), StringType(), ["a", "a"]),
        (pa.array([b"a"], pa.binary()), StringType(), ["a"]),
        (pa.array([b"a"], pa.large_binary()), BinaryType(), [b"a"]),
        (pa.array([uuid.UUID(int=1).bytes], pa.binary(16)), UUIDType(), [uuid.UUID(int=1)]),
        (pa.array([-1], pa.timestamp("ns")), TimestampType(), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
        (pa.array([5], pa.timestamp("ms")), TimestampType(), [dt.datetime(1970, 1, 1, 0, 0, 0, 5000)]),
        (pa.array([0], pa.timestamp("us")), TimestamptzType(), [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
        (pa.array([1], pa.date32()), TimestampType(), [dt.datetime(1970, 1, 2)]),
        (pa.nulls(2), StringType(), [None, None]),
    ],
    ids=str,
)
def test_promoted_and_foreign_types_are_converted(
    tmp_path: Path, stored: pa.Array, wanted: IcebergType, expected: list[Any]
) -> None:
    table = pa.table([stored], schema=pa.schema([field("x", stored.type, 1)]))
    result = read(tmp_path, table, Schema(optional(1, "x", wanted)))
    assert result["x"].to_pylist() == expected


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array(["1"]), LongType()),
        (pa.array([1]), StringType()),
        (pa.array([1]), DateType()),
        (pa.array([[1]]), LongType()),
        (pa.array([1]), ListType(2, LongType(), element_required=False)),
        (pa.array([2**40]), IntegerType()),
        (pa.array([b"\xff"]), StringType()),
    ],
    ids=str,
)
def test_incompatible_stored_type_is_corrupt(tmp_path: Path, stored: pa.Array, wanted: IcebergType) -> None:
    table = pa.table([stored], schema=pa.schema([field("x", stored.type, 1)]))
    with pytest.raises(CorruptFileError, match=r"f\.parquet.*'x'"):
        read(tmp_path, table, Schema(optional(1, "x", wanted)))


@pytest.mark.parametrize(
    ("added", "constants", "expected"),
    [
        (optional(2, "new", LongType()), {}, None),
        (optional(2, "new", LongType(), initial_default=7), {}, 7),
        (optional(2, "new", LongType(), initial_default=7), {2: 9}, 9),
        (optional(2, "new", LongType(), initial_default=7), {2: None}, None),
        (NestedField(2, "new", StringType(), required=True, initial_default="x"), {}, "x"),
        (optional(2, "new", DateType(), initial_default=dt.date(2024, 1, 1)), {}, dt.date(2024, 1, 1)),
        (optional(2, "new", DateType()), {2: 1}, dt.date(1970, 1, 2)),
        (optional(2, "new", TimestampType()), {2: 5}, dt.datetime(1970, 1, 1, 0, 0, 0, 5)),
        (optional(2, "new", DecimalType(4, 2), initial_default=Decimal("1.25")), {}, Decimal("1.25")),
        (optional(2, "new", UUIDType(), initial_default=uuid.UUID(int=3)), {}, uuid.UUID(int=3)),
        (optional(2, "new", UUIDType()), {}, None),
        (optional(2, "new", StructType(optional(3, "x", LongType()))), {}, None),
        (optional(2, "new", ListType(3, LongType(), element_required=False)), {}, None),
        (optional(2, "new", BinaryType(), initial_default=b"\x00\xff"), {}, b"\x00\xff"),
    ],
)
def test_missing_columns_use_partition_value_default_or_null(
    tmp_path: Path, added: NestedField, constants: dict[int, Any], expected: Any
) -> None:
    """FM-21, DA-6's order for reading: the partition's value, null included, then the initial default, then null."""
    stored = pa.table([[1, 2]], schema=pa.schema([field("a", pa.int64(), 1)]))
    result = read(tmp_path, stored, Schema(optional(1, "a", LongType()), added), constants)
    assert result["new"].to_pylist() == [expected, expected]
    only = read(tmp_path, stored, Schema(added), constants)
    assert only["new"].to_pylist() == [expected, expected]


def test_missing_required_column_raises_error(tmp_path: Path) -> None:
    """FM-21."""
    stored = pa.table([[1]], schema=pa.schema([field("a", pa.int64(), 1)]))
    with pytest.raises(CorruptFileError, match=r"lacks the required column 'b' \(2\)"):
        read(tmp_path, stored, Schema(NestedField(2, "b", LongType(), required=True)))


STRUCT = pa.struct([field("x", pa.int32(), 2), field("old", pa.string(), 3), field("z", pa.bool_(), 4)])
STRUCTS = [{"x": 1, "old": "a", "z": True}, None, {"x": None, "old": None, "z": False}, {"x": 4, "old": "d", "z": None}]


def test_struct_fields_evolve_like_columns(tmp_path: Path) -> None:
    stored = pa.table([pa.array(STRUCTS, STRUCT)], schema=pa.schema([field("s", STRUCT, 1)]))
    wanted = Schema(
        optional(
            1,
            "renamed",
            StructType(
                optional(4, "flag", BooleanType()),
                optional(9, "added", StringType(), initial_default="n"),
                optional(2, "x", LongType()),
            ),
        )
    )
    assert read(tmp_path, stored, wanted)["renamed"].to_pylist() == [
        {"flag": True, "added": "n", "x": 1},
        None,
        {"flag": False, "added": "n", "x": None},
        {"flag": None, "added": "n", "x": 4},
    ]


def test_struct_without_stored_fields_keeps_its_nulls(tmp_path: Path) -> None:
    stored = pa.table([pa.array(STRUCTS, STRUCT)], schema=pa.schema([field("s", STRUCT, 1)]))
    wanted = Schema(optional(1, "s", StructType(optional(9, "added", LongType()))))
    assert read(tmp_path, stored, wanted)["s"].to_pylist() == [{"added": None}, None, {"added": None}, {"added": None}]


def test_only_the_selected_field_of_a_struct_is_read(tmp_path: Path) -> None:
    stored = pa.table(
        [pa.array(STRUCTS, STRUCT), [1, 2, 3, 4]], schema=pa.schema([field("s", STRUCT, 1), field("n", pa.int64(), 5)])
    )
    wanted = Schema(optional(5, "n", LongType()), optional(1, "s", StructType(optional(3, "old", StringType()))))
    projection = FileProjection.of(stored.schema, wanted, "f", {})
    assert projection.leaf_indices == (1, 3)
    assert read(tmp_path, stored, wanted)["s"].to_pylist() == [{"old": "a"}, None, {"old": None}, {"old": "d"}]


LISTS = [[1, 2], None, [], [None, 3]]


def test_elements_of_lists_are_promoted(tmp_path: Path) -> None:
    list_type = pa.list_(field("element", pa.int32(), 2))
    stored = pa.table([pa.array(LISTS, list_type)], schema=pa.schema([field("l", list_type, 1)]))
    wanted = Schema(optional(1, "l", ListType(2, LongType(), element_required=False)))
    result = read(tmp_path, stored, wanted)
    assert result["l"].to_pylist() == LISTS
    assert result["l"].type.value_type == pa.int64()
    large = pa.large_list(field("element", pa.int32(), 2))
    stored = pa.table([pa.array(LISTS, large)], schema=pa.schema([field("l", large, 1)]))
    assert read(tmp_path, stored, wanted)["l"].to_pylist() == LISTS


def test_structs_in_lists_and_maps_evolve(tmp_path: Path) -> None:
    inner = pa.struct([field("x", pa.int32(), 3), field("y", pa.int32(), 4)])
    list_type = pa.list_(field("element", inner, 2))
    map_type = pa.map_(field("key", pa.string(), 6).with_nullable(False), field("value", inner, 7))
    inner_of_map = pa.struct([field("x", pa.int32(), 8), field("y", pa.int32(), 9)])
    map_type = pa.map_(field("key", pa.string(), 6).with_nullable(False), field("value", inner_of_map, 7))
    lists = [[{"x": 1, "y": 2}, None], None, [], [{"x": None, "y": 5}]]
    maps = [[("a", {"x": 1, "y": 2})], None, [], [("b", None), ("c", {"x": 3, "y": None})]]
    stored = pa.table(
        [pa.array(lists, list_type), pa.array(maps, map_type)],
        schema=pa.schema([field("l", list_type, 1), field("m", map_type, 5)]),
    )
    wanted = Schema(
        optional(1, "l", ListType(2, StructType(optional(4, "y2", LongType())), element_required=False)),
        optional(
            5,
            "m",
            MapType(
                6,
                StringType(),
                7,
                StructType(optional(20, "new", LongType()), optional(8, "x", LongType())),
                value_required=False,
            ),
        ),
    )
    result = read(tmp_path, stored, wanted)
    assert result["l"].to_pylist() == [[{"y2": 2}, None], None, [], [{"y2": 5}]]
    assert result["m"].to_pylist() == [
        [("a", {"new": None, "x": 1})],
        None,
        [],
        [("b", None), ("c", {"new": None, "x": 3})],
    ]
