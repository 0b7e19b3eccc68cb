"""Registers a table that exists as files."""

from __future__ import annotations

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table as IcebergTable

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import TableNotFoundError
from tableformat.metadata.table_file import parse_table_metadata
from tableformat.storage.schemes import check_scheme
from tableformat.storage.storage import exists, read_bytes


def register_table(catalog: IcebergCatalog, identifier: tuple[str, ...], metadata_location: str) -> IcebergTable:
    """The table, which is in the catalog now.

    The metadata file is read before anything is changed: SQL catalogs take every location, and a name whose file cannot
    be read would stay. A REST service reads it itself, with rights that the caller may not have.
    """
    if not is_rest(catalog):
        _check_metadata_file(catalog, metadata_location)
    return catalog.register_table(identifier, metadata_location)


def _check_metadata_file(catalog: IcebergCatalog, location: str) -> None:
    check_scheme(location, catalog.properties)
    if isinstance(catalog, EmbeddedCatalog):
        io = catalog.file_io_of(location)
    else:
        io = load_file_io(dict(catalog.properties), location)
    if not exists(io, location):
        raise TableNotFoundError(f"there is no table metadata file {location!r:.200}. Nothing was changed.")
    parse_table_metadata(read_bytes(io, location), location)
