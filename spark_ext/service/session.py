"""State that the process of one catalog keeps between calls: the catalog, loaded tables and their plans."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.executors import (
    COPY_EXECUTOR_BYTES_OPTION,
    EXECUTOR_BYTES_OPTION,
    EXECUTOR_OPTIONS,
    JOB_EXECUTOR_BYTES_OPTION,
    SCAN_EXECUTOR_BYTES_OPTION,
    Jvm,
    executor_choices,
)
from spark_ext.service.staging import StagingCatalog, is_staged
from tableformat.catalogs.catalog import Catalog
from tableformat.catalogs.open_catalog import open_catalog
from tableformat.errors import InvalidArgumentError, TableNotFoundError
from tableformat.maintenance.running.executors import LOCAL, Executor, ExecutorChoice
from tableformat.merge_on_read.deleted_positions import MergeCaches, MergeContext
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.table_file import parse_table_metadata
from tableformat.operations.staging.carried_rows import Carry, carry_here
from tableformat.operations.staging.covered_positions import Find, find_here
from tableformat.properties import inflated_bytes_max
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import plan_scan
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.file_uris import is_file_uri
from tableformat.storage.storage import read_bytes
from tableformat.table import Table

_REMEMBERED_TABLES: Final = 256
DELETE_MODE: Final = "delete-mode"
"""A catalog option that a session can override: how DELETE finds its rows (SP-114)."""
_SERVICE_OPTIONS: Final = frozenset({"type", "uri", "py-catalog-impl"})
"""Options that are sufficient to find the catalog, without a warehouse."""
_SERVICES: Final = ("http://", "https://", "thrift://")
"""Prefixes of a `uri` that belongs to a service, not to a database."""
_OF_ICEBERGS_JAVA: Final = ("cache-enabled", "io-impl", "metrics-reporter-impl")
"""Options for the Java classes of Iceberg's catalog, which have no effect here (SP-65)."""
_OF_HADOOP: Final = "hadoop."
_OF_CACHE: Final = "cache."
_REMEMBERED_TASKS: Final = 200_000
"""The limit of cached plans, counted in files."""
logger = logging.getLogger(__name__)


def _is_of_icebergs_java(catalog: str, option: str) -> bool:
    """SP-65: whether this option of Iceberg's has no effect here. If so, a warning is logged to standard error."""
    is_of_hadoop = option.startswith(_OF_HADOOP)
    if option not in _OF_ICEBERGS_JAVA and not is_of_hadoop and not option.startswith(_OF_CACHE):
        return False
    instead = " Object stores have options such as s3.endpoint." if is_of_hadoop or option == "io-impl" else ""
    logger.warning("option spark.sql.catalog.%s.%s has no effect here.%s", catalog, option, instead)
    return True


def _local(_table: Table) -> Executor:
    return LOCAL


@dataclass(frozen=True, slots=True)
class Pin:
    """The state of a table that a statement reads. Every call sends it to Java and back.

    The metadata file and the snapshot determine the state completely, so another process finds the same rows.
    """

    table: tuple[str, ...]
    metadata_location: str
    snapshot_id: int | None = None
    """The snapshot of a time travel, read in its own schema. None reads the branch's head in the current schema."""
    branch: str = MAIN_BRANCH

    def to_json(self) -> dict[str, Any]:
        return {
            "table": list(self.table),
            "metadata_location": self.metadata_location,
            "snapshot_id": self.snapshot_id,
            "branch": self.branch,
        }

    @classmethod
    def from_json(cls, pin: Mapping[str, Any]) -> Pin:
        return cls(tuple(pin["table"]), pin["metadata_location"], pin["snapshot_id"], pin["branch"])


