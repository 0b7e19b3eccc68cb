"""`TableChange`: the files that one commit adds and removes, and the table state that it relies on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pyiceberg.table.snapshots import Operation

from tableformat.commit.coverage_change import CoverageChange
from tableformat.errors import InvalidArgumentError
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestEntry, ManifestFile

FileKey: TypeAlias = tuple[str, int | None]
"""The identity of a file: its location, and the offset of the blob if a Puffin file has several vectors."""


class ChangeKind(Enum):
    """How much a change depends on the state of the table. This decides which concurrent commits it tolerates
    (`commit/conflicts.py`)."""

    BLIND = "blind"
    """Read nothing: appends, and deletes by key or range. Valid after any concurrent commit."""
    ROW_DELTA = "row-delta"
    """Deletes rows by position in named data files."""
    SCAN_BASED = "scan-based"
    """Read rows to decide what to write: duplicate checks, deletes and overwrites by filter."""
    REWRITE = "rewrite"
    """The same rows in other data files: compaction."""
    DELETE_REWRITE = "delete-rewrite"
    """The same deletes in other delete files."""
    CONVERSION = "conversion"
    """Removes equality and range deletes; position deletes replace them if a row still matched."""


@dataclass(frozen=True, slots=True)
class ManifestRewrite:
    """MT-48: the same live entries in other manifests. It is made from the head that it is committed on."""

    replaced: frozenset[str]
    """Locations of manifests of the head that are no longer listed."""
    clusters: tuple[tuple[ManifestEntry, ...], ...]
    """The live entries of those manifests, grouped: each group becomes one manifest. All entries of a group have the
    same spec and content."""


@dataclass(frozen=True, slots=True)
class CarriedManifests:
    """Delete manifests of another snapshot of the table, which the new snapshot lists too (SV-4)."""

    manifests: tuple[ManifestFile, ...] = ()
    files: frozenset[FileKey] = frozenset()
    """Their entries. All of them are live, and are among the added delete files of the change."""
    entries_max: int | None = None
    """The most added delete files in one new manifest, so that a later change replaces few manifests. None: any number.
    """


@dataclass(frozen=True, slots=True)
class UnchangedScope:
    """CP-83: the rows that must be unchanged since a snapshot that the caller of an operation read."""

    snapshot_id: int
    """The snapshot that the caller read; NO_SNAPSHOT for a branch without snapshots."""
    may_hold: Callable[[DataFile], bool]
    """Whether a data file can hold a row that the operation deletes or reads."""


NO_SNAPSHOT: Final = -1
"""The snapshot id of a branch without snapshots, as in Iceberg's metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The files of one snapshot. Staged files (`sequence_number` None) take the sequence number of the commit."""

    operation: Operation
    """The operation in the snapshot summary. Other engines read it: APPEND promises that only rows were added."""
    kind: ChangeKind = ChangeKind.BLIND
    added_data_files: tuple[DataFile, ...] = ()
    """Rewritten files carry the sequence number of the snapshot on which the rewrite was planned (CP-7)."""
    added_delete_files: tuple[DeleteFile, ...] = ()
    removed_data_files: tuple[DataFile, ...] = ()
    removed_delete_files: tuple[DeleteFile, ...] = ()
    updated_data_files: tuple[DataFile, ...] = ()
    """SCAN_BASED: data files that stay, some of their rows being deleted by position and written again elsewhere
    (CP-6)."""
    narrowed_data_files: tuple[DataFile, ...] = ()
    """SCAN_BASED: data files that stay, some of their rows being deleted by position (SP-20)."""
    planned_snapshot_id: int | None = None
    """Head of the branch when the change was planned; None for a branch without snapshots. BLIND ignores it."""
    planned_sequence_number: int = 0
    """Sequence number of that snapshot; 0 without a snapshot."""
    relied_on_snapshot_id: int | None = None
    """CONVERSION: the last snapshot whose position deletes replace removed deletes; None for the planned snapshot
    (CP-21)."""
    resolved_data_files: frozenset[str] = frozenset()
    """CONVERSION: the data files that were searched for every removed delete, or excluded by their bounds."""
    adopted_paths: frozenset[str] = frozenset()
    """Added files that another process staged and that may therefore be committed already (CP-23). Files that the
    committing process has just written under new names cannot be."""
    adopted_since: int = 0
    """The last sequence number of the table before any of these files was written."""
    manifest_rewrite: ManifestRewrite | None = None
    """Manifests that are written again without a change of files."""
    carried: CarriedManifests = CarriedManifests()
    """Manifests that already name some of the added delete files."""
    coverage: CoverageChange | None = None
    """The change of the range partitions of the table."""
    may_match: Callable[[DataFile], bool] | None = None
    """SCAN_BASED: whether a data file that others added can hold rows that the decision depends on. None: any can."""
    may_hold_moved_rows: Callable[[DataFile], bool] | None = None
    """SCAN_BASED: whether a data file that others added can hold new versions of rows that this change deletes. It
    matters if the others also deleted rows of files in which this change deletes rows. None: nothing was read at
    snapshot isolation (SP-20)."""
    reached: Callable[[Sequence[DeleteFile], Sequence[DataFile]], frozenset[str]] | None = None
    """SCAN_BASED: from the data files that the change replaces or deletes rows of, the paths of the files affected by
    equality and range deletes of others. A file is affected if such a delete reaches a row that the change deletes or
    carries over. None: all of them."""
    relied_data_files: Callable[[], Sequence[DataFile]] | None = None
    """SCAN_BASED: the data files with existing rows because of which the change skips an insert (CP-38). None: no such
    files."""
    relied_reached: Callable[[Sequence[DeleteFile], Sequence[DataFile]], frozenset[str]] | None = None
    """SCAN_BASED: the paths of the `relied_data_files` in which a delete of others, of any kind, removes such a row
    (CP-38). None: all of them."""
    records_deletes: bool = False
    """Make a snapshot even without files: its summary records a delete that may match rows of a retired range (RP-13).
    """
    deleted_row_count: int | None = None
    """Number of rows that the change deletes; None if they were not counted (CP-87)."""
    unchanged: UnchangedScope | None = None
    """The scope in which no rows may have been added since the caller read it (CP-83). None: no such check."""

    def __post_init__(self) -> None:
        if self.operation is Operation.APPEND and (
            self.added_delete_files or self.removed_data_files or self.removed_delete_files
        ):
            raise InvalidArgumentError("an append can only add data files; use overwrite, delete or replace.")
        if self.kind is ChangeKind.BLIND and (self.removed_data_files or self.removed_delete_files):
            raise InvalidArgumentError("a change that removes files is planned on a snapshot, so it cannot be blind.")
        if self.kind is ChangeKind.BLIND and self.data_files_named_by_deletes:
            raise InvalidArgumentError(
                "position deletes of committed data files are planned on a snapshot, so the change cannot be blind."
            )
        added = (*self.added_data_files, *self.added_delete_files)
        if len(file_keys(added)) < len(added):
            twice = next(path for (path, _), count in Counter(map(file_key, added)).items() if count > 1)
            raise InvalidArgumentError(f"one commit adds {twice} twice. Nothing was changed. Pass it once.")
        if self.kind is ChangeKind.REWRITE:
            _check_rewritten_numbers(self)

    @property
    def is_empty(self) -> bool:
        return not (
            self.added_data_files
            or self.added_delete_files
            or self.removed_data_files
            or self.removed_delete_files
            or self.manifest_rewrite
            or self.records_deletes
            or (self.coverage is not None and self.coverage.needs_snapshot)
        )

    @property
    def new_delete_manifests(self) -> list[tuple[DeleteFile, ...]]:
        """The added delete files by the manifest that is written for them, without those of carried manifests."""
        by_spec: defaultdict[int, list[DeleteFile]] = defaultdict(list)
        for file in self.added_delete_files:
            if file_key(file) not in self.carried.files:
                by_spec[file.spec_id].append(file)
        return [
            tuple(of_spec[start : start + size])
            for of_spec in by_spec.values()
            for size in (self.carried.entries_max or len(of_spec),)
            for start in range(0, len(of_spec), size)
        ]

    @property
    def data_files_named_by_deletes(self) -> frozenset[str]:
        """Committed data files that the added position deletes and vectors name, without files of this change."""
        named = {named_data_file(delete) for delete in self.added_delete_files if not is_keyed(delete)}
        own = {data.file_path for data in self.added_data_files}
        return frozenset(path for path in named if path is not None and path not in own)

    @property
    def scoped_deletes(self) -> tuple[DeleteFile, ...]:
        """New equality and range deletes. Whether one is global depends on its spec."""
        return tuple(
            delete for delete in self.added_delete_files if is_keyed(delete) and delete.sequence_number is None
        )


