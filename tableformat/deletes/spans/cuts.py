"""Cuts: boundaries between keys, where a span of a range delete begins or ends (RD-1).

    before(A, 3)   just below every key that begins with (A, 3)
    after(A, 3)    just above every key that begins with (A, 3)
    before()       below everything          after()     above everything

The successor of a value is never computed, so strings, nulls and maximum values need no special case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.cached_property import cached_property
from tableformat.errors import InvalidKeyError
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.encoding import AFTER_MARKER, encode_column, join_pieces
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.sort_words import value_bytes

_EMPTY: Final = pa.scalar(b"", pa.large_binary())
_AFTER: Final = pa.scalar(AFTER_MARKER, pa.large_binary())


@dataclass(frozen=True, eq=False)
class CutArray:
    """n cuts of one key.

    >>> from pyiceberg.types import LongType, StringType
    >>> from tableformat.keys.key_columns import KeyColumns
    >>> key = KeyColumns((1, 2), ("id1", "id2"), (StringType(), LongType()))
    >>> cuts = CutArray.concat([cut_after(key, ("A",)), cut_before(key, ("A", 3)), cut_before(key, ("A",))])
    >>> cuts.depth.tolist(), cuts.after.tolist()
    ([1, 2, 1], [True, False, False])
    >>> [cut.hex(" ") for cut in sorted(cuts.encoded.to_pylist())]
    ['02 41 00 01', '02 41 00 01 02 80 00 00 00 00 00 00 03', '02 41 00 01 ff']
    """

    key: KeyColumns
    columns: tuple[pa.Array, ...]
    """One array of n values for each key column, in the Arrow types of `arrow_type_of`. Values from `depth` on have no
    meaning."""
    depth: npt.NDArray[np.int8]
    """The number of leading columns that each cut binds, 0 to len(key)."""
    after: npt.NDArray[np.bool_]
    """Whether the cut is above the keys that begin with the bound values; otherwise it is below them."""

    def __post_init__(self) -> None:
        count = len(self.depth)
        assert len(self.columns) == len(self.key), f"{len(self.columns)} columns of cuts for key {self.key}"
        assert len(self.after) == count, f"{count} depths and {len(self.after)} sides of cuts"
        lengths = [len(column) for column in self.columns]
        assert all(length == count for length in lengths), f"columns of {lengths} values for {count} cuts"

    def __len__(self) -> int:
        return len(self.depth)

    def __reduce__(self) -> tuple[Any, ...]:
        return CutArray, (self.key, self.columns, self.depth, self.after)

    @cached_property
    def encoded(self) -> pa.LargeBinaryArray:
        """RD-1: byte strings in the order of the cuts; before(p) = enc(p), after(p) = enc(p) + FF."""
        if len(self) == 0:
            return pa.array([], pa.large_binary())
        shallowest, deepest = int(self.depth.min()), int(self.depth.max())
        pieces = []
        for position in range(deepest):
            piece = encode_column(self.columns[position], self.key.types[position])
            if position >= shallowest:
                piece = pc.if_else(pa.array(self.depth > position), piece, _EMPTY)
            pieces.append(piece)
        if not pieces:
            return pc.if_else(pa.array(self.after), _AFTER, _EMPTY)
        if self.after.all():
            pieces.append(_AFTER)
        elif self.after.any():
            pieces.append(pc.if_else(pa.array(self.after), _AFTER, _EMPTY))
        return join_pieces(pieces)

    @cached_property
    def digest(self) -> bytes:
        """A short hash, equal for arrays with the same cuts."""
        digest = hashlib.blake2b(digest_size=20)
        digest.update(np.asarray(pc.binary_length(self.encoded)).tobytes())
        digest.update(value_bytes(self.encoded).tobytes())
        return digest.digest()

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> CutArray:
        """The cuts at the given indexes, in their order."""
        chosen = pa.array(indices)
        columns = tuple(column.take(chosen) for column in self.columns)
        taken = CutArray(self.key, columns, self.depth[indices], self.after[indices])
        return taken._known_as(self.encoded.take(chosen)) if "encoded" in self.__dict__ else taken

    def above_prefixes(self) -> CutArray:
        """For cuts below some prefixes, the cuts above the same prefixes (RD-1)."""
        assert not self.after.any(), "only cuts below prefixes can be reversed"
        above = CutArray(self.key, self.columns, self.depth, np.ones(len(self), np.bool_))
        return above._known_as(join_pieces([self.encoded, _AFTER])) if "encoded" in self.__dict__ else above

    def slice(self, start: int, stop: int) -> CutArray:
        """Cuts start to stop, without a copy."""
        columns = tuple(column.slice(start, stop - start) for column in self.columns)
        part = CutArray(self.key, columns, self.depth[start:stop], self.after[start:stop])
        return part._known_as(self.encoded.slice(start, stop - start)) if "encoded" in self.__dict__ else part

    def _known_as(self, encoded: pa.LargeBinaryArray) -> CutArray:
        """Set `encoded`, because it is known. Cuts that were compared before are usually compared again."""
        self.__dict__["encoded"] = encoded
        return self

    @staticmethod
    def concat(arrays: Sequence[CutArray]) -> CutArray:
        """All cuts in the given order. At least one array is required, and all must have the same key."""
        key = arrays[0].key
        assert all(array.key.types == key.types for array in arrays), "cuts of different keys have no common order"
        columns = tuple(pa.concat_arrays([array.columns[position] for array in arrays]) for position in range(len(key)))
        depth = np.concatenate([array.depth for array in arrays])
        together = CutArray(key, columns, depth, np.concatenate([array.after for array in arrays]))
        if not all("encoded" in array.__dict__ for array in arrays):
            return together
        return together._known_as(pa.concat_arrays([array.encoded for array in arrays]))


def cuts_at_prefixes(key: KeyColumns, leading: Sequence[pa.Array], *, after: bool) -> CutArray:
    """A cut on the same side of every prefix. `leading` are the bound columns in key order, in the Arrow types of the
    key."""
    count = len(leading[0])
    free = [pa.nulls(count, arrow_type_of(key_type)) for key_type in key.types[len(leading) :]]
    depth = np.full(count, len(leading), np.int8)
    return CutArray(key, (*leading, *free), depth, np.full(count, after, np.bool_))


def cut_before(key: KeyColumns, values: tuple[Any, ...]) -> CutArray:
    """RD-1: the cut below all keys that begin with the Python values. None is the null value."""
    return _cut(key, values, after=False)


def cut_after(key: KeyColumns, values: tuple[Any, ...]) -> CutArray:
    """RD-1: the cut above all keys that begin with the Python values. None is the null value."""
    return _cut(key, values, after=True)


def _cut(key: KeyColumns, values: tuple[Any, ...], *, after: bool) -> CutArray:
    if len(values) > len(key):
        raise InvalidKeyError(f"{len(values)} values given for key {key} of {len(key)} columns.")
    bound = [
        array_of_values([value], key_type, name=name)
        for value, key_type, name in zip(values, key.types, key.names, strict=False)
    ]
    free = [pa.nulls(1, arrow_type_of(key_type)) for key_type in key.types[len(values) :]]
    return CutArray(key, (*bound, *free), np.array([len(values)], np.int8), np.array([after]))
