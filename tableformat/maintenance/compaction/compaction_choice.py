"""Chooses which files to compact together, and gives the reasons. Deterministic, from statistics alone (MT-40 to
MT-42)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tableformat.maintenance.compaction.compaction_plan import (
    CompactionGroup,
    CompactionOptions,
    CompactionPlan,
    GroupKind,
)
from tableformat.maintenance.compaction.compaction_statistics import FileStatistics, file_statistics
from tableformat.maintenance.compaction.group_output import output_file_count
from tableformat.maintenance.compaction.key_widths import KeySpace, worth_merging
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import OPEN_FILE_COST, OPEN_FILE_COST_DEFAULT, positive_int
from tableformat.range_partitions.files import PartitionPlaces, Straddling
from tableformat.range_partitions.property_text import range_partitions_of

REWRITE_SHARE: Final = 0.5
"""Bytes of smaller files in a file's range, as a share of the file's own bytes, from which it is merged with them."""
_EXTRA_HEIGHT_MIN: Final = 0.5
"""The average number of files beyond one that a lookup reads, from which overlap is a reason to merge."""


def plan_compaction(
    view: SnapshotView, options: CompactionOptions, *, only_paths: frozenset[str] | None = None
) -> CompactionPlan:
    """The plan for compacting a snapshot: always the same for the same snapshot and options. Nothing is changed.

    `only_paths` limits the files to these locations. Reads manifests. Reads delete files and delete columns if they
    decide whether a file has too many deleted rows (MT-40).
    """
    statistics = file_statistics(view, options.where, only_paths, options.delete_ratio_threshold)
    open_cost_bytes = positive_int(view.metadata.properties, OPEN_FILE_COST, OPEN_FILE_COST_DEFAULT)
    ranges = range_partitions_of(view.metadata.properties, view.metadata.schema())
    places = None if ranges is None else PartitionPlaces.of(ranges)
    chosen = choose_groups(statistics, options, open_cost_bytes, places)
    groups, left_out = within_budget(chosen, options.max_rewritten_bytes)
    return CompactionPlan(
        snapshot_id=None if view.snapshot is None else view.snapshot.snapshot_id,
        sequence_number=view.sequence_number,
        options=options,
        groups=groups,
        left_out=left_out,
        data_file_count=len(statistics),
    )


def choose_groups(
    statistics: Iterable[FileStatistics],
    options: CompactionOptions,
    open_cost_bytes: int,
    places: PartitionPlaces | None = None,
) -> list[CompactionGroup]:
    """MT-42: the groups, in descending order of the read cost that they save for each rewritten byte.

    A group never crosses a partition or spec: its new files stay in the partition of the old files, so deletes that are
    limited to a partition still apply to them. RP-16: a group does not cross a border of range partitions either. A
    file that crosses a border is a group of its own.
    """
    groups = [
        group
        for straddles, members in by_partition(statistics, places)
        for group in _Partition.of(members, options, open_cost_bytes, straddles=straddles).groups()
    ]
    return sorted(groups, key=lambda group: (-group.saved_per_byte, group.data_files[0].file_path))


def by_partition(
    statistics: Iterable[FileStatistics], places: PartitionPlaces | None
) -> list[tuple[bool, list[FileStatistics]]]:
    """The files that may be in one group (MT-42, RP-16), and whether they straddle range partitions. If they do, each
    file is a group of its own."""
    partitions: defaultdict[tuple[Any, ...], list[FileStatistics]] = defaultdict(list)
    for each in statistics:
        place = None if places is None else places.of_file(each.data_file)
        partitions[(*partition_of(each.data_file), place)].append(each)
    return [(isinstance(place, Straddling), members) for (*_, place), members in partitions.items()]


def within_budget(
    groups: Sequence[CompactionGroup], max_rewritten_bytes: int | None
) -> tuple[tuple[CompactionGroup, ...], tuple[CompactionGroup, ...]]:
    """The groups that fit, taken in order, and the remaining groups."""
    if max_rewritten_bytes is None:
        return tuple(groups), ()
    chosen: list[CompactionGroup] = []
    left_out: list[CompactionGroup] = []
    room = max_rewritten_bytes
    for group in groups:
        if group.rewritten_bytes <= room:
            chosen.append(group)
            room -= group.rewritten_bytes
        else:
            left_out.append(group)
    return tuple(chosen), tuple(left_out)


@dataclass(frozen=True, slots=True)
class _Partition:
    """The files of one partition in key order, and the key space that they span."""

    files: tuple[FileStatistics, ...]
    space: KeySpace
    options: CompactionOptions
    open_cost_bytes: int
    straddles: bool
    """RP-16: the files have rows on both sides of a border of range partitions."""

    @staticmethod
    def of(
        files: Sequence[FileStatistics], options: CompactionOptions, open_cost_bytes: int, *, straddles: bool = False
    ) -> _Partition:
        ordered = tuple(
            sorted(files, key=lambda each: (each.bounds.lower, each.bounds.upper, each.data_file.file_path))
        )
        space = KeySpace.of([each.bounds for each in ordered], [each.size_bytes for each in ordered])
        return _Partition(ordered, space, options, open_cost_bytes, straddles)

    def groups(self) -> list[CompactionGroup]:
        emptied = [index for index, each in enumerate(self.files) if each.is_empty]
        alive = [index for index, each in enumerate(self.files) if not each.is_empty]
        groups = [self._group(GroupKind.DROP, emptied, ["no rows remain"])] if emptied else []
        if self.straddles:
            return groups + [self._group(GroupKind.FOLD, [index], ["it straddles range partitions"]) for index in alive]
        if self.options.depth == "fold":
            return groups + [self._fold(index) for index in alive if self._is_worn(index)]
        if self.options.rewrite_all:
            return groups + [self._merge(part, ["rewrite_all was requested"]) for part in self._bins(alive)]
        overlapping = self._overlap_groups(alive)
        taken = {index for part in overlapping for index in part}
        groups += [self._merge(part, []) for part in overlapping]
        rest = [index for index in alive if index not in taken]
        small = [index for index in rest if self._is_small(index)]
        for part in self._bins(small):
            if self._is_worth_packing(part):
                groups.append(self._merge(part, []))
            else:
                groups += [self._fold(index) for index in part if self._is_worn(index)]
        others = [index for index in rest if not self._is_small(index)]
        return groups + [self._fold(index) for index in others if self._is_worn(index) or self._is_large(index)]

    def _overlap_groups(self, indexes: Sequence[int]) -> list[list[int]]:
        """MT-41: sets of files that overlap each other, if a lookup reads enough of them."""
        sizes = [0 if each.is_empty else each.alive_bytes for each in self.files]
        wanted = set(worth_merging(self.space, sizes, REWRITE_SHARE)).intersection(indexes)
        return [part for part in self.space.overlapping(sorted(wanted)) if self._is_worth_merging(part)]

    def _is_worth_merging(self, part: Sequence[int]) -> bool:
        enough = len(part) >= self.options.min_input_files or not all(self._is_small(index) for index in part)
        return len(part) > 1 and enough and self.space.mean_height(part) - 1 >= _EXTRA_HEIGHT_MIN

    def _is_worth_packing(self, part: Sequence[int]) -> bool:
        alive_bytes = sum(self.files[index].alive_bytes for index in part)
        is_enough = len(part) >= self.options.min_input_files or alive_bytes >= self.options.target_file_size_bytes
        return is_enough and self._output_count(part) < len(part)

    def _bins(self, indexes: Sequence[int]) -> list[list[int]]:
        """Neighbours in key order, at most the bytes of a group in each set. Files that overlap stay together."""
        bins: list[list[int]] = []
        filled = 0
        for part in self.space.overlapping(indexes):
            size = sum(self.files[index].size_bytes for index in part)
            if not bins or filled + size > self.options.group_bytes_max:
                bins.append([])
                filled = 0
            bins[-1] += part
            filled += size
        return bins

    def _is_small(self, index: int) -> bool:
        return self.files[index].alive_bytes < self.options.small_below_bytes

    def _is_large(self, index: int) -> bool:
        return self.files[index].alive_bytes > self.options.large_above_bytes

    def _is_worn(self, index: int) -> bool:
        """MT-40: whether the file has enough deleted rows or enough pending delete files."""
        each, threshold = self.files[index], self.options.delete_file_threshold
        return each.delete_ratio >= self.options.delete_ratio_threshold or (
            threshold is not None and each.pending_delete_count >= threshold
        )

    def _output_count(self, part: Sequence[int]) -> int:
        alive_bytes = sum(self.files[index].alive_bytes for index in part)
        return output_file_count(alive_bytes, self.options.target_file_size_bytes)

    def _merge(self, part: Sequence[int], reasons: Sequence[str]) -> CompactionGroup:
        return self._group(GroupKind.MERGE if len(part) > 1 else GroupKind.FOLD, part, reasons)

    def _fold(self, index: int) -> CompactionGroup:
        return self._group(GroupKind.FOLD, [index], [])

    def _group(self, kind: GroupKind, part: Sequence[int], reasons: Sequence[str]) -> CompactionGroup:
        files = [self.files[index] for index in part]
        output_count = 0 if kind is GroupKind.DROP else self._output_count(part)
        height = self.space.mean_height(part) if kind is GroupKind.MERGE else 1.0
        saved = self.open_cost_bytes * (len(files) - output_count + (height - 1) * output_count)
        saved += sum(each.size_bytes - each.alive_bytes for each in files)
        saved += sum(delete.file_size_bytes for each in files for delete in each.row_deletes)
        return CompactionGroup(
            kind=kind,
            spec_id=files[0].data_file.spec_id,
            partition=files[0].data_file.partition,
            tasks=tuple(each.task for each in files),
            row_deletes=tuple(delete for each in files for delete in each.row_deletes),
            reasons=(*reasons, *self._reasons(kind, part, output_count, height)),
            deleted_row_count=sum(each.deleted_row_count for each in files),
            output_file_count=output_count,
            saved_bytes=max(round(saved), 0),
        )

    def _reasons(self, kind: GroupKind, part: Sequence[int], output_count: int, height: float) -> Iterable[str]:
        if kind is GroupKind.DROP:
            return
        files = [self.files[index] for index in part]
        small = sum(self._is_small(index) for index in part)
        if kind is GroupKind.MERGE and small:
            yield f"{small} files are below {self.options.small_below_bytes:,} bytes"
        if height - 1 >= _EXTRA_HEIGHT_MIN:
            yield f"a key lookup opens {height:.1f} of the files instead of 1"
        rows = sum(each.data_file.record_count for each in files)
        deleted = sum(each.deleted_row_count for each in files)
        if deleted:
            about = "" if all(each.is_exact for each in files) else "at most "
            yield f"{about}{deleted:,} of {rows:,} rows are deleted"
        threshold = self.options.delete_file_threshold
        pending = max(each.pending_delete_count for each in files)
        if threshold is not None and pending >= threshold:
            yield f"{pending} deletes are applied to a file on each read"
        if any(self._is_large(index) for index in part):
            yield f"a file is larger than {self.options.large_above_bytes:,} bytes and is split into {output_count}"
