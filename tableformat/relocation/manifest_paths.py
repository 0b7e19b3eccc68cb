"""Rewrites paths in manifests and manifest lists. Other fields, known or unknown, do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, FileContent
from tableformat.metadata.manifests.avro_container import (
    Container,
    decode_records,
    header_bytes,
    read_container,
    write_container,
)
from tableformat.metadata.manifests.manifest_entry import EntryStatus
from tableformat.metadata.manifests.manifest_reader import layout_of
from tableformat.metadata.manifests.manifest_writer import refuse_other_readers
from tableformat.relocation.naming import Naming

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RewrittenDelete:
    """A rewritten file of row deletes."""

    location: str
    size_bytes: int
    lowest_path: str | None = None
    """The bounds of the paths in a position delete file."""
    highest_path: str | None = None


@dataclass(frozen=True, slots=True)
class ManifestRecords:
    """The parts of a manifest or manifest list."""

    container: Container
    records: list[Record]
    """Records with the field names of `manifest_schema`."""

    @staticmethod
    def of(data: bytes, location: str) -> ManifestRecords:
        """Raises CorruptFileError naming the file."""
        container = read_container(data, location)
        return ManifestRecords(container, decode_records(container, layout_of(container).codec))

    def encode(self, records: list[Record]) -> bytes:
        """The same file with other records. Header and schema do not change, except for the gate of range deletes
        (RD-6)."""
        header = {name: text.decode() for name, text in self.container.metadata.items() if name != "avro.codec"}
        if any(record.get("data_file", {}).get("file_format") == RANGE_DELETES_PARQUET for record in records):
            refuse_other_readers(header)
        return write_container(header_bytes(header), layout_of(self.container).codec, records)


def content_of(record: Record) -> FileContent:
    """Version 1 has only data files and no field for the content."""
    return FileContent(record["data_file"].get("content") or 0)


def is_live(record: Record) -> bool:
    """Whether the file of the entry belongs to the snapshot."""
    return bool(record["status"] != EntryStatus.DELETED)


def has_paths(record: Record) -> bool:
    """Whether the file of the entry contains paths of data files."""
    return content_of(record) is FileContent.POSITION_DELETES


def renamed_entry(record: Record, naming: Naming, rewritten: Mapping[str, RewrittenDelete]) -> Record:
    """LK-6: rewrite the entry of a manifest. `rewritten` has the live files of row deletes by location."""
    file = dict(record["data_file"])
    location = file["file_path"]
    if file.get("referenced_data_file") is not None:
        file["referenced_data_file"] = naming.kept(file["referenced_data_file"])
    if not has_paths(record):
        file["file_path"] = naming.kept(location)
        return {**record, "data_file": file}
    written = rewritten.get(location)
    file["file_path"] = naming.rewritten(location, "data") if written is None else written.location
    file |= {name: None for name in ("split_offsets", "column_sizes") if name in file}
    for bound, path in (("lower_bounds", "lowest_path"), ("upper_bounds", "highest_path")):
        if file.get(bound) is not None:
            file[bound] = list(_with_path(file[bound], None if written is None else getattr(written, path)))
    if written is not None:
        file["file_size_in_bytes"] = written.size_bytes
    return {**record, "data_file": file}


def renamed_manifest(record: Record, location: str, size_bytes: int) -> Record:
    """LK-6: rewrite the record of a manifest in a list."""
    return {**record, "manifest_path": location, "manifest_length": size_bytes}


def _with_path(bounds: Iterable[Record], path: str | None) -> Iterable[Record]:
    """The bounds of other columns, without those of the path, which are unknown for a removed file."""
    yield from (bound for bound in bounds if bound["key"] != FILE_PATH_FIELD_ID)
    if path is not None:
        yield {"key": FILE_PATH_FIELD_ID, "value": path.encode()}
