"""All tables of a catalog at one moment, for readers that load several."""

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
    """CP-80: where the tables of a catalog were when it was asked. A lake is asked once, so that its commits to several
    tables are in all of them or in none. Other catalogs are asked for each table when it is loaded."""

    catalog: Catalog
    locations: Mapping[Identifier, str] | None
    """The metadata file of each table; None where the catalog has no question for all of them."""

    @classmethod
    def of(cls, catalog: Catalog) -> Heads:
        """Ask the catalog."""
        backend = catalog.iceberg
        return cls(catalog, backend.metadata_locations() if isinstance(backend, EmbeddedCatalog) else None)

    def list_tables(self, namespace: str) -> list[str]:
        """As `Catalog.list_tables`, of the tables that were there."""
        if self.locations is None:
            return self.catalog.list_tables(namespace)
        parts = identifier_parts(namespace)
        return sorted(identifier_text(each) for each in self.locations if each[:-1] == parts)

    def load(self, identifier: str) -> Table:
        """The table at that moment."""
        backend = self.catalog.iceberg
        if self.locations is None or not isinstance(backend, EmbeddedCatalog):
            return self.catalog.load_table(identifier)
        parts = identifier_parts(identifier)
        with NameErrors(backend, self.catalog.views).typed(identifier):
            return Table(backend.table_at(parts, self.locations[parts]), catalog=self.catalog)
