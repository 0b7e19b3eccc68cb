"""Range delete files: small, self-describing, and checked when read."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from tableformat.deletes.codecs.range_file import (
    FOOTER_KEY,
    MAX_KEY_COLUMNS,
    spans_from_parquet,
    spans_from_parquets,
    spans_to_parquet_table,
    write_span_table,
)
from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import INHERITED, SpanArray, sort_and_merge, span_of_bounds, spans_of_prefixes
from tableformat.errors import CorruptFileError, InvalidKeyError
from tableformat.keys.key_columns import KeyColumns
from tableformat.parquet.parquet_file import plain_parquet

KEY = KeyColumns((4, 7, 2), ("id1", "id2", "num_cal"), (StringType(), LongType(), IntegerType()))
FILE = "deletes/1.parquet"
LIST = {"type": "list", "element-id": 9, "element": "long", "element-required": False}


def some_spans() -> SpanArray:
    return spans_of_prefixes(KEY, pa.table({"id1": ["a", "b"], "id2": [1, 2]}))


def written(spans: SpanArray) -> pa.Table:
    sink = io.BytesIO()
    write_span_table(spans_to_parquet_table(spans), sink)
    return pq.read_table(io.BytesIO(plain_parquet(sink.getvalue())))


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def test_reading_the_file_as_parquet_fails() -> None:
    """RD-6"""
    sink = io.BytesIO()
    write_span_table(spans_to_parquet_table(some_spans()), sink)
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(sink.getvalue()))
    assert len(spans_from_parquet(written(some_spans()), FILE)) == 2


def test_one_prefix_file_is_smaller_than_four_kilobytes() -> None:
    sink = io.BytesIO()
    write_span_table(
        spans_to_parquet_table(spans_of_prefixes(KEY, pa.table({"id1": ["customer-4711"], "id2": [77]}))), sink
    )
    assert len(sink.getvalue()) < 2048


def test_file_has_typed_values_and_describes_them() -> None:
    """FM-13, FM-14, RD-7, RD-8: the layout of the specification."""
    table = written(span_of_bounds(KEY, ("a", None), None))
    assert table.to_pylist() == [
        {
            "lower_0": "a", "upper_0": None, "lower_1": None, "upper_1": None, "lower_2": None, "upper_2": None,
            "lower_depth": 2, "upper_depth": 0, "lower_after": False, "upper_after": True, "sequence_number": None,
        }
    ]  # fmt: skip
    assert json.loads(table.schema.metadata[FOOTER_KEY]) == {
        "version": 1,
        "encoding-version": 1,
        "key-field-ids": [4, 7, 2],
        "key-types": ["string", "long", "int"],
    }
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in table.schema]
    assert ids == [*range(2147483453, 2147483459), *range(2147483448, 2147483453)]


def test_sequence_numbers_of_merged_spans_are_kept() -> None:
    """RD-8."""
    spans = some_spans()
    read = spans_from_parquet(written(SpanArray(KEY, spans.lower, spans.upper, np.array([3, 5]))), FILE)
    assert read.sequence_numbers is not None
    assert read.sequence_numbers.tolist() == [3, 5]


def test_spans_with_own_and_inherited_sequence_numbers() -> None:
    """RD-8."""
    spans = some_spans()
    table = written(SpanArray(KEY, spans.lower, spans.upper, np.array([3, INHERITED])))
    assert table["sequence_number"].to_pylist() == [3, None]
    read = spans_from_parquet(table, FILE)
    assert read.sequence_numbers is not None
    assert read.sequence_numbers.tolist() == [3, INHERITED]
    assert spans_from_parquet(written(spans), FILE).sequence_numbers is None


def test_columns_beyond_the_cut_depth_are_not_written() -> None:
    """FM-13: arrays of cuts may hold anything from the depth on."""
    columns = (pa.array(["a", "b"], pa.large_string()), pa.array([1, 2], pa.int64()), pa.array([7, 8], pa.int32()))
    depth = np.array([1, 2], np.int8)
    lower, upper = (CutArray(KEY, columns, depth, np.full(2, after)) for after in (False, True))
    table = written(SpanArray(KEY, lower, upper, None))
    for side in ("lower", "upper"):
        assert [table[f"{side}_{position}"].to_pylist() for position in range(3)] == [["a", "b"], [None, 2], [None] * 2]


def test_key_is_limited_to_forty_columns() -> None:
    """FM-13: more have no field ids."""
    for count in (MAX_KEY_COLUMNS, MAX_KEY_COLUMNS + 1):
        ids = tuple(range(1, count + 1))
        key = KeyColumns(ids, tuple(f"c{number}" for number in ids), (LongType(),) * count)
        spans = span_of_bounds(key, (1,), (2,))
        if count == MAX_KEY_COLUMNS:
            assert spans_from_parquet(written(spans), FILE).key.field_ids == ids
        else:
            with pytest.raises(InvalidKeyError):
                spans_to_parquet_table(spans)


def test_batched_files_decode_like_single_files() -> None:
    """RD-7, DA-8: order is a matter of each file, and the one that is not right is named."""
    other = span_of_bounds(KeyColumns((4,), ("id1",), (StringType(),)), ("x",), ("y",))
    tables = [written(each) for each in (some_spans(), SpanArray.empty(KEY), some_spans(), some_spans())]
    for chosen in (tables, [*tables, written(other)], tables[:1], []):
        locations = [f"{number}.parquet" for number in range(len(chosen))]
        for read, table in zip(spans_from_parquets(chosen, locations), chosen, strict=True):
            alone = spans_from_parquet(table, FILE)
            assert read.lower.encoded.equals(alone.lower.encoded)
            assert read.upper.encoded.equals(alone.upper.encoded)
    for damaged in (reversed_rows(tables[2]), footer(tables[2], version=2), tables[2].replace_schema_metadata(None)):
        with pytest.raises(CorruptFileError, match=r"^second\.parquet: "):
            spans_from_parquets([tables[0], damaged, tables[3]], ["first.parquet", "second.parquet", "third.parquet"])
    rising = [
        written(spans_of_prefixes(KEY, pa.table({"id1": [*names], "id2": [1, 2]}))) for names in ("ab", "cd", "ef")
    ]
    assert [
        read.lower.encoded.equals(spans_from_parquet(table, FILE).lower.encoded)
        for read, table in zip(spans_from_parquets(rising, ["a", "b", "c"]), rising, strict=True)
    ] == [True] * 3
    with pytest.raises(CorruptFileError, match=r"^second\.parquet: spans are not sorted"):
        spans_from_parquets(
            [rising[0], reversed_rows(rising[1]), rising[2]], ["first.parquet", "second.parquet", "third.parquet"]
        )


def test_column_names_and_promoted_types_come_from_the_schema() -> None:
    """DA-6, RD-4: columns are found by field id; one that was dropped keeps the file's type."""
    schema = Schema(NestedField(2, "number", LongType()), NestedField(4, "renamed", StringType()))
    read = spans_from_parquet(written(some_spans()), FILE, schema)
    assert read.key == KeyColumns((4, 7, 2), ("renamed", "field_7", "number"), (StringType(), LongType(), LongType()))
    assert read.lower.encoded.equals(some_spans().lower.encoded)


