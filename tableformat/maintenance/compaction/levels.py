"""Chooses data files of one level to merge, as in a log-structured merge tree (MT-80 to MT-82).

    level 0   30 KB each   |=| |=| |=| ... 12 of them      merged into one file of level 1
    level 1  300 KB each   |================| ...          12 of them make one of level 2
    base       75 MB       |===================================|

A row is rewritten once for each level, not in every merge of small files. Files of any age may be merged, because a
rewrite applies every delete of its planned snapshot and keeps that snapshot's sequence number (CP-7).
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
"""A file belongs to a level if it is at most this many times as large as the mean of the smaller files of the level."""
BASE_REASON: Final = "the files over a base have reached their share of it"
_NEVER_COUNT: Final = 2.0
"""A share of deleted rows that no file reaches: deletes are not resolved for the choice of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOptions:
    """The conditions for merging the files of a level."""

    fan_in: int
    """The number of files of one level that are merged into one file of the next."""
    base_share: float
    """Bytes of smaller files within the range of a file with pending deletes, as a share of its own bytes, from which
    it is merged with them."""
    target_file_size_bytes: int
    """Files of at least three quarters of this size are merged only to remove their deleted rows."""
    max_bytes: int | None = None
    """The most bytes of all merges together. A file is not a base if it does not fit together with its share."""

    def __post_init__(self) -> None:
        assert self.fan_in > 1, self.fan_in
        assert self.base_share > 0, self.base_share


@dataclass(frozen=True, slots=True)
class _Merge:
    """Files that are due for a merge."""

    group: CompactionGroup
    files: Sequence[FileStatistics]
    has_base: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """Smallest merges first."""
        return self.group.rewritten_bytes, self.group.data_files[0].file_path


def plan_levels(view: SnapshotView, options: LevelOptions, *, bytes_left: int | None = None) -> CompactionPlan:
    """The merges that are due, smallest files first. Reads manifests, but no data file and no key.

    `bytes_left` is the rest of the write amplification budget (MT-84). Merges that do not fit in it, or in the bytes of
    the options, are left out. If such a merge has a base, the levels above that base are merged as if the base was not
    due yet.
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
    """The merges that fit in the given number of bytes, and the remaining ones."""
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
    """The merges of one partition: files without a row, bases with the files above them, and full levels."""
    emptied = [each for each in files if each.is_empty]
    if emptied:
        yield _merge(GroupKind.DROP, emptied, options, "no rows remain")
    alive = [each for each in files if not each.is_empty]
    alive.sort(key=lambda each: (each.size_bytes, each.data_file.file_path))
    taken: set[int] = set()
    for part in bases_and_above(alive, options):
        taken.update(part)
        yield _merge(GroupKind.MERGE, [alive[index] for index in part], options, BASE_REASON)
    yield from _full_level_merges([each for index, each in enumerate(alive) if index not in taken], options)


def _full_level_merges(files: Sequence[FileStatistics], options: LevelOptions) -> Iterator[_Merge]:
    """The merges of full levels. `files` in ascending order of size."""
    small_below = CompactionOptions(target_file_size_bytes=options.target_file_size_bytes).small_below_bytes
    small = [each for each in files if each.size_bytes < small_below]
    for level in full_levels([each.size_bytes for each in small], options.fan_in):
        part = [small[index] for index in level]
        yield _merge(GroupKind.MERGE, part, options, f"{len(part)} files are a full level")


def full_levels(sizes: Sequence[int], fan_in: int) -> list[range]:
    """MT-80: the ranges of indexes of ascending sizes that form a level of at least `fan_in` files.

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
    """MT-81: the bases whose share has been reached by smaller files, each with these smaller files. Bases that have
    smaller files in common are in one set.

    `files` in ascending order of size. Only a file larger than a level is a base, because the share of a small file is
    reached with every commit. A file that is mostly above another base is not a base either: its rows would soon be
    rewritten again with that base.
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
    """The largest files with pending deletes, without files that have more than half of their bytes above a larger
    base."""
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
