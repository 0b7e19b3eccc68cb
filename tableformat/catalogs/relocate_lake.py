"""Relocates a lake: updates the locations in its metadata after a move or copy, or copies it to another location.

Tables are relocated one by one. A table is done when its row in the catalog has the new location, so a repeated call
continues an interrupted one with the remaining tables (LK-7).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyiceberg.catalog import LOCATION, Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Identifier
from pyiceberg.view import View

from tableformat.catalogs.backends import open_backend
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.catalogs.table_locations import Swap
from tableformat.catalogs.views.sql_views import SqlViews
from tableformat.catalogs.views.view_store import views_of
from tableformat.errors import AlreadyExistsError, InvalidArgumentError, UnsupportedFeatureError
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.new_names import directory_of
from tableformat.relocation.delete_files import put_bytes
from tableformat.relocation.known_files import KnownFiles
from tableformat.relocation.naming import Naming
from tableformat.relocation.relocate_table import RelocatedTable, TableRelocation
from tableformat.storage.file_uris import absolute_path, is_file_uri
from tableformat.storage.lake_file import CATALOG_FILE
from tableformat.storage.location import is_below, local_path, one_spelling
from tableformat.storage.relocated_io import RelocatedFileIO

KEEP: Final = "keep"
FORGET: Final = "forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocateResult:
    """The relocated tables; with `dry_run`, the tables that would be relocated."""

    target: str
    """The directory or prefix of the tables afterwards."""
    tables: tuple[RelocatedTable, ...] = ()
    unchanged_tables: tuple[str, ...] = ()
    """Tables that existed there already, in the same state."""
    forgotten_tables: tuple[str, ...] = ()
    """Tables outside of the lake, whose names were removed from this catalog."""
    duration_seconds: float = 0.0
    dry_run: bool = False


@dataclass(slots=True)
class _Found:
    tables: list[RelocatedTable] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)


def relocate_here(
    catalog: Catalog, *, outside: str | None = None, dry_run: bool = False, progress: Progress | None = None
) -> RelocateResult:
    """LK-6, LK-8: rewrite the metadata of a moved or copied lake for its current location, in new files next to the
    old.

    `outside` handles tables outside of the lake. "keep" is for a lake that was moved, if nobody else writes to these
    tables; "forget" removes their names. Raises InvalidArgumentError if such tables exist and `outside` is not given,
    UnsupportedFeatureError for a catalog that is not a lake, ReadOnlyLakeError for a lake that is not writable.
    """
    started = time.perf_counter()
    if not isinstance(catalog, EmbeddedCatalog) or catalog.place.root is None:
        raise UnsupportedFeatureError(
            "only a lake, which is a directory or prefix with a SQLite catalog, can be relocated in place. Use "
            "relocate(to=...) to copy the tables of any catalog to a lake."
        )
    if not dry_run:
        catalog.refuse_read_only()
    tables = [catalog.load_table(name) for name in table_names(catalog)]
    elsewhere = [table for table in tables if _is_foreign(catalog, table)]
    _check_outside(outside, elsewhere)
    found = _Found(forgotten=[_name(table) for table in elsewhere] if outside == FORGET else [])
    for table in tables:
        if not isinstance(table.io, RelocatedFileIO):
            if table not in elsewhere or outside == KEEP:
                found.unchanged.append(_name(table))
            continue
        naming = _naming_here(table, table.io, catalog.place.root)
        relocation = TableRelocation(
            table.io, table.io.inner, naming, KnownFiles(), dry_run=dry_run, progress=progress or silent
        )
        result = relocation.run(_name(table), table.metadata_location)
        if not dry_run:
            catalog.point_to([Swap(table.name(), table.metadata_location, result.metadata_location)])
        found.tables.append(result)
    if not dry_run:
        for table in elsewhere if outside == FORGET else ():
            catalog.drop_table(table.name())
        _relocate_views(catalog)
        _rename_namespaces(catalog, catalog.place.rename)
        catalog.settle()
    return _result(catalog.place.root, found, started, dry_run=dry_run)


def relocate_to(
    source: Catalog,
    to: str,
    options: Mapping[str, str],
    *,
    tables: Collection[Identifier] = (),
    replace: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RelocateResult:
    """LK-6, LK-7: copy tables (by default all) to the lake at `to`, with every file that their retained snapshots name.
    The lake is created if it does not exist.

    A table that exists there in the same state is skipped. One in another state raises AlreadyExistsError; with
    `replace` it is updated to the state of the source, and only missing files are copied.
    """
    started = time.perf_counter()
    root, target = _open_target(to, options, dry_run=dry_run)
    own_root = source.properties.get("warehouse")
    if own_root is not None and one_spelling(own_root).rstrip("/") == one_spelling(root).rstrip("/"):
        raise InvalidArgumentError(
            f"the lake is already at {root}; call relocate() without a location to rewrite its metadata."
        )
    io = load_file_io({**source.properties, **options}, root) if target is None else target.file_io_at(root)
    found = _Found()
    names = [*tables] or table_names(source)
    if target is not None and not dry_run:
        _copy_namespaces(source, target, {name[:-1] for name in names})
    for name in names:
        table = source.load_table(name)
        naming = _naming_to(source, table, root)
        place = naming.metadata_file(table.metadata_location)
        there = _table_there(target, name)
        if there is not None and there.metadata_location == place:
            found.unchanged.append(_name(table))
            continue
        known = KnownFiles() if there is None else _known(table, there, replace=replace)
        relocation = TableRelocation(table.io, io, naming, known, dry_run=dry_run, progress=progress or silent)
        found.tables.append(relocation.run(_name(table), table.metadata_location))
        if target is not None and not dry_run:
            if there is None:
                target.register_table(name, place)
            else:
                target.point_to([Swap(name, there.metadata_location, place)])
    if target is not None and not dry_run:
        if not tables:
            _copy_views(source, target, replace=replace)
        _bring_catalog_file(target, io, root)
    return _result(root, found, started, dry_run=dry_run)


def table_names(catalog: Catalog) -> list[Identifier]:
    """All tables of all namespaces, sorted."""
    return sorted({name for namespace in _namespaces(catalog) for name in catalog.list_tables(namespace)})


def _namespaces(catalog: Catalog, parent: Identifier = ()) -> Iterator[Identifier]:
    for namespace in catalog.list_namespaces(parent):
        yield namespace
        yield from _namespaces(catalog, namespace)


def _views(catalog: Catalog) -> Iterator[View]:
    store = views_of(catalog)
    for namespace in _namespaces(catalog):
        for name in store.list(namespace):
            view = store.load(name)
            if view is not None:
                yield view


def _relocate_views(catalog: EmbeddedCatalog) -> None:
    """LK-6: rewrite the metadata of each view for its current location. Views have no other files."""
    store = SqlViews(catalog)
    for view in _views(catalog):
        io = store.io_of(view)
        if isinstance(io, RelocatedFileIO):
            store.put(view, view.metadata.model_copy(update={"location": io.actual(view.metadata.location)}))


def _copy_views(source: Catalog, target: EmbeddedCatalog, *, replace: bool) -> None:
    """LK-6: if all tables are copied, copy the views too, to directories of their own.

    An existing view stays, or with `replace` becomes the source's. The copies find their tables because the table names
    are the same.
    """
    store = SqlViews(target)
    views = list(_views(source))
    _copy_namespaces(source, target, {view.name()[:-1] for view in views})
    for view in views:
        there = store.load(view.name())
        if there is None:
            store.register(view.name(), view.metadata)
        elif replace and there.metadata.versions != view.metadata.versions:
            store.put(there, view.metadata.model_copy(update={"location": there.metadata.location}))


def _is_foreign(catalog: EmbeddedCatalog, table: IcebergTable) -> bool:
    return not isinstance(table.io, RelocatedFileIO) and catalog.place.is_foreign(table.metadata.location)


def _check_outside(outside: str | None, elsewhere: Collection[IcebergTable]) -> None:
    if outside not in (None, KEEP, FORGET):
        raise InvalidArgumentError(f"outside must be {KEEP!r} or {FORGET!r}, not {outside!r}.")
    if elsewhere and outside is None:
        raise InvalidArgumentError(
            f"{', '.join(map(_name, elsewhere))}: outside of the lake, and also listed by the lake from which this "
            f"one was copied. Nothing was changed. Pass outside={KEEP!r} if that lake no longer exists, or "
            f"outside={FORGET!r} to drop the names from this catalog."
        )


def _naming_here(table: IcebergTable, io: RelocatedFileIO, root: str) -> Naming:
    naming = Naming(former=io.stated_directory, target=root, table_target="", is_copy=False)
    inside = naming.directory(table.metadata.location)
    return Naming(former=io.stated_directory, target=root, table_target=inside or _place_of(table, root), is_copy=False)


def _naming_to(source: Catalog, table: IcebergTable, root: str) -> Naming:
    """Target names for a table. A table outside of its lake gets a directory of its own."""
    former = source.properties.get("warehouse", "") if isinstance(source, EmbeddedCatalog) else ""
    if isinstance(table.io, RelocatedFileIO):
        former = table.io.stated_directory
    location = table.metadata.location.rstrip("/")
    if former and is_below(location, former):
        inside = one_spelling(location).removeprefix(f"{one_spelling(former).rstrip('/')}/")
        return Naming(former=former, target=root, table_target=f"{root}/{inside}", is_copy=True)
    place = _place_of(table, root)
    return Naming(former=location, target=place, table_target=place, is_copy=True)


def _place_of(table: IcebergTable, root: str) -> str:
    """A directory that no other table has."""
    *namespace, name = table.name()
    return f"{root}/{directory_of('.'.join(namespace))}/{directory_of(name)}-{table.metadata.table_uuid}"


def _open_target(to: str, options: Mapping[str, str], *, dry_run: bool) -> tuple[str, EmbeddedCatalog | None]:
    """The root of the lake, and its catalog; the catalog is None for a dry run if the lake does not exist yet."""
    is_directory = is_file_uri(to) or local_path(to) is not None
    path = absolute_path(to) if is_directory else ""
    stated = options.get("catalog_file")
    file = absolute_path(stated) if stated else (f"{path}/{CATALOG_FILE}" if is_directory else "")
    if dry_run and file and not os.path.exists(file):
        return (f"file://{Path(path).as_posix()}" if is_directory else to.rstrip("/")), None
    backend = open_backend(path if is_directory else to, **options)
    if not isinstance(backend, EmbeddedCatalog) or backend.place.root is None:
        raise InvalidArgumentError(f"{to} is not a lake: relocate to a directory, or to a prefix of an object store.")
    backend.refuse_read_only()
    return backend.place.root.rstrip("/"), backend


def _copy_namespaces(source: Catalog, target: EmbeddedCatalog, namespaces: Collection[Identifier]) -> None:
    """Copy the namespaces with their properties, except the default location of their tables."""
    for namespace in sorted(namespaces):
        properties = dict(source.load_namespace_properties(namespace))
        properties.pop(LOCATION, None)
        try:
            target.create_namespace(namespace, properties)
        except NamespaceAlreadyExistsError:
            continue


def _rename_namespaces(catalog: EmbeddedCatalog, rename: Callable[[str], str | None]) -> None:
    for namespace in _namespaces(catalog):
        location = catalog.load_namespace_properties(namespace).get(LOCATION)
        renamed = None if location is None else rename(location)
        if renamed is not None:
            catalog.update_namespace_properties(namespace, updates={LOCATION: renamed})


def _table_there(target: EmbeddedCatalog | None, name: Identifier) -> IcebergTable | None:
    try:
        return None if target is None else target.load_table(name)
    except NoSuchTableError:
        return None


def _known(table: IcebergTable, there: IcebergTable, *, replace: bool) -> KnownFiles:
    if there.metadata.table_uuid != table.metadata.table_uuid:
        raise AlreadyExistsError(
            f"{_name(table)} at {there.metadata.location} is another table. It was not changed. Rename it, or "
            "relocate to another location."
        )
    if not replace:
        raise AlreadyExistsError(
            f"{_name(table)} already exists at {there.metadata.location}, in another state: either it or the source "
            "was written to since the copy. It was not changed. With replace, it gets the state of the source, and "
            "rows written only there are no longer visible."
        )
    return KnownFiles.of(there.metadata, there.metadata_location, there.io)


def _bring_catalog_file(target: EmbeddedCatalog, io: FileIO, root: str) -> None:
    """LK-7: put a copy of the SQLite file next to the tables in an object store, in case this machine is lost."""
    file = target.sqlite_file
    if local_path(root) is not None or file is None:
        return
    with tempfile.TemporaryDirectory(prefix="tableformat-") as directory:
        copy = f"{directory}/{CATALOG_FILE}"
        address = f"{Path(file).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(copy)) as connection:
            source.backup(connection)
        put_bytes(io, f"{root}/{CATALOG_FILE}", Path(copy).read_bytes())


def _name(table: IcebergTable) -> str:
    return identifier_text(table.name())


def _result(root: str, found: _Found, started: float, *, dry_run: bool) -> RelocateResult:
    return RelocateResult(
        target=root,
        tables=tuple(found.tables),
        unchanged_tables=tuple(found.unchanged),
        forgotten_tables=tuple(found.forgotten),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )
