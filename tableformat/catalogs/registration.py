"""Registers a table whose files exist already."""

from __future__ import annotations

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table as IcebergTable

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import InvalidArgumentError, TableNotFoundError
from tableformat.metadata.table_file import is_metadata_file, moved_table, newest_metadata_file, parse_table_metadata
from tableformat.properties import inflated_bytes_max
from tableformat.storage.file_uris import location_of_existing
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.schemes import check_scheme
from tableformat.storage.storage import exists, read_bytes


def register_table(catalog: IcebergCatalog, identifier: tuple[str, ...], metadata_location: str) -> IcebergTable:
    """Add the table to the catalog and return it.

    The metadata file is read first: SQL catalogs accept any location, and a name whose file cannot be read would
    remain. A REST service reads the file itself, with permissions that the caller may not have.
    """
    if not is_rest(catalog):
        metadata_location = location_of_existing(metadata_location)
        _check_metadata_file(catalog, metadata_location)
    return catalog.register_table(identifier, metadata_location)


def _check_metadata_file(catalog: IcebergCatalog, location: str) -> None:
    check_scheme(location, catalog.properties)
    if isinstance(catalog, EmbeddedCatalog):
        io = catalog.file_io_of(location)
    else:
        io = load_file_io(dict(catalog.properties), location)
    if not is_metadata_file(location):
        _refuse_directory(io, location.rstrip("/"))
    if not exists(io, location):
        raise TableNotFoundError(f"the table metadata file {location!r:.200} does not exist. Nothing was changed.")
    metadata = parse_table_metadata(read_bytes(io, location), location, inflated_bytes_max(io.properties))
    if not isinstance(io, RelocatedFileIO) and moved_table(metadata, io, location) is not None:
        raise InvalidArgumentError(
            f"the table of {location} was moved or copied: its metadata refers to files in {metadata.location}, "
            "which do not exist. Nothing was changed. To read it where it is, call read_metadata(). To register it, "
            "move it (or create a link) to the location in its metadata, or rewrite its metadata for this location "
            "with Spark's rewrite_table_path."
        )


def _refuse_directory(io: FileIO, directory: str) -> None:
    """Raise InvalidArgumentError for the directory of a table.

    It has many metadata files, and only the catalog of the table knows the current one.
    """
    try:
        newest = newest_metadata_file(io, directory)
    except TableNotFoundError:
        return
    raise InvalidArgumentError(
        f"{directory} is the directory of a table; register_table() needs a metadata file. Nothing was changed. Pass "
        f"{newest}, the newest in the directory, unless the previous catalog of the table lists another one."
    )
