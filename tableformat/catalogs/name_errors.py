"""Translates PyIceberg's errors for missing or existing names to the library's errors, with the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchIdentifierError, NoSuchNamespaceError, NoSuchTableError

from tableformat.catalogs.lake_directory import is_table_directory
from tableformat.catalogs.names import Identifier, dotted
from tableformat.catalogs.views.view_store import ViewStore
from tableformat.errors import AlreadyExistsError, NamespaceNotFoundError, TableNotFoundError, nearest_hint
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.metadata.table_file import unknown_type
from tableformat.storage.location import local_path


def unless_gone(listing: Callable[[str], list[str]], namespace: str) -> list[str]:
    """The contents of a namespace; empty if the namespace was dropped since it was listed."""
    try:
        return listing(namespace)
    except NamespaceNotFoundError:
        return []


@dataclass(frozen=True, slots=True)
class NameErrors:
    """Errors for the names of one catalog. Tables and views share their names."""

    catalog: Catalog
    views: ViewStore

    @contextmanager
    def typed(self, identifier: Identifier, new_identifier: Identifier | None = None) -> Iterator[None]:
        """Raise NamespaceNotFoundError or TableNotFoundError for names that PyIceberg does not find, and
        UnsupportedFeatureError for a table with an unknown type. If something is to be created at `new_identifier`, a
        missing namespace is reported for that name."""
        try:
            yield
        except NoSuchNamespaceError as error:
            namespace = dotted(new_identifier or identifier)
            raise NamespaceNotFoundError(
                f"no namespace for {namespace!r}.{nearest_hint(namespace.split('.')[0], self._namespaces())} Create "
                "it with create_namespace()."
            ) from error
        except (NoSuchTableError, NoSuchIdentifierError) as error:
            raise self.not_found(identifier) from error
        except (exceptions.ValidationError, ValidationError) as error:
            unread = unknown_type(error, f"table {dotted(identifier)!r}")
            if unread is None:
                raise
            raise unread from error

    def not_found(self, identifier: Identifier) -> TableNotFoundError:
        """The error for a table that does not exist. If the name is a view's, the message includes that."""
        return TableNotFoundError(f"no table {dotted(identifier)!r}.{self._hint(identifier)}")

    def exists_already(self, identifier: Identifier) -> AlreadyExistsError:
        """The error for the name of an existing table or view."""
        kind = "view" if self.is_view(identifier) else "table"
        return AlreadyExistsError(f"{kind} {dotted(identifier)!r} exists already.")

    def is_view(self, identifier: Identifier) -> bool:
        """Whether a view has the name."""
        return self.views.load(identifier_parts(identifier)) is not None

    def _hint(self, identifier: Identifier) -> str:
        if self.is_view(identifier):
            return " It is a view: read it with Spark SQL."
        if (unnamed := self._unnamed_files(identifier)) is not None:
            return f" Files of a table exist at {unnamed}: add the table to the catalog with register_table()."
        namespace = identifier_parts(identifier)[:-1]
        if not namespace or not self.catalog.namespace_exists(namespace):
            return f" Namespaces: {', '.join(self._namespaces()) or 'none'}."
        return nearest_hint(dotted(identifier), sorted(map(identifier_text, self.catalog.list_tables(namespace))))

    def _unnamed_files(self, identifier: Identifier) -> Path | None:
        """The directory where another program keeps a table of that name, without a catalog."""
        root = local_path(self.catalog.properties.get("warehouse") or "")
        path = Path(root, *identifier_parts(identifier)) if root else None
        return path if path is not None and is_table_directory(path) else None

    def _namespaces(self) -> list[str]:
        return sorted(map(identifier_text, self.catalog.list_namespaces(())))
