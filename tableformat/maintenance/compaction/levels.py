"""Chooses data files of one level to merge, as a log-structured merge tree does (MT-80 to MT-82).

    level 0   30 KB each   |=| |=| |=| ... 12 of them      merged into one file of level 1
    level 1  300 KB each   |================| ...          12 of them make one of level 2
    base       75 MB       |===================================|

A row is written again once a level, and not at every merge of small files. Files of any age may be merged, since a
rewrite applies every delete of its planned snapshot and keeps that snapshot's number (CP-7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

    def __post_init__(self) -> None:
        assert self.fan_in > 1, self.fan_in
        assert self.base_share > 0, self.base_share


def plan_levels(view: SnapshotView, options: LevelOptions, *, max_rewritten_bytes: int | None = None) -> CompactionPlan:
    """The merges that are due, those of the smallest files first. Reads manifests, no data file and no key.

    `max_rewritten_bytes`: of all merges together; those that do not fit are left out.
    """
    statistics = file_statistics(view, None, None, _NEVER_COUNT)
    ranges = range_partitions_of(view.metadata.properties, view.metadata.schema())
    parts = by_partition(statistics, None if ranges is None else PartitionPlaces.of(ranges))
    due = [group for straddles, members in parts if not straddles for group in _due(members, options)]
    due.sort(key=lambda group: (group.rewritten_bytes, group.data_files[0].file_path))
    chosen: list[CompactionGroup] = []
    left_out: list[CompactionGroup] = []
    room = max_rewritten_bytes
    for group in due:
        fits = room is None or group.rewritten_bytes <= room
        (chosen if fits else left_out).append(group)
        if fits and room is not None:
            room -= group.rewritten_bytes
    return CompactionPlan(
        snapshot_id=None if view.snapshot is None else view.snapshot.snapshot_id,
        sequence_number=view.sequence_number,
        options=CompactionOptions(target_file_size_bytes=options.target_file_size_bytes),
        groups=tuple(chosen),
        left_out=tuple(left_out),
        data_file_count=len(statistics),
    )


def _due(files: Sequence[FileStatistics], options: LevelOptions) -> Iterator[CompactionGroup]:
    """The merges of one partition: files without a row, a base with what lies over it, full levels."""
    emptied = [each for each in files if each.is_empty]
    if emptied:
        yield _group(GroupKind.DROP, emptied, options, "no row is left")
    alive = [each for each in files if not each.is_empty]
    alive.sort(key=lambda each: (each.size_bytes, each.data_file.file_path))
    base = base_and_above(alive, options)
    if base:
        part = [alive[index] for index in base]
        yield _group(GroupKind.MERGE, part, options, BASE_REASON)
    small_below = CompactionOptions(target_file_size_bytes=options.target_file_size_bytes).small_below_bytes
    rest = [each for index, each in enumerate(alive) if index not in set(base) and each.size_bytes < small_below]
    for level in full_levels([each.size_bytes for each in rest], options.fan_in):
        yield _group(GroupKind.MERGE, [rest[index] for index in level], options, f"{len(level)} files are a full level")


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


def base_and_above(files: Sequence[FileStatistics], options: LevelOptions) -> list[int]:
    """MT-81: the files with pending deletes of which smaller files hold their share, and these smaller files.

    `files` in ascending order of size. Only what is larger than a level is a base: the share of a small file is reached
    with every commit.
    """
    if not files:
        return []
    sizes = [each.size_bytes for each in files]
    space = KeySpace.of([each.bounds for each in files], sizes)
    over = np.zeros(len(space.weights))
    taken: set[int] = set()
    smallest_level = options.fan_in * sizes[0]
    for index, each in enumerate(files):
        covered = space.intervals(index)
        is_base = each.task.has_deletes and each.size_bytes >= smallest_level
        if is_base and over[covered].sum() >= options.base_share * each.size_bytes:
            taken.add(index)
        over[covered] += space.spread(index, each.size_bytes)
    for base in sorted(taken):
        within = space.intervals(base)
        taken.update(
            index for index in range(base) if space.first[index] < within.stop and space.end[index] > within.start
        )
    return sorted(taken)


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
