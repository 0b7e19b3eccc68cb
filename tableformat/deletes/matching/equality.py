"""Equality deletes of one set of delete columns: the newest of each key, matched with rows.

    delete files                    collapsed                  sorted by one column
    (id=1, cat=a) at 5
    (id=1, cat=a) at 7      ->      (1, a)    newest 7   ->    null -> key 2, 1 -> key 0, 2 -> key 1
    (id=2, cat=b) at 5              (2, b)    newest 5
    (null, null)  at 6              (null, null)     6

Rows are looked up by place or by hash (`key_index`); the keys near a sorted file are found by its
leading column, and searched in it while they are few.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import PrimitiveType

from tableformat.cached_property import cached_property
from tableformat.deletes.matching.comparable_values import comparable_type, decoded
from tableformat.deletes.matching.key_index import KeyIndex, index_keys
from tableformat.deletes.rules import equality_delete_is_new_enough
from tableformat.deletes.spans.cuts import cuts_at_prefixes
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.encoding import AFTER_MARKER, encode_column
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns


@dataclass(frozen=True, eq=False)
class EqualityKeys:
    """Distinct keys with the newest sequence number that deletes each. Built by `collapse`; immutable."""

    field_ids: tuple[int, ...]
    types: tuple[PrimitiveType, ...]
    """The widest type that each delete column has had. All comparisons use it."""
    columns: tuple[pa.Array, ...]
    """The distinct keys: one array for each delete column, in its comparable form."""
    newest: NDArray[np.int64]
    """For each key, the newest data sequence number of the delete files that contain it."""
    index: KeyIndex
    """An index of the keys, for lookups of rows, in the order of the columns; built by `collapse`."""

    @classmethod
    def collapse(
        cls,
        field_ids: Sequence[int],
        types: Sequence[PrimitiveType],
        deletes: Sequence[tuple[Sequence[pa.ChunkedArray], int]],
    ) -> EqualityKeys:
        """The keys of delete files. Each file is given as its delete columns in the order of `field_ids` and its
        sequence number.

        The columns are `comparable` in `types`. DA-2, DA-4: of equal keys (null equals null), only the newest number
        matters.
        """
        columns = [
            pa.chunked_array(
                [chunk for rows, _ in deletes for chunk in decoded(rows[index]).chunks],
                comparable_type(iceberg_type),
            ).combine_chunks()
            for index, iceberg_type in enumerate(types)
        ]
        numbers = np.repeat(
            np.array([number for _, number in deletes], np.int64),
            np.array([len(rows[0]) for rows, _ in deletes], np.int64),
        )
        index, examples, keys = index_keys([pa.chunked_array([column]) for column in columns], types)
        newest = np.full(len(index), np.iinfo(np.int64).min)
        np.maximum.at(newest, keys, numbers)
        if len(examples) < len(numbers):
            columns = [column.take(pa.array(examples)) for column in columns]
        return cls(tuple(field_ids), tuple(types), tuple(columns), newest, index)

    def __len__(self) -> int:
        return len(self.newest)

    @property
    def size_bytes(self) -> int:
        """Memory that the keys hold."""
        # The columns twice: their words, or `point_spans` in key order.
        return int(2 * sum(column.nbytes for column in self.columns) + self.newest.nbytes + self.index.size_bytes)

    def newer_than(self, data_sequence_number: int) -> NDArray[np.bool_]:
        """DA-2: for each key, whether it deletes rows of a data file with this number."""
        return equality_delete_is_new_enough(self.newest, data_sequence_number)

    @cached_property
    def value_bounds_by_column(self) -> tuple[ValueBounds | None, ...]:
        """For each delete column, the smallest and the largest value of the keys. None for floats and if no key has a
        value."""
        return tuple(_value_bounds(column, key_type) for column, key_type in zip(self.columns, self.types, strict=True))

    def near(self, field_id: int, lower: bytes, upper: bytes) -> NDArray[np.int64]:
        """The keys whose value in the column (not a float) is between two encoded cuts of this column (RD-4)."""
        if field_id not in self._orders:
            index = self.field_ids.index(field_id)
            self._orders[field_id] = ColumnOrder.of(self.columns[index], self.types[index])
        return self._orders[field_id].between(lower, upper)

    @cached_property
    def _orders(self) -> dict[int, ColumnOrder]:
        return {}

    def point_spans(self, field_ids: Sequence[int]) -> SpanArray:
        """The keys as sorted spans that cover one key each, for binary search in rows sorted by `field_ids`.

        `field_ids` are the delete columns in another order, without floats. The spans carry `newest`.
        """
        order = tuple(field_ids)
        if order not in self._points:
            self._points[order] = self.point_spans_of(np.arange(len(self)), order)
        return self._points[order]

    @cached_property
    def _points(self) -> dict[tuple[int, ...], SpanArray]:
        return {}

    def point_spans_of(self, keys: NDArray[np.int64], field_ids: Sequence[int]) -> SpanArray:
        """`point_spans` of some of the keys; the result is not cached."""
        indexes = [self.field_ids.index(field_id) for field_id in field_ids]
        types = tuple(self.types[index] for index in indexes)
        key = KeyColumns(tuple(field_ids), tuple(f"field {field_id}" for field_id in field_ids), types)
        lower = cuts_at_prefixes(key, [self.columns[index].take(pa.array(keys)) for index in indexes], after=False)
        in_order = np.asarray(pc.sort_indices(lower.encoded))
        lower = lower.take(in_order)
        return SpanArray(key, lower, lower.above_prefixes(), self.newest[keys[in_order]])

    def keys_of(self, columns: Sequence[pa.ChunkedArray]) -> NDArray[np.int64]:
        """For each row of a delete file that these keys were made of, the index of its key.

        `columns` are `comparable`, in the form that `collapse` takes.
        """
        return self.index.find_comparable([decoded(column) for column in columns])[1]

    def deleted_rows(self, columns: Sequence[pa.ChunkedArray], data_sequence_number: int) -> NDArray[np.int64]:
        """Offsets, ascending, of the rows that a key newer than the data deletes. Rows may be in any order.

        `columns` are the delete columns in the order of `field_ids`, each in its own type or in a type that was
        promoted to it.
        """
        newer = self.newer_than(data_sequence_number)
        if not newer.any():
            return np.empty(0, np.int64)
        rows, keys = self.index.find(columns)
        return rows[newer[keys]]

    def deleted_rows_of_files(
        self, columns: Sequence[pa.ChunkedArray], data_sequence_numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """DA-2: `deleted_rows` for the concatenated rows of several data files. Each row has the number of its file."""
        rows, keys = self.index.find(columns)
        return rows[equality_delete_is_new_enough(self.newest[keys], data_sequence_numbers[rows])]

    def deleted_mask(self, columns: Sequence[pa.ChunkedArray], data_sequence_number: int) -> NDArray[np.bool_]:
        """For each row, whether a key newer than the data deletes it."""
        mask = np.zeros(len(columns[0]), np.bool_)
        mask[self.deleted_rows(columns, data_sequence_number)] = True
        return mask


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The bounds of the values of a delete column, in the order-preserving encoding (RD-4)."""

    lower: bytes
    """Cut before the smallest value that is not null."""
    upper: bytes
    """Cut after the largest value."""
    has_null: bool


