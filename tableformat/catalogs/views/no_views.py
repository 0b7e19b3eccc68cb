"""The views of a catalog that does not support them."""

# ruff: noqa: ARG002  every store has the same methods

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.catalog import Catalog
from pyiceberg.typedef import Identifier
from pyiceberg.view import View

from tableformat.catalogs.views.view_metadata import ViewDefinition
from tableformat.errors import UnsupportedFeatureError


class NoViews:
    """A `ViewStore` that is always empty."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def list(self, namespace: Identifier) -> list[Identifier]:
        return []

    def load(self, identifier: Identifier) -> View | None:
        return None

    def create(
        self,
        identifier: Identifier,
        definition: ViewDefinition,
        properties: Mapping[str, str],
        location: str | None = None,
    ) -> View:
        raise self._refusal()

    def replace(self, view: View, definition: ViewDefinition, properties: Mapping[str, str]) -> View:
        raise self._refusal()

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        raise self._refusal()

    def drop(self, identifier: Identifier) -> bool:
        return False

    def _refusal(self) -> UnsupportedFeatureError:
        kind = type(self._catalog).__name__
        return UnsupportedFeatureError(
            f"catalog {self._catalog.name!r} ({kind}) does not support views; lakes, SQL and REST catalogs do. Use "
            "CREATE TEMPORARY VIEW for a view of the session."
        )
