"""Chooses data files of one level to merge, as a log-structured merge tree does (MT-80 to MT-82).

    level 0   30 KB each   |=| |=| |=| ... 12 of them      merged into one file of level 1
    level 1  300 KB each   |================| ...          12 of them make one of level 2
    base       75 MB       |===================================|

A row is written again once a level, and not at every merge of small files. Files of any age may be merged, since a
rewrite applies every delete of its planned snapshot and keeps that snapshot's number (CP-7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from tableformat.maintenance.compaction.compaction_choice import by_partition
from tableformat.maintenance.compaction.compaction_plan import (
    CompactionGroup,
    CompactionOptions,
    CompactionPlan,
    GroupKind,
)
from tableformat.maintenance.compaction.compaction_statistics import FileStatistics, file_statistics
from tableformat.maintenance.compaction.group_output import output_file_count
from tableformat.maintenance.compaction.key_widths import KeySpace
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.files import PartitionPlaces
from tableformat.range_partitions.property_text import range_partitions_of

LEVEL_SPREAD: Final = 4.0
"""A file is of a level when it is at most this many times as large as the mean of the smaller files of the level."""
BASE_REASON: Final = "the files over a base have grown to their share of it"
_NEVER_COUNT: Final = 2.0
"""A share of deleted rows that no file reaches: deletes are not resolved to choose files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOptions:
    """When files of a level are merged."""

    fan_in: int
    """Files of one level that make one of the next."""
    base_share: float
    """Bytes of smaller files within the range of a file with pending deletes, as a share of its own bytes, from which
    it is merged with them."""
    target_file_size_bytes: int
    """Files from three quarters of this size on are merged for the sake of their deleted rows alone."""
    max_bytes: int | None = None
    """Of all merges together. A file that would not fit with its share is no base."""

    def __post_init__(self) -> None:
        assert self.fan_in > 1, self.fan_in
        assert self.base_share > 0, self.base_share


@dataclass(frozen=True, slots=True)
class _Merge:
    """Files that are due to be merged."""

    group: CompactionGroup
    files: Sequence[FileStatistics]
    has_base: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """The smallest come first."""
        return self.group.rewritten_bytes, self.group.data_files[0].file_path


def plan_levels(view: SnapshotView, options: LevelOptions, *, bytes_left: int | None = None) -> CompactionPlan:
    """The merges that are due, those of the smallest files first. Reads manifests, no data file and no key.

    `bytes_left`: of the write amplification (MT-84). Merges that do not fit in it, or in the bytes of the options, are
    left out; where a base is, the levels over it are merged as if it was not due yet.
    """
    statistics = file_statistics(view, None, None, _NEVER_COUNT)
    ranges = range_partitions_of(view.metadata.properties, view.metadata.schema())
    parts = by_partition(statistics, None if ranges is None else PartitionPlaces.of(ranges))
    due = [merge for straddles, members in parts if not straddles for merge in _due(members, options)]
    rooms = [each for each in (options.max_bytes, bytes_left) if each is not None]
    chosen, left_out = _fitting(due, options, min(rooms, default=None))
    return CompactionPlan(
        snapshot_id=None if view.snapshot is None else view.snapshot.snapshot_id,
        sequence_number=view.sequence_number,
        options=CompactionOptions(target_file_size_bytes=options.target_file_size_bytes),
        groups=tuple(chosen),
        left_out=tuple(left_out),
        data_file_count=len(statistics),
    )


def _fitting(
    due: Iterable[_Merge], options: LevelOptions, room: int | None
) -> tuple[list[CompactionGroup], list[CompactionGroup]]:
    """Those that fit in so many bytes, and those that do not."""
    chosen: list[CompactionGroup] = []
    left_out: list[CompactionGroup] = []
    waiting = [(each.order, each) for each in due]
    heapify(waiting)
    while waiting:
        _, merge = heappop(waiting)
        if room is None or merge.group.rewritten_bytes <= room:
            chosen.append(merge.group)
            room = None if room is None else room - merge.group.rewritten_bytes
            continue
        left_out.append(merge.group)
        for each in _full_level_merges(merge.files, options) if merge.has_base else ():
            heappush(waiting, (each.order, each))
    return chosen, left_out