def operation_of(added: Collection[DataFile], others: Collection[ContentFile]) -> Operation:
    """The operation of the snapshot: APPEND promises that only rows were added."""
    if not others:
        return Operation.APPEND
    return Operation.OVERWRITE if added else Operation.DELETE


def file_key(file: ContentFile) -> FileKey:
    """The identity of a file within a snapshot."""
    return file.file_path, file.content_offset if isinstance(file, DeleteFile) else None


KEYED_KINDS: Final = frozenset({DeleteKind.EQUALITY, DeleteKind.RANGE})


def is_keyed(delete: DeleteFile) -> bool:
    """Whether the delete is an equality or range delete, which names keys. All others name rows of a file."""
    return delete.kind in KEYED_KINDS


def file_keys(files: Iterable[ContentFile]) -> frozenset[FileKey]:
    return frozenset(map(file_key, files))


def _check_rewritten_numbers(change: TableChange) -> None:
    """CP-7: rewritten rows keep their sequence number, and so their position relative to deletes. Otherwise deleted
    rows would come back."""
    for data in change.added_data_files:
        if data.sequence_number != change.planned_sequence_number:
            raise InvalidArgumentError(
                f"rewritten data file {data.file_path} must have sequence number {change.planned_sequence_number}, "
                f"that of the snapshot on which the rewrite was planned, not {data.sequence_number}."
            )
