"""Table metadata files: any `metadata.json` of format versions 1 to 3, or the directory of a table without a catalog.

Source: Iceberg table specification, "Table Metadata and Snapshots" and "File System Tables".
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from tableformat.errors import (
    CorruptFileError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tableformat.metadata.growing_lists import parse_metadata
from tableformat.metadata.statistics_files import accept_every_blob_type
from tableformat.properties import INFLATED_BYTES_MAX_DEFAULT, inflated_bytes_max, options_of_table
from tableformat.storage import storage
from tableformat.storage.arrow_io import is_arrow
from tableformat.storage.file_uris import location_of_existing
from tableformat.storage.fsspec_io import is_fsspec
from tableformat.storage.inflating import Inflater
from tableformat.storage.location import local_path, one_spelling
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.schemes import check_scheme

NEWEST_FORMAT_VERSION: Final = 3

_METADATA_FILE: Final = re.compile(r"(?:v(\d+)|(\d+)-.*)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_UNKNOWN_TYPE: Final = re.compile(r"Unsupported field type: '?([\w()., ]+)")

_BLOBS: Final = "blob-metadata"
"""The name of the blobs of a statistics file, which PyIceberg parses only after `accept_every_blob_type`."""


def read_table_metadata(location: str, properties: Mapping[str, str]) -> tuple[TableMetadata, FileIO, str]:
    """The metadata, the FileIO for the table, and the location of the metadata file.

    `location` is a metadata file, compressed or not, or a table directory. In a directory, `metadata/version-hint.text`
    names the current file, otherwise the file with the highest version is current. `properties` configure the FileIO. A
    table that is not at the location in its metadata is read relative to the metadata file (`RelocatedFileIO`).

    Raises TableNotFoundError, CorruptFileError, InvalidArgumentError for a kind of URI that no FileIO reads, or
    UnsupportedFeatureError for a newer format version.
    """
    location = location_of_existing(location.rstrip("/"))
    check_scheme(location, properties)
    io = load_file_io(dict(properties), location)
    if not is_metadata_file(location):
        location = newest_metadata_file(io, location)
    elif not storage.exists(io, location):
        raise TableNotFoundError(f"the table metadata file {location} does not exist.")
    metadata = parse_table_metadata(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties))
    return metadata, _io_for(metadata, io, location), location


def quickly_parsed(io: FileIO, location: str) -> TableMetadata:
    """The metadata of a file that this library, or PyIceberg, has probably written. Raises the errors of
    `parse_table_metadata`."""
    data = storage.read_bytes(io, location)
    try:
        text = Inflater(location, inflated_bytes_max(io.properties)).gunzipped(data)
        if _BLOBS.encode() in text:
            accept_every_blob_type()
        return parse_metadata(text)
    except (exceptions.ValidationError, ValueError, OSError, EOFError, zlib.error) as error:
        # This parser is slower, but its errors describe the problem.
        parse_table_metadata(data, location, inflated_bytes_max(io.properties))
        raise CorruptFileError(location, f"it is not a table metadata file ({error}).") from error


def parse_table_metadata(data: bytes, location: str, bytes_max: int = INFLATED_BYTES_MAX_DEFAULT) -> TableMetadata:
    """FM-3: parse the bytes of a metadata file. `location` is for messages. Raises CorruptFileError if they are not
    valid table metadata, or have more than `bytes_max` after decompression (FM-32)."""
    document = metadata_document(data, location, bytes_max)
    version = document.get("format-version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CorruptFileError(location, f"its format-version is {version!r}, so it is not Iceberg table metadata.")
    if version > NEWEST_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"{location} has format version {version}; this library reads up to {NEWEST_FORMAT_VERSION}. "
            "Install a newer version of it."
        )
    if any("manifest-list" not in snapshot for snapshot in document.get("snapshots") or ()):
        raise UnsupportedFeatureError(
            f"{location} has snapshots that list their manifests without a manifest list, as early writers of "
            "version 1 did. Rewrite the table with the engine that wrote it."
        )
    if any(_BLOBS in file for file in document.get("statistics") or () if isinstance(file, dict)):
        accept_every_blob_type()
    try:
        return TableMetadataUtil.parse_obj(document)
    except ValidationError as error:
        unread = unknown_type(error, location)
        if unread is not None:
            raise unread from error
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CorruptFileError(location, f"{where}: {first['msg']}.") from error
    except (exceptions.ValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFileError(location, f"it is not valid table metadata ({error}).") from error


def unknown_type(error: Exception, location: str) -> UnsupportedFeatureError | None:
    """FM-3: the error for metadata that PyIceberg cannot parse because of a column's type. Such metadata is not
    damaged. None for any other parse error.

    No part of such a table is read: a job that rewrote its files would lose the column (decision 33).
    """
    found = _UNKNOWN_TYPE.search(str(error))
    if found is None:
        return None
    return UnsupportedFeatureError(
        f"{location}: a column has the type {found[1]}, which this library does not support, so the table cannot be "
        "read or written. Read it with the engine that wrote it, or use that engine to create a table with the other "
        "columns."
    )


def metadata_document(data: bytes, location: str, bytes_max: int) -> dict[str, Any]:
    """FM-3: the JSON of a metadata file. Raises CorruptFileError for anything else."""
    try:
        document = json.loads(Inflater(location, bytes_max).gunzipped(data))
    except (ValueError, EOFError, OSError, zlib.error, RecursionError) as error:
        raise CorruptFileError(location, f"it is not JSON ({error}).") from error
    if not isinstance(document, dict):
        raise CorruptFileError(location, "it does not contain a JSON object.")
    return document


def is_metadata_file(location: str) -> bool:
    """Whether the location has the name of a metadata file. The directory of a table does not."""
    return location.endswith((".metadata.json", ".metadata.json.gz", ".json"))


def newest_metadata_file(io: FileIO, directory: str) -> str:
    """The current metadata file of a table directory. Raises TableNotFoundError if the directory has no table."""
    folder = f"{directory}/metadata"
    hint = f"{folder}/version-hint.text"
    if storage.exists(io, hint):
        return _hinted_file(io, folder, storage.read_bytes(io, hint).decode(errors="replace").strip(), hint)
    versions = [(version, name) for name in _names(io, folder) if (version := _version(name)) is not None]
    if not versions:
        raise TableNotFoundError(f"{directory} is not an Iceberg table: {folder} has no metadata file.")
    newest = max(version for version, _ in versions)
    candidates = [f"{folder}/{name}" for version, name in versions if version == newest]
    return max(candidates, key=lambda location: _updated_ms(io, location))


def _hinted_file(io: FileIO, folder: str, hint: str, hint_location: str) -> str:
    stem = f"v{hint}" if hint.isdigit() else hint.removesuffix(".metadata.json")
    for name in (f"{stem}.metadata.json", f"{stem}.gz.metadata.json", f"{stem}.metadata.json.gz"):
        if storage.exists(io, f"{folder}/{name}"):
            return f"{folder}/{name}"
    raise CorruptFileError(hint_location, f"it refers to version {hint!r}, but {folder} has no such metadata file.")


def _version(name: str) -> int | None:
    match = _METADATA_FILE.fullmatch(name)
    return int(next(group for group in match.groups() if group is not None)) if match else None


def _updated_ms(io: FileIO, location: str) -> int:
    """When the metadata was updated. Of two commits with the same version only one succeeded; without a catalog, the
    later one is assumed to be it."""
    document = metadata_document(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties))
    return int(document.get("last-updated-ms") or 0)


def _names(io: FileIO, folder: str) -> list[str]:
    """Names of the files in a directory; empty if it does not exist."""
    path = local_path(folder)
    if path is not None:
        return os.listdir(path) if os.path.isdir(path) else []
    if is_arrow(io):
        from pyarrow.fs import FileSelector, FileType

        scheme, netloc, remote = io.parse_location(folder, io.properties)
        selector = FileSelector(remote, allow_not_found=True)
        with storage.reading(folder, "listed"):
            files = io.fs_by_scheme(scheme, netloc).get_file_info(selector)
        return [file.base_name for file in files if file.type is FileType.File]
    if is_fsspec(io):
        filesystem = io.get_fs(folder.split("://", 1)[0])
        with storage.reading(folder, "listed"):
            listed = filesystem.ls(folder, detail=False) if filesystem.exists(folder) else []
        return [found.rsplit("/", 1)[-1] for found in listed]
    raise UnsupportedFeatureError(
        f"{type(io).__name__} cannot list {folder}. Pass the metadata file of the table instead of its directory."
    )


def _io_for(metadata: TableMetadata, io: FileIO, metadata_location: str) -> FileIO:
    """The FileIO for the table's own files: at the locations in the metadata if they exist, otherwise next to the
    metadata file."""
    relocated = moved_table(metadata, io, metadata_location)
    if relocated is not None:
        return relocated
    return load_file_io({**io.properties, **options_of_table(metadata.properties)}, metadata.location)


def moved_table(metadata: TableMetadata, io: FileIO, metadata_location: str) -> RelocatedFileIO | None:
    """A FileIO for a table whose files are next to its metadata file instead of at the locations in the metadata. None
    if the table has not moved."""
    actual, _, folder = metadata_location.rpartition("/")[0].rpartition("/")
    relocated = RelocatedFileIO(io, metadata.location, actual)
    return relocated if folder == "metadata" and _has_moved(metadata, relocated) else None


def _has_moved(metadata: TableMetadata, relocated: RelocatedFileIO) -> bool:
    """Whether the newest manifest list does not exist at its location in the metadata, but where `relocated` looks for
    it."""
    if one_spelling(relocated.actual_directory) == relocated.stated_directory or not metadata.snapshots:
        return False
    stated = (metadata.current_snapshot() or metadata.snapshots[-1]).manifest_list
    actual = relocated.actual(stated)
    if actual == stated or not storage.exists(relocated.inner, actual):
        return False
    if local_path(stated) is None and local_path(actual) is not None:
        # The table was downloaded from an object store. A request to the store would need its credentials.
        return True
    return not storage.exists(load_file_io(relocated.properties, stated), stated)
