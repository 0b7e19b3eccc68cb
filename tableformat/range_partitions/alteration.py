"""Changes of range partitions. Each function returns new ones or raises an error, which names both conflicting parts
(RP-8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tableformat.errors import InvalidArgumentError
from tableformat.range_partitions.cuts import Cut, Range, cuts_before, values_text
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.definition import check_closed, check_disjoint, ranges_text


def added(defined: DefinedPartitions, ranges: Sequence[Range]) -> DefinedPartitions:
    """RP-8: add bounds. Raises InvalidArgumentError if one overlaps an existing range."""
    new = sorted(ranges)
    check_disjoint(defined.key, new)
    for each in new:
        clash = next((bound for bound in defined.bounds if bound.meets(each)), None)
        if clash is not None:
            raise InvalidArgumentError(f"{defined.text(each)} cannot be added: {defined.text(clash)} exists already.")
    if defined.steps is not None:
        check_closed(defined.key, new)
    return defined.with_ranges([*defined.bounds, *new], defined.splits)


def united(defined: DefinedPartitions, ranges: Sequence[Range]) -> DefinedPartitions:
    """RP-9: add ranges, except their parts that exist already."""
    missing = [part for each in ranges for part in without(each, defined.bounds)]
    return added(defined, missing) if missing else defined


def dropped(defined: DefinedPartitions, ranges: Sequence[Range]) -> DefinedPartitions:
    """RP-8: drop whole partitions. Raises InvalidArgumentError for a range that does not exist, or a part of a
    partition."""
    gone = sorted(ranges)
    check_disjoint(defined.key, gone)
    for each in gone:
        check_whole_partitions(defined, each)
    left = [part for bound in defined.bounds for part in without(bound, gone)]
    return defined.with_ranges(left, defined.splits)


def divided(defined: DefinedPartitions, cuts: Sequence[Cut]) -> DefinedPartitions:
    """RP-8: add borders, each inside a partition."""
    for cut in cuts:
        bound = next((bound for bound in defined.bounds if bound.lower < cut < bound.upper), None)
        shown = values_text(defined.key, cut.values)
        if bound is None:
            exists = ranges_text(defined.key, defined.bounds) or "none"
            raise InvalidArgumentError(f"split {shown} is outside of all bounds: {exists}.")
        if cut in defined.borders_of(bound):
            raise InvalidArgumentError(f"split {shown} is already a partition boundary in {defined.text(bound)}.")
    return defined.with_ranges(defined.bounds, [*defined.splits, *cuts])


def merged(defined: DefinedPartitions, ranges: Sequence[Range]) -> DefinedPartitions:
    """RP-8: remove the borders inside the ranges. Raises InvalidArgumentError for a border of steps, because these are
    computed."""
    for each in ranges:
        check_whole_partitions(defined, each)
        inside = [split for split in defined.splits if each.lower < split < each.upper]
        if not inside:
            reason = "its boundaries come from steps" if defined.steps is not None else "it is only one partition"
            raise InvalidArgumentError(f"{defined.text(each)} cannot be merged: {reason}.")
    kept = [cut for cut in defined.splits if not any(each.lower < cut < each.upper for each in ranges)]
    return defined.with_ranges(defined.bounds, kept)


def check_whole_partitions(defined: DefinedPartitions, given: Range) -> list[Range]:
    """The partitions that make up the range. Raises InvalidArgumentError if it does not consist of whole partitions."""
    bound = defined.bound_of(given)
    if bound is None:
        met = [each for each in defined.bounds if each.meets(given)]
        exists = ranges_text(defined.key, met or defined.bounds) or "none"
        raise InvalidArgumentError(f"no range partitions make up {defined.text(given)}. Existing ranges: {exists}.")
    borders = [bound.lower, *defined.borders_of(bound), bound.upper]
    for end in (given.lower, given.upper):
        if end not in borders:
            cut = next(Range(lower, upper) for lower, upper in pairwise(borders) if lower < end < upper)
            raise InvalidArgumentError(
                f"{defined.text(given)} would cut the partition {defined.text(cut)}. Either split that partition at "
                f"{values_text(defined.key, end.values)} first, or pass whole partitions."
            )
    inside = [cut for cut in borders if given.lower <= cut <= given.upper]
    return [Range(lower, upper) for lower, upper in pairwise(inside)]


def narrows(before: DefinedPartitions | None, after: DefinedPartitions) -> bool:
    """RP-8: whether rows that were accepted before are now rejected."""
    if after.takes_every_row:
        return False
    if before is None or before.takes_every_row:
        return True
    return any(after.bound_of(bound) is None for bound in before.bounds)


def without(given: Range, others: Sequence[Range]) -> list[Range]:
    """The parts of the range outside of `others`, which may have any order."""
    left = [given]
    for other in others:
        left = [part for each in left for part in _less(each, other)]
    return left


def _less(given: Range, other: Range) -> list[Range]:
    if not given.meets(other):
        return [given]
    parts = (Range(given.lower, other.lower), Range(other.upper, given.upper))
    return [part for part in parts if part.lower < part.upper]


def step_range(defined: DefinedPartitions, first: int, last: int) -> Range:
    """RP-4: the range from the start of the first step to the end of the last one, given as ordinals."""
    assert defined.steps is not None, "used only for partitions with steps"
    lower, upper = cuts_before(defined.key, defined.steps.starts(np.array([first, last + 1])).tolist())
    return Range(lower, upper)
