"""Removes metadata files that have dropped out of the metadata log, if a table property requests it."""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.properties import property_as_bool

from tableformat.metadata.owned_files import OwnedFiles


def remove_logged_out_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata, base_location: str) -> None:
    """Remove the metadata files that are in the log of `base`, whose file is at `base_location`, but not in the log of
    `metadata` (MT-53)."""
    if not property_as_bool(metadata.properties, TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED, False):
        return
    kept = {entry.metadata_file for entry in metadata.metadata_log} | {base_location}
    gone = [entry.metadata_file for entry in base.metadata_log if entry.metadata_file not in kept]
    if gone:
        owned = OwnedFiles(
            io,
            location=base.location,
            metadata_location=base_location,
            table_uuid=str(base.table_uuid),
            properties=base.properties,
        )
        owned.remove_all(gone)


def guard_metadata_removal(catalog: Catalog) -> None:
    """PyIceberg removes logged-out metadata after each of its commits, at any location that the log names. Make a
    PyIceberg catalog follow MT-53 instead."""
    catalog._delete_old_metadata = _after_commit_of_pyiceberg  # type: ignore[method-assign]


def _after_commit_of_pyiceberg(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
    if metadata.metadata_log:
        # The commit has appended the file of `base` to the log, under the location that the catalog gave.
        remove_logged_out_metadata(io, base, metadata, metadata.metadata_log[-1].metadata_file)
