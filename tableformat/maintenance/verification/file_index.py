"""The manifests of the verified snapshots, read once, and every file that they name, by number.

Numbers instead of paths turn checks of whole snapshots into array operations, such as "is a file live twice" and "is
the data file of a vector live". A thousand snapshots share most of their manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import FileKey, file_key
from tableformat.commit.snapshot_summary import count_totals
from tableformat.deletes.rules import committed_sequence_number
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.running.tasks import ResultT, TaskT, in_threads
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.maintenance.verification.stored_files import confirmed, flaw_of
from tableformat.merge_on_read.delete_index import Partition, named_data_file
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import decode_manifest_list
from tableformat.metadata.manifests.manifest_reader import decode_manifest, live_entries
from tableformat.metadata.partition_identity import partition_of

ManifestKey: TypeAlias = tuple[str, int | None, int | None]
"""A manifest and the numbers that its entries inherit from the manifest list. Another list may have different numbers.
"""
Numbers: TypeAlias = npt.NDArray[np.int64]

NO_FILE: Final = -1
"""Instead of a file's number: the file is not live in any of the snapshots."""
SEVERAL: Final = -2
"""Instead of a data file's number: the delete file may name any number of data files."""
TOTALS: Final = tuple(count_totals(()))
"""Names of the totals of a summary."""


@dataclass(frozen=True, slots=True)
class ManifestContents:
    """The live files of one manifest."""

    numbers: Numbers
    first_row_ids: Numbers
    """The first row id of each file; -1 if it has none."""
    totals: dict[str, int]
    """The contribution of the files to the totals of a summary."""


@dataclass(frozen=True, slots=True)
class SnapshotContents:
    """One snapshot and its manifests."""

    snapshot: Snapshot
    manifests: tuple[ManifestFile, ...]
    is_whole: bool
    """Whether its list and all its manifests could be read. If not, missing files cannot be concluded."""


