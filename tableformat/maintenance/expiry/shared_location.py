"""Checks that a table does not share its directory, before any file in it counts as an orphan (MT-52)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Identifier

from tableformat.errors import CorruptFileError, InvalidArgumentError
from tableformat.metadata.owned_files import METADATA_SUFFIXES, PATH_PROPERTIES, table_uuid_of
from tableformat.storage.listing import ListedFile
from tableformat.storage.location import one_spelling


def check_no_table_shares(iceberg: IcebergTable, location: str) -> None:
    """MT-52: raises InvalidArgumentError if another table of the catalog is inside the location, the location is inside
    another table, or a property of another table places its files there."""
    own = _as_directory(location)
    for name in _tables(iceberg.catalog):
        if name == iceberg.name():
            continue
        table = iceberg.catalog.load_table(name)
        other = _as_directory(table.location())
        if own.startswith(other) or other.startswith(own):
            raise InvalidArgumentError(
                f"files of {'.'.join(iceberg.name())} cannot be distinguished from files of {'.'.join(name)}: their "
                f"locations {location} and {other} overlap. Nothing was removed."
            )
        for property_name in PATH_PROPERTIES:
            stated = table.metadata.properties.get(property_name)
            if stated is not None and _as_directory(stated).startswith(own):
                raise InvalidArgumentError(
                    f"files of {'.'.join(iceberg.name())} cannot be distinguished from files of {'.'.join(name)}, "
                    f"whose property {property_name} is {stated}, in {location}. Nothing was removed."
                )


def check_no_metadata_of_others(iceberg: IcebergTable, unnamed: Iterable[ListedFile]) -> frozenset[str]:
    """MT-52: raises InvalidArgumentError for a metadata file of another table among files that are unknown to this
    table.

    Returns the locations of metadata files whose table is unknown. They have to stay.
    """
    own_directories = {
        _as_directory(iceberg.metadata_location.rpartition("/")[0]),
        _as_directory(f"{iceberg.location()}/metadata"),
    }
    unknown: set[str] = set()
    for file in unnamed:
        if not file.location.endswith(METADATA_SUFFIXES):
            continue
        uuid = _table_uuid(iceberg, file.location)
        if uuid is None:
            unknown.add(file.location)
        elif uuid != str(iceberg.metadata.table_uuid):
            raise InvalidArgumentError(
                f"{file.location} is metadata of another table ({uuid}), which may own files under "
                f"{iceberg.location()}. Nothing was removed. If that table no longer exists, remove its metadata "
                "files first."
            )
        elif _as_directory(file.location.rpartition("/")[0]) not in own_directories:
            raise InvalidArgumentError(
                f"{file.location} is a copy of metadata of this table outside its metadata directory, so files under "
                f"{iceberg.location()} may belong to the copy. Nothing was removed."
            )
    return frozenset(unknown)


def _table_uuid(iceberg: IcebergTable, location: str) -> str | None:
    try:
        return table_uuid_of(iceberg.io, location)
    except (CorruptFileError, OSError):
        # Incomplete, or removed after the listing. Its table is unknown, so it stays.
        return None


def _tables(catalog: Catalog) -> Iterator[Identifier]:
    """Every table of the catalog, in all namespaces."""
    waiting: list[Identifier] = list(catalog.list_namespaces())
    seen: set[Identifier] = set()
    while waiting:
        namespace = waiting.pop()
        if namespace in seen:
            continue
        seen.add(namespace)
        yield from catalog.list_tables(namespace)
        waiting.extend(catalog.list_namespaces(namespace))


def _as_directory(location: str) -> str:
    return one_spelling(location).rstrip("/") + "/"
