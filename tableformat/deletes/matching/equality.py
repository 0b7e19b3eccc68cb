"""Equality deletes of one set of delete columns: the newest of each key, matched with rows.

    delete files                    collapsed                  column by column
    (id=1, cat=a) at 5                                         id   1 -> 0, 2 -> 1, null -> 2
    (id=1, cat=a) at 7      ->      (1, a)    newest 7   ->    cat  (0, a) -> key 0, (1, b) -> key 1, (2, null) -> key 2
    (id=2, cat=b) at 5              (2, b)    newest 5
    (null, null)  at 6              (null, null)     6

A row is looked up in the first column; only rows that are found go on to the next. Every step is an exact look-up of
values, so nothing has to be compared again at the end. On 2 million rows of (string, long) a DuckDB semi join on two
threads takes about as long (29 ms against 25 for 1,000 keys, 75 against 106 for 100,000), and needs a connection and
the import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import BinaryType, DecimalType, FixedType, PrimitiveType, StringType, UUIDType

from tableformat.deletes.matching.comparable_values import NOT_FOUND, codes_of, comparable, comparable_type, decoded
from tableformat.deletes.matching.hash_prefilter import HashPrefilter
from tableformat.deletes.rules import equality_delete_is_new_enough
from tableformat.deletes.spans.cuts import CutArray, cuts_at_prefixes
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.encoding import AFTER_MARKER, encode_column
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns

_DENSE = 0.5
"""Share of rows still in play above which a column is looked up whole: picking rows out of it costs more."""


@dataclass(frozen=True, slots=True, eq=False)
class LookUpStep:
    """One column of the look-up."""

    column: int
    """Which of the delete columns it is."""
    values: pa.Array
    """Its distinct comparable values, a null among them if a key has one."""
    known: pa.Array
    """int64: the pairs that occur, as `candidate * len(values) + code`; a pair's index is the next step's candidate."""
    prefilter: HashPrefilter | None
    """For the first step: rules out rows that cannot match."""


@dataclass(frozen=True, eq=False)
class EqualityKeys:
    """Distinct keys with the newest sequence number that deletes each. Built by `collapse`; immutable."""

    field_ids: tuple[int, ...]
    types: tuple[PrimitiveType, ...]
    """The widest type that each delete column has had: all comparisons are made in it."""
    columns: tuple[pa.Array, ...]
    """One array for each delete column, in its comparable form: the distinct keys."""
    newest: NDArray[np.int64]
    """For each key the newest data sequence number among the delete files that hold it."""
    steps: tuple[LookUpStep, ...]
    """How rows are looked up; made by `collapse`."""

    @classmethod
    def collapse(
        cls,
        field_ids: Sequence[int],
        types: Sequence[PrimitiveType],
        deletes: Sequence[tuple[Sequence[pa.ChunkedArray], int]],
    ) -> EqualityKeys:
        """Keys of delete files, each given as its delete columns in the order of `field_ids` and its sequence number.

        The columns are `comparable` in `types`. DA-2, DA-4: of equal keys, null equal to null, only the newest number
        can make a difference.
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
        steps, candidates = _build_steps(columns, types)
        newest = np.full(len(steps[-1].known), np.iinfo(np.int64).min)
        np.maximum.at(newest, candidates, numbers)
        example = np.empty(len(newest), np.int64)
        example[candidates] = np.arange(len(candidates))
        distinct = tuple(column.take(pa.array(example)) for column in columns)
        return cls(tuple(field_ids), tuple(types), distinct, newest, steps)

    def __len__(self) -> int:
        return len(self.newest)

    @property
    def size_bytes(self) -> int:
        """Memory that the keys hold."""
        # The columns twice: `point_spans` holds them in key order.
        held = 2 * sum(column.nbytes for column in self.columns) + self.newest.nbytes
        held += sum(step.prefilter.size_bytes for step in self.steps if step.prefilter is not None)
        return int(held + sum(step.values.nbytes + step.known.nbytes for step in self.steps))

    def newer_than(self, data_sequence_number: int) -> NDArray[np.bool_]:
        """DA-2: for each key whether it deletes rows of a data file with the number."""
        return equality_delete_is_new_enough(self.newest, data_sequence_number)

    @cached_property
    def value_bounds_by_column(self) -> tuple[ValueBounds | None, ...]:
        """For each delete column between which values the keys lie; None for floats and where no key has a value."""
        return tuple(_value_bounds(column, key_type) for column, key_type in zip(self.columns, self.types, strict=True))

    def point_spans(self, field_ids: Sequence[int]) -> SpanArray:
        """The keys as sorted spans that cover one key each, for binary search in rows sorted by `field_ids`.

        `field_ids` are the delete columns in another order; none of them is a float. The spans carry `newest`.
        """
        order = tuple(field_ids)
        if order not in self._points:
            self._points[order] = self._sorted_points(order)
        return self._points[order]

    @cached_property
    def _points(self) -> dict[tuple[int, ...], SpanArray]:
        return {}

    def _sorted_points(self, field_ids: tuple[int, ...]) -> SpanArray:
        indexes = [self.field_ids.index(field_id) for field_id in field_ids]
        types = tuple(self.types[index] for index in indexes)
        key = KeyColumns(field_ids, tuple(f"field {field_id}" for field_id in field_ids), types)
        lower = cuts_at_prefixes(key, [self.columns[index] for index in indexes], after=False)
        in_order = np.asarray(pc.sort_indices(lower.encoded))
        lower = lower.take(in_order)
        upper = CutArray(key, lower.columns, lower.depth, np.ones(len(lower), np.bool_))
        return SpanArray(key, lower, upper, self.newest[in_order])

    def deleted_rows(self, columns: Sequence[pa.ChunkedArray], data_sequence_number: int) -> NDArray[np.int64]:
        """Offsets, rising, of the rows that a key newer than the data deletes; rows in any order.

        `columns` are the delete columns in the order of `field_ids`, each in its own type or one that it was promoted
        from.
        """
        newer = self.newer_than(data_sequence_number)
        if not newer.any():
            return np.empty(0, np.int64)
        rows, keys = self._match(columns)
        return rows[newer[keys]]

    def deleted_rows_of_files(
        self, columns: Sequence[pa.ChunkedArray], data_sequence_numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """DA-2: `deleted_rows` for rows of several data files end to end, each row with the number of its file."""
        rows, keys = self._match(columns)
        return rows[equality_delete_is_new_enough(self.newest[keys], data_sequence_numbers[rows])]

    def deleted_mask(self, columns: Sequence[pa.ChunkedArray], data_sequence_number: int) -> NDArray[np.bool_]:
        """For each row whether a key newer than the data deletes it."""
        mask = np.zeros(len(columns[0]), np.bool_)
        mask[self.deleted_rows(columns, data_sequence_number)] = True
        return mask

    def _match(self, columns: Sequence[pa.ChunkedArray]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offsets of the rows that have the values of a key, and the index of that key."""
        row_count = len(columns[0])
        rows = self._possible_rows(columns)
        candidates = np.zeros(len(rows), np.int64)
        for step in self.steps:
            column, iceberg_type = columns[step.column], self.types[step.column]
            if len(rows) == row_count:
                codes = codes_of(comparable(column, iceberg_type), step.values)
            elif len(rows) > _DENSE * row_count:
                codes = codes_of(comparable(column, iceberg_type), step.values)[rows]
            else:
                codes = codes_of(comparable(column.filter(_mask(rows, row_count)), iceberg_type), step.values)
            found = codes != NOT_FOUND
            rows = rows[found]
            pairs = candidates[found] * len(step.values) + codes[found]
            candidates = _index_of(pairs, step.known)
            found = candidates != NOT_FOUND
            rows, candidates = rows[found], candidates[found]
        return rows, candidates

    def _possible_rows(self, columns: Sequence[pa.ChunkedArray]) -> NDArray[np.int64]:
        """Offsets, rising, of the rows to look up: all that have the values of a key, and others."""
        first = self.steps[0]
        if first.prefilter is None:
            return np.arange(len(columns[0]))
        return first.prefilter.possible_rows(comparable(decoded(columns[first.column]), self.types[first.column]))


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Where the values of a delete column lie, in the order-preserving encoding (RD-4)."""

    lower: bytes
    """Cut before the smallest value that is not null."""
    upper: bytes
    """Cut after the largest value."""
    has_null: bool


def _value_bounds(column: pa.Array, key_type: PrimitiveType) -> ValueBounds | None:
    if family_of(key_type) is KeyFamily.FLOAT or column.null_count == len(column):
        return None
    extremes = pc.min_max(encode_column(column.drop_null(), key_type))
    upper = extremes["max"].as_py() + AFTER_MARKER
    return ValueBounds(extremes["min"].as_py(), upper, has_null=column.null_count > 0)


def _build_steps(
    columns: Sequence[pa.Array], types: Sequence[PrimitiveType]
) -> tuple[tuple[LookUpStep, ...], NDArray[np.int64]]:
    """The look-up steps, and for each row of the delete files which key it is."""
    encoded = [pc.dictionary_encode(column, null_encoding="encode") for column in columns]
    candidates = np.zeros(len(columns[0]), np.int64)
    steps: list[LookUpStep] = []
    for column in sorted(range(len(columns)), key=lambda column: _cost(types[column], len(encoded[column].dictionary))):
        values = encoded[column].dictionary
        pairs = candidates * len(values) + encoded[column].indices.to_numpy()
        known, candidates = np.unique(pairs, return_inverse=True)
        steps.append(LookUpStep(column, values, pa.array(known), None if steps else HashPrefilter.of(values)))
    return tuple(steps), candidates.astype(np.int64, copy=False)


def _cost(iceberg_type: PrimitiveType, distinct_count: int) -> tuple[bool, int]:
    """Cheap columns first, then the ones that rule out most rows."""
    wide = isinstance(iceberg_type, StringType | BinaryType | FixedType | UUIDType | DecimalType)
    return wide, -distinct_count


def _index_of(pairs: NDArray[np.int64], known: pa.Array) -> NDArray[np.int64]:
    if len(known) and known[-1].as_py() == len(known) - 1:
        # The pairs that occur are the first ones, as always in the first step: each is its own index.
        return np.where(pairs < len(known), pairs, NOT_FOUND)
    return codes_of(pa.chunked_array([pa.array(pairs)]), known)


def _mask(rows: NDArray[np.int64], row_count: int) -> pa.Array:
    mask = np.zeros(row_count, np.bool_)
    mask[rows] = True
    return pa.array(mask)
