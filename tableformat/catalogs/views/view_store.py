"""Where a catalog keeps its views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.typedef import Identifier
from pyiceberg.view import View

from tableformat.catalogs.views.no_views import NoViews
from tableformat.catalogs.views.sql_views import SqlViews
from tableformat.catalogs.views.view_metadata import ViewDefinition
from tableformat.commit.rest_catalog import is_rest


class ViewStore(Protocol):
    """The views of one catalog. Identifiers are tuples, namespace first."""

    def list(self, namespace: Identifier) -> list[Identifier]:
        """The views of a namespace; none in a catalog that cannot have any. PyIceberg's NoSuchNamespaceError."""
        ...

    def load(self, identifier: Identifier) -> View | None:
        """The view as it is now; None where there is no view of that name."""
        ...

    def create(
        self,
        identifier: Identifier,
        definition: ViewDefinition,
        properties: Mapping[str, str],
        location: str | None = None,
    ) -> View:
        """AlreadyExistsError where a table or view has the name, NamespaceNotFoundError without its namespace,
        UnsupportedFeatureError in a catalog that cannot have views."""
        ...

    def replace(self, view: View, definition: ViewDefinition, properties: Mapping[str, str]) -> View:
        """`view` as it was loaded gets another definition; CommitConflictError where another writer was first."""
        ...

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """ViewNotFoundError, or as for `create`. The metadata stays where it is."""
        ...

    def drop(self, identifier: Identifier) -> bool:
        """Whether there was such a view."""
        ...


def views_of(catalog: Catalog) -> ViewStore:
    """SQ-26: views lie where the catalog's tables do; not every catalog has them."""
    if isinstance(catalog, SqlCatalog):
        return SqlViews(catalog)
    if is_rest(catalog):
        from tableformat.catalogs.views.rest_views import RestViews

        return RestViews(catalog)
    return NoViews(catalog)
