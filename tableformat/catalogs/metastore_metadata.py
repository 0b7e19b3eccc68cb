"""The metadata files that a catalog of PyIceberg writes in this process: SQL, Glue, Hive, DynamoDB.

PyIceberg 0.12 builds and writes metadata up to format version 2. These functions take the place of its methods, so that
every such catalog has version 3 (LK-11), and so that a commit copies no metadata. An SQL catalog also reads them here,
so that it parses each file once and only what is new in it (decision 67).
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Final

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, TableRequirement, TableUpdate, UpgradeFormatVersionUpdate
from pyiceberg.typedef import Identifier

from tableformat.commit.assigned_ids import with_assigned_ids
from tableformat.commit.metadata_file import GZIP_SUFFIX, metadata_parts
from tableformat.commit.metadata_update import (
    apply_updates,
    is_upgrade_to_v3,
    upgraded_to_v3,
    with_fields_of_version_1,
)
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.table_file import quickly_parsed
from tableformat.properties import is_synced
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.location_provider import location_provider
from tableformat.storage.storage import sync_files, write_bytes

CACHED_SNAPSHOTS: Final = 20_000
"""Size of a catalog's cache of parsed metadata, counted in snapshots."""
METADATA_COMPRESSION: Final = "write.metadata.compression-codec"


def write_every_version(catalog: object) -> None:
    """Make a catalog of PyIceberg write tables of version 3. Other catalogs, such as REST, are not changed."""
    if not isinstance(catalog, MetastoreCatalog):
        return
    if type(catalog)._update_and_stage_table is not MetastoreCatalog._update_and_stage_table:
        return
    catalog._update_and_stage_table = partial(_updated_table, catalog)  # type: ignore[method-assign]
    catalog._write_metadata = write_metadata  # type: ignore[method-assign]
    if isinstance(catalog, SqlCatalog):
        files = _ParsedFiles(catalog)
        catalog._write_metadata = files.write  # type: ignore[method-assign]
        catalog._convert_orm_to_iceberg = files.table_of  # type: ignore[method-assign]
    if hasattr(catalog, "_write_metadata_no_exist_check"):
        # Glue calls it for tables in S3 Tables, where no file can be overwritten.
        catalog._write_metadata_no_exist_check = write_metadata


class _ParsedFiles:
    """The metadata files of an SQL catalog that this process has read or written. They are immutable, so none is parsed
    twice."""

    def __init__(self, catalog: SqlCatalog) -> None:
        self._catalog = catalog
        self._parsed: BoundedCache[str, TableMetadata] = BoundedCache(CACHED_SNAPSHOTS)

    def write(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        """Write a metadata file."""
        write_metadata(metadata, io, metadata_path)
        self._remember(metadata_path, metadata)

    def table_of(self, orm_table: IcebergTables) -> Table:
        """The table of a row of the catalog. Raises NoSuchTableError for a row without a metadata file, and the errors
        of `parse_table_metadata`."""
        location = orm_table.metadata_location
        if not location:
            raise NoSuchTableError(f"Table does not exist: {orm_table.table_namespace}.{orm_table.table_name}")
        metadata = self._parsed.get(location)
        if metadata is None:
            metadata = quickly_parsed(self._catalog._load_file_io(location=location), location)
            self._remember(location, metadata)
        return Table(
            identifier=(*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name),
            metadata=metadata,
            metadata_location=location,
            io=self._catalog._load_file_io(metadata.properties, location),
            catalog=self._catalog,
        )

    def _remember(self, location: str, metadata: TableMetadata) -> None:
        self._parsed.put(location, metadata, len(metadata.snapshots) + 1)


def created_table(
    catalog: MetastoreCatalog,
    identifier: Identifier,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
) -> StagedTable:
    """A new table from the updates of its creation. For version 3, the updates from the first snapshot on are applied
    here."""
    updates = with_assigned_ids(catalog._empty_table_metadata(), updates)
    build = partial(MetastoreCatalog._update_and_stage_table, catalog, None, identifier, requirements)
    if not any(map(is_upgrade_to_v3, updates)):
        staged = build(updates)
        staged.metadata = with_fields_of_version_1(staged.metadata)
        return staged
    places = (place for place, update in enumerate(updates) if isinstance(update, AddSnapshotUpdate))
    first_snapshot = next(places, len(updates))
    staged = build(
        tuple(
            UpgradeFormatVersionUpdate.model_validate({"format-version": 2}) if is_upgrade_to_v3(update) else update
            for update in updates[:first_snapshot]
        )
    )
    metadata = apply_updates(upgraded_to_v3(staged.metadata), "", updates[first_snapshot:])
    # No metadata file precedes this one.
    staged.metadata = metadata.model_copy(update={"metadata_log": []})
    return staged


def write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
    """Write a metadata file, flushed to the disk if the table requires it."""
    write_bytes(io, metadata_path, *metadata_parts(metadata, metadata_path))
    if is_synced(metadata.properties):
        sync_files(io, (metadata_path,))


def next_metadata_location(catalog: MetastoreCatalog, metadata: TableMetadata, previous: str) -> str:
    """The location of the metadata file that follows `previous`. Raises InvalidArgumentError for an unknown codec."""
    version = catalog._parse_metadata_version(previous) + 1
    codec = metadata.properties.get(METADATA_COMPRESSION, "none").lower()
    if codec not in ("none", "gzip"):
        raise InvalidArgumentError(f"table property {METADATA_COMPRESSION} must be none or gzip, not {codec!r}.")
    suffix = GZIP_SUFFIX if codec == "gzip" else ".metadata.json"
    provider = location_provider(metadata.location, metadata.properties)
    return provider.new_metadata_location(f"{version:05d}-{uuid.uuid4()}{suffix}")


def _updated_table(
    catalog: MetastoreCatalog,
    current_table: Table | None,
    table_identifier: Identifier,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
) -> StagedTable:
    """The table after a commit. Raises CommitFailedException if a requirement does not hold."""
    if current_table is None:
        return created_table(catalog, table_identifier, requirements, updates)
    for requirement in requirements:
        requirement.validate(current_table.metadata)
    metadata = apply_updates(current_table.metadata, current_table.metadata_location, updates)
    location = next_metadata_location(catalog, metadata, current_table.metadata_location)
    return StagedTable(
        identifier=table_identifier,
        metadata=metadata,
        metadata_location=location,
        io=catalog._load_file_io(properties=metadata.properties, location=location),
        catalog=catalog,
    )
