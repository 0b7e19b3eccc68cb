"""The range partitions of data files, determined from their manifest entries alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile
from tableformat.range_partitions.alteration import step_range, without
from tableformat.range_partitions.cuts import END, START, Range
from tableformat.range_partitions.defined import DefinedPartitions


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Sorted disjoint ranges, prepared to locate many files."""

    ranges: Sequence[Range]
    lowers: list[bytes]
    uppers: list[bytes]

    @classmethod
    def of(cls, ranges: Sequence[Range]) -> FilePlaces:
        return cls(ranges, [each.lower.encoded for each in ranges], [each.upper.encoded for each in ranges])

    def touched(self, file: KeyBounds) -> range:
        """The indexes of the ranges that may contain a row of the file, judged by its bounds."""
        return range(bisect_right(self.uppers, file.lower), bisect_right(self.lowers, file.upper))

    def holder(self, file: KeyBounds) -> int | None:
        """The index of the range that contains all rows of the file. None if no range does, or if that is unknown."""
        index = bisect_right(self.lowers, file.lower) - 1
        return index if index >= 0 and file.upper <= self.uppers[index] else None


@dataclass(frozen=True, slots=True)
class Straddling:
    """The result for a file that may have rows in several range partitions, or both in one and outside."""

    file_path: str


@dataclass(frozen=True, slots=True)
class PartitionPlaces:
    """The partitions of a table, prepared to find the one that contains a file."""

    key: KeyColumns
    places: FilePlaces

    @classmethod
    def of(cls, defined: DefinedPartitions) -> PartitionPlaces:
        return cls(defined.key, FilePlaces.of(list(defined.partitions())))

    def of_file(self, data: DataFile) -> tuple[str, int] | Straddling:
        """RP-16: the partition, or the gap between two partitions, that contains all rows of the file."""
        bounds = key_bounds(data, self.key)
        holder = self.places.holder(bounds)
        if holder is not None:
            return "partition", holder
        touched = self.places.touched(bounds)
        return Straddling(data.file_path) if touched else ("gap", touched.start)


def partitions_of_files(
    defined: DefinedPartitions, data_files: Sequence[DataFile]
) -> list[tuple[Range, ...] | Straddling]:
    """For each file, the ranges covered by the partition that contains all its rows. This is one range for a partition,
    and all uncovered ranges for the default partition. On demand, it is the step that the rows add (RP-9). It is empty
    if no row is accepted."""
    places = PartitionPlaces.of(defined)
    return [_ranges_of(defined, places, data) for data in data_files]


def _ranges_of(defined: DefinedPartitions, places: PartitionPlaces, data: DataFile) -> tuple[Range, ...] | Straddling:
    place = places.of_file(data)
    if isinstance(place, Straddling):
        return place
    kind, index = place
    if kind == "partition":
        return (places.places.ranges[index],)
    if defined.has_default:
        return tuple(default_ranges(defined))
    if defined.on_demand is None:
        return ()
    added, _ = steps_of_files(defined, [data])
    if not added:
        return ()
    holder = FilePlaces.of(added).holder(key_bounds(data, defined.key))
    return Straddling(data.file_path) if holder is None else (added[holder],)


def default_ranges(defined: DefinedPartitions) -> list[Range]:
    """RP-10: the ranges of the default partition, which are all ranges that no bound covers."""
    return without(Range(START, END), defined.bounds)


def uncovered_files(defined: DefinedPartitions, data_files: Iterable[DataFile]) -> list[DataFile]:
    """RP-6: the files that may have a row which no bound covers. A file never crosses a gap, so each of the other files
    is contained in one bound."""
    if defined.takes_every_row:
        return []
    places = FilePlaces.of(defined.bounds)
    return [data for data in data_files if places.holder(key_bounds(data, defined.key)) is None]


def steps_of_files(defined: DefinedPartitions, data_files: Sequence[DataFile]) -> tuple[list[Range], list[DataFile]]:
    """RP-9: the missing steps with rows of the files, and the files with rows in steps that may not be added."""
    assert defined.steps is not None, "used only for partitions on demand"
    assert defined.on_demand is not None, "used only for partitions on demand"
    limits = defined.on_demand.limits
    ordinals: set[tuple[int, int]] = set()
    refused: list[DataFile] = []
    for data in data_files:
        extent = _extent(defined, data)
        steps = None if extent is None else tuple(defined.steps.ordinals(np.array(extent, np.int64)).tolist())
        if steps is None or (limits is not None and not limits.holds(step_range(defined, *steps))):
            refused.append(data)
        else:
            ordinals.add(steps)
    ranges = [step_range(defined, first, last) for first, last in sorted(ordinals)]
    return [part for each in ranges for part in without(each, defined.bounds)], refused


def _extent(defined: DefinedPartitions, data: DataFile) -> tuple[int, int] | None:
    """The smallest and largest value of the range column. None if the entry does not have them."""
    field_id, column_type = defined.key.field_ids[0], defined.key.types[0]
    lower, upper = (data.lower_bounds or {}).get(field_id), (data.upper_bounds or {}).get(field_id)
    if lower is None or upper is None:
        return None
    return tuple(int(from_bound(each, column_type, location=data.file_path)) for each in (lower, upper))  # type: ignore[return-value]
