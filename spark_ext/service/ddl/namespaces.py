"""Namespaces: CREATE, ALTER, DROP, SHOW, DESCRIBE."""

from __future__ import annotations

from typing import Any, Final

from pyiceberg.exceptions import NoSuchNamespaceError

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from tableformat.errors import InvalidArgumentError, NamespaceNotFoundError, nearest_hint

_MARKER: Final = "exists"
"""A property that the SQL catalog adds to every namespace."""


@method("list_namespaces")
def list_namespaces(session: Session, request: Request) -> list[list[str]]:
    """Namespaces directly below the given one."""
    parent = request.namespace
    if parent:
        _check_exists(session, parent)
    return sorted([list(name) for name in session.catalog.iceberg.list_namespaces(parent)])


@method("load_namespace")
def load_namespace(session: Session, request: Request) -> dict[str, str]:
    _check_exists(session, request.namespace)
    properties = session.catalog.iceberg.load_namespace_properties(request.namespace)
    return {name: value for name, value in properties.items() if name != _MARKER}


@method("create_namespace")
def create_namespace(session: Session, request: Request) -> None:
    session.catalog.create_namespace(request.namespace, properties=request.arguments["properties"])


@method("alter_namespace")
def alter_namespace(session: Session, request: Request) -> None:
    """Set properties, or remove those whose value is null."""
    _check_exists(session, request.namespace)
    changes: list[dict[str, Any]] = request.arguments["changes"]
    session.catalog.iceberg.update_namespace_properties(
        request.namespace,
        removals={change["property"] for change in changes if change["value"] is None},
        updates={change["property"]: change["value"] for change in changes if change["value"] is not None},
    )


@method("drop_namespace")
def drop_namespace(session: Session, request: Request) -> bool:
    """Drop a namespace. With `cascade`, its tables and views are dropped from the catalog first. Files are kept."""
    _check_exists(session, request.namespace)
    if request.arguments["cascade"]:
        _drop_content(session, request.namespace)
    session.catalog.drop_namespace(request.namespace)
    return True


def _drop_content(session: Session, namespace: tuple[str, ...]) -> None:
    for table in session.catalog.iceberg.list_tables(namespace):
        session.catalog.drop_table(table)
    for view in session.catalog.views.list(namespace):
        session.catalog.views.drop(view)
    for child in session.catalog.iceberg.list_namespaces(namespace):
        _drop_content(session, tuple(child))
        session.catalog.drop_namespace(tuple(child))


def _check_exists(session: Session, namespace: tuple[str, ...]) -> None:
    if not namespace:
        raise InvalidArgumentError("a namespace is required: every table of a catalog is in a namespace.")
    try:
        found = session.catalog.iceberg.namespace_exists(namespace)
    except NoSuchNamespaceError:
        found = False
    if not found:
        name = ".".join(namespace)
        raise NamespaceNotFoundError(f"no namespace {name!r}.{nearest_hint(name, session.catalog.list_namespaces())}")