def _value_bounds(column: pa.Array, key_type: PrimitiveType) -> ValueBounds | None:
    if family_of(key_type) is KeyFamily.FLOAT or column.null_count == len(column):
        return None
    extremes = pc.min_max(column)
    encoded = encode_column(pa.array([extremes["min"], extremes["max"]], column.type), key_type)
    return ValueBounds(encoded[0].as_py(), encoded[1].as_py() + AFTER_MARKER, has_null=column.null_count > 0)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnOrder:
    """The keys sorted by one of their columns."""

    values: pa.Array
    """The distinct values, null first."""
    iceberg_type: PrimitiveType
    first: NDArray[np.int64]
    """For each value, the index in `keys` where its keys begin; at the end, the number of keys."""
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.Array, iceberg_type: PrimitiveType) -> ColumnOrder:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        in_order = pc.array_sort_indices(encoded.dictionary, null_placement="at_start").to_numpy()
        rank = np.empty(len(in_order), np.int64)
        rank[in_order] = np.arange(len(in_order))
        ranks = rank[encoded.indices.to_numpy()]
        first = np.append(0, np.cumsum(np.bincount(ranks, minlength=len(in_order))))
        values = encoded.dictionary.take(pa.array(in_order))
        return cls(values, iceberg_type, first, np.argsort(ranks, kind="stable"))

    def between(self, lower: bytes, upper: bytes) -> NDArray[np.int64]:
        """The keys with a value between two encoded cuts of this column (RD-4)."""
        numbers = range(len(self.values))
        start = bisect_left(numbers, lower, key=self._cut_before)
        end = bisect_right(numbers, upper, key=self._cut_before)
        return self.keys[self.first[start] : self.first[max(start, end)]]

    def _cut_before(self, number: int) -> bytes:
        encoded: bytes = encode_column(self.values.slice(number, 1), self.iceberg_type)[0].as_py()
        return encoded