def _due(files: Sequence[FileStatistics], options: LevelOptions) -> Iterator[_Merge]:
    """The merges of one partition: files without a row, bases with what lies over them, full levels."""
    emptied = [each for each in files if each.is_empty]
    if emptied:
        yield _merge(GroupKind.DROP, emptied, options, "no row is left")
    alive = [each for each in files if not each.is_empty]
    alive.sort(key=lambda each: (each.size_bytes, each.data_file.file_path))
    taken: set[int] = set()
    for part in bases_and_above(alive, options):
        taken.update(part)
        yield _merge(GroupKind.MERGE, [alive[index] for index in part], options, BASE_REASON)
    yield from _full_level_merges([each for index, each in enumerate(alive) if index not in taken], options)


def _full_level_merges(files: Sequence[FileStatistics], options: LevelOptions) -> Iterator[_Merge]:
    """Of files in ascending order of size."""
    small_below = CompactionOptions(target_file_size_bytes=options.target_file_size_bytes).small_below_bytes
    small = [each for each in files if each.size_bytes < small_below]
    for level in full_levels([each.size_bytes for each in small], options.fan_in):
        part = [small[index] for index in level]
        yield _merge(GroupKind.MERGE, part, options, f"{len(part)} files are a full level")


def full_levels(sizes: Sequence[int], fan_in: int) -> list[range]:
    """MT-80: of sizes in ascending order the ranges of indexes that are a level of at least `fan_in` files.

    >>> full_levels([30, 31, 32, 33, 480, 481], fan_in=4)
    [range(0, 4)]
    """
    levels: list[range] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and size > LEVEL_SPREAD * total / (index - start):
            levels.append(range(start, index))
            start, total = index, 0
        total += size
    levels.append(range(start, len(sizes)))
    return [level for level in levels if len(level) >= fan_in]


def bases_and_above(files: Sequence[FileStatistics], options: LevelOptions) -> list[list[int]]:
    """MT-81: the bases of which smaller files hold their share, each with these smaller files; bases that have some of
    them in common are together.

    `files` in ascending order of size. Only what is larger than a level is a base: the share of a small file is reached
    with every commit. So is that of a file which itself lies over a base, for the most part: what is written again
    there is written once more with the base soon.
    """
    if not files:
        return []
    sizes = [each.size_bytes for each in files]
    space = KeySpace.of([each.bounds for each in files], sizes)
    bases = _bases(files, options, space)
    over = np.zeros(len(space.weights))
    due = []
    for index, size in enumerate(sizes):
        covered = space.intervals(index)
        if index in bases and over[covered].sum() >= options.base_share * size:
            due.append(index)
        over[covered] += space.spread(index, size)
    taken = set(due)
    for base in due:
        within = space.intervals(base)
        taken.update(
            index for index in range(base) if space.first[index] < within.stop and space.end[index] > within.start
        )
    parts: list[list[int]] = []
    reached = -1
    for index in sorted(taken, key=lambda index: int(space.first[index])):
        if space.first[index] >= reached:
            parts.append([])
        parts[-1].append(index)
        reached = max(reached, int(space.end[index]))
    return [sorted(part) for part in parts]


def _bases(files: Sequence[FileStatistics], options: LevelOptions, space: KeySpace) -> set[int]:
    """The largest files with pending deletes: not what lies over a larger one with more than half of its bytes."""
    smallest_level = options.fan_in * files[0].size_bytes
    largest = math.inf if options.max_bytes is None else options.max_bytes / (1 + options.base_share)
    has_base = np.zeros(len(space.weights), bool)
    bases: set[int] = set()
    for index, each in reversed(list(enumerate(files))):
        if not each.task.has_deletes or not smallest_level <= each.size_bytes <= largest:
            continue
        covered = space.intervals(index)
        over_bases = space.spread(index, each.size_bytes)[has_base[covered]].sum()
        if over_bases <= each.size_bytes / 2:
            bases.add(index)
            has_base[covered] = True
    return bases


def _merge(kind: GroupKind, files: Sequence[FileStatistics], options: LevelOptions, reason: str) -> _Merge:
    return _Merge(_group(kind, files, options, reason), files, reason == BASE_REASON)


def _group(kind: GroupKind, files: Sequence[FileStatistics], options: LevelOptions, reason: str) -> CompactionGroup:
    total = sum(each.size_bytes for each in files)
    output_count = 0 if kind is GroupKind.DROP else output_file_count(total, options.target_file_size_bytes)
    return CompactionGroup(
        kind=kind,
        spec_id=files[0].data_file.spec_id,
        partition=files[0].data_file.partition,
        tasks=tuple(each.task for each in files),
        row_deletes=tuple(delete for each in files for delete in each.row_deletes),
        reasons=(reason,),
        deleted_row_count=sum(each.deleted_row_count for each in files),
        output_file_count=output_count,
        saved_bytes=0,
    )
