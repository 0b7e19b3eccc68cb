"""All tables of a catalog at one moment, for readers that load several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.typedef import Identifier

from tableformat.catalogs.catalog import Catalog
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.catalogs.name_errors import NameErrors
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.table import Table


@dataclass(frozen=True, slots=True)
class Heads:
    """CP-80: the state of all tables of a catalog at the moment of one query.

    A lake is queried once, so its commits to several tables are in all of the tables or in none. Other catalogs are
    queried for each table when it is loaded.
    """

    catalog: Catalog
    locations: Mapping[Identifier, str] | None
    """The metadata file of each table; None if the catalog cannot list them in one query."""

    @classmethod
    def of(cls, catalog: Catalog) -> Heads:
        """Query the catalog."""
        backend = catalog.iceberg
        return cls(catalog, backend.metadata_locations() if isinstance(backend, EmbeddedCatalog) else None)

    def list_tables(self, namespace: str) -> list[str]:
        """Like `Catalog.list_tables`, for the tables of that moment."""
        if self.locations is None:
            return self.catalog.list_tables(namespace)
        parts = identifier_parts(namespace)
        return sorted(identifier_text(each) for each in self.locations if each[:-1] == parts)

    def load(self, identifier: str) -> Table:
        """The table in its state of that moment."""
        backend = self.catalog.iceberg
        if self.locations is None or not isinstance(backend, EmbeddedCatalog):
            return self.catalog.load_table(identifier)
        parts = identifier_parts(identifier)
        with NameErrors(backend, self.catalog.views).typed(identifier):
            return Table(backend.table_at(parts, self.locations[parts]), catalog=self.catalog)
