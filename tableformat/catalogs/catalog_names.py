"""`CatalogNames`: the namespaces, tables and views of a catalog by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.exceptions import NamespaceNotEmptyError as IcebergNamespaceNotEmptyError

from tableformat.arguments import check_texts, checked_methods
from tableformat.catalogs.name_errors import NameErrors, unless_gone
from tableformat.catalogs.names import Identifier, check_name, check_namespace, dotted
from tableformat.catalogs.views.view_store import ViewStore, views_of
from tableformat.errors import AlreadyExistsError, InvalidArgumentError, ViewNotFoundError, nearest_hint
from tableformat.metadata.identifiers import identifier_parts, identifier_text
from tableformat.metadata.new_names import check_new_name


@checked_methods
class CatalogNames:
    """Creates, drops and lists namespaces; lists tables and views."""

    def __init__(self, backend: IcebergCatalog) -> None:
        self.iceberg = backend
        """The PyIceberg catalog behind this one."""
        self.views: ViewStore = views_of(backend)
        """The views of the catalog, for engines that have SQL."""
        self._names = NameErrors(backend, self.views)

    def create_namespace(
        self, namespace: Identifier, *, properties: Mapping[str, str] | None = None, exist_ok: bool = False
    ) -> None:
        """Create a namespace. Raises AlreadyExistsError unless `exist_ok`.

        >>> catalog.create_namespace("db.archive", properties={"owner": "calendar team"})
        >>> catalog.create_namespace("db", exist_ok=True)
        >>> catalog.list_namespaces(recursive=True)
        ['db', 'db.archive']
        """
        check_new_name(identifier_parts(namespace), "namespace")
        check_texts(properties or {}, "namespace properties")
        try:
            self.iceberg.create_namespace(identifier_parts(namespace), dict(properties or {}))
        except NamespaceAlreadyExistsError as error:
            if not exist_ok:
                raise AlreadyExistsError(f"namespace {dotted(namespace)!r} exists already.") from error

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drop an empty namespace.

        >>> catalog.create_namespace("archive")
        >>> catalog.drop_namespace("archive")
        >>> catalog.list_namespaces()
        ['db']
        """
        check_namespace(namespace)
        with self._names.typed(namespace):
            nested = self.list_namespaces(namespace) if self.namespace_exists(namespace) else []
            if nested:
                raise InvalidArgumentError(
                    f"namespace {dotted(namespace)!r} still has namespaces: {', '.join(nested)}. Drop them first."
                )
            if views := ", ".join(self.list_views(namespace)):
                raise InvalidArgumentError(
                    f"namespace {dotted(namespace)!r} still has views: {views}. Drop them first."
                )
            try:
                self.iceberg.drop_namespace(identifier_parts(namespace))
            except IcebergNamespaceNotEmptyError as error:
                raise InvalidArgumentError(
                    f"namespace {dotted(namespace)!r} still has tables: {', '.join(self.list_tables(namespace))}. "
                    "Drop them first."
                ) from error

    def list_namespaces(self, parent: Identifier = (), *, recursive: bool = False) -> list[str]:
        """The namespaces in `parent`, dotted and sorted. With `recursive`, nested namespaces are included.

        Without `parent`, the top-level namespaces. Raises InvalidArgumentError for an empty name.

        >>> catalog.create_namespace("db.archive")
        >>> catalog.list_namespaces(), catalog.list_namespaces("db"), catalog.list_namespaces(recursive=True)
        (['db'], ['db.archive'], ['db', 'db.archive'])
        """
        if parent != ():
            check_namespace(parent)
        with self._names.typed(parent):
            names = [identifier_text(name) for name in self.iceberg.list_namespaces(identifier_parts(parent))]
        if recursive:
            inside = partial(self.list_namespaces, recursive=True)
            names += [inner for name in names for inner in unless_gone(inside, name)]
        return sorted(names)

    def namespace_exists(self, namespace: Identifier) -> bool:
        """Whether the namespace exists.

        >>> catalog.namespace_exists("db"), catalog.namespace_exists("archive")
        (True, False)
        """
        check_namespace(namespace)
        return self.iceberg.namespace_exists(identifier_parts(namespace))

    def list_tables(self, namespace: Identifier | None = None) -> list[str]:
        """The tables of a namespace, by default of all namespaces, as sorted identifiers that `load_table` takes. A
        name with a dot is in double quotes, as in `db."a.b"`.

        >>> catalog.create_namespace("archive")
        >>> catalog.list_tables("archive"), catalog.list_tables()
        ([], ['db.calendars'])
        """
        if namespace is None:
            names = self.list_namespaces(recursive=True)
            return sorted(table for name in names for table in unless_gone(self.list_tables, name))
        check_namespace(namespace)
        with self._names.typed(namespace):
            return sorted(map(identifier_text, self.iceberg.list_tables(identifier_parts(namespace))))

    def list_views(self, namespace: Identifier | None = None) -> list[str]:
        """The views of a namespace, by default of all namespaces, as sorted identifiers. Spark SQL creates and reads
        them.

        >>> catalog.list_views("db")
        []
        """
        if namespace is None:
            names = self.list_namespaces(recursive=True)
            return sorted(view for name in names for view in unless_gone(self.list_views, name))
        with self._names.typed(namespace):
            return sorted(map(identifier_text, self.views.list(identifier_parts(namespace))))

    def drop_view(self, identifier: Identifier) -> None:
        """Drop a view. Raises ViewNotFoundError with the nearest name.

        >>> catalog.drop_view("db.opening_days")
        Traceback (most recent call last):
        tableformat.errors.ViewNotFoundError: no view 'db.opening_days'.
        """
        check_name(identifier)
        if not self.views.drop(identifier_parts(identifier)):
            near = nearest_hint(dotted(identifier), self.list_views(identifier_parts(identifier)[:-1]))
            raise ViewNotFoundError(f"no view {dotted(identifier)!r}.{near}")

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether the table exists. Raises InvalidArgumentError for a name without a namespace.

        >>> catalog.table_exists("db.calendars"), catalog.table_exists("db.calendar")
        (True, False)
        """
        check_name(identifier)
        return self.iceberg.table_exists(identifier_parts(identifier))
