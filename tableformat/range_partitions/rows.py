"""Locates rows in range partitions, one batch at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType, DateType, FixedType, PrimitiveType, StringType, UUIDType

from tableformat.deletes.matching.range_match import deleted_mask
from tableformat.keys.arrow_columns import as_key_array
from tableformat.keys.encoding import encode_rows
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.internal_values import internal_values_of
from tableformat.range_partitions.cuts import Cut, Range, internal_cut, range_text
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.retired import RetiredRange
from tableformat.range_partitions.steps import Steps, values_as_int64

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

_INT64_MAX: Final = 2**63 - 1
_COUNTED_MIN: Final = 1 << 16
"""Values with a smaller spread than this are counted, even if there are only a few."""


def covered(defined: DefinedPartitions, columns: Sequence[pa.Array]) -> Flags | None:
    """RP-5: whether a bound covers each row; None if all rows are covered. If possible, this is decided by the smallest
    and largest values. `columns` are the range columns of the rows. A null is never covered."""
    if not defined.bounds:
        return np.zeros(len(columns[0]), np.bool_)
    extent = extent_of_rows(defined, columns)
    if extent is not None and defined.bound_of(extent) is not None:
        return None
    mask = _covered_values(defined, columns[0]) if len(columns) == 1 else deleted_mask(columns, defined.spans)
    for column in columns:
        if column.null_count:
            mask &= np.asarray(pc.is_valid(column))
    return None if mask.all() else mask


def _covered_values(defined: DefinedPartitions, column: pa.Array) -> Flags:
    """Whether a bound covers each value. For strings, each distinct value is searched for only once."""
    if family_of(defined.key.types[0]) is not KeyFamily.VARIABLE_BYTES or column.null_count:
        return deleted_mask([column], defined.spans)
    encoded = column.dictionary_encode()
    found: Flags = deleted_mask([encoded.dictionary], defined.spans)
    if found.all():
        return np.ones(len(column), np.bool_)
    of_rows: Flags = found[np.asarray(encoded.indices)]
    return of_rows


def extent_of_rows(defined: DefinedPartitions, columns: Sequence[pa.Array]) -> Range | None:
    """A range that contains all rows, from the extremes of each column; None if these are unknown."""
    extremes = []
    for column, key_type in zip(columns, defined.key.types, strict=True):
        if not len(column) or column.null_count or isinstance(column, pa.ExtensionArray):
            return None
        if pa.types.is_fixed_size_binary(column.type):
            return None
        found = pc.min_max(column)
        pair = pa.array([found["min"], found["max"]], column.type)
        extremes.append(internal_values_of(as_key_array(pair, key_type, name=""), key_type))
    lower, upper = zip(*extremes, strict=True)
    return Range(internal_cut(defined.key, lower, after=False), internal_cut(defined.key, upper, after=True))


def _first(cut: Cut) -> int:
    """The smallest whole number above a cut of a single integer column. It is out of range for an open end."""
    if cut.is_open:
        return _INT64_MAX + 1 if cut.after else -_INT64_MAX - 1
    value: int = cut.values[0]
    return value + 1 if cut.after else value


def cuts_below(defined: DefinedPartitions, cuts: Sequence[Cut], columns: Sequence[pa.Array]) -> Counts:
    """The number of sorted cuts below each row."""
    key = defined.key
    if len(columns) == 1 and family_of(key.types[0]) is KeyFamily.INTEGER:
        firsts = np.array([min(_first(cut), _INT64_MAX) for cut in cuts], np.int64)
        return np.searchsorted(firsts, values_as_int64(columns[0], key.types[0]), side="right").astype(np.int64)
    rows = encode_rows(list(columns), key.types)
    # Sorting is stable: cuts precede rows with equal bytes, so they count as below the rows.
    together = pa.concat_arrays([pa.array([cut.encoded for cut in cuts], pa.large_binary()), rows])
    order = np.asarray(pc.sort_indices(together))
    below = np.empty(len(order), np.int64)
    below[order] = np.cumsum(order < len(cuts))
    of_rows: Counts = below[len(cuts) :]
    return of_rows


def partitions_of_rows(defined: DefinedPartitions, columns: Sequence[pa.Array]) -> tuple[list[tuple[int, int]], Counts]:
    """RP-7: a list of locations, and for each row the index of its location. A location is a partition, a gap, or a
    missing step. Its identifier is the same in every batch."""
    cuts = sorted({cut for bound in defined.bounds for cut in (bound.lower, bound.upper)} | set(defined.splits))
    extent = None if defined.steps is not None else extent_of_rows(defined, columns)
    if extent is not None and bisect_right(cuts, extent.lower) == bisect_right(cuts, extent.upper):
        return [(bisect_right(cuts, extent.lower), 0)], np.zeros(len(columns[0]), np.int64)
    below = cuts_below(defined, cuts, columns)
    if defined.steps is None:
        belows, codes = _distinct(below)
        return [(each, 0) for each in belows.tolist()], codes
    steps, of_step = _distinct(defined.steps.ordinals(values_as_int64(columns[0], defined.key.types[0])))
    pairs, codes = _distinct(of_step * (len(cuts) + 1) + below)
    of_steps, belows = np.divmod(pairs, len(cuts) + 1)
    return list(zip(belows.tolist(), steps[of_steps].tolist(), strict=True)), codes


def _distinct(values: Counts) -> tuple[Counts, Counts]:
    """The distinct values in order, and for each value its index among them. Values with a small spread are counted,
    which is faster than sorting."""
    if not len(values):
        return values, values
    smallest, largest = int(values.min()), int(values.max())
    if largest - smallest >= max(_COUNTED_MIN, len(values)):
        found, codes = np.unique(values, return_inverse=True)
        return found, codes.astype(np.int64)
    occurs = np.bincount(values - smallest) > 0
    index: Counts = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs) + smallest, index[values - smallest]


def missing_steps(steps: Steps, column: pa.Array, column_type: PrimitiveType) -> npt.NDArray[np.int64]:
    """RP-9: the distinct ordinals of the steps that contain the values."""
    return np.unique(steps.ordinals(values_as_int64(column, column_type)))


# -- why a row is refused -------------------------------------------------------------------------------------------


def refusals(
    defined: DefinedPartitions,
    columns: Sequence[pa.Array],
    where: Sequence[Range],
    end: str = "",
    retired: Sequence[RetiredRange] = (),
) -> pa.Array:
    """RP-5: one sentence for each of the given rows: `no range partition covers ts = 2031-01-01; the nearest is
    [2024-01-01, 2024-04-01)`. The nearest range is taken from `where`. RP-30: the sentence also names retired ranges
    that contain the row."""
    reasons = _uncovered(defined, columns, where, end)
    for each, inside in _inside_retired(defined, columns, retired):
        reasons = _joined("", [reasons, pc.if_else(pa.array(inside), f"; {each.note}", "")], "", "")
    return reasons


def retired_tags(
    defined: DefinedPartitions, columns: Sequence[pa.Array], retired: Sequence[RetiredRange]
) -> tuple[str, ...]:
    """RP-30: the tags of the retired ranges that contain one of the given rows."""
    return tuple(each.tag for each, inside in _inside_retired(defined, columns, retired) if inside.any())


def _inside_retired(
    defined: DefinedPartitions, columns: Sequence[pa.Array], retired: Sequence[RetiredRange]
) -> Iterator[tuple[RetiredRange, npt.NDArray[np.bool_]]]:
    """Each retired range of the same columns, and whether it contains each row."""
    for each in retired:
        if each.key == defined.key:
            inside = covered(DefinedPartitions(key=each.key, bounds=each.ranges), columns)
            yield each, np.ones(len(columns[0]), np.bool_) if inside is None else inside


def _uncovered(defined: DefinedPartitions, columns: Sequence[pa.Array], where: Sequence[Range], end: str) -> pa.Array:
    names = defined.key.names
    texts = [_texts(column, key_type) for column, key_type in zip(columns, defined.key.types, strict=True)]
    shown = texts[0] if len(texts) == 1 else _joined("(", texts, ")")
    named = names[0] if len(names) == 1 else f"({', '.join(names)})"
    if not where:
        return _joined(f"no range partition covers {named} = ", [shown], f"; the table has no range{end}")
    ranges = pa.array([range_text(defined.key, each) for each in where], pa.large_string())
    nearest = ranges.take(pa.array(_nearest(defined, columns, where)))
    return _joined(
        f"no range partition covers {named} = ", [_joined("", [shown, nearest], "", "; the nearest is ")], end
    )


def _nearest(defined: DefinedPartitions, columns: Sequence[pa.Array], where: Sequence[Range]) -> Counts:
    """The index of the range before the row, or of the range after it if that is nearer or the only one."""
    if any(column.null_count for column in columns):
        return np.zeros(len(columns[0]), np.int64)
    before = cuts_below(defined, [each.upper for each in where], columns) - 1
    behind = np.minimum(before + 1, len(where) - 1)
    nearest = np.maximum(before, 0)
    if len(columns) == 1 and family_of(defined.key.types[0]) is KeyFamily.INTEGER:
        values = values_as_int64(columns[0], defined.key.types[0]).astype(np.float64)
        uppers = np.array([_first(each.upper) for each in where], np.float64)
        lowers = np.array([_first(each.lower) for each in where], np.float64)
        is_nearer = np.abs(lowers[behind] - values) < np.abs(values - uppers[nearest])
        nearest = np.where(is_nearer, behind, nearest)
    return nearest


def _texts(column: pa.Array, key_type: PrimitiveType) -> pa.Array:
    if isinstance(key_type, StringType):
        return _joined("'", [column], "'")
    plain = column.storage if isinstance(column, pa.ExtensionArray) else column
    if isinstance(key_type, BinaryType | FixedType | UUIDType):
        return pa.array([None if value is None else value.hex() for value in plain.to_pylist()], pa.large_string())
    if pa.types.is_timestamp(plain.type):
        bare = plain.cast(pa.timestamp(plain.type.unit)) if plain.type.tz else plain
        text = pc.replace_substring_regex(bare.cast(pa.large_string()), r"(\.\d*?)0+$", r"\1")
        text = pc.replace_substring_regex(text, r"\.$", "")
        return pc.replace_substring(pc.replace_substring_regex(text, r" 00:00:00$", ""), " ", "T")
    assert isinstance(key_type, PrimitiveType | DateType)
    return plain.cast(pa.large_string())


def _joined(before: str, parts: Sequence[pa.Array], behind: str, separator: str = ", ") -> pa.Array:
    count = len(parts[0])
    text = [pa.repeat(pa.scalar(each, pa.large_string()), count) for each in (before, behind)]
    columns = [part.cast(pa.large_string()).fill_null("null") for part in parts]
    inner = (
        columns[0]
        if len(columns) == 1
        else pc.binary_join_element_wise(*columns, pa.scalar(separator, pa.large_string()))
    )
    return pc.binary_join_element_wise(text[0], inner, text[1], pa.scalar("", pa.large_string()))
