"""Decodes many Avro records together: one numpy operation reads the same field of every record ("lane").

    lane 0    .. 02 | 0a h e l l o | 02 54 ..      every lane has its own position;
    lane 1    .. 02 | 04 h i       | 00 ..         one step reads one value in all lanes

Avro has no index and its values vary in length, so a record has to be read from its first byte to its last. Reading one
by one costs more than the rest of planning. `record_starts` finds where records begin. A lane with a wrong start reads
meaningless values, but never outside of the buffer. It is detected at its end.

Source: Apache Avro 1.12 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Positions: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

PADDING: Final = 16
"""Zeros after the last record, which a lane with a wrong start reads."""
_ITEMS_MAX: Final = 2_048
"""The maximum number of items in a list. Each item is a step for all lanes, and a larger number is a sign of a wrong
start."""
_VARINT_BYTES_MAX: Final = 10
_FLOATS: Final[Mapping[str, np.dtype[Any]]] = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


class UnsupportedLayoutError(Exception):
    """A schema that lanes cannot decode: maps, enums, and unions with more than one type and null."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number or boolean in each lane."""

    values: npt.NDArray[Any]
    valid: Flags | None = None
    """None if no lane is null. Values of null lanes are arbitrary."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """The position of each lane's bytes in the buffer."""

    starts: Positions
    lengths: Positions
    valid: Flags | None = None


@dataclass(frozen=True, slots=True)
class Lists:
    """The items of all lanes, lane after lane."""

    counts: Positions
    items: Decoded | None
    """None if no lane has an item."""
    valid: Flags | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """A record in each lane, by field name."""

    fields: Mapping[str, Decoded]


@dataclass(frozen=True, slots=True)
class Nulls:
    """Null in every lane."""

    count: int


Decoded: TypeAlias = Numbers | Bytes | Lists | Records | Nulls


@dataclass(frozen=True, slots=True, eq=False)
class LaneBuffer:
    """The bytes of records, followed by `PADDING` zeros."""

    data: npt.NDArray[np.uint8]

    @staticmethod
    def of(blocks: Sequence[bytes]) -> LaneBuffer:
        return LaneBuffer(np.frombuffer(b"".join((*blocks, bytes(PADDING))), np.uint8))

    @property
    def end(self) -> int:
        """The begin of the padding."""
        return len(self.data) - PADDING

    def fields(self, fields: Sequence[Mapping[str, Any]], at: Positions) -> tuple[dict[str, Decoded], Positions]:
        """Consecutive fields of a record in the order of its schema, and the positions after them."""
        decoded: dict[str, Decoded] = {}
        for field in fields:
            decoded[field["name"]], at = self.value(field["type"], at)
        return decoded, at

    def value(self, schema: Any, at: Positions) -> tuple[Decoded, Positions]:  # noqa: PLR0911 (one a type)
        """The values of a type in all lanes. Raises UnsupportedLayoutError for a type that lanes cannot decode."""
        if isinstance(schema, list):
            return self._union(schema, at)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, (dict, list)):
            return self.value(kind, at)
        match kind:
            case "null":
                return Nulls(len(at)), at
            case "int" | "long":
                values, at = self.long(at)
                return Numbers(values.astype(np.int64)), at
            case "boolean":
                return Numbers(self.data.take(at, mode="clip") != 0), at + 1
            case "float" | "double":
                number = _FLOATS[kind]
                return Numbers(self._fixed(at, number.itemsize).view(number).ravel()), at + number.itemsize
            case "bytes" | "string":
                lengths, at = self.length(at)
                return Bytes(at, lengths), at + lengths
            case "fixed":
                return Bytes(at, np.full(len(at), schema["size"], np.int64)), at + schema["size"]
            case "record":
                decoded, at = self.fields(schema["fields"], at)
                return Records(decoded), at
            case "array":
                return self._array(schema["items"], at)
        raise UnsupportedLayoutError(f"Avro type {kind!r}")

    def long(self, at: Positions) -> tuple[Positions, Positions]:
        """Zigzag variable-length integers."""
        first = self.data.take(at, mode="clip")
        at = at + 1
        if not (going_on := first > 0x7F).any():
            return (first >> 1).astype(np.int64) ^ -(first & 1).astype(np.int64), at
        raw = (first & 0x7F).astype(np.uint64)
        lanes = np.flatnonzero(going_on)
        for shift in range(7, 7 * _VARINT_BYTES_MAX, 7):
            byte = self.data.take(at[lanes], mode="clip").astype(np.uint64)
            raw[lanes] |= (byte & np.uint64(0x7F)) << np.uint64(shift)
            at[lanes] += 1
            lanes = lanes[byte > 0x7F]
            if len(lanes) == 0:
                break
        return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), at

    def length(self, at: Positions) -> tuple[Positions, Positions]:
        """Lengths of the following values. A length that leads out of the buffer leads to its end."""
        lengths, at = self.long(at)
        is_lost = (lengths < 0) | (lengths > self.end - at)
        if is_lost.any():
            lengths, at = np.where(is_lost, 0, lengths), np.where(is_lost, self.end, at)
        return lengths, at

    def _fixed(self, at: Positions, width: int) -> npt.NDArray[np.uint8]:
        return self.data.take(at[:, None] + np.arange(width), mode="clip")

    def _union(self, branches: Sequence[Any], at: Positions) -> tuple[Decoded, Positions]:
        others = [branch for branch in branches if branch != "null"]
        if len(others) > 1 or len(branches) > 2:
            raise UnsupportedLayoutError("a union of several types")
        chosen, at = self.long(at)
        if not others:
            return Nulls(len(at)), at
        is_valid = chosen == branches.index(others[0])
        if is_valid.all():
            return self.value(others[0], at)
        if not is_valid.any():
            return Nulls(len(at)), at
        present = np.flatnonzero(is_valid)
        decoded, behind = self.value(others[0], at[present])
        after = at.copy()
        after[present] = behind
        return _spread(decoded, present, is_valid), after

    def _array(self, items: Any, at: Positions) -> tuple[Decoded, Positions]:
        """Blocks of items up to an empty one. The size of the block follows a negative count."""
        at = at.copy()
        totals = np.zeros(len(at), np.int64)
        parts: list[tuple[Positions, Positions, Decoded]] = []
        lanes = np.arange(len(at))
        while len(lanes):
            counts, behind = self.long(at[lanes])
            if (counts < 0).any():
                sized = np.flatnonzero(counts < 0)
                _, behind[sized] = self.long(behind[sized])
                counts = np.abs(counts)
            is_lost = (counts < 0) | (totals[lanes] + counts > _ITEMS_MAX) | (behind > self.end)
            if is_lost.any():
                counts, behind = np.where(is_lost, 0, counts), np.where(is_lost, self.end, behind)
            at[lanes] = behind
            lanes, counts = lanes[counts > 0], counts[counts > 0]
            for item in range(int(counts.max(initial=0))):
                here = lanes[counts > item]
                decoded, at[here] = self.value(items, at[here])
                parts.append((here, totals[here], decoded))
                totals[here] += 1
        return Lists(totals, _arranged(parts, totals)), at


