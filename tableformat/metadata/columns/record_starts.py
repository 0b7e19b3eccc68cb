"""Finds where the records of Avro blocks begin, by a guess that decoding proves.

    block     |status|..|9e|file:/t/data/1.parquet|..|status|..|9e|file:/t/data/2.parquet|..|
    guess                   P0                                     P1      paths that begin like the first one
    proof     the record with its path at P0, read to its end and on to the path of the next, arrives at P1

The first record begins where its block does, and each record that is read to its end shows where the next one begins.
If every step arrives at the next guess, and the last step at the end of the block, the records are those that a
sequential reader would find, however the guess was made. A guess that does not fit, such as a path inside a bound, is
skipped. A block without proof is read sequentially.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tableformat.metadata.columns.avro_lanes import Bytes, Decoded, Flags, LaneBuffer, Positions, UnsupportedLayoutError

_PATTERN_BYTES: Final = 16
_PATTERNS_MAX: Final = 32
_LENGTH_BYTES_MAX: Final = 3
"""The maximum bytes of the varint of a path's length: paths of up to a million bytes."""


@dataclass(frozen=True, slots=True)
class SplitSchema:
    """The fields of a record in the order of its bytes, split at a required string, the path."""

    before: Sequence[Mapping[str, Any]]
    path: str
    after: Sequence[Mapping[str, Any]]

    @staticmethod
    def of(record_schema: Mapping[str, Any], inner: str, path: str) -> SplitSchema:
        """The layout of a record with a record `inner`, which has the string `path`. The fields of `inner` replace it.

        Raises UnsupportedLayoutError for other records.
        """
        flat: list[Mapping[str, Any]] = []
        for field in record_schema["fields"]:
            is_inner = field["name"] == inner and isinstance(field["type"], dict) and field["type"]["type"] == "record"
            flat += field["type"]["fields"] if is_inner else [field]
        names = [field["name"] for field in flat]
        if path not in names or len(set(names)) != len(names):
            raise UnsupportedLayoutError(f"no field {path!r} of a record {inner!r}")
        at = names.index(path)
        if flat[at]["type"] != "string":
            raise UnsupportedLayoutError(f"{path!r} is {flat[at]['type']!r}")
        return SplitSchema(flat[:at], path, flat[at + 1 :])


@dataclass(frozen=True, slots=True)
class Blocks:
    """Adjacent blocks of records in a buffer."""

    buffer: LaneBuffer
    starts: Positions
    ends: Positions
    counts: Positions

    @staticmethod
    def of(blocks: Sequence[tuple[int, bytes]]) -> Blocks:
        """Record count and bytes of each block. No block is empty."""
        sizes = np.array([len(block) for _, block in blocks], np.int64)
        ends = np.cumsum(sizes)
        counts = np.array([count for count, _ in blocks], np.int64)
        return Blocks(LaneBuffer.of([block for _, block in blocks]), ends - sizes, ends, counts)


def decode_blocks(blocks: Blocks, schema: SplitSchema) -> dict[str, Decoded] | None:
    """Every field of every record; None if the guess is not proved for all blocks.

    Raises UnsupportedLayoutError for a schema that lanes cannot decode.
    """
    buffer = blocks.buffer
    _, first_path_lengths, first_paths = _to_path(buffer, schema, blocks.starts)
    guesses = _guesses(buffer, first_paths, first_path_lengths)
    if guesses is None or len(guesses) < int(blocks.counts.sum()):
        return None
    lengths = _lengths_before(buffer, guesses)
    fits = lengths <= buffer.end - guesses
    guesses, lengths = guesses[fits], lengths[fits]
    after, ends = buffer.fields(schema.after, guesses + lengths)
    chosen = _chain(blocks, schema, guesses, ends, first_paths)
    if chosen is None:
        return None
    if len(chosen) != len(guesses):
        guesses, lengths = guesses[chosen], lengths[chosen]
        after, ends = buffer.fields(schema.after, guesses + lengths)
    starts = np.concatenate([[0], ends[:-1]])
    before, path_lengths, paths = _to_path(buffer, schema, starts)
    if not ((paths == guesses).all() and (path_lengths == lengths).all()):
        return None
    return {**before, schema.path: Bytes(guesses, lengths), **after}


def _to_path(
    buffer: LaneBuffer, schema: SplitSchema, starts: Positions
) -> tuple[dict[str, Decoded], Positions, Positions]:
    """The fields before the path, the length of the path, and its position."""
    before, at = buffer.fields(schema.before, starts)
    lengths, at = buffer.length(at)
    return before, lengths, at


def _guesses(buffer: LaneBuffer, paths: Positions, lengths: Positions) -> Positions | None:
    """The positions of the first bytes of some block's first path."""
    data = buffer.data
    patterns = {
        data[start : start + min(length, _PATTERN_BYTES)].tobytes()
        for start, length in zip(paths.tolist(), lengths.tolist(), strict=True)
    }
    if len(patterns) > _PATTERNS_MAX or b"" in patterns:
        return None
    expression = re.compile(b"|".join(map(re.escape, sorted(patterns))))
    return np.array([found.start() for found in expression.finditer(data.data)], np.int64)


def _lengths_before(buffer: LaneBuffer, paths: Positions) -> Positions:
    """The variable-length integers that end where the paths begin."""
    raw = buffer.data.take(paths - 1, mode="clip").astype(np.int64)
    goes_on: Flags = np.ones(len(paths), np.bool_)
    for step in range(2, _LENGTH_BYTES_MAX + 1):
        byte = buffer.data.take(paths - step, mode="clip").astype(np.int64)
        goes_on &= byte > 0x7F
        raw = np.where(goes_on, (raw << 7) | (byte & 0x7F), raw)
    return raw >> 1


def _chain(
    blocks: Blocks, schema: SplitSchema, guesses: Positions, ends: Positions, first_paths: Positions
) -> Positions | None:
    """The guesses that records arrive at, in order; None if a record arrives at no guess."""
    _, _, next_paths = _to_path(blocks.buffer, schema, ends)
    record_count = int(blocks.counts.sum())
    last = np.cumsum(blocks.counts) - 1
    if len(guesses) == record_count:
        expected = np.append(guesses[1:], 0)
        is_last = np.zeros(record_count, np.bool_)
        is_last[last] = True
        arrives = (next_paths == expected) | is_last
        begins = guesses[np.append(0, last[:-1] + 1)] == first_paths
        if arrives.all() and begins.all() and (ends[last] == blocks.ends).all():
            return np.arange(record_count)
    return _followed(blocks, guesses, ends, next_paths, first_paths)


def _followed(
    blocks: Blocks, guesses: Positions, ends: Positions, next_paths: Positions, first_paths: Positions
) -> Positions | None:
    """The same if some guesses are wrong: from each block's first record on, along the records."""
    following = _index_of(guesses, next_paths).tolist()
    chosen: list[int] = []
    for first, count in zip(_index_of(guesses, first_paths).tolist(), blocks.counts.tolist(), strict=True):
        at = first
        for _ in range(count - 1):
            chosen.append(at)
            if at < 0:
                return None
            at = following[at]
        chosen.append(at)
    found = np.array(chosen, np.int64)
    if (found < 0).any() or (ends[found[np.cumsum(blocks.counts) - 1]] != blocks.ends).any():
        return None
    return found


def _index_of(guesses: Positions, wanted: Positions) -> Positions:
    """The index of each wanted position among the guesses; -1 if it is not a guess."""
    at = np.minimum(np.searchsorted(guesses, wanted), max(len(guesses) - 1, 0))
    return np.where(guesses[at] == wanted, at, -1)