def test_date_bounds_become_midnight_timestamps() -> None:
    """RD-4."""
    key = KeyColumns((1,), ("t",), (DateType(),))
    spans = span_of_bounds(key, (dt.date(2026, 1, 1),), (dt.date(2026, 1, 2),))
    read = spans_from_parquet(written(spans), FILE, Schema(NestedField(1, "t", TimestampType())))
    promoted = span_of_bounds(read.key, (dt.datetime(2026, 1, 1),), (dt.datetime(2026, 1, 2),))
    assert read.lower.encoded.equals(promoted.lower.encoded)
    assert read.upper.encoded.equals(promoted.upper.encoded)


def test_older_schema_keeps_the_wider_type_of_the_file() -> None:
    """DA-6: time travel reads new delete files under an old schema."""
    schema = Schema(NestedField(7, "id2", IntegerType()))
    assert spans_from_parquet(written(some_spans()), FILE, schema).key.types == KEY.types


def test_file_without_spans_is_valid() -> None:
    assert len(spans_from_parquet(written(SpanArray.empty(KEY)), FILE)) == 0


def reversed_rows(table: pa.Table) -> pa.Table:
    return table.take([1, 0])


def footer(table: pa.Table, **changes: Any) -> pa.Table:
    statement = json.loads(table.schema.metadata[FOOTER_KEY]) | changes
    return table.replace_schema_metadata({FOOTER_KEY: json.dumps(statement).encode()})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (reversed_rows, "spans are not sorted or overlap"),
        (lambda table: pa.concat_tables([table, table]), "spans are not sorted or overlap"),
        (lambda table: replaced(table, "upper_after", pa.array([False, False])), "ends at or below its beginning"),
        (lambda table: table.replace_schema_metadata(None), "no 'tableformat.range-deletes' in the Parquet footer"),
        (lambda table: table.replace_schema_metadata({FOOTER_KEY: b"{"}), "statement cannot be read"),
        (lambda table: footer(table, version=2), r"versions \(2, 1\) of format and encoding are unknown"),
        (lambda table: footer(table, **{"encoding-version": 2}), r"versions \(1, 2\)"),
        (lambda table: footer(table, **{"key-types": ["string"]}), "are not a valid key"),
        (lambda table: footer(table, **{"key-types": ["string", "long", "int", "int"]}), "are not a valid key"),
        (lambda table: footer(table, **{"key-types": ["string", "long", LIST]}), "are not a valid key"),
        (lambda table: footer(table, **{"key-types": ["string", "long", "oops"]}), "statement cannot be read"),
        (lambda table: footer(table, **{"key-field-ids": [4, 4, 2]}), "contains a column twice"),
        (lambda table: table.drop_columns(["lower_1"]), "with 0 columns 'lower_1'"),
        (lambda table: replaced(table, "lower_1", pa.array(["x", "y"])), "'lower_1' of Arrow type string is not int64"),
        (
            lambda table: replaced(table, "lower_depth", pa.array([2, 9], pa.int8())),
            "a lower_depth is outside 0 to 3",
        ),
        (
            lambda table: replaced(table, "lower_depth", pa.array([-1, 2], pa.int8())),
            "a lower_depth is outside 0 to 3",
        ),
        (
            lambda table: replaced(table, "upper_depth", pa.array([2, 4], pa.int8())),
            "a upper_depth is outside 0 to 3",
        ),
        (lambda table: replaced(table, "upper_after", pa.array([True, None])), "'upper_after' .* null in 1 rows"),
    ],
)
def test_damaged_file_is_named(damage: Any, reason: str) -> None:
    """FM-14, FM-24, RD-7, DA-8."""
    with pytest.raises(CorruptFileError, match=f"{FILE}: .*{reason}"):
        spans_from_parquet(damage(written(some_spans())), FILE)


@pytest.mark.parametrize(
    "now", [DoubleType(), StructType(NestedField(8, "x", LongType())), ListType(8, LongType())], ids=str
)
def test_incompatible_column_type_error_names_the_column(now: IcebergType) -> None:
    schema = Schema(NestedField(7, "id2", now))
    with pytest.raises(CorruptFileError, match=r"key column 'id2' is long in the file and .* in the table"):
        spans_from_parquet(written(some_spans()), FILE, schema)


def test_table_form_equals_the_written_file() -> None:
    spans = sort_and_merge(SpanArray.concat([some_spans(), span_of_bounds(KEY, ("b", 2), ("c",))]))
    assert spans_to_parquet_table(spans).to_pylist() == written(spans).to_pylist()
