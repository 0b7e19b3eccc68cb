"""Views: list, create, load, replace, rename, drop. Lakes and SQL catalogs have them."""

from __future__ import annotations

import json
from typing import Any, Final

from pyiceberg.exceptions import CommitFailedException, NoSuchViewError
from pyiceberg.schema import Schema
from pyiceberg.typedef import Identifier
from pyiceberg.view import View
from starlette.responses import Response

from tableformat.catalogs.views.sql_views import SqlViews, check_view_properties
from tableformat.errors import CommitConflictError, UnsupportedFeatureError
from tableformat.server.answers import json_answer, nothing
from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest, identifier_of, page_of
from tableformat.server.routes.names import check_free, check_free_for
from tableformat.server.routes.namespaces import check_exists
from tableformat.server.routes.route import Route
from tableformat.server.view_updates import check_requirements, new_view, updated_view

_ATTEMPTS: Final = 4


def _list(server: ServerContext, request: ApiRequest) -> Response:
    check_exists(server, request.namespace)
    page, token = page_of(server.catalog.views.list(request.namespace), request.query)
    identifiers = [{"namespace": list(name[:-1]), "name": name[-1]} for name in page]
    return json_answer({"identifiers": identifiers, "next-page-token": token})


def _create(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    identifier = (*request.namespace, str(body["name"]))
    check_exists(server, request.namespace)
    check_free(server, identifier, "View")
    properties = {str(name): str(value) for name, value in (body.get("properties") or {}).items()}
    check_view_properties(properties)
    metadata = new_view(Schema.model_validate(body["schema"]), body["view-version"], properties)
    store = _store(server)
    return _answer(store, store.register(identifier, metadata, body.get("location")))


def _register(server: ServerContext, request: ApiRequest) -> Response:
    """Add a view by its metadata file, which is copied: the file stays as it is."""
    body, store = request.json(), _store(server)
    identifier = (*request.namespace, str(body["name"]))
    check_exists(server, request.namespace)
    check_free(server, identifier, "View")
    metadata = store.metadata_at(str(body["metadata-location"]))
    check_view_properties(metadata.properties)
    return _answer(store, store.register(identifier, metadata, metadata.location))


def _load(server: ServerContext, request: ApiRequest) -> Response:
    return _answer(_store(server), _existing(server, request.identifier("view")))


def _exists(server: ServerContext, request: ApiRequest) -> Response:
    return nothing(204 if server.catalog.views.load(request.identifier("view")) is not None else 404)


def _commit(server: ServerContext, request: ApiRequest) -> Response:
    body, store = request.json(), _store(server)
    for attempt in range(1, _ATTEMPTS + 1):
        view = _existing(server, request.identifier("view"))
        check_requirements(view.metadata, body.get("requirements") or ())
        metadata = updated_view(view.metadata, body.get("updates") or ())
        changed = metadata.properties.items() - view.metadata.properties.items()
        check_view_properties(dict(changed))
        store.refuse_change(view)
        try:
            return _answer(store, store.put(view, metadata))
        except CommitConflictError as error:
            if attempt == _ATTEMPTS:
                raise CommitFailedException(str(error)) from error
    raise AssertionError("the last attempt returns or raises")


def _rename(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    source, destination = identifier_of(body["source"]), identifier_of(body["destination"])
    check_exists(server, destination[:-1])
    _existing(server, source)
    check_free_for(server, source, destination)
    _store(server).rename(source, destination)
    return nothing()


def _drop(server: ServerContext, request: ApiRequest) -> Response:
    identifier = request.identifier("view")
    if not _store(server).drop(identifier):
        raise _missing(identifier)
    return nothing()


def _store(server: ServerContext) -> SqlViews:
    store = server.catalog.views
    if not isinstance(store, SqlViews):
        raise UnsupportedFeatureError("views of this catalog are not served. Lakes and SQL catalogs have them.")
    return store


def _existing(server: ServerContext, identifier: Identifier) -> View:
    view = server.catalog.views.load(identifier)
    if view is None:
        raise _missing(identifier)
    return view


def _missing(identifier: Identifier) -> NoSuchViewError:
    return NoSuchViewError(f"View does not exist: {'.'.join(identifier)}")


def _answer(store: SqlViews, view: View) -> Response:
    metadata: dict[str, Any] = json.loads(view.metadata.model_dump_json(by_alias=True, exclude_none=True))
    return json_answer({"metadata-location": store.file_of(view), "metadata": metadata, "config": {}})


ROUTES: Final = (
    Route("GET", "namespaces/{namespace}/views", _list),
    Route("POST", "namespaces/{namespace}/views", _create, changes=True),
    Route("POST", "namespaces/{namespace}/register-view", _register, changes=True),
    Route("GET", "namespaces/{namespace}/views/{view}", _load),
    Route("HEAD", "namespaces/{namespace}/views/{view}", _exists),
    Route("POST", "namespaces/{namespace}/views/{view}", _commit, changes=True),
    Route("DELETE", "namespaces/{namespace}/views/{view}", _drop, changes=True),
    Route("POST", "views/rename", _rename, changes=True),
)
