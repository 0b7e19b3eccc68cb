"""Stages a copy of one table: its metadata, rewritten for another location, and a list of files to copy (SP-36).

Nothing is written to the other location, which may be unreachable.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from uuid import uuid4

from pyiceberg.table import Table as IcebergTable

from tableformat.errors import InvalidArgumentError, nearest_hint
from tableformat.properties import inflated_bytes_max
from tableformat.relocation.delete_files import put_bytes
from tableformat.relocation.known_files import KnownFiles
from tableformat.relocation.metadata_file import logged_files, parse_document
from tableformat.relocation.naming import Naming
from tableformat.relocation.relocate_table import TableRelocation
from tableformat.relocation.staging import FileKind, Staging
from tableformat.storage.location import local_path, one_spelling
from tableformat.storage.location_provider import location_provider
from tableformat.storage.storage import exists, read_bytes

_FILE_LIST = "file-list"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCopy:
    """The staged copy."""

    latest_version: str
    """The name of the metadata file to register at the other location."""
    staging_location: str
    file_list_location: str | None
    """A CSV file with source and target of each file. None if no list was requested."""
    manifest_count: int
    """The number of rewritten manifests."""
    row_deletes_count: int
    """The number of rewritten position delete files and files of deletion vectors."""


def stage_copy(
    iceberg: IcebergTable,
    *,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> StagedCopy:
    """SP-36: write metadata with `target_prefix` in place of `source_prefix` to the staging location.

    Versions are metadata files of the table, by name or location. With `start_version`, the list and the counts leave
    out the files of that version. Raises InvalidArgumentError for a version that is not in the table's log and for a
    prefix that the table's location does not have, CorruptFileError if a file is missing.
    """
    naming = _naming(iceberg, source_prefix, target_prefix)
    end = _version(iceberg, end_version) if end_version is not None else iceberg.metadata_location
    metadata_location = location_provider(iceberg.metadata.location, iceberg.metadata.properties).new_metadata_location
    directory = staging_location or metadata_location(f"copy-table-staging-{uuid4()}")
    path = local_path(directory)
    staging = Staging(f"file://{path}" if path is not None else directory, target_prefix)
    _run(iceberg, naming, end, staging, dry_run=False)
    before = Staging(staging.directory, target_prefix)
    if start_version is not None:
        _run(iceberg, naming, _version(iceberg, start_version), before, dry_run=True)
    rewritten = {place: each for place, each in staging.rewritten.items() if place not in before.rewritten}
    files = [(written, place) for place, (written, _) in rewritten.items()]
    files += [(location, place) for place, location in staging.kept.items() if place not in before.kept]
    kinds = [kind for _, kind in rewritten.values()]
    return StagedCopy(
        latest_version=end.rpartition("/")[2],
        staging_location=staging.directory,
        file_list_location=_write_list(iceberg, staging.directory, files) if create_file_list else None,
        manifest_count=kinds.count(FileKind.MANIFEST),
        row_deletes_count=kinds.count(FileKind.ROW_DELETES),
    )


def _naming(iceberg: IcebergTable, source_prefix: str, target_prefix: str) -> Naming:
    former, location = one_spelling(source_prefix).rstrip("/"), one_spelling(iceberg.metadata.location).rstrip("/")
    if not former or not target_prefix or not f"{location}/".startswith(f"{former}/"):
        raise InvalidArgumentError(
            f"source_prefix {source_prefix!r} is not a directory or prefix of {'.'.join(iceberg.name())}, which is "
            f"at {iceberg.metadata.location}."
        )
    if former == one_spelling(target_prefix).rstrip("/"):
        raise InvalidArgumentError(
            "source_prefix and target_prefix are the same location, so there is nothing to rewrite."
        )
    target = target_prefix.rstrip("/")
    table_target = f"{target}/{location.removeprefix(former).lstrip('/')}".rstrip("/")
    return Naming(former=source_prefix, target=target, table_target=table_target, is_copy=True)


def _version(iceberg: IcebergTable, version: str) -> str:
    """The location of a metadata file of the table."""
    current = iceberg.metadata_location
    known = [
        *logged_files(
            parse_document(read_bytes(iceberg.io, current), current, inflated_bytes_max(iceberg.io.properties))
        ),
        current,
    ]
    found = [location for location in known if version in (location, location.rpartition("/")[2])]
    if not found:
        names = [location.rpartition("/")[2] for location in known]
        raise InvalidArgumentError(
            f"{version!r} is not a metadata file in the log of "
            f"{'.'.join(iceberg.name())}.{nearest_hint(version, names)}"
        )
    if not exists(iceberg.io, found[-1]):
        raise InvalidArgumentError(f"the metadata file {found[-1]} does not exist any more. Pass a newer version.")
    return found[-1]


def _run(iceberg: IcebergTable, naming: Naming, version: str, staging: Staging, *, dry_run: bool) -> None:
    relocation = TableRelocation(
        source=iceberg.io, target=iceberg.io, naming=naming, known=KnownFiles(), dry_run=dry_run, staging=staging
    )
    relocation.run(".".join(iceberg.name()), version)


def _write_list(iceberg: IcebergTable, directory: str, files: list[tuple[str, str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(sorted(files))
    location = f"{directory.rstrip('/')}/{_FILE_LIST}"
    put_bytes(iceberg.io, location, text.getvalue().encode())
    return location
