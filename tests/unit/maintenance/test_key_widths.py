"""The width of files in the key space, and which files are worth merging."""

from __future__ import annotations

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.maintenance.compaction.key_widths import KeySpace, worth_merging


def bounds(*ranges: tuple[str, str]) -> list[KeyBounds]:
    """The same form as in `key_bounds`: the smallest key, and the cut after the largest."""
    return [KeyBounds(lower.encode(), upper.encode() + b"\xff") for lower, upper in ranges]


def test_files_without_bounds_are_not_merged_for_overlap() -> None:
    """MT-41: the same holds for files of a table without a key. The merged file has no bounds either, and would be
    merged again."""
    unknown = KeyBounds(b"", b"\xff")
    space = KeySpace.of([unknown, unknown, *bounds(("a", "b"))], [10, 10, 10])
    assert space.widths().tolist() == [0.0, 0.0, 10.0]
    assert worth_merging(space, [10, 10, 10], 0.4) == []


def test_small_file_overlapping_a_large_one_is_not_merged() -> None:
    """MT-41: the large file stays until smaller ones in its range hold half as much."""
    ranges = bounds(("a", "z"), ("a", "z"))
    assert worth_merging(KeySpace.of(ranges, [1000, 10]), [1000, 10], 0.5) == []
    assert worth_merging(KeySpace.of(ranges, [1000, 500]), [1000, 500], 0.5) == [0, 1]


def test_only_overlapped_base_files_are_merged() -> None:
    """MT-41: files elsewhere in the key space are left alone."""
    ranges = bounds(("a", "h"), ("i", "p"), ("q", "z"), ("i", "p"))
    sizes = [100, 100, 100, 80]
    assert worth_merging(KeySpace.of(ranges, sizes), sizes, 0.5) == [1, 3]


def test_small_files_are_merged_without_the_large_base() -> None:
    """MT-41"""
    ranges = bounds(("a", "z"), ("b", "y"), ("b", "y"), ("b", "y"))
    sizes = [10_000, 10, 11, 12]
    assert worth_merging(KeySpace.of(ranges, sizes), sizes, 0.5) == [1, 2, 3]
