"""Verifies a table, from its metadata file down to the pages of its files (MT-70)."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.erasure.certificate import ErasureCertificate
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.maintenance.running.tasks import ResultT, TaskT, in_threads
from tableformat.maintenance.verification.data_rows import FileReport, RowContext, verify_rows
from tableformat.maintenance.verification.delete_contents import verify_deletes
from tableformat.maintenance.verification.erased_rows import erased_flaws
from tableformat.maintenance.verification.file_index import FileIndex, index_files
from tableformat.maintenance.verification.findings import (
    FindingKind,
    Flaw,
    Severity,
    VerificationFinding,
    VerifyResult,
)
from tableformat.maintenance.verification.metadata_checks import list_flaws, manifest_flaws, reference_flaws
from tableformat.maintenance.verification.remedies import Remedies, heads_of
from tableformat.maintenance.verification.repeated_keys import find_repeated_keys, key_of_view
from tableformat.maintenance.verification.snapshot_checks import SnapshotChecks
from tableformat.maintenance.verification.stored_files import (
    FILES_AT_ONCE,
    StatedFile,
    confirmed,
    flaw_of,
    stored_file_flaws,
)
from tableformat.merge_on_read.delete_columns import field_history
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.snapshot_choice import head_view, view_at
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.table_file import parse_table_metadata
from tableformat.properties import inflated_bytes_max
from tableformat.storage import storage
from tableformat.storage.location import local_path

_REMOTE_THREADS: Final = 32
_NOT_READ: Final = frozenset({FindingKind.MISSING_FILE, FindingKind.WRONG_SIZE})
"""Files with a finding of these kinds are not read."""


def verify(
    iceberg: IcebergTable,
    branch: str,
    *,
    deep: bool = False,
    keys: bool = False,
    snapshot_id: int | None = None,
    erased: ErasureCertificate | None = None,
    progress: Progress | None = None,
) -> VerifyResult:
    """MT-70: check everything that the handle's metadata names, for all retained snapshots or one, and report the
    flaws. Nothing is changed, and caches are not used. With `keys`, repeated keys of the head of the branch, or of the
    one snapshot, are a finding (MT-120). MT-119: with `erased`, every file is also searched for the rows of an erasure.

    Raises SnapshotNotFoundError for a snapshot that is not retained, and InvalidKeyError for `keys` without a key. An
    error of the store is raised unchanged.
    """
    started = time.perf_counter()
    run = _Run(iceberg.metadata, iceberg.io, iceberg.metadata_location, progress or silent)
    keyed = _keyed_view(iceberg, branch, snapshot_id) if keys else None
    chosen = _chosen(iceberg.metadata, iceberg.io, snapshot_id)
    file_index = run.look_at_metadata(chosen, heads_of(iceberg.metadata) if snapshot_id is None else {snapshot_id})
    run.look_at_files(file_index, is_whole_table=snapshot_id is None)
    if deep:
        run.read_files(file_index)
    if erased is not None:
        run.flaws += erased_flaws(iceberg, erased, progress)
    repeated_key_count = None if keyed is None else run.compare_keys(*keyed)
    remedies = Remedies.of(file_index, branch, run.flaws)
    findings = _still_true([remedies.finding(flaw) for flaw in dict.fromkeys(run.flaws)], iceberg)
    return VerifyResult(
        table=".".join(iceberg.name()),
        branch=branch,
        deep=deep,
        snapshot_count=len(file_index.snapshots),
        manifest_count=len(file_index.manifests),
        data_file_count=len(file_index.data_files),
        delete_file_count=len(file_index.delete_files),
        row_count=run.row_count,
        unchecksummed_file_count=run.unchecksummed_file_count,
        repeated_key_count=repeated_key_count,
        duration_seconds=time.perf_counter() - started,
        findings=tuple(sorted(findings, key=lambda each: each.severity is Severity.WARNING)),
    )


@dataclass(slots=True)
class _Run:
    """One verification in progress."""

    metadata: TableMetadata
    io: FileIO
    metadata_location: str
    tell: Progress
    flaws: list[Flaw] = field(default_factory=list)
    row_count: int = 0
    unchecksummed_file_count: int = 0

    def look_at_metadata(self, snapshots: Sequence[Snapshot], heads: frozenset[int] | set[int]) -> FileIndex:
        """MT-72, MT-73: check the metadata file, lists and manifests, and their consistency."""
        try:
            parse_table_metadata(
                storage.read_bytes(self.io, self.metadata_location),
                self.metadata_location,
                inflated_bytes_max(self.io.properties),
            )
        except (CorruptFileError, UnsupportedFeatureError) as error:
            self.flaws.append(flaw_of(self.io, error, self.metadata_location))
        self.flaws += reference_flaws(self.metadata, self.metadata_location)
        file_index, read, unread = index_files(self.metadata, self.io, snapshots, self._thread_count)
        self.flaws += unread
        fields = field_history(self.metadata)
        for manifest, entries in read:
            self.flaws += manifest_flaws(manifest, entries, self.metadata, fields)
        checks = SnapshotChecks(file_index, file_index.columns(), frozenset(heads))
        # Newest first: a flaw that several snapshots share is reported for the newest.
        for done, contents in enumerate(reversed(file_index.snapshots), 1):
            self.flaws += list_flaws(contents)
            self.flaws += checks.flaws(contents)
            self.tell(done, len(file_index.snapshots), "snapshots")
        return file_index

    def look_at_files(self, file_index: FileIndex, *, is_whole_table: bool) -> None:
        """MT-71: check that every file exists and has its size."""
        known = {flaw.location for flaw in self.flaws if flaw.kind is FindingKind.MISSING_FILE}
        sizes = {file.file_path: file.file_size_bytes for file in file_index.files}
        sizes |= {path: manifest.manifest_length_bytes for path, manifest in file_index.manifests.items()}
        stated = [StatedFile(path, size) for path, size in sizes.items() if path not in known]
        if is_whole_table:
            stated += _optional_files(self.metadata)
        chunks = [stated[start : start + FILES_AT_ONCE] for start in range(0, len(stated), FILES_AT_ONCE)]
        sizes_of_chunks = [len(chunk) for chunk in chunks]
        for flaws in self._answers(partial(stored_file_flaws, self.io), chunks, "files looked for", sizes_of_chunks):
            self.flaws += flaws

    def read_files(self, file_index: FileIndex) -> None:
        """MT-74, MT-75: check the contents of the files. Each file is read once, even if several snapshots have it."""
        unreadable = {flaw.location for flaw in self.flaws if flaw.kind in _NOT_READ}
        context = RowContext(self.metadata, self.io, field_history(self.metadata))
        data_files = file_index.data_files
        deletes: dict[str, list[DeleteFile]] = defaultdict(list)
        for delete in file_index.delete_files:
            deletes[delete.file_path].append(delete)
        calls: list[Callable[[], FileReport]] = [
            partial(verify_rows, file, context) for path, file in data_files.items() if path not in unreadable
        ]
        calls += [
            partial(verify_deletes, files, context, data_files)
            for path, files in deletes.items()
            if path not in unreadable
        ]
        for report in self._answers(_confirmed_report, calls, "files read", [1] * len(calls)):
            self.flaws += report.flaws
            self.row_count += report.row_count
            self.unchecksummed_file_count += not report.has_checksums

    def compare_keys(self, view: SnapshotView, key: tuple[str, ...]) -> int | None:
        """MT-120: the number of keys that more than one live row has. None if a file that is needed cannot be read."""
        if view.snapshot is None:
            return 0
        location = view.snapshot.manifest_list
        try:
            found = find_repeated_keys(view, key, self.tell)
        except (CorruptFileError, UnsupportedFeatureError) as error:
            self.flaws += [
                flaw_of(self.io, error, location),
                Flaw(FindingKind.NOT_CHECKED, location, f"its keys: {error}"),
            ]
            return None
        if found.key_count:
            self.flaws.append(Flaw(FindingKind.REPEATED_KEY, location, str(found)))
        return found.key_count

    @property
    def _thread_count(self) -> int:
        is_local = local_path(self.metadata.location) is not None
        return (os.cpu_count() or 1) if is_local else _REMOTE_THREADS

    def _answers(
        self, call: Callable[[TaskT], ResultT], tasks: Sequence[TaskT], what: str, steps: Sequence[int]
    ) -> Iterator[ResultT]:
        """The results in order of completion. Progress is reported between them; each task counts as its number of
        steps (MT-62)."""
        done, total = 0, sum(steps)
        self.tell(done, total, what)
        with closing(in_threads(call, tasks, self._thread_count, discard=lambda _result: None)) as running:
            for index, answer in running:
                yield answer
                done += steps[index]
                self.tell(done, total, what)


def _confirmed_report(call: Callable[[], FileReport]) -> FileReport:
    return confirmed(call, lambda report: report.flaws)


def _keyed_view(iceberg: IcebergTable, branch: str, snapshot_id: int | None) -> tuple[SnapshotView, tuple[str, ...]]:
    """The snapshot whose keys are compared, and the columns of the key."""
    metadata = iceberg.metadata
    view = (
        head_view(metadata, iceberg.io, branch) if snapshot_id is None else view_at(metadata, iceberg.io, snapshot_id)
    )
    return view, key_of_view(view, ".".join(iceberg.name()))


def _chosen(metadata: TableMetadata, io: FileIO, snapshot_id: int | None) -> list[Snapshot]:
    if snapshot_id is None:
        return sorted(metadata.snapshots, key=lambda each: (each.sequence_number or 0, each.timestamp_ms))
    snapshot = view_at(metadata, io, snapshot_id).snapshot
    assert snapshot is not None, "view_at gives a snapshot or raises"
    return [snapshot]


def _optional_files(metadata: TableMetadata) -> Iterator[StatedFile]:
    """Files that the metadata names, but that are not needed for reading rows."""
    for statistics in (*metadata.statistics, *metadata.partition_statistics):
        yield StatedFile(statistics.statistics_path, statistics.file_size_in_bytes, FindingKind.MISSING_STATISTICS)
    for logged in metadata.metadata_log:
        yield StatedFile(logged.metadata_file, None, FindingKind.MISSING_LOG)


def _still_true(findings: Sequence[VerificationFinding], iceberg: IcebergTable) -> list[VerificationFinding]:
    """MT-76: the findings that still apply. Files are missing for a reason if their snapshots expired in the meantime,
    or if they are metadata files that later commits have removed."""
    if not findings or isinstance(iceberg.catalog, NoopCatalog):
        return list(findings)
    try:
        now = iceberg.catalog.load_table(iceberg.name())
    except NoSuchTableError:
        return list(findings)
    retained = {snapshot.snapshot_id for snapshot in now.metadata.snapshots}
    logged = {now.metadata_location, *(each.metadata_file for each in now.metadata.metadata_log)}
    before = {iceberg.metadata_location, *(each.metadata_file for each in iceberg.metadata.metadata_log)}
    return [
        each
        for each in findings
        if (not each.snapshot_ids or retained.intersection(each.snapshot_ids)) and each.file not in before - logged
    ]
