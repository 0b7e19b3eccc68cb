"""The catalog that needs no service: a directory with a SQLite file in it.

This is PyIceberg's SQL catalog with additions: several processes may write to one SQLite file, format version 3, a
bounded number of metadata versions, and commits that neither parse nor copy metadata that is in memory already.

    <directory>/catalog.db                      the current metadata file of each table
    <directory>/<namespace>/<table>/metadata    metadata files, manifest lists, manifests
    <directory>/<namespace>/<table>/data        data files and delete files
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pyiceberg.catalog import LOCATION, WAREHOUSE_LOCATION, Catalog, PropertiesUpdateSummary
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog, SqlCatalogBaseTable
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.io import FileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, StagedTable, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import ColumnElement, NullPool, Select, bindparam, create_engine, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.schema import CreateTable

from tableformat.cached_property import cached_property
from tableformat.catalogs.database_errors import file_of, sqlite_error, type_database_errors
from tableformat.catalogs.followed_file import FollowedFile
from tableformat.catalogs.lake_directory import local_directory, make_directory, refuse_table_directory, sqlite_uri
from tableformat.catalogs.metadata_places import is_taken, refuse_second_name
from tableformat.catalogs.metastore_metadata import (
    CACHED_SNAPSHOTS,
    created_table,
    next_metadata_location,
    write_metadata,
)
from tableformat.catalogs.moved_lake import LakePlace
from tableformat.catalogs.next_version import NextVersion, on_newest, removing_what_is_not_named
from tableformat.catalogs.read_only_sqlite import connect_read_only, is_writable
from tableformat.catalogs.sqlite_engine import prepare_engine
from tableformat.catalogs.table_locations import Swap, locations_of, swap_locations
from tableformat.catalogs.unreachable import unreachable
from tableformat.commit.commit_queue import IS_SUPPORTED, CommitQueue
from tableformat.commit.history_change import HistoryChange
from tableformat.commit.logged_out_metadata import remove_logged_out_metadata
from tableformat.commit.metadata_update import apply_updates
from tableformat.commit.multi_table_commit import TableRequest
from tableformat.commit.read_only import refuse_read_only
from tableformat.errors import (
    InvalidArgumentError,
    MovedLakeError,
    ReadOnlyLakeError,
)
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.new_names import check_new_name, directory_of
from tableformat.metadata.table_file import quickly_parsed
from tableformat.properties import is_synced, options_of_table
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.lake_file import CATALOG_FILE, CATALOG_NAME
from tableformat.storage.relocated_io import RelocatedFileIO

if TYPE_CHECKING:
    import pyarrow as pa

BOUNDED_METADATA: Final = {
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "100",
}
"""Default properties of new tables: they limit the number of old metadata files."""

_TYPE_COLUMN: Final = "iceberg_type"
_QUEUE_SUFFIX: Final = "-queue"
_UPKEEP_SUFFIX: Final = "-upkeep"


class EmbeddedCatalog(SqlCatalog):
    """A SQL catalog on a SQLite file, safe for the threads and processes of one machine."""

    def __init__(self, name: str = CATALOG_NAME, *, must_exist: bool = False, **properties: str) -> None:
        """`uri` is SQLAlchemy's URI of the database, `warehouse` the location of tables, `name` an alias that is not
        stored (FM-2). With `must_exist`, a missing SQLite file is not created, and every call raises an error (LK-28).
        """
        self.alias = name
        self.is_read_only = False
        """Whether the SQLite file is not writable (LK-5)."""
        self._followed: FollowedFile | None = None
        self._is_made = must_exist
        try:
            super().__init__(CATALOG_NAME, **properties)
        except DBAPIError as error:
            file = file_of(self.engine)
            raise (unreachable(name, error) if file is None else sqlite_error(file, error)) from error

    @classmethod
    def at(cls, directory: str | os.PathLike[str], *, must_exist: bool = False, **properties: str) -> EmbeddedCatalog:
        """The catalog of a local directory, created if it does not exist, unless `must_exist` is set (LK-28)."""
        path = local_directory(directory)
        if not must_exist:
            refuse_table_directory(path)
            make_directory(path)
        uri = sqlite_uri(path / CATALOG_FILE)
        return cls(must_exist=must_exist, **{"uri": uri, "warehouse": f"file://{path.as_posix()}", **properties})

    def _init_catalog(self) -> None:
        """LK-5: a SQLite file that is not writable is opened read-only."""
        file = self.sqlite_file
        is_gone = file is not None and self._is_made and not os.path.exists(file)
        self.is_read_only = file is not None and not is_gone and not is_writable(file)
        if file is not None and self.is_read_only:
            connect = partial(connect_read_only, file)
            self.engine = create_engine(self.engine.url, creator=connect, poolclass=NullPool)
        elif self.engine.dialect.name == "sqlite":
            prepare_engine(self.engine)
        self._forget_file()
        if file is not None:
            self._followed = FollowedFile(file, self._forget_file, must_exist=self._is_made)
            self._followed.keep(self.engine)
        if not is_gone:
            super()._init_catalog()
        type_database_errors(self.engine, self.alias)
        if not is_gone:
            self._look_around()

    def _forget_file(self) -> None:
        """Drop everything that was cached, because it belongs to another lake (LK-28)."""
        self._parsed: BoundedCache[str, tuple[TableMetadata, FileIO]] = BoundedCache(CACHED_SNAPSHOTS)
        self._place: LakePlace | None = None
        self._found_version: str | None = None
        self.__dict__.pop("_select_location", None)

    @property
    def _schema_version(self) -> str:
        """PyIceberg's version of the database schema, read from the tables in the current file."""
        if self._found_version is None:
            known = inspect(self.engine)
            is_old = known.has_table(IcebergTables.__tablename__) and _TYPE_COLUMN not in {
                column["name"] for column in known.get_columns(IcebergTables.__tablename__)
            }
            self._found_version = "v0" if is_old else "v1"
        return self._found_version

    @_schema_version.setter
    def _schema_version(self, version: str) -> None:
        self._found_version = version

    @property
    def place(self) -> LakePlace:
        """LK-3: the place of the lake, by the current SQLite file."""
        return self._place or self._look_around()

    def _look_around(self) -> LakePlace:
        place = LakePlace(self.sqlite_file, self.properties.get(WAREHOUSE_LOCATION))
        place.look(self.engine, is_read_only=self.is_read_only)
        self._place = place
        return place

    @property
    def replacements(self) -> int:
        """LK-28: how often another SQLite file was found at the path."""
        return 0 if self._followed is None else self._followed.replacements

    @property
    def sqlite_file(self) -> str | None:
        """Path of the catalog's file on this machine; None for a catalog in memory or in another database."""
        return file_of(self.engine)

    def refuse_change(self, iceberg: Table) -> None:
        """LK-4, LK-5: raise ReadOnlyLakeError if nothing can be written, and MovedLakeError for a table that lies
        outside of a moved or copied lake, by the metadata of the lake."""
        self.refuse_read_only()
        location = iceberg.metadata.location
        if isinstance(iceberg.io, RelocatedFileIO) or self.place.is_foreign(location):
            raise MovedLakeError(identifier_text(iceberg.name()), location=location, lake=self.place.root or "")

    def refuse_read_only(self) -> None:
        """LK-5, LK-28: raise ReadOnlyLakeError if the SQLite file is not writable, StorageError if it is missing."""
        if self.is_read_only:
            raise ReadOnlyLakeError(str(self.sqlite_file))
        if self._followed is not None:
            self._followed.check_there()

    def create_tables(self) -> None:
        """Several processes may open a new directory at the same moment."""
        with self.engine.begin() as connection:
            for table in SqlCatalogBaseTable.metadata.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        self.refuse_read_only()
        check_new_name(Catalog.identifier_to_tuple(namespace), "namespace")
        try:
            super().create_namespace(namespace, properties)
        except IntegrityError as error:
            raise NamespaceAlreadyExistsError(f"Namespace {namespace} already exists") from error

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        self.refuse_read_only()
        return super().create_table(
            identifier, schema, location, partition_spec, sort_order, {**BOUNDED_METADATA, **properties}
        )

    def register_table(self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False) -> Table:
        self.refuse_read_only()
        check_new_name(Catalog.identifier_to_tuple(identifier), "table")
        name = self.identifier_to_database_and_table(identifier)
        refuse_second_name(self.engine, name, metadata_location, self.file_io_of(metadata_location))
        return super().register_table(identifier, metadata_location, overwrite)

    def rename_table(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> Table:
        self.refuse_read_only()
        check_new_name(Catalog.identifier_to_tuple(to_identifier), "table")
        return super().rename_table(from_identifier, to_identifier)

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Whether the catalog has the name. Does not check whether the table can be read."""
        try:
            return bool(self._metadata_location(identifier))
        except NoSuchTableError:
            return False

    def drop_table(self, identifier: str | Identifier) -> None:
        self.refuse_read_only()
        super().drop_table(identifier)

    def drop_namespace(self, namespace: str | Identifier) -> None:
        self.refuse_read_only()
        super().drop_namespace(namespace)

    def update_namespace_properties(
        self, namespace: str | Identifier, removals: set[str] | None = None, updates: Properties = EMPTY_DICT
    ) -> PropertiesUpdateSummary:
        self.refuse_read_only()
        return super().update_namespace_properties(namespace, removals, updates)

    def _resolve_table_location(self, location: str | None, database_name: str, table_name: str) -> str:
        """PyIceberg derives the directory of every new table from its name here."""
        check_new_name((database_name, table_name), "table")
        return super()._resolve_table_location(location, database_name, table_name)

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        root: str | None = self.load_namespace_properties(database_name).get(LOCATION)
        if root is None and WAREHOUSE_LOCATION not in self.properties:
            raise InvalidArgumentError(
                f"table {database_name}.{table_name}: the catalog has no warehouse. Pass warehouse= to the catalog, or "
                "location= to the table."
            )
        if root is None:
            root = f"{self.properties[WAREHOUSE_LOCATION].rstrip('/')}/{directory_of(database_name)}"
        location = f"{root.rstrip('/')}/{directory_of(table_name)}"
        return f"{location}-{uuid.uuid4().hex[:8]}" if is_taken(self.engine, location) else location

    @staticmethod
    def identifier_to_database_and_table(
        identifier: str | Identifier,
        err: type[ValueError] | type[NoSuchTableError] | type[NoSuchNamespaceError] = ValueError,  # noqa: ARG004
    ) -> tuple[str, str]:
        """Namespaces may be nested: `a.b.t` is the table `t` of the namespace `a.b`, and the directory of the namespace
        is named `a.b`."""
        namespace = Catalog.namespace_to_string(Catalog.namespace_from(identifier))
        return namespace, Catalog.table_name_from(identifier)

    def load_table(self, identifier: str | Identifier) -> Table:
        return self.table_at(Catalog.identifier_to_tuple(identifier), self._metadata_location(identifier))

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """One compare-and-set of the metadata location. Raises CommitFailedException if nothing was applied."""
        self.refuse_read_only()
        replacements = self.replacements
        try:
            newest = on_newest(TableRequest(table, requirements, updates), self.load_table)
        except NoSuchTableError:
            return super().commit_table(table, requirements, updates)
        return self._commit([newest], replacements)[0]

    def commit_tables(self, requests: Sequence[TableRequest]) -> list[CommitTableResponse]:
        """LK-36: like `commit_table`, for several tables in one transaction of the database."""
        self.refuse_read_only()
        replacements = self.replacements
        newest = [on_newest(each, self.load_table) for each in requests]
        return self._commit(newest, replacements)

    def replace_histories(self, changes: Sequence[HistoryChange]) -> list[CommitTableResponse]:
        """LK-38: set the tables to metadata whose former snapshots have other files, all tables or none. Files are not
        removed. Raises CommitFailedException if a table has changed since it was loaded; then nothing was applied."""
        self.refuse_read_only()
        versions = [self._version(each.table, each.metadata) for each in changes]
        self._set(versions)
        return [each.response for each in versions]

    def _commit(self, requests: Sequence[TableRequest], replacements: int) -> list[CommitTableResponse]:
        """`requests` have the tables in their current state in the catalog."""
        if replacements != self.replacements:
            # LK-28: the files of this commit were written next to another SQLite file; the next attempt checks for
            # them.
            raise CommitFailedException(f"the catalog file {self.sqlite_file} was replaced by another one")
        versions = [self._next_version(each) for each in requests]
        self._set(versions)
        for each in versions:
            if each.is_new:
                before = each.current
                remove_logged_out_metadata(each.io, before.metadata, each.metadata, before.metadata_location)
        return [each.response for each in versions]

    def _set(self, versions: Sequence[NextVersion]) -> None:
        """Write the new metadata files, and set the catalog to them if there are any."""
        changed = [each for each in versions if each.is_new]
        if changed:
            synced = any(is_synced(each.metadata.properties) for each in changed)
            with removing_what_is_not_named(changed):
                for each in changed:
                    self._write_metadata(each.metadata, each.io, each.location)
                self.point_to([each.swap for each in versions], synced=synced)
        for each in changed:
            self._remember(each.location, each.metadata, each.io)

    def _next_version(self, request: TableRequest) -> NextVersion:
        """Check the requirements of the request, and apply its updates."""
        current = request.table
        refuse_read_only(current)
        for requirement in request.requirements:
            requirement.validate(current.metadata)
        return self._version(current, apply_updates(current.metadata, current.metadata_location, request.updates))

    def _version(self, current: Table, metadata: TableMetadata) -> NextVersion:
        if metadata is current.metadata:
            return NextVersion(current, metadata, current.io, current.metadata_location)
        io = current.io
        if metadata.properties != current.metadata.properties:
            io = self._load_file_io(metadata.properties, current.metadata_location)
        return NextVersion(current, metadata, io, next_metadata_location(self, metadata, current.metadata_location))

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """A new table from the updates of its creation; `commit_table` handles tables that exist."""
        assert current_table is None, "`commit_table` does not ask for tables that exist"
        return created_table(self, table_identifier, requirements, updates)

    def commit_queue(self, table_uuid: UUID) -> CommitQueue | None:
        """CP-26: the queue of a table's writers, in a file next to the SQLite file. None if the catalog has no SQLite
        file, or if locks are not supported."""
        return self._queue(_QUEUE_SUFFIX, table_uuid)

    def upkeep_queue(self, table_uuid: UUID) -> CommitQueue | None:
        """MT-86: the queue of upkeep for a table; None if the table has no queue of writers."""
        return self._queue(_UPKEEP_SUFFIX, table_uuid)

    def _queue(self, suffix: str, table_uuid: UUID) -> CommitQueue | None:
        file = self.sqlite_file
        if file is None or not IS_SUPPORTED or not os.path.isfile(file):
            return None
        return CommitQueue(file + suffix, table_uuid)

    def purge_table(self, identifier: str | Identifier) -> None:
        """Drop the table and delete its own files that its snapshots name, range deletes included (MT-53). The table
        may forbid this (MT-65). Files of concurrent commits are deleted too, because nothing would name them
        afterwards."""
        from tableformat.catalogs.purging import purge

        self.refuse_read_only()
        purge(self, identifier)

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """PyIceberg calls this after each of its own commits; `commit_table` has already done the work."""

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        write_metadata(metadata, io, metadata_path)

    def _metadata_location(self, identifier: str | Identifier) -> str:
        namespace = Catalog.namespace_to_string(Catalog.namespace_from(identifier))
        row = {"the_namespace": namespace, "the_table": Catalog.table_name_from(identifier)}
        with self.engine.connect() as connection:
            found = connection.execute(self._select_location, row).one_or_none()
        if found is None or found.metadata_location is None:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(Catalog.identifier_to_tuple(identifier))}")
        return str(found.metadata_location)

    def metadata_locations(self) -> dict[Identifier, str]:
        """LK-37: the metadata file of every table, from one query: the state of all tables at one moment."""
        with self.engine.connect() as connection:
            rows = connection.execute(locations_of(self.name, *self._are_tables())).all()
        return {
            (*Catalog.identifier_to_tuple(row.table_namespace), row.table_name): row.metadata_location
            for row in rows
            if row.metadata_location is not None
        }

    def table_at(self, identifier: Identifier, location: str) -> Table:
        """The table in the state of a metadata file."""
        metadata, io = self._metadata_at(location)
        return Table(identifier=identifier, metadata=metadata, metadata_location=location, io=io, catalog=self)

    @cached_property
    def _select_location(self) -> Select[str, str, str | None]:
        """Built once, because SQLAlchemy takes longer to build the statement than SQLite to answer it."""
        is_namespace = IcebergTables.table_namespace == bindparam("the_namespace")
        is_name = IcebergTables.table_name == bindparam("the_table")
        return locations_of(self.name, is_namespace, is_name, *self._are_tables())

    def _are_tables(self) -> tuple[ColumnElement[bool], ...]:
        type_filter = self._iceberg_type_filter()
        return () if type_filter is None else (type_filter,)

    def settle(self) -> None:
        """LK-3: store the current location as the home of the lake."""
        self.place.settle(self.engine)

    def file_io_at(self, location: str) -> FileIO:
        """The FileIO of the catalog for a location."""
        return self._load_file_io(location=location)

    def point_to(self, swaps: Sequence[Swap], *, synced: bool = False) -> None:
        """Compare-and-set of the tables' metadata files, all or none. Raises CommitFailedException if one of them is at
        another file than expected."""
        swap_locations(self.engine, self.name, swaps, synced=synced)

    def _metadata_at(self, location: str) -> tuple[TableMetadata, FileIO]:
        """Metadata files are immutable, so a file that this catalog has parsed or written is not parsed again."""
        known = self._parsed.get(location)
        if known is None:
            metadata = quickly_parsed(self.file_io_of(location), location)
            known = (metadata, self.file_io_of(location, metadata.properties))
            self._remember(location, *known)
        return known

    def file_io_of(self, location: str, properties: Properties = EMPTY_DICT) -> FileIO:
        """LK-3: the FileIO for a location. If the catalog names the file under the lake's former path, it is a FileIO
        that opens the file at the actual path."""
        root, properties = self.place.root, options_of_table(properties)
        former = self.place.former_root_of(location, self._load_file_io(location=root))
        if former is None or root is None:
            return self._load_file_io(properties, location)
        return RelocatedFileIO(self._load_file_io(properties, root), former, root)

    def _remember(self, location: str, metadata: TableMetadata, io: FileIO) -> None:
        self._parsed.put(location, (metadata, io), len(metadata.snapshots) + 1)
