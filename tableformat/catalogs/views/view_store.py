"""The interface of a catalog's views."""

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
        """The views of a namespace; empty for a catalog that does not support views. Raises PyIceberg's
        NoSuchNamespaceError."""
        ...

    def load(self, identifier: Identifier) -> View | None:
        """The current view; None if no view has that name."""
        ...

    def create(
        self,
        identifier: Identifier,
        definition: ViewDefinition,
        properties: Mapping[str, str],
        location: str | None = None,
    ) -> View:
        """Raises AlreadyExistsError if a table or view has the name, NamespaceNotFoundError if its namespace does not
        exist, and UnsupportedFeatureError in a catalog that does not support views."""
        ...

    def replace(self, view: View, definition: ViewDefinition, properties: Mapping[str, str]) -> View:
        """Replace the definition of `view`. Raises CommitConflictError if another writer changed it after it was
        loaded."""
        ...

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Raises ViewNotFoundError, or the errors of `create`. The metadata is not moved."""
        ...

    def drop(self, identifier: Identifier) -> bool:
        """Drop the view. False if it does not exist."""
        ...


def views_of(catalog: Catalog) -> ViewStore:
    """SQ-26: the store for the views of a catalog, which are kept with its tables. Not every catalog supports views."""
    if isinstance(catalog, SqlCatalog):
        return SqlViews(catalog)
    if is_rest(catalog):
        from tableformat.catalogs.views.rest_views import RestViews

        return RestViews(catalog)
    return NoViews(catalog)
