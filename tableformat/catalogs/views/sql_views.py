"""Views of a SQL catalog: rows in the database table of its tables, distinguished by their type.

The layout is version 1 of Iceberg's JDBC catalog, which reads and writes the same rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.io import FileIO
from pyiceberg.typedef import Identifier
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewMetadata
from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.catalogs.views.view_metadata import (
    ViewDefinition,
    new_metadata,
    parse_view,
    replaced_metadata,
    view_bytes,
)
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    MovedLakeError,
    NamespaceNotFoundError,
    UnsupportedFeatureError,
    ViewNotFoundError,
)
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.new_names import check_new_name
from tableformat.properties import may_remove_files
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.storage import delete_if_present, read_bytes, write_bytes

_VIEW: Final = "VIEW"
_METADATA_SUFFIX: Final = ".gz.metadata.json"
_METADATA_PATH: Final = "write.metadata.path"
_METADATA_CODEC: Final = "write.metadata.compression-codec"


class SqlViews:
    """A `ViewStore` over a SQL catalog."""

    def __init__(self, catalog: SqlCatalog) -> None:
        self._catalog = catalog

    def list(self, namespace: Identifier) -> list[Identifier]:
        if not self._catalog.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"no namespace {identifier_text(namespace)!r}")
        if not self._has_views:
            return []
        name = Catalog.namespace_to_string(namespace)
        found = select(IcebergTables.table_name).where(
            IcebergTables.catalog_name == self._catalog.name,
            IcebergTables.table_namespace == name,
            IcebergTables.iceberg_type == _VIEW,
        )
        with self._catalog.engine.connect() as connection:
            return sorted((*namespace, each) for each in connection.execute(found).scalars())

    def load(self, identifier: Identifier) -> View | None:
        row = self._row(identifier)
        if row is None:
            return None
        return _StoredView(identifier, self.metadata_at(row[0]), row[0])

    def metadata_at(self, location: str) -> ViewMetadata:
        """Read a metadata file. Raises CorruptFileError if it is not one of a view."""
        return parse_view(read_bytes(self._io(location), location), location)

    def create(
        self,
        identifier: Identifier,
        definition: ViewDefinition,
        properties: Mapping[str, str],
        location: str | None = None,
    ) -> View:
        check_view_properties(properties)
        self._check_new(identifier)
        root = location.rstrip("/") if location else self._new_location(identifier)
        return self._insert(identifier, new_metadata(definition, root, properties))

    def register(self, identifier: Identifier, metadata: ViewMetadata, location: str | None = None) -> View:
        """Add a view with the metadata of another catalog, by default in a new directory."""
        self._check_new(identifier)
        root = location.rstrip("/") if location else self._new_location(identifier)
        return self._insert(identifier, metadata.model_copy(update={"location": root}))

    def _insert(self, identifier: Identifier, metadata: ViewMetadata) -> View:
        file = self._write(metadata, version=0)
        row = {**self._names(identifier), "metadata_location": file, "iceberg_type": _VIEW}
        try:
            with self._catalog.engine.begin() as connection:
                connection.execute(insert(IcebergTables).values(**row))
        except IntegrityError as error:
            delete_if_present(self._io(file), file)
            raise AlreadyExistsError(
                f"{identifier_text(identifier)!r} exists already, as a table or as a view."
            ) from error
        return _StoredView(identifier, metadata, file)

    def replace(self, view: View, definition: ViewDefinition, properties: Mapping[str, str]) -> View:
        assert isinstance(view, _StoredView), "views come from the store that changes them"
        self.refuse_change(view)
        # Properties that another writer left are kept unchecked; changed properties are checked.
        before = view.metadata.properties
        check_view_properties({name: value for name, value in properties.items() if before.get(name) != value})
        return self.put(view, replaced_metadata(view.metadata, definition, properties))

    def put(self, view: View, metadata: ViewMetadata) -> View:
        """Compare-and-set of the metadata file. The file before the previous one is removed: nothing names it."""
        assert isinstance(view, _StoredView), "views come from the store that changes them"
        identifier, file = view.name(), self._write(metadata, version=_version_of(view.file) + 1)
        before = self._row(identifier)
        swap = (
            update(IcebergTables)
            .where(*self._is(identifier), IcebergTables.metadata_location == view.file)
            .values(metadata_location=file, previous_metadata_location=view.file)
        )
        with self._catalog.engine.begin() as connection:
            swapped = connection.execute(swap).rowcount
        if swapped < 1:
            delete_if_present(self._io(file), file)
            raise CommitConflictError(
                f"view {identifier_text(identifier)} was changed by another writer. Nothing was changed. Run the "
                "statement again."
            )
        if before is not None and before[1] is not None:
            self._remove(before[1])
        return _StoredView(identifier, metadata, file)

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        self._check_new(to)
        names = self._names(to)
        renamed = update(IcebergTables).where(*self._is(identifier))
        try:
            with self._catalog.engine.begin() as connection:
                count = connection.execute(
                    renamed.values(table_namespace=names["table_namespace"], table_name=names["table_name"])
                ).rowcount
        except IntegrityError as error:
            raise AlreadyExistsError(f"{identifier_text(to)!r} exists already, as a table or as a view.") from error
        if count < 1:
            raise ViewNotFoundError(f"no view {identifier_text(identifier)!r}.")

    def drop(self, identifier: Identifier) -> bool:
        """Drop the view and remove its metadata files. They stay if its property `gc.enabled` is false, or if they
        cannot be read."""
        row = self._row(identifier)
        if row is None:
            return False
        self._refuse_read_only()
        removes_files = self._may_remove_files(row[0])
        with self._catalog.engine.begin() as connection:
            dropped = connection.execute(delete(IcebergTables).where(*self._is(identifier))).rowcount > 0
        for file in row:
            if dropped and removes_files and file is not None:
                self._remove(file)
        return dropped

    def _may_remove_files(self, location: str) -> bool:
        try:
            return may_remove_files(self.metadata_at(location).properties)
        except (CorruptFileError, OSError):
            return False

    def refuse_change(self, view: View) -> None:
        """LK-4, LK-5: the same as for tables."""
        self._refuse_read_only()
        if isinstance(self._catalog, EmbeddedCatalog) and isinstance(view, _StoredView):
            place = self._catalog.place
            if isinstance(self._io(view.file), RelocatedFileIO) or place.is_foreign(view.metadata.location):
                raise MovedLakeError(
                    identifier_text(view.name()), location=view.metadata.location, lake=place.root or ""
                )

    def file_of(self, view: View) -> str:
        """The location of the view's metadata file."""
        assert isinstance(view, _StoredView), "views come from the store that changes them"
        return view.file

    def io_of(self, view: View) -> FileIO:
        """The FileIO for the view's metadata file."""
        assert isinstance(view, _StoredView), "views come from the store that changes them"
        return self._io(view.file)

    @property
    def _has_views(self) -> bool:
        return bool(self._catalog._schema_version == "v1")

    def _check_new(self, identifier: Identifier) -> None:
        if not self._has_views:
            raise UnsupportedFeatureError(
                f"catalog {self._catalog.name!r} has a database with an older layout, which does not support views: "
                "its table iceberg_tables lacks the column iceberg_type, VARCHAR(5). Add the column, and open the "
                "catalog again."
            )
        self._refuse_read_only()
        check_new_name(identifier, "view")
        if not self._catalog.namespace_exists(identifier[:-1]):
            raise NamespaceNotFoundError(
                f"no namespace {identifier_text(identifier[:-1])!r}. Create it with create_namespace()."
            )

    def _refuse_read_only(self) -> None:
        if isinstance(self._catalog, EmbeddedCatalog):
            self._catalog.refuse_read_only()

    def _new_location(self, identifier: Identifier) -> str:
        """A directory that no table can have, even after renames, so that it is never searched for a table's orphan
        files."""
        namespace = Catalog.namespace_to_string(identifier[:-1])
        table_like = self._catalog._resolve_table_location(None, namespace, identifier[-1])
        return f"{table_like.rpartition('/')[0]}/view-{uuid.uuid4()}"

    def _write(self, metadata: ViewMetadata, *, version: int) -> str:
        file = f"{metadata.location}/metadata/{version:05d}-{uuid.uuid4()}{_METADATA_SUFFIX}"
        write_bytes(self._io(file), file, view_bytes(metadata))
        return file

    def _remove(self, file: str) -> None:
        """LK-4: files of another lake, named in a copied lake, are not removed."""
        io = self._io(file)
        is_foreign = isinstance(self._catalog, EmbeddedCatalog) and self._catalog.place.is_foreign(file)
        if not isinstance(io, RelocatedFileIO) and not is_foreign:
            delete_if_present(io, file)

    def _io(self, location: str) -> FileIO:
        if isinstance(self._catalog, EmbeddedCatalog):
            return self._catalog.file_io_of(location)
        return self._catalog._load_file_io(location=location)

    def _row(self, identifier: Identifier) -> tuple[str, str | None] | None:
        """The current metadata file and the previous one."""
        if not self._has_views:
            return None
        found = select(IcebergTables.metadata_location, IcebergTables.previous_metadata_location).where(
            *self._is(identifier)
        )
        with self._catalog.engine.connect() as connection:
            row = connection.execute(found).first()
        return None if row is None or row[0] is None else (row[0], row[1])

    def _is(self, identifier: Identifier) -> tuple[ColumnElement[bool], ...]:
        names = self._names(identifier)
        return (
            *(getattr(IcebergTables, column) == value for column, value in names.items()),
            IcebergTables.iceberg_type == _VIEW,
        )

    def _names(self, identifier: Identifier) -> dict[str, Any]:
        return {
            "catalog_name": self._catalog.name,
            "table_namespace": Catalog.namespace_to_string(identifier[:-1]),
            "table_name": identifier[-1],
        }


class _StoredView(View):
    """A view with the metadata file that it was read from."""

    def __init__(self, identifier: Identifier, metadata: ViewMetadata, file: str) -> None:
        super().__init__(identifier, metadata)
        self.file = file


def _version_of(file: str) -> int:
    """The number at the start of the metadata file's name; -1 for a name without one."""
    number = file.rsplit("/", 1)[-1].partition("-")[0]
    return int(number) if number.isdecimal() else -1


def check_view_properties(properties: Mapping[str, str]) -> None:
    """Raise UnsupportedFeatureError for another location or codec of the metadata: only one of each is supported."""
    if _METADATA_PATH in properties or properties.get(_METADATA_CODEC, "gzip").lower() != "gzip":
        raise UnsupportedFeatureError(
            f"the metadata of a view is compressed with gzip and stored at its location. Remove {_METADATA_PATH!r} "
            f"and {_METADATA_CODEC!r}, or set a location."
        )
