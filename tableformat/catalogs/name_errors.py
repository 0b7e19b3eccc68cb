"""PyIceberg's errors of names that are missing or taken, as the library's own with the nearest name."""

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
    """What is in a namespace that was listed a moment ago, and that somebody may have dropped since: nothing then."""
    try:
        return listing(namespace)
    except NamespaceNotFoundError:
        return []


@dataclass(frozen=True, slots=True)
class NameErrors:
    """What is wrong with a name in one catalog; tables and views share their names."""

    catalog: Catalog
    views: ViewStore

    @contextmanager
    def typed(self, identifier: Identifier, new_identifier: Identifier | None = None) -> Iterator[None]:
        """Raise NamespaceNotFoundError or TableNotFoundError for what PyIceberg does not find, and
        UnsupportedFeatureError for a table with a type that it does not know. A namespace is missed where something is
        to be put, at `new_identifier`."""
        try:
            yield
        except NoSuchNamespaceError as error:
            namespace = dotted(new_identifier or identifier)
            raise NamespaceNotFoundError(
                f"no namespace for {namespace!r}.{nearest_hint(namespace.split('.')[0], self._namespaces())} "
                "create_namespace() makes one."
            ) from error
        except (NoSuchTableError, NoSuchIdentifierError) as error:
            raise self.not_found(identifier) from error
        except (exceptions.ValidationError, ValidationError) as error:
            unread = unknown_type(error, f"table {dotted(identifier)!r}")
            if unread is None:
                raise
            raise unread from error

    def not_found(self, identifier: Identifier) -> TableNotFoundError:
        """For a table that is not there; says so where the name is a view's."""
        return TableNotFoundError(f"no table {dotted(identifier)!r}.{self._hint(identifier)}")

    def exists_already(self, identifier: Identifier) -> AlreadyExistsError:
        """For a name that a table or a view has."""
        kind = "view" if self.is_view(identifier) else "table"
        return AlreadyExistsError(f"{kind} {dotted(identifier)!r} exists already.")

    def is_view(self, identifier: Identifier) -> bool:
        """Whether a view has the name."""
        return self.views.load(identifier_parts(identifier)) is not None

    def _hint(self, identifier: Identifier) -> str:
        if self.is_view(identifier):
            return " It is a view: Spark's SQL reads it."
        if (unnamed := self._unnamed_files(identifier)) is not None:
            return f" There are files of a table at {unnamed}: register_table() gives them a name in the catalog."
        namespace = identifier_parts(identifier)[:-1]
        if not namespace or not self.catalog.namespace_exists(namespace):
            return f" Namespaces: {', '.join(self._namespaces()) or 'none'}."
        return nearest_hint(dotted(identifier), sorted(map(identifier_text, self.catalog.list_tables(namespace))))

    def _unnamed_files(self, identifier: Identifier) -> Path | None:
        """Where other programs keep a table of that name: in a directory that is called so, without a catalog."""
        root = local_path(self.catalog.properties.get("warehouse") or "")
        path = Path(root, *identifier_parts(identifier)) if root else None
        return path if path is not None and is_table_directory(path) else None

    def _namespaces(self) -> list[str]:
        return sorted(map(identifier_text, self.catalog.list_namespaces(())))
