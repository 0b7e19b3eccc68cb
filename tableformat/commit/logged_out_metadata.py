"""Removes metadata files that dropped out of the metadata log, where a table property asks for it."""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.properties import property_as_bool

from tableformat.metadata.owned_files import OwnedFiles


def remove_logged_out_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata, base_location: str) -> None:
    """Remove what the log of `base`, whose file is at `base_location`, has and that of `metadata` lacks (MT-53)."""
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
    """PyIceberg removes logged-out metadata after each commit of its own, wherever the log says that it is; this makes
    a catalog of PyIceberg do it by MT-53."""
    catalog._delete_old_metadata = _after_commit_of_pyiceberg  # type: ignore[method-assign]


def _after_commit_of_pyiceberg(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
    if metadata.metadata_log:
        # The commit itself has put the file of `base` at the end of the log, by what the catalog says.
        remove_logged_out_metadata(io, base, metadata, metadata.metadata_log[-1].metadata_file)
