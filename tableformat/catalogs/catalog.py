"""`Catalog`: creates, loads, lists, renames and drops namespaces and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AddPartitionSpecUpdate

from tableformat.arguments import checked_methods
from tableformat.catalogs.catalog_names import CatalogNames
from tableformat.catalogs.catalog_properties import TABLE, properties_of_new
from tableformat.catalogs.database_errors import type_database_errors
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.catalogs.metastore_metadata import write_every_version
from tableformat.catalogs.names import Identifier, check_name, dotted
from tableformat.catalogs.unreachable import creation_without_answer, type_outages
from tableformat.commit.logged_out_metadata import guard_metadata_removal
from tableformat.commit.read_only import refuse_read_only
from tableformat.commit.rest_catalog import is_rest
from tableformat.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from tableformat.maintenance.running.progress import Progress
from tableformat.maintenance.running.shown_progress import shows_progress
from tableformat.markup import html
from tableformat.metadata.identifiers import identifier_parts
from tableformat.metadata.new_names import check_new_name
from tableformat.metadata.statistics_files import accept_every_blob_type
from tableformat.operations.format_version import format_version_of_new, refusals_of_version
from tableformat.operations.options import CommitKeywords, CommitOptions, RowsLike
from tableformat.range_partitions.model import RangePartitions
from tableformat.reports.reporting import Reporter, set_reporter
from tableformat.storage.location import from_anywhere
from tableformat.storage.schemes import check_scheme

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from tableformat.catalogs.adopt_table import AdoptResult
    from tableformat.catalogs.heads import Heads
    from tableformat.catalogs.relocate_lake import RelocateResult
    from tableformat.filters.predicate import Where
    from tableformat.maintenance.erasure.certificate import ErasureCertificate
    from tableformat.metadata.arrow_schema import TableSchema
    from tableformat.operations.catalog_transaction import CatalogTransaction
    from tableformat.operations.staging.result import CommitResult
    from tableformat.scan.scan import Scan
    from tableformat.table import Table


@checked_methods
class Catalog(CatalogNames):
    """A catalog of Iceberg tables with range deletes.

    A catalog is a context manager that closes itself. Examples start with the lines shown for `Table`.

    A catalog of `open_catalog`, its tables and their scans can be pickled. The pickle holds the arguments of
    `open_catalog`, and the other process opens the catalog again. These arguments, and options that a catalog returns
    for the files of a table, may contain secrets in plain text.

    >>> with tf.open_catalog("lake/") as lake:
    ...     print(lake.load_table("db.calendars").scan().count())
    3
    """

    def __init__(self, backend: IcebergCatalog) -> None:
        guard_metadata_removal(backend)
        write_every_version(backend)
        type_outages(backend)
        if not isinstance(backend, EmbeddedCatalog):
            accept_every_blob_type()  # PyIceberg parses the metadata of these catalogs.
        if isinstance(backend, SqlCatalog) and not isinstance(backend, EmbeddedCatalog):
            type_database_errors(backend.engine, backend.name)
        super().__init__(backend)
        self._opened: tuple[str, dict[str, str]] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        if self._opened is None:
            raise UnsupportedFeatureError(
                f"catalog {self.iceberg.name!r} cannot be pickled: it was not opened by open_catalog(), so another "
                "process could not open it. Open the catalog in the other process instead."
            )
        from tableformat.catalogs.open_catalog import reopen_catalog

        return reopen_catalog, self._opened

    def __repr__(self) -> str:
        return f"Catalog({self.iceberg.name!r}, warehouse={self.iceberg.properties.get('warehouse', '')!r})"

    def _repr_html_(self) -> str:
        namespaces = self.list_namespaces(recursive=True)
        tables = [(each, ", ".join(self.list_tables(each))) for each in namespaces[: html.LISTED_ROWS]]
        shown = [*tables, *((each, "") for each in namespaces[html.LISTED_ROWS :])]
        return html.fragment(
            f"Catalog {self.iceberg.name}",
            html.facts([("warehouse", self.iceberg.properties.get("warehouse", "unknown"))]),
            html.grid(("namespace", "tables"), shown) if shown else html.quiet("no namespaces"),
        )

    def report_to(self, reporter: Reporter | None) -> None:
        """Call `reporter` with a `ScanReport` after each planned scan, and with a `CommitReport` after each committed
        snapshot. None ends the reports.

        `to_dict()` of a report is the JSON of Iceberg's REST specification, including the values of filters. The
        reporter also gets the reports of existing handles in this process. Scans that an operation or a job makes
        internally are not reported. If the reporter raises an error, a warning is logged.

        >>> reports = []
        >>> catalog.report_to(reports.append)
        >>> result = table.delete_prefix({"id1": "B"})
        >>> rows = table.scan(where="id1 = 'A'").to_arrow()
        >>> [type(report).__name__ for report in reports]
        ['CommitReport', 'ScanReport']
        >>> metrics = reports[1].to_dict()["metrics"]
        >>> metrics["result-data-files"]
        {'unit': 'count', 'value': 1}
        """
        set_reporter(self.iceberg, reporter)

    def close(self) -> None:
        """Close the connections of the catalog. Tables that were loaded stay readable.

        >>> table = catalog.load_table("db.calendars")
        >>> catalog.close()
        >>> table.scan().count()
        3
        """
        self.iceberg.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def create_table(
        self,
        identifier: Identifier,
        schema: TableSchema,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        range_partitions: RangePartitions | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create an empty table.

        `schema` is a schema of pyarrow or PyIceberg, or an object that exports its columns to Arrow, such as a
        `polars.Schema`. For a data frame use `pa.table(frame).schema`. Arrow types that Iceberg lacks become the type
        in which their values are stored: timestamps with a time zone become UTC, and before version 3 nanoseconds
        become microseconds.

        `key` names the columns that identify a row, most significant first. They become required, and the table is
        sorted by them. `upsert`, `delete_prefix` and `replace` use the key. `partition_by` takes Iceberg's transforms
        as text, such as `"bucket(16, id1)"` or `"day(ts)"`. The property `format-version` is "2" or "3". Version 3 has
        deletion vectors, row ids, nanosecond timestamps and default values; not every catalog can write it.

        `range_partitions` declares which ranges of the key space exist; rows outside of them are rejected. If their
        step is one of Iceberg's transforms, the table is partitioned by it, unless `partition_by` names the column.

        Properties of the catalog named `table-default.<name>` are defaults for new tables. Those named
        `table-override.<name>` cannot be changed by `properties`.

        With `exist_ok`, an existing table of that name is returned unchanged.

        >>> rows = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("name", pa.string())])
        >>> events = catalog.create_table("db.events", rows, key=["id", "at"], partition_by=["day(at)"])
        >>> events.key, [field.name for field in events.metadata.spec().fields]
        (('id', 'at'), ['at_day'])
        """
        try:
            creation = self.stage_table(
                identifier,
                schema,
                key=key,
                partition_by=partition_by,
                properties=properties,
                location=location,
                range_partitions=range_partitions,
            )
            version = format_version_of_new(properties_of_new(TABLE, self.iceberg.properties, properties or {}))
            with self._names.typed(identifier), refusals_of_version(version, self.iceberg.name):
                with creation_without_answer(self.iceberg, dotted(identifier)):
                    creation.commit_transaction()
                return self._handle(self.iceberg.load_table(identifier_parts(identifier)))
        except (TableAlreadyExistsError, AlreadyExistsError) as error:
            if exist_ok and not self._names.is_view(identifier):
                return self.load_table(identifier)
            raise self._names.exists_already(identifier) from error

    def stage_table(
        self,
        identifier: Identifier,
        schema: TableSchema,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        range_partitions: RangePartitions | None = None,
    ) -> CreateTableTransaction:
        """Prepare the creation of a table; the caller commits it. The arguments are the same as for `create_table`.

        Raises AlreadyExistsError if the table exists. The commit raises PyIceberg's TableAlreadyExistsError if the
        table was created in the meantime.

        >>> creation = catalog.stage_table("db.names", pa.schema([("name", pa.string())]))
        >>> catalog.table_exists("db.names"), creation.commit_transaction().name(), catalog.table_exists("db.names")
        (False, ('db', 'names'), True)
        """
        from tableformat.catalogs.new_table import new_table

        check_name(identifier)
        check_new_name(identifier_parts(identifier), "table")
        new = new_table(
            schema,
            key=key,
            partition_by=partition_by,
            properties=properties_of_new(TABLE, self.iceberg.properties, properties or {}),
            range_partitions=range_partitions,
        )
        if location is not None:
            location = location if is_rest(self.iceberg) else from_anywhere(location)
            check_scheme(location, {**self.iceberg.properties, **new.properties})
        if self.iceberg.table_exists(identifier_parts(identifier)) or self._names.is_view(identifier):
            raise self._names.exists_already(identifier)
        with self._names.typed(identifier), refusals_of_version(new.format_version, self.iceberg.name):
            creation = self.iceberg.create_table_transaction(
                identifier_parts(identifier), new.schema, location, new.spec, new.sort_order, new.properties
            )
            if not new.spec.is_unpartitioned():
                # Global deletes are written under an unpartitioned spec (FM-5): every partitioned table gets one.
                creation._apply((AddPartitionSpecUpdate(spec=PartitionSpec(spec_id=1)),))
            return creation

    def write(
        self,
        identifier: Identifier,
        rows: RowsLike | str | os.PathLike[str],
        *,
        mode: Literal["append", "overwrite", "upsert", "error"] = "append",
        schema_mode: Literal["strict", "merge"] = "strict",
        key: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Write rows to a table. The namespace and the table are created if they do not exist.

        `rows` is what `Table.append` takes, or the path of a Parquet file or of a directory of them; directories such
        as `country=DE` become columns.

        `mode` applies if the table exists: "append" adds the rows, "overwrite" replaces all rows, "upsert" replaces the
        rows with the same key, "error" raises AlreadyExistsError. `schema_mode="merge"` adds columns that an existing
        table lacks, and widens types, as `Table.merge_schema` does; the table keeps them if the write fails.

        `key`, `partition_by` and `properties` define a new table, as in `create_table`. If the table exists, they are
        optional and have to agree with it. If the rows of a new table are rejected, the empty table remains.

        >>> people = pa.table({"id": [1, 2], "name": ["ann", "bob"]})
        >>> catalog.write("hr.people", people, key=["id"]).added_row_count
        2
        >>> result = catalog.write("hr.people", {"id": 2, "name": "eve"}, mode="upsert")
        >>> catalog.read("hr.people", where="id = 2").to_arrow()["name"].to_pylist()
        ['eve']
        """
        from tableformat.catalogs.write_table import write_table

        return write_table(
            self,
            identifier,
            rows,
            mode=mode,
            schema_mode=schema_mode,
            key=key,
            partition_by=partition_by,
            properties=properties,
            commit=commit,
        )

    def read(self, identifier: Identifier, where: Where | None = None, columns: Sequence[str] | None = None) -> Scan:
        """The current rows of a table that match `where`. The scan reads when a method asks for rows, such as
        `to_pandas()`.

        >>> catalog.read("db.calendars", where="id1 = 'A'", columns=["num_cal"]).to_arrow()["num_cal"].to_pylist()
        [1, 2]
        """
        return self.load_table(identifier).scan(where, columns)

    def sql(self, text: str) -> DuckDBPyRelation | CommitResult | None:
        """Run one SQL statement in DuckDB. Tables have their names in this catalog, such as `db.calendars`.

        Every call attaches all tables of the catalog at their current snapshots. To run many queries, attach the
        catalog to a connection with `tf.duckdb.attach` and use `tf.duckdb.sql`, which also lists the statements.

        Raises `duckdb.Error` if DuckDB rejects the text, for example for an unknown table.

        >>> catalog.sql("SELECT id1, count(*) FROM db.calendars GROUP BY id1 ORDER BY id1").fetchall()
        [('A', 2), ('B', 1)]
        """
        from tableformat.engines.duckdb import sql_of_catalog

        return sql_of_catalog(self, text)

    def load_table(self, identifier: Identifier, *, branch: str = MAIN_BRANCH) -> Table:
        """The table at its newest metadata. Reads and writes use `branch`.

        Raises TableNotFoundError with the nearest name, SnapshotNotFoundError if the branch does not exist.

        >>> catalog.load_table("db.calendars").scan().count()
        3
        >>> table = table.create_branch("ingest")
        >>> catalog.load_table("db.calendars", branch="ingest").branch
        'ingest'
        """
        check_name(identifier)
        with self._names.typed(identifier):
            return self._handle(self.iceberg.load_table(identifier_parts(identifier)), branch)

    def _handle(self, iceberg: IcebergTable, branch: str = MAIN_BRANCH) -> Table:
        """The handle of a loaded table. The readers and the operations of tables are imported for the first one
        (decision 37)."""
        from tableformat.table import Table

        return Table(iceberg, catalog=self, branch=branch)

    def heads(self) -> Heads:
        """All tables of the catalog at one moment, for readers that load several. A lake is asked once; other catalogs
        are asked for each table.

        >>> catalog.heads().load("db.calendars").scan().count()
        3
        """
        from tableformat.catalogs.heads import Heads

        return Heads.of(self)

    @contextmanager
    def transaction(self, **commit: Unpack[CommitKeywords]) -> Iterator[CatalogTransaction]:
        """Operations on several tables, committed together at the end of the block: all or nothing, and visible at the
        same moment. Leaving the block by an exception changes no table.

        `tx.table(name)` has the operations of `Table.transaction`, and `tx.results` has the CommitResult of each table.
        Loaded handles see the changes after `refresh()`. Catalogs that commit one table at a time raise
        SeveralTablesError for a second table. `if_unchanged_since` is not an option here, because a snapshot belongs to
        one table: InvalidArgumentError.

        >>> notes = catalog.create_table("db.notes", pa.schema([("id1", pa.string()), ("note", pa.string())]))
        >>> with catalog.transaction(application_id="loader", batch_id=1) as tx:
        ...     tx.table("db.calendars").delete_prefix({"id1": "A"})
        ...     tx.table("db.notes").append(pa.table({"id1": ["A"], "note": ["closed"]}))
        >>> table.refresh().scan().count(), notes.refresh().scan().count()
        (1, 1)
        """
        from tableformat.maintenance.upkeep.after_commit import after_commit
        from tableformat.operations.catalog_transaction import CatalogTransaction

        options = CommitOptions.of("transaction", **commit)
        transaction = CatalogTransaction(self.iceberg, lambda parts: self.load_table(parts).iceberg, options)
        with transaction.committing():
            yield transaction
        for iceberg, branch in transaction.changed_tables():
            after_commit(iceberg, branch)

    def register_table(self, identifier: Identifier, metadata_location: str) -> Table:
        """Add an existing table to the catalog by the location of its current metadata file.

        Raises TableNotFoundError if the file does not exist, CorruptFileError if it is not table metadata,
        InvalidArgumentError for a directory or for a table that is not at the location in its metadata, and
        AlreadyExistsError for a table that the lake has under another name. Nothing is changed in these cases.

        >>> catalog.drop_table("db.calendars")
        >>> registered = catalog.register_table("db.registered", table.iceberg.metadata_location)
        >>> registered.scan().count()
        3
        """
        from tableformat.catalogs.registration import register_table

        check_name(identifier)
        check_new_name(identifier_parts(identifier), "table")
        if self._names.is_view(identifier):
            raise self._names.exists_already(identifier)
        with self._names.typed(identifier):
            try:
                return self._handle(register_table(self.iceberg, identifier_parts(identifier), metadata_location))
            except TableAlreadyExistsError as error:
                raise self._names.exists_already(identifier) from error

    def adopt_table(
        self, identifier: Identifier, *, key: Sequence[str] | None = None, dry_run: bool = False
    ) -> AdoptResult:
        """Give a table of another writer a key. The default is the identifier fields of its schema.

        Optional key columns become required if no row of any branch has a null in them. Metadata shows this for most
        files; the others are read. Raises InvalidKeyError if a row has a null, CommitConflictError if another writer
        committed in the meantime. The result has the findings of `health`.

        >>> events = catalog.create_table("db.events", pa.schema([("id", pa.int64()), ("at", pa.int64())]))
        >>> result = events.append(pa.table({"id": [1, 2], "at": [5, 5]}))
        >>> result = catalog.adopt_table("db.events", key=["id"])
        >>> result.key, result.required_columns, result.read_files_count
        (('id',), ('id',), 0)
        """
        from tableformat.catalogs.adopt_table import adopt_table

        return adopt_table(self.load_table(identifier), key, dry_run=dry_run)

    def rename_table(self, from_identifier: Identifier, to_identifier: Identifier) -> Table:
        """Rename a table. Its files are not moved.

        >>> catalog.rename_table("db.calendars", "db.opening_days").name
        'db.opening_days'
        """
        check_name(from_identifier)
        check_name(to_identifier)
        check_new_name(identifier_parts(to_identifier), "table")
        with self._names.typed(from_identifier, to_identifier):
            try:
                return self._handle(
                    self.iceberg.rename_table(identifier_parts(from_identifier), identifier_parts(to_identifier))
                )
            except TableAlreadyExistsError as error:
                raise self._names.exists_already(to_identifier) from error

    def drop_table(self, identifier: Identifier, *, purge: bool = False) -> None:
        """Remove a table from the catalog. With `purge`, its files are removed too.

        A table that cannot be read is removed, but it cannot be purged, because its files are not known. Purging
        removes the files in the table's directory that the metadata of a retained snapshot names, and no others. A
        named file in another directory is kept, and a warning is logged. If the table property `gc.enabled` is `false`,
        purging raises UnsupportedFeatureError and the table stays.

        >>> catalog.drop_table("db.calendars", purge=True)
        >>> catalog.list_tables("db")
        []
        """
        from tableformat.metadata.owned_files import OwnedFiles
        from tableformat.metadata.reachable_files import files_to_purge

        check_name(identifier)
        with self._names.typed(identifier):
            if not purge:
                self.iceberg.drop_table(identifier_parts(identifier))
                return
            if isinstance(self.iceberg, EmbeddedCatalog):
                self.iceberg.purge_table(identifier_parts(identifier))
                return
            table = self.iceberg.load_table(identifier_parts(identifier))
            refuse_read_only(table)
            locations = files_to_purge(table.metadata, table.metadata_location, table.io, table=dotted(identifier))
            self.iceberg.drop_table(identifier_parts(identifier))
        OwnedFiles.of(table).purge(locations)

    @shows_progress
    def erase(
        self,
        rows: Mapping[str, Any],
        *,
        everywhere: bool = True,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ErasureCertificate:
        """Erase rows from all snapshots of several tables, for example all data of a person, with one certificate.

        `rows` names the tables. Each value is a prefix of the key of its table, several prefixes, or a filter as SQL
        text or as an expression. All tables change in one transaction of the catalog. Otherwise like
        `table.maintenance.erase`. Loaded handles see the result after `refresh()`.

        >>> certificate = catalog.erase({"db.calendars": {"id1": "A"}})
        >>> certificate.is_complete, certificate.erased_rows_count
        (True, 2)
        """
        from tableformat.filters.predicate import is_filter
        from tableformat.maintenance.erasure.erase import EraseRequest, erase

        requests = []
        for name, given in rows.items():
            iceberg = self.load_table(name).iceberg
            refuse_read_only(iceberg)
            prefix, where = (None, given) if is_filter(given) else (given, None)
            requests.append(EraseRequest(iceberg=iceberg, prefix=prefix, where=where))
        return erase(requests, everywhere=everywhere, dry_run=dry_run, progress=progress)

    @shows_progress
    def relocate(
        self,
        to: str | os.PathLike[str] | None = None,
        *,
        tables: Sequence[Identifier] = (),
        replace: bool = False,
        outside: Literal["keep", "forget"] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
        **options: str,
    ) -> RelocateResult:
        """Update the locations in the metadata of a lake that moved, or copy its tables to another lake.

        Without `to`, for a lake that was moved or copied: metadata, manifests and position deletes are written again
        with the current locations; data files stay. `outside` handles tables outside of the lake's directory: "keep"
        (the lake was moved, and no other lake has them) or "forget" (remove their names from this lake).

        With `to`, a directory or a prefix of an object store: `tables`, by default all, are copied with every retained
        snapshot, branch and tag. This is a backup; the same call on the copy restores it. `replace` updates tables that
        exist there, and copies only files that are missing. `options` are passed to `open_catalog(to)`, such as
        `catalog_file`. A repeated call continues an interrupted one.

        >>> result = catalog.relocate("backup/")
        >>> [(each.table, each.copied_files_count) for each in result.tables]
        [('db.calendars', 1)]
        >>> tf.open_catalog("backup/").load_table("db.calendars").scan().count()
        3
        """
        from tableformat.catalogs.relocate_lake import relocate_here, relocate_to

        if to is None:
            given = {"tables": tables, "replace": replace, **options}
            wrong = [name for name, value in given.items() if value]
            if wrong:
                raise InvalidArgumentError(f"{', '.join(wrong)}: valid only with a location to relocate to.")
            return relocate_here(self.iceberg, outside=outside, dry_run=dry_run, progress=progress)
        if outside is not None:
            raise InvalidArgumentError(
                "outside is valid only without a location to relocate to, because a copy includes all tables."
            )
        names = [identifier_parts(name) for name in tables]
        for name in names:
            check_name(name)
            if not self.table_exists(name):
                raise self._names.not_found(name)
        return relocate_to(
            self.iceberg,
            os.fspath(to),
            options,
            tables=names,
            replace=replace,
            dry_run=dry_run,
            progress=progress,
        )