@dataclass(slots=True)
class FileIndex:
    """Every file of the verified snapshots."""

    metadata: TableMetadata
    files: list[DataFile | DeleteFile] = field(default_factory=list)
    """By number. Each file is included once, as the first manifest states it."""
    contents: dict[ManifestKey, ManifestContents] = field(default_factory=dict)
    snapshots: list[SnapshotContents] = field(default_factory=list)
    """Oldest first."""
    _numbers: dict[FileKey, int] = field(default_factory=dict)

    @property
    def manifests(self) -> dict[str, ManifestFile]:
        """By location."""
        return {each.manifest_path: each for contents in self.snapshots for each in contents.manifests}

    @property
    def data_files(self) -> dict[str, DataFile]:
        """By location."""
        return {file.file_path: file for file in self.files if isinstance(file, DataFile)}

    @property
    def delete_files(self) -> list[DeleteFile]:
        return [file for file in self.files if isinstance(file, DeleteFile)]

    def live(self, contents: SnapshotContents) -> tuple[Numbers, Numbers]:
        """Numbers and first row ids of the snapshot's live files. A file that is live twice is included twice."""
        found = [self.contents[key_of(each)] for each in contents.manifests if key_of(each) in self.contents]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate([each.numbers for each in found]), np.concatenate([each.first_row_ids for each in found])

    def totals(self, contents: SnapshotContents) -> Iterator[dict[str, int]]:
        """The contribution of each manifest of the snapshot to the totals of its summary."""
        for manifest in contents.manifests:
            yield self.contents[key_of(manifest)].totals

    def numbers_at(self, locations: Iterable[str]) -> dict[str, list[int]]:
        """The numbers of the files at each location: one, or several vectors of one Puffin file; empty for unknown
        files."""
        wanted: dict[str, list[int]] = {location: [] for location in locations}
        for (location, _), number in self._numbers.items():
            if location in wanted:
                wanted[location].append(number)
        return wanted

    def add(self, manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Flaw]:
        """DA-9: add a manifest. A file that another manifest states with other numbers is a flaw, unless a snapshot was
        cherry-picked (SP-24)."""
        live = [entry.file for entry in live_entries(entries)]
        numbers = np.empty(len(live), np.int64)
        for position, file in enumerate(live):
            number = self._numbers.setdefault(file_key(file), len(self.files))
            numbers[position] = number
            if number == len(self.files):
                self.files.append(file)
            elif _was_added_again(self.files[number], file):
                self.files[number] = min(self.files[number], file, key=committed_sequence_number)
            elif (known := _identity(self.files[number])) != (stated := _identity(file)):
                yield Flaw(
                    FindingKind.WRONG_SEQUENCE_NUMBER,
                    manifest.manifest_path,
                    f"it states sequence number, rows and bytes of {file.file_path} as {stated}, but another "
                    f"manifest states {known}",
                )
        row_ids = [getattr(file, "first_row_id", None) for file in live]
        self.contents[key_of(manifest)] = ManifestContents(
            numbers, np.array([-1 if row_id is None else row_id for row_id in row_ids], np.int64), count_totals(live)
        )

    def columns(self) -> FileColumns:
        """The columns for the checks of whole snapshots, after the last manifest was added."""
        deletes = [(number, file) for number, file in enumerate(self.files) if isinstance(file, DeleteFile)]
        named = np.full(len(self.files), SEVERAL, np.int64)
        is_row_delete = np.zeros(len(self.files), np.bool_)
        is_vector = np.zeros(len(self.files), np.bool_)
        for number, delete in deletes:
            is_vector[number] = delete.kind is DeleteKind.DELETION_VECTOR
            is_row_delete[number] = is_vector[number] or delete.kind is DeleteKind.POSITION
            path = named_data_file(delete) if is_row_delete[number] else None
            if path is not None:
                named[number] = self._numbers.get((path, None), NO_FILE)
        codes: dict[Partition, int] = {}
        partitions = [codes.setdefault(partition_of(file), len(codes)) for file in self.files]
        is_data = np.ones(len(self.files), np.bool_)
        is_data[[number for number, _ in deletes]] = False
        return FileColumns(
            is_data=is_data,
            is_row_delete=is_row_delete,
            is_vector=is_vector,
            named=named,
            partitions=np.array(partitions, np.int64),
            record_counts=np.array([file.record_count for file in self.files], np.int64),
            sequence_numbers=np.array([committed_sequence_number(file) for file in self.files], np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """Properties of all files, by number."""

    is_data: npt.NDArray[np.bool_]
    is_row_delete: npt.NDArray[np.bool_]
    is_vector: npt.NDArray[np.bool_]
    named: Numbers
    """The only data file that a row delete names; NO_FILE or SEVERAL otherwise."""
    partitions: Numbers
    """A number for the partition of each file, the same for files of one partition."""
    record_counts: Numbers
    sequence_numbers: Numbers


def index_files(
    metadata: TableMetadata, io: FileIO, snapshots: Sequence[Snapshot], thread_count: int
) -> tuple[FileIndex, list[tuple[ManifestFile, tuple[ManifestEntry, ...]]], list[Flaw]]:
    """Returns the index, each manifest with its entries, and the flaws of unreadable files. Caches are not used."""
    file_index = FileIndex(metadata)
    flaws: list[Flaw] = []
    lists = _answers(lambda each: confirmed(lambda: _manifests(io, each), _as_flaws), snapshots, thread_count)
    distinct: dict[ManifestKey, ManifestFile] = {}
    for found in lists:
        if not isinstance(found, Flaw):
            distinct |= {key_of(each): each for each in found}
    decoded = _answers(
        lambda each: confirmed(lambda: _entries(io, each, metadata), _as_flaws), list(distinct.values()), thread_count
    )
    read: list[tuple[ManifestFile, tuple[ManifestEntry, ...]]] = []
    for manifest, entries in zip(distinct.values(), decoded, strict=True):
        if isinstance(entries, Flaw):
            flaws.append(entries)
        else:
            flaws += file_index.add(manifest, entries)
            read.append((manifest, entries))
    for snapshot, found in zip(snapshots, lists, strict=True):
        if isinstance(found, Flaw):
            flaws.append(found)
        manifests = () if isinstance(found, Flaw) else found
        is_whole = not isinstance(found, Flaw) and all(key_of(each) in file_index.contents for each in manifests)
        file_index.snapshots.append(SnapshotContents(snapshot, manifests, is_whole))
    return file_index, read, flaws


def key_of(manifest: ManifestFile) -> ManifestKey:
    return manifest.manifest_path, manifest.sequence_number, manifest.first_row_id


def _manifests(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...] | Flaw:
    try:
        return decode_manifest_list(io, snapshot.manifest_list)
    except (CorruptFileError, UnsupportedFeatureError) as error:
        return flaw_of(io, error, snapshot.manifest_list)


def _entries(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> tuple[ManifestEntry, ...] | Flaw:
    if manifest.partition_spec_id not in metadata.specs():
        known = ", ".join(map(str, sorted(metadata.specs())))
        return Flaw(
            FindingKind.UNKNOWN_SPEC,
            manifest.manifest_path,
            f"its list assigns it to partition spec {manifest.partition_spec_id}, but the table has {known}",
        )
    try:
        return decode_manifest(io, manifest, metadata)
    except (CorruptFileError, UnsupportedFeatureError) as error:
        return flaw_of(io, error, manifest.manifest_path)


def _as_flaws(answer: object) -> Iterator[Flaw]:
    if isinstance(answer, Flaw):
        yield answer


def _was_added_again(known: DataFile | DeleteFile, stated: DataFile | DeleteFile) -> bool:
    """MT-72: each of the two entries comes from a separate commit and has the number of that commit."""
    return (
        known.sequence_number == known.file_sequence_number
        and stated.sequence_number == stated.file_sequence_number
        and _identity(known)[1:] == _identity(stated)[1:]
    )


def _identity(file: DataFile | DeleteFile) -> tuple[int | None, int, int]:
    return file.sequence_number, file.record_count, file.file_size_bytes


def _answers(call: Callable[[TaskT], ResultT], tasks: Sequence[TaskT], thread_count: int) -> list[ResultT]:
    """The result of each task, in the order of the tasks."""
    answers = dict(in_threads(call, tasks, thread_count, discard=lambda _result: None))
    return [answers[index] for index in range(len(tasks))]
