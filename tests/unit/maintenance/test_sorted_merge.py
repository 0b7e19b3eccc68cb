"""Sorted runs are merged into one, for all types of keys and with little memory."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.keys.encoding import AFTER_MARKER
from tableformat.keys.key_columns import KeyColumns
from tableformat.maintenance.compaction.sorted_merge import MergeOrder, SortedRun, merged

LONG = KeyColumns((1,), ("k",), (LongType(),))
UNKNOWN = KeyBounds(b"", AFTER_MARKER)


def order_of(*types: PrimitiveType) -> MergeOrder:
    fields = [NestedField(i + 1, f"k{i}", key_type, required=False) for i, key_type in enumerate(types)]
    return MergeOrder(KeyColumns.of(Schema(*fields), [field.field_id for field in fields]))


def long_run(keys: list[int], *, bounds: KeyBounds | None = None, piece: int = 3) -> SortedRun:
    batches = [pa.record_batch({"k": pa.array(keys[i : i + piece], pa.int64())}) for i in range(0, len(keys), piece)]
    if bounds is None:
        order = MergeOrder(LONG)
        bounds = KeyBounds(
            order.encoded(batches[0], 0), order.encoded(batches[-1], -1 % len(batches[-1])) + AFTER_MARKER
        )
    return SortedRun(bounds, lambda: iter(batches))


def keys_of(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [key for batch in batches for key in batch.column("k").to_pylist()]


def test_sorted_run_is_opened_only_when_needed(tmp_path: Path) -> None:
    """MT-43: runs that follow one another need the memory of one."""
    opened: list[str] = []

    def watched(name: str, run: SortedRun) -> SortedRun:
        def batches() -> Iterator[pa.RecordBatch]:
            opened.append(name)
            yield from run.batches()

        return SortedRun(run.bounds, batches)

    runs = [watched("second", long_run([10, 11, 12, 13])), watched("first", long_run([1, 2, 3, 4, 5, 6]))]
    stream = merged(runs, MergeOrder(LONG), 1, tmp_path, fan_in=8)
    assert next(stream).column("k").to_pylist() == [1, 2, 3]
    assert opened == ["first"]
    assert keys_of(stream) == [4, 5, 6, 10, 11, 12, 13]
    assert opened == ["first", "second"]


def test_excess_runs_are_merged_on_disk_first(tmp_path: Path) -> None:
    """MT-43"""
    runs = [long_run(list(range(start, 200, 7))) for start in range(7)]
    stream = merged(runs, MergeOrder(LONG), 1, tmp_path, fan_in=2)
    assert keys_of(stream) == list(range(200))
    assert list(tmp_path.iterdir()) != []


def test_stopping_early_closes_every_open_run(tmp_path: Path) -> None:
    closed: list[int] = []

    def run(number: int) -> SortedRun:
        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from long_run(list(range(50))).batches()
            finally:
                closed.append(number)

        return SortedRun(UNKNOWN, batches)

    stream = merged([run(1), run(2)], MergeOrder(LONG), 1, tmp_path, fan_in=8)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert sorted(closed) == [1, 2]


SORTED_VALUES = {
    "string": (StringType(), pa.string(), [None, "", "a", "a\0", "ab", "z", "é", "\uffff", "\U00010000"]),
    "binary": (BinaryType(), pa.binary(), [None, b"", b"\0", b"\0\1", b"a", b"\xff", b"\xff\xff"]),
    "boolean": (BooleanType(), pa.bool_(), [None, False, True]),
    "date": (DateType(), pa.date32(), [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 1, 1)]),
    "time": (TimeType(), pa.time64("us"), [None, dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59)]),
    "timestamp": (TimestampType(), pa.timestamp("us"), [None, dt.datetime(1900, 1, 1), dt.datetime(2026, 1, 1)]),
    "decimal": (
        DecimalType(38, 2),
        pa.decimal128(38, 2),
        [
            None,
            *(
                decimal.Decimal(text)
                for text in ("-99999999999999999999.00", "-0.01", "0.00", "123456789012345678901.50")
            ),
        ],
    ),
    "fixed": (FixedType(2), pa.binary(2), [None, b"\0\0", b"\0\1", b"\x7f\xff", b"\x80\0", b"\xff\xff"]),
    "uuid": (UUIDType(), pa.uuid(), [None, *(uuid.UUID(int=number) for number in (0, 1, 1 << 127, (1 << 128) - 1))]),
}


@pytest.mark.parametrize("name", SORTED_VALUES)
def test_every_key_type_is_merged_in_key_order(tmp_path: Path, name: str) -> None:
    """RD-4: nulls first, text by code point, binary and UUIDs unsigned."""
    key_type, arrow_type, values = SORTED_VALUES[name]
    order = order_of(key_type, LongType())

    def run(part: list[object]) -> SortedRun:
        columns = [pa.array(part, arrow_type), pa.array(range(len(part)), pa.int64())]
        batch = pa.record_batch(columns, names=["k0", "k1"])
        return SortedRun(UNKNOWN, lambda: iter([batch.slice(i, 1) for i in range(batch.num_rows)]))

    found = list(merged([run(values[0::2]), run(values[1::2]), run(values)], order, 1, tmp_path, fan_in=8))
    expected = sorted([*values, *values], key=values.index)
    assert [value for batch in found for value in batch.column("k0").to_pylist()] == expected
