"""Key columns of every type, with values at the limits of each type: as a plain model has them, in order, and as
Arrow."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pandas
import pyarrow as pa

_NANOS: Final = (-(2**63) + 1, -1, 0, 1, 999, 1000, 1_700_000_000_123_456_789, 2**63 - 1)
_MICROS: Final = (-(2**63), -62135596800000000, -1, 0, 1, 1_700_000_000_123_456, 253402300799999999, 2**63 - 1)
_TEXTS: Final = ("", "\x00", "a", "a\x00", "a\x00b", "ab", "\ud7ff", "\uffff", "\U00010000", "\U0010ffff", "a" * 70)
_BYTES: Final = (b"", b"\x00", b"\x00\x00", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff" * 40)


def _wide(digits: int, scale: int) -> tuple[Decimal, ...]:
    least = Decimal((0, (1,), -scale))
    largest = Decimal((0, (9,) * digits, -scale))
    return tuple(sorted({largest.copy_negate(), least.copy_negate(), Decimal((0, (0,), -scale)), least, largest}))


@dataclass(frozen=True, slots=True)
class KeyType:
    """One type of a key column."""

    name: str
    arrow: pa.DataType
    values: Sequence[Any]
    """The values as the model has them; Python compares them as the format does. Times are numbers since 1970."""
    through: pa.DataType | None = None
    """The type of the numbers that moments are made from."""
    as_argument: Callable[[Any], Any] = lambda value: value
    """The value as a caller of `get` or `delete_range` passes it."""
    version: int = 2

    def array(self, values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        if self.through is not None:
            return pa.array(listed, self.through).cast(self.arrow)
        if self.name == "uuid":
            return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(listed, pa.binary(16)))
        return pa.array(listed, self.arrow)

    def can_be_said(self, value: Any) -> bool:
        """Python's moments end with the year 9999."""
        return self.through is None or self.version == 3 or _MICROS[1] <= value <= _MICROS[-2]

    def can_be_filtered_by(self, value: Any) -> bool:
        """Literals of filters are of microseconds."""
        return self.can_be_said(value) and (self.version == 2 or value % 1000 == 0)

    def literal(self, value: Any) -> Any:
        """The value in the form for a filter."""
        if self.version == 3:
            return _moment(dt.UTC if self.name == "timestamptz_ns" else None)(value // 1000)
        return self.as_argument(value)

    def values_of(self, column: pa.ChunkedArray | pa.Array) -> list[Any]:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if self.through is not None:
            column = column.cast(self.arrow).cast(self.through)
        return list(column.to_pylist())


_EPOCH: Final = dt.datetime(1970, 1, 1)


def _moment(zone: dt.tzinfo | None) -> Callable[[Any], Any]:
    return lambda micros: (_EPOCH + dt.timedelta(microseconds=micros)).replace(tzinfo=zone)


def _moments(name: str, arrow: pa.DataType) -> KeyType:
    zone = dt.UTC if arrow.tz else None
    if arrow.unit == "us":
        return KeyType(name, arrow, _MICROS, pa.int64(), _moment(zone))
    return KeyType(name, arrow, _NANOS, pa.int64(), lambda nanos: pandas.Timestamp(nanos, tz=zone), 3)


TYPES: Final = {
    each.name: each
    for each in (
        KeyType("boolean", pa.bool_(), (False, True)),
        KeyType("int", pa.int32(), (-(2**31), -1, 0, 1, 255, 2**31 - 1)),
        KeyType("long", pa.int64(), (-(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1)),
        KeyType("string", pa.string(), _TEXTS),
        KeyType("binary", pa.binary(), _BYTES),
        KeyType(
            "fixed", pa.binary(3), (bytes(3), b"\x00\x00\x01", b"aaa", b"\x7f\xff\xff", b"\x80\x00\x00", b"\xff" * 3)
        ),
        KeyType(
            "uuid",
            pa.uuid(),
            tuple(bytes([first]) + bytes(14) + bytes([last]) for first in (0, 127, 128, 255) for last in (0, 255)),
            as_argument=lambda value: uuid.UUID(bytes=value),
        ),
        KeyType("decimal9", pa.decimal128(9, 2), _wide(9, 2)),
        KeyType("decimal18", pa.decimal128(18, 0), _wide(18, 0)),
        KeyType("decimal38", pa.decimal128(38, 10), _wide(38, 10)),
        KeyType("date", pa.date32(), (dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date.max)),
        KeyType("time", pa.time64("us"), (dt.time.min, dt.time(12, 0, 0, 1), dt.time.max)),
        _moments("timestamp", pa.timestamp("us")),
        _moments("timestamptz", pa.timestamp("us", "UTC")),
        _moments("timestamp_ns", pa.timestamp("ns")),
        _moments("timestamptz_ns", pa.timestamp("ns", "UTC")),
    )
}
