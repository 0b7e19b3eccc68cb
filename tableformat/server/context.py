"""The state that all routes of a server share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tableformat.catalogs.catalog import Catalog
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.server.access import Access
from tableformat.server.options import ServeOptions
from tableformat.server.served_tables import ServedTables
from tableformat.server.vended_credentials import CredentialVendor
from tableformat.storage.bounded_cache import BoundedCache

_KEPT_TASKS: Final = 500_000


@dataclass(frozen=True, slots=True)
class UnfetchedPlan:
    """The tasks of a plan that the client has not fetched yet."""

    view: SnapshotView
    tasks: Sequence[FileScanTask]
    where: Any
    """The filter of the request, as JSON; None without one."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One catalog, and how it is served."""

    catalog: Catalog
    options: ServeOptions
    access: Access
    tables: ServedTables
    plans: BoundedCache[str, UnfetchedPlan]
    """By the token of the next page. The oldest are dropped, and their clients plan again."""
    vendor: CredentialVendor | None = None
    """None: clients get no credentials."""
    host: str = "127.0.0.1"
    """The address that the server listens on, as given."""

    @staticmethod
    def of(catalog: Catalog, options: ServeOptions, host: str = "127.0.0.1") -> ServerContext:
        tables = ServedTables(catalog.iceberg, options.freshness_seconds, options.delete_format)
        vendor = None
        if options.vend_credentials:
            properties = catalog.iceberg.properties
            vendor = CredentialVendor(options.vend_credentials, properties, read_only=options.read_only)
        return ServerContext(catalog, options, Access(options.token), tables, BoundedCache(_KEPT_TASKS), vendor, host)
