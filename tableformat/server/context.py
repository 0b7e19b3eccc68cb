"""The state that all routes of a server share."""

from __future__ import annotations

from dataclasses import dataclass

from tableformat.catalogs.catalog import Catalog
from tableformat.server.access import Access
from tableformat.server.options import ServeOptions
from tableformat.server.planning import Planning
from tableformat.server.served_tables import ServedTables
from tableformat.server.vended_credentials import CredentialVendor


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One catalog, and how it is served."""

    catalog: Catalog
    options: ServeOptions
    access: Access
    tables: ServedTables
    planning: Planning
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
        return ServerContext(catalog, options, Access(options.token), tables, Planning(), vendor, host)
