"""Reads a table from its metadata file, without a catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import StaticTable

from tableformat.arguments import checked_arguments
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.table_file import read_table_metadata
from tableformat.table import Table


@checked_arguments
def read_metadata(location: str | Path, **properties: str) -> Table:
    """Open any Iceberg table (v1 to v3) read-only, by a `metadata.json`, also gzipped, or the directory of a table.

    `properties` configure the FileIO, as in PyIceberg. Raises TableNotFoundError, CorruptFileError with the name of the
    file, and UnsupportedFeatureError for a format version that is newer than this library.

    >>> table = tf.read_metadata(catalog.load_table("db.calendars").iceberg.metadata_location)
    >>> table.scan(where="id1 = 'A'").count()
    2
    """
    try:
        metadata, io, metadata_location = read_table_metadata(str(location), dict(properties))
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"{str(location)!r:.80} is not a location: {error}.") from error
    identifier = ("static-table", metadata_location)
    return Table(StaticTable(identifier, metadata, metadata_location, io, NoopCatalog("static-table")))