@dataclass
class Session:
    """The state of one catalog between calls. Thread-safe."""

    catalog: Catalog
    options: Mapping[str, str]
    caches: MergeCaches = field(default_factory=MergeCaches)
    """Footers, delete files and deleted positions of all tables. They stay valid, because files never change."""
    upkeep_executor: Executor | ExecutorChoice = LOCAL
    """Where maintenance rewrites files (MT-100)."""
    carry: Carry = carry_here
    """Where copy-on-write rewrites files (SP-86)."""
    find: Find = find_here
    """Where procedures search for rows (SP-115)."""
    job_executor: Callable[[Table], Executor] = _local
    """Where procedures rewrite and count rows (PR-29)."""
    staging: StagingCatalog = field(default_factory=StagingCatalog)
    """Tables that running statements are creating."""
    _tables: BoundedCache[str, Table] = field(default_factory=lambda: BoundedCache(_REMEMBERED_TABLES))
    _plans: BoundedCache[Hashable, ScanPlan] = field(default_factory=lambda: BoundedCache(_REMEMBERED_TASKS))

    @classmethod
    def open(
        cls, name: str, options: Mapping[str, str], *, jvm: Jvm | None = None, master: str | None = None
    ) -> Session:
        """Open a catalog. `warehouse` is the directory of its tables. Without it, `name` is a catalog in PyIceberg's
        configuration.

        LK-14: a warehouse and the `uri` of a database, without a type, are a lake whose table names are in that
        database. `master` is the Spark master of the JVM, which decides the defaults for work on executors.
        """
        choices = executor_choices(options, jvm, master)
        copies, scans = choices[COPY_EXECUTOR_BYTES_OPTION], choices[SCAN_EXECUTOR_BYTES_OPTION]
        jobs = choices[JOB_EXECUTOR_BYTES_OPTION]
        return cls(
            cls._catalog(name, options),
            options,
            upkeep_executor=choices[EXECUTOR_BYTES_OPTION] or LOCAL,
            carry=copies.carry if copies is not None else carry_here,
            find=scans.find if scans is not None else find_here,
            job_executor=jobs.of_table if jobs is not None else _local,
        )

    @staticmethod
    def _catalog(name: str, options: Mapping[str, str]) -> Catalog:
        passed = {
            option: value
            for option, value in options.items()
            if option not in (*EXECUTOR_OPTIONS, DELETE_MODE) and not _is_of_icebergs_java(name, option)
        }
        warehouse = passed.pop("warehouse", None)
        if warehouse == "":
            raise InvalidArgumentError("the catalog option 'warehouse' is empty: set it to a directory.")
        if warehouse is None:
            return open_catalog(name, **passed)
        is_path = "/" in warehouse or "\\" in warehouse or is_file_uri(warehouse)
        said = _SERVICE_OPTIONS & passed.keys()
        is_lake = is_path and said == {"uri"} and not passed["uri"].startswith(_SERVICES)
        if said and not is_lake:
            return open_catalog(name, warehouse=warehouse, **passed)
        return open_catalog(warehouse if is_path else f"./{warehouse}", **passed)

    def load(self, identifier: tuple[str, ...], *, branch: str = MAIN_BRANCH) -> Table:
        """The table in its current state."""
        if is_staged(identifier):
            return self._staged(identifier)
        table = self.catalog.load_table(identifier, branch=branch)
        self._tables.put(table.iceberg.metadata_location, Table(handle_of(table), catalog=self.catalog), 1)
        table._find = self.find
        table._job_executor = self.job_executor
        return table

    def pinned(self, pin: Pin) -> Table:
        """The table at the metadata file in the pin."""
        table = self._tables.get(pin.metadata_location)
        if table is None:
            table = self._at_metadata_file(pin)
            self._tables.put(pin.metadata_location, table, 1)
        return table

    def view(self, pin: Pin) -> SnapshotView:
        """The snapshot in the pin."""
        table = self.pinned(pin)
        return table.at(snapshot_id=pin.snapshot_id) if pin.snapshot_id is not None else table.at(branch=pin.branch)

    def merge_context(self, view: SnapshotView) -> MergeContext:
        return MergeContext(view.metadata, view.io, self.caches)

    def plan(self, pin: Pin, where: BooleanExpression) -> ScanPlan:
        """The plan of a scan, computed once. Each query requests it twice: for the size and for the files."""
        return self._plan((pin,), self.view(pin), where)

    def plan_view(self, view: SnapshotView, where: BooleanExpression) -> ScanPlan:
        """The same for a snapshot that a stream reads in several micro-batches. Staged tables are not supported."""
        snapshot_id = None if view.snapshot is None else view.snapshot.snapshot_id
        return self._plan((view.metadata.table_uuid, snapshot_id, view.schema.schema_id), view, where)

    def _plan(self, read: tuple[Hashable, ...], view: SnapshotView, where: BooleanExpression) -> ScanPlan:
        """`read` identifies the view in the cache."""
        key = (*read, repr(where))
        plan = self._plans.get(key)
        if plan is None:
            plan = plan_scan(view, where, context=self.merge_context(view))
            self._plans.put(key, plan, 1 + len(plan.tasks))
        return plan

    def _staged(self, identifier: tuple[str, ...]) -> Table:
        try:
            return Table(self.staging.load_table(identifier), catalog=self.catalog)
        except NoSuchTableError as error:
            raise TableNotFoundError(
                "the Python process of the catalog was restarted while a table was being created. Nothing was "
                "changed. Run the statement again."
            ) from error

    def _at_metadata_file(self, pin: Pin) -> Table:
        """The table at the metadata file of the pin. A restarted process reads the file again, because the table may
        have changed since then."""
        current = self.load(pin.table)
        if current.iceberg.metadata_location == pin.metadata_location:
            return current
        io = current.iceberg.io
        metadata = parse_table_metadata(
            read_bytes(io, pin.metadata_location), pin.metadata_location, inflated_bytes_max(io.properties)
        )
        iceberg = IcebergTable(pin.table, metadata, pin.metadata_location, io, self.catalog.iceberg)
        return Table(iceberg, catalog=self.catalog)


def handle_of(table: Table) -> IcebergTable:
    """ST-1: a separate handle at the same metadata, because a commit moves the handle that it uses."""
    iceberg = table.iceberg
    return IcebergTable(iceberg.name(), iceberg.metadata, iceberg.metadata_location, iceberg.io, iceberg.catalog)
