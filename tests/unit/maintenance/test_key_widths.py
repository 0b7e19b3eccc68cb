"""The width of files in the key space, and which files are worth merging."""

from __future__ import annotations

import numpy as np

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.maintenance.compaction.key_widths import KeySpace, worth_merging


def bounds(*ranges: tuple[str, str]) -> list[KeyBounds]:
    """The same form as in `key_bounds`: the smallest key, and the cut after the largest."""
    return [KeyBounds(lower.encode(), upper.encode() + b"\xff") for lower, upper in ranges]


def test_files_that_only_touch_do_not_overlap() -> None:
    """MT-41: outputs of one compaction share at most the key at their border."""
    space = KeySpace.of(bounds(("a", "c"), ("c", "e"), ("e", "g")), [10, 10, 10])
    assert space.mean_height([0, 1, 2]) == 1.0
    assert space.overlapping([0, 1, 2]) == [[0], [1], [2]]


def test_three_files_over_one_another_cost_three_lookups() -> None:
    """MT-41"""
    space = KeySpace.of(bounds(("a", "z"), ("a", "z"), ("a", "z")), [10, 20, 30])
    assert space.mean_height([0, 1, 2]) == 3.0
    assert space.widths().tolist() == [60.0, 60.0, 60.0]


def test_files_of_which_no_bound_is_known_are_not_merged_for_their_keys() -> None:
    """MT-41: the same holds for files of a table without a key. The merged file has no bounds either, and would be
    merged again."""
    unknown = KeyBounds(b"", b"\xff")
    space = KeySpace.of([unknown, unknown, *bounds(("a", "b"))], [10, 10, 10])
    assert space.widths().tolist() == [0.0, 0.0, 10.0]
    assert worth_merging(space, [10, 10, 10], 0.4) == []


def test_dense_stretches_weigh_more() -> None:
    """MT-41: the weight of an interval is the number of bytes in it: a quarter of the first file and all of the
    second."""
    space = KeySpace.of(bounds(("a", "q"), ("m", "q")), [16, 90])
    assert space.weights.tolist() == [12.0, 94.0]
    assert space.mean_height([0, 1]) == (106 + 94) / 106


def test_stretches_at_the_edges_weigh_as_little_as_they_are_long() -> None:
    """MT-41: files that begin and end nearly together lie over one another nearly everywhere."""
    space = KeySpace.of(bounds(("aaa", "mmm"), ("aab", "mmn"), ("aac", "mmo")), [10, 10, 10])
    assert space.mean_height([0, 1, 2]) > 2.99


def test_cuts_that_begin_alike_are_told_apart_by_what_follows() -> None:
    """MT-41: if eight bytes do not distinguish them, the intervals have equal weights."""
    long = "x" * 100
    space = KeySpace.of(bounds((f"{long}a", f"{long}c"), (f"{long}b", f"{long}c")), [10, 10])
    assert space.weights.tolist() == [5.0, 15.0]
    alike = KeySpace.of(bounds(("a" + long + "1", "a" + long + "2"), ("a" + long + "1", "b")), [10, 10])
    assert alike.weights.sum() == 20.0


def test_file_of_one_key_has_no_width() -> None:
    """MT-41: and does not make its neighbours overlap."""
    space = KeySpace.of(bounds(("a", "m"), ("m", "m"), ("m", "z")), [10, 5, 10])
    assert space.widths().tolist() == [10.0, 0.0, 10.0]
    assert space.mean_height([1]) == 1.0
    assert worth_merging(space, [10, 5, 10], 0.5) == []


def test_unknown_upper_bound_reaches_the_end() -> None:
    """MT-41: a side that stops at a prefix is taken to lie after everything that begins with it."""
    space = KeySpace.of([KeyBounds(b"ab", b"a\xff"), *bounds(("ac", "ad"))], [10, 10])
    assert space.overlapping([0, 1]) == [[0, 1]]


def test_small_file_over_a_large_one_is_not_worth_its_rewrite() -> None:
    """MT-41: the large file stays until smaller ones in its range hold half as much."""
    ranges = bounds(("a", "z"), ("a", "z"))
    assert worth_merging(KeySpace.of(ranges, [1000, 10]), [1000, 10], 0.5) == []
    assert worth_merging(KeySpace.of(ranges, [1000, 500]), [1000, 500], 0.5) == [0, 1]


def test_only_the_part_of_the_base_that_new_files_lie_over_is_taken() -> None:
    """MT-41: files elsewhere in the key space are left alone."""
    ranges = bounds(("a", "h"), ("i", "p"), ("q", "z"), ("i", "p"))
    sizes = [100, 100, 100, 80]
    assert worth_merging(KeySpace.of(ranges, sizes), sizes, 0.5) == [1, 3]


def test_small_files_are_merged_without_the_base_below_them() -> None:
    """MT-41"""
    ranges = bounds(("a", "z"), ("b", "y"), ("b", "y"), ("b", "y"))
    sizes = [10_000, 10, 11, 12]
    assert worth_merging(KeySpace.of(ranges, sizes), sizes, 0.5) == [1, 2, 3]


def test_no_files() -> None:
    """MT-41"""
    space = KeySpace.of([], [])
    assert len(space.weights) == 0
    assert worth_merging(space, [], 0.5) == []
    assert np.array_equal(space.widths(), [])
