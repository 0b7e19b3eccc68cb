"""Relocates one table: every file that contains paths is rewritten, from the inside out, the metadata file last.

    data files, equality and range deletes, statistics    copied unchanged, or left in place
    position deletes, deletion vectors                    contain paths of data files
    manifests                                             contain paths of these
    manifest lists                                        contain paths of manifests, with their sizes
    metadata files: those of the log, then the current    contain paths of manifest lists
    the catalog's row                                     changed by the caller: the table is at its new location

If the process ends before the last step, the table is unchanged, and the next attempt writes to the same locations.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyiceberg.io import FileIO

from tableformat.maintenance.running.progress import Progress, silent
from tableformat.properties import inflated_bytes_max
from tableformat.relocation import metadata_file
from tableformat.relocation.delete_files import put_bytes, rewrite_row_deletes, same_place
from tableformat.relocation.file_copier import Copied, FileCopier, FileCopy
from tableformat.relocation.known_files import KnownFiles
from tableformat.relocation.manifest_paths import (
    ManifestRecords,
    Record,
    RewrittenDelete,
    has_paths,
    is_live,
    renamed_entry,
    renamed_manifest,
)
from tableformat.relocation.metadata_file import Document
from tableformat.relocation.naming import Naming
from tableformat.relocation.staging import FileKind, Staging
from tableformat.storage.storage import exists, read_bytes

_REWRITERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocatedTable:
    """The result for one table, or with `dry_run` the expected result."""

    table: str
    former_location: str
    location: str
    metadata_location: str
    """The new current metadata file."""
    rewritten_files_count: int
    """Metadata files, manifest lists, manifests, position delete files and Puffin files of deletion vectors."""
    copied_files_count: int
    copied_bytes: int
    present_files_count: int
    """Files that an earlier attempt or backup copied."""


@dataclass(slots=True)
class TableRelocation:
    """The relocation of one table. Not thread-safe."""

    source: FileIO
    target: FileIO
    naming: Naming
    known: KnownFiles
    dry_run: bool = False
    progress: Progress = silent
    staging: Staging | None = None
    """Receives the rewritten files, with a list of their targets, if they are not written to the new location."""
    _rewritten_count: int = 0
    _copied: Copied = field(default_factory=Copied)
    _deletes: dict[str, RewrittenDelete] = field(default_factory=dict)
    _manifests: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Location to the new location and its size in bytes."""
    _seen: set[str] = field(default_factory=set)
    """Unchanged files that were already requested."""
    _done: int = 0
    _total: int = 0

    def run(self, name: str, metadata_location: str) -> RelocatedTable:
        """LK-6, LK-7: raises CorruptFileError if a file of a retained snapshot is missing or cannot be read."""
        current = metadata_file.parse_document(
            read_bytes(self.source, metadata_location), metadata_location, inflated_bytes_max(self.source.properties)
        )
        logged = self._logged(current)
        needed = dict.fromkeys(metadata_file.manifest_lists(current))
        self._total = len(needed) + len(logged) + 1
        for manifest_list in needed:
            self._relocate_list(manifest_list)
            self._step("manifest lists")
        self._keep(
            FileCopy(location, self.naming.kept(location, "metadata"), None)
            for location in metadata_file.statistics_files(current)
            if exists(self.source, location)
        )
        for location, document in {**logged, metadata_location: current}.items():
            self._put_document(document, location)
            self._step("metadata files")
        return RelocatedTable(
            table=name,
            former_location=current["location"],
            location=self.naming.table_target,
            metadata_location=self.naming.metadata_file(metadata_location),
            rewritten_files_count=self._rewritten_count,
            copied_files_count=self._copied.file_count,
            copied_bytes=self._copied.size_bytes,
            present_files_count=self._copied.present_file_count,
        )

    def _logged(self, current: Document) -> dict[str, Document]:
        """The existing metadata files of the log."""
        there = (location for location in metadata_file.logged_files(current) if exists(self.source, location))
        return {
            location: metadata_file.parse_document(
                read_bytes(self.source, location), location, inflated_bytes_max(self.source.properties)
            )
            for location in there
        }

    def _relocate_list(self, location: str) -> None:
        place = self.naming.rewritten(location)
        manifests = ManifestRecords.of(read_bytes(self.source, location), location)
        self._total += sum(record["manifest_path"] not in self._manifests for record in manifests.records)
        records = [renamed_manifest(record, *self._relocated_manifest(record)) for record in manifests.records]
        if place not in self.known.others:
            self._put(place, manifests.encode(records), FileKind.MANIFEST_LIST)

    def _relocated_manifest(self, record: Record) -> tuple[str, int]:
        """The new location of the manifest and its size in bytes."""
        location = record["manifest_path"]
        if location not in self._manifests:
            self._manifests[location] = self._relocate_manifest(location)
            self._step("manifests")
        return self._manifests[location]

    def _relocate_manifest(self, location: str) -> tuple[str, int]:
        place = self.naming.rewritten(location)
        if place in self.known.manifest_sizes:
            return place, self.known.manifest_sizes[place]
        manifest = ManifestRecords.of(read_bytes(self.source, location), location)
        live = [record for record in manifest.records if is_live(record)]
        self._relocate_row_deletes([record for record in live if has_paths(record)])
        self._keep(
            FileCopy(file["file_path"], self.naming.kept(file["file_path"]), file["file_size_in_bytes"])
            for file in (record["data_file"] for record in live if not has_paths(record))
        )
        records = [renamed_entry(record, self.naming, self._deletes) for record in manifest.records]
        data = manifest.encode(records)
        self._put(place, data, FileKind.MANIFEST)
        return place, len(data)

    def _relocate_row_deletes(self, records: list[Record]) -> None:
        """A Puffin file may contain several vectors."""
        formats = {
            record["data_file"]["file_path"]: record["data_file"]["file_format"]
            for record in records
            if record["data_file"]["file_path"] not in self._deletes
        }
        with ThreadPoolExecutor(_REWRITERS) as pool:
            rewritten = pool.map(self._relocated_deletes, formats.keys(), formats.values())
            for location, delete in zip(formats, rewritten, strict=True):
                self._deletes[location] = delete
                self._rewritten_count += delete.location not in self.known.row_deletes

    def _relocated_deletes(self, location: str, file_format: str) -> RewrittenDelete:
        place = self.naming.rewritten(location, "data")
        if place in self.known.row_deletes:
            return self.known.row_deletes[place]
        if self.dry_run:
            if self.staging is not None:
                self.staging.place_of(place, kind=FileKind.ROW_DELETES)
            return RewrittenDelete(place, 0)
        written_at = same_place if self.staging is None else partial(self.staging.place_of, kind=FileKind.ROW_DELETES)
        return rewrite_row_deletes(self.source, self.target, location, file_format, self.naming, written_at)

    def _keep(self, files: Iterable[FileCopy]) -> None:
        """Unchanged files: a copy copies them, otherwise they are already in place."""
        if not self.naming.is_copy:
            return
        new = {file.location: file for file in files if file.location not in self._seen}
        self._seen.update(new)
        if self.staging is not None:
            self.staging.note_kept(new.values())
            return
        known = [file for file in new.values() if file.target in self.known.others]
        copier = FileCopier(self.source, self.target, dry_run=self.dry_run)
        wanted = [file for file in new.values() if file.target not in self.known.others]
        self._copied += copier.copy_all(wanted) + Copied(present_file_count=len(known))

    def _put_document(self, document: Document, location: str) -> None:
        place = self.naming.metadata_file(location)
        if place not in self.known.others:
            data = metadata_file.encode_document(metadata_file.renamed_document(document, self.naming), place)
            self._put(place, data, FileKind.METADATA)

    def _put(self, location: str, data: bytes, kind: FileKind) -> None:
        self._rewritten_count += 1
        place = location if self.staging is None else self.staging.place_of(location, kind=kind)
        if not self.dry_run:
            put_bytes(self.target, place, data)

    def _step(self, what: str) -> None:
        self._done += 1
        self.progress(self._done, self._total, what)
