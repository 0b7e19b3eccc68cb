"""The table at a location: `spark.read.format("tableformat").load("/lake/db/t")`."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.typedef import Identifier

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from tableformat.catalogs.catalog import Catalog
from tableformat.errors import TableFormatError
from tableformat.storage.location import local_path


@method("table_at")
def table_at(session: Session, request: Request) -> list[str] | None:
    """SP-25: the identifier of the catalog's table at `location`; None if the catalog has no table there.

    Most tables are in a directory with their name, so the last parts of the location are tried first. Otherwise all
    tables are searched.
    """
    location = _normal(request.arguments["location"])
    parts = tuple(part for part in location.split("/") if part)
    guesses = (parts[-length:] for length in range(2, min(len(parts), 4) + 1))
    for identifier in (*guesses, *_all(session.catalog, ())):
        if _lies_at(session.catalog, identifier, location):
            return list(identifier)
    return None


def _lies_at(catalog: Catalog, identifier: Identifier, location: str) -> bool:
    try:
        return catalog.table_exists(identifier) and _normal(catalog.load_table(identifier).location) == location
    except TableFormatError:
        # A table that cannot be loaded, or an invalid name, is not the requested one.
        return False


def _all(catalog: Catalog, parent: Identifier) -> Iterator[Identifier]:
    for namespace in catalog.iceberg.list_namespaces(parent):
        yield from catalog.iceberg.list_tables(namespace)
        yield from _all(catalog, namespace)


def _normal(location: str) -> str:
    """The location in a canonical spelling: local directories have several."""
    return (local_path(location) or location).rstrip("/")
