"""Namespaces: list, create, load, change properties, drop."""

from __future__ import annotations

from typing import Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.typedef import Identifier
from starlette.responses import Response

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.new_names import check_new_name
from tableformat.server.answers import json_answer, nothing, refusal
from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest, namespace_of, page_of
from tableformat.server.routes.route import Route


def _list(server: ServerContext, request: ApiRequest) -> Response:
    parent = namespace_of(request.query["parent"]) if request.query.get("parent") else ()
    if parent:
        check_exists(server, parent)
    names = sorted(server.catalog.iceberg.list_namespaces(parent))
    page, token = page_of(names, request.query)
    return json_answer({"namespaces": [list(name) for name in page], "next-page-token": token})


def _create(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    namespace = namespace_of("\x1f".join(map(str, body["namespace"])))
    properties = {str(name): str(value) for name, value in (body.get("properties") or {}).items()}
    check_new_name(namespace, "namespace")
    _refuse_dots(server, namespace)
    if server.catalog.iceberg.namespace_exists(namespace):
        raise NamespaceAlreadyExistsError(f"Namespace already exists: {'.'.join(namespace)}")
    server.catalog.iceberg.create_namespace(namespace, properties)
    return json_answer({"namespace": list(namespace), "properties": properties})


def _load(server: ServerContext, request: ApiRequest) -> Response:
    check_exists(server, request.namespace)
    properties = server.catalog.iceberg.load_namespace_properties(request.namespace)
    shown = {name: value for name, value in properties.items() if name != "exists"}
    return json_answer({"namespace": list(request.namespace), "properties": shown})


def _exists(server: ServerContext, request: ApiRequest) -> Response:
    return nothing(204 if server.catalog.iceberg.namespace_exists(request.namespace) else 404)


def _update(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    removals, updates = set(body.get("removals") or ()), dict(body.get("updates") or {})
    if both := removals & updates.keys():
        message = f"properties cannot be set and removed at once: {', '.join(sorted(both))}"
        return refusal(422, "UnprocessableEntityException", message)
    check_exists(server, request.namespace)
    summary = server.catalog.iceberg.update_namespace_properties(request.namespace, removals, updates)
    return json_answer({"updated": summary.updated, "removed": summary.removed, "missing": summary.missing})


def _drop(server: ServerContext, request: ApiRequest) -> Response:
    namespace, catalog = request.namespace, server.catalog
    check_exists(server, namespace)
    if catalog.iceberg.list_namespaces(namespace) or catalog.views.list(namespace):
        raise NamespaceNotEmptyError(f"Namespace {'.'.join(namespace)} is not empty.")
    catalog.iceberg.drop_namespace(namespace)
    return nothing()


def _refuse_dots(server: ServerContext, namespace: Identifier) -> None:
    """SQL catalogs store the levels of a namespace joined by dots, so that a level with a dot would be two levels."""
    if isinstance(server.catalog.iceberg, SqlCatalog) and any("." in level for level in namespace):
        raise InvalidArgumentError(
            f"a level of a namespace in this catalog cannot have a dot: {'.'.join(namespace)!r:.200}. Send the levels "
            "one by one."
        )


def check_exists(server: ServerContext, namespace: Identifier) -> None:
    """Raise NoSuchNamespaceError if the namespace does not exist."""
    if not server.catalog.iceberg.namespace_exists(namespace):
        raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(namespace)}")


ROUTES: Final = (
    Route("GET", "namespaces", _list),
    Route("POST", "namespaces", _create, changes=True),
    Route("GET", "namespaces/{namespace}", _load),
    Route("HEAD", "namespaces/{namespace}", _exists),
    Route("POST", "namespaces/{namespace}/properties", _update, changes=True),
    Route("DELETE", "namespaces/{namespace}", _drop, changes=True),
)