def _arranged(parts: Sequence[tuple[Positions, Positions, Decoded]], totals: Positions) -> Decoded | None:
    """The items of all lanes, lane after lane. Each part has items of some lanes, with their indexes in the lists."""
    if not parts:
        return None
    first = np.cumsum(totals) - totals
    target = np.concatenate([first[lanes] + index for lanes, index, _ in parts])
    order = np.empty(len(target), np.int64)
    order[target] = np.arange(len(target))
    return taken(_joined([decoded for _, _, decoded in parts]), order)


def _joined(parts: Sequence[Decoded]) -> Decoded:
    """Concatenates the results of lanes of one schema."""
    known = next((part for part in parts if not isinstance(part, Nulls)), None)
    counts = [count_of(part) for part in parts]
    if known is None:
        return Nulls(sum(counts))
    if isinstance(known, Records):
        return Records(
            {name: _joined([part.fields[name] for part in parts if isinstance(part, Records)]) for name in known.fields}
        )
    filled = [_null_like(known, part.count) if isinstance(part, Nulls) else part for part in parts]
    valid = None
    if any(not isinstance(part, Records) and part.valid is not None for part in filled):  # type: ignore[union-attr]
        flags = [getattr(part, "valid", None) for part in filled]
        valid = np.concatenate(
            [np.ones(count, np.bool_) if flag is None else flag for flag, count in zip(flags, counts, strict=True)]
        )
    if isinstance(known, Numbers):
        return Numbers(np.concatenate([part.values for part in filled if isinstance(part, Numbers)]), valid)
    if isinstance(known, Bytes):
        chunks = [part for part in filled if isinstance(part, Bytes)]
        starts, lengths = [chunk.starts for chunk in chunks], [chunk.lengths for chunk in chunks]
        return Bytes(np.concatenate(starts), np.concatenate(lengths), valid)
    raise UnsupportedLayoutError("lists in lists")


def _null_like(known: Decoded, count: int) -> Decoded:
    nothing = np.zeros(count, np.int64)
    if isinstance(known, Numbers):
        return Numbers(nothing.astype(known.values.dtype), nothing.astype(np.bool_))
    return Bytes(nothing, nothing, nothing.astype(np.bool_))


def _spread(decoded: Decoded, lanes: Positions, is_valid: Flags) -> Decoded:
    """The values of some lanes as values of all; the other lanes are null."""
    if isinstance(decoded, Nulls):
        return Nulls(len(is_valid))
    if isinstance(decoded, Records):
        raise UnsupportedLayoutError("records that may be null")

    def placed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        everywhere = np.zeros(len(is_valid), values.dtype)
        everywhere[lanes] = values
        return everywhere

    valid = is_valid if decoded.valid is None else placed(decoded.valid)
    if isinstance(decoded, Numbers):
        return Numbers(placed(decoded.values), valid)
    if isinstance(decoded, Bytes):
        return Bytes(placed(decoded.starts), placed(decoded.lengths), valid)
    return Lists(placed(decoded.counts), decoded.items, valid)


def taken(decoded: Decoded, order: Positions) -> Decoded:
    """The values at the given indexes. Raises UnsupportedLayoutError for lists."""
    if isinstance(decoded, Nulls):
        return Nulls(len(order))
    if isinstance(decoded, Records):
        return Records({name: taken(field, order) for name, field in decoded.fields.items()})
    if isinstance(decoded, Lists):
        raise UnsupportedLayoutError("lists in lists")
    valid = None if decoded.valid is None else decoded.valid[order]
    if isinstance(decoded, Numbers):
        return Numbers(decoded.values[order], valid)
    return Bytes(decoded.starts[order], decoded.lengths[order], valid)


def count_of(decoded: Decoded) -> int:
    """The number of values."""
    if isinstance(decoded, Nulls):
        return decoded.count
    if isinstance(decoded, Records):
        return count_of(next(iter(decoded.fields.values())))
    return len(
        decoded.counts
        if isinstance(decoded, Lists)
        else decoded.starts
        if isinstance(decoded, Bytes)
        else decoded.values
    )
