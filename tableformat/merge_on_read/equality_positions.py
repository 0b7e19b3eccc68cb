"""The positions of the rows of one data file that equality deletes match."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import equality_delete_is_new_enough
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.encoding import NULL_MARKER
from tableformat.keys.families import KeyFamily, family_of
from tableformat.merge_on_read.span_positions import batches, near_spans, positions_in_file, span_positions
from tableformat.parquet.key_reader import KeyReader

_ROWS_PER_SEARCHED_KEY: Final = 150
"""With fewer rows for each key, looking up every row is faster than searching every key."""


def equality_positions(reader: KeyReader, keys: EqualityKeys, data_sequence_number: int) -> PositionSet:
    """DA-2, DA-4: the positions of the rows that a key newer than the data deletes.

    If the file's own marker says that it is sorted by the delete columns and there are few keys within its bounds, the
    keys are searched (RD-11). Otherwise rows are looked up, in row groups whose statistics do not exclude all keys.
    """
    if not keys.newer_than(data_sequence_number).any():
        return PositionSet.empty()
    order = (reader.file.sorted_by or ())[: len(keys.field_ids)]
    if set(order) == set(keys.field_ids) and not _has_float(keys):
        points = _few_points(reader, keys, order, data_sequence_number)
        if points is not None:
            return span_positions(reader, points)
    return _looked_up(reader, keys, data_sequence_number)


def _few_points(
    reader: KeyReader, keys: EqualityKeys, order: tuple[int, ...], data_sequence_number: int
) -> SpanArray | None:
    """RD-12: the newer keys that may be in the file, as spans of one key each, in the order of the file. None if
    looking up every row is faster."""
    row_count = reader.file.row_count
    if len(keys) * _ROWS_PER_SEARCHED_KEY <= row_count:
        points = near_spans(reader, keys.point_spans(order))
        assert points.sequence_numbers is not None, "points carry the newest number of their key"
        is_newer = equality_delete_is_new_enough(points.sequence_numbers, data_sequence_number)
        return points if is_newer.all() else points.take(np.flatnonzero(is_newer))
    leading = order[0]
    lower, upper = reader.bounds((leading,), (keys.types[keys.field_ids.index(leading)],))
    near = keys.near(leading, min(lower, default=b""), max(upper, default=b""))
    near = near[keys.newer_than(data_sequence_number)[near]]
    return keys.point_spans_of(near, order) if len(near) * _ROWS_PER_SEARCHED_KEY <= row_count else None


def _looked_up(reader: KeyReader, keys: EqualityKeys, data_sequence_number: int) -> PositionSet:
    starts = reader.file.row_group_starts
    found = []
    for groups in batches(groups_in_reach(reader, keys), starts):
        columns = reader.columns(keys.field_ids, groups.tolist())
        rows = PositionSet.from_array(keys.deleted_rows(columns, data_sequence_number))
        found.append(PositionSet.from_runs(*positions_in_file(starts, groups, rows.starts, rows.ends)))
    return PositionSet.union_of(found)


def groups_in_reach(reader: KeyReader, keys: EqualityKeys) -> NDArray[np.int64]:
    """Row groups that may hold a key: the bounds of every delete column overlap the values of the keys."""
    in_reach = np.ones(reader.file.row_group_count, np.bool_)
    for field_id, key_type, value_bounds in zip(keys.field_ids, keys.types, keys.value_bounds_by_column, strict=True):
        if value_bounds is not None:
            lower, upper = reader.bounds((field_id,), (key_type,))
            in_reach &= [
                (group_lower < value_bounds.upper and value_bounds.lower < group_upper)
                or (value_bounds.has_null and group_lower <= NULL_MARKER)
                for group_lower, group_upper in zip(lower, upper, strict=True)
            ]
    return np.flatnonzero(in_reach)


def _has_float(keys: EqualityKeys) -> bool:
    return any(family_of(key_type) is KeyFamily.FLOAT for key_type in keys.types)
