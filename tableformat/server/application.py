"""The ASGI application: finds the route of a request, checks access and limits, and answers errors.

Routes run in threads, because catalogs and files are read synchronously.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tableformat.server.answers import RefusedRequestError, error_answer, json_answer
from tableformat.server.context import ServerContext
from tableformat.server.page.guard import BrowserGuard
from tableformat.server.page.routes import page_routes
from tableformat.server.requests import ApiRequest
from tableformat.server.routes import namespaces, plans, tables, transactions, views
from tableformat.server.routes.route import Route

logger = logging.getLogger(__name__)

ROUTES: Final[tuple[Route, ...]] = (
    *namespaces.ROUTES,
    *tables.ROUTES,
    *views.ROUTES,
    *transactions.ROUTES,
    *plans.ROUTES,
)
_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def application(server: ServerContext) -> ASGIApp:
    """The application of one catalog."""
    routes = [
        HttpRoute("/v1/config", _guarded(partial(_config, server)), methods=["GET"]),
        HttpRoute("/v1/oauth/tokens", _guarded(partial(_token, server)), methods=["POST"]),
        *(
            HttpRoute(f"/v1/{each.path}", _guarded(partial(_answer, server, each)), methods=[each.method])
            for each in ROUTES
        ),
    ]
    # HEAD is a method of its own here: Starlette would answer it with the route of GET.
    for route in routes:
        route.methods = {"HEAD"} if route.methods == {"HEAD"} else (route.methods or set()) - {"HEAD"}
    routes += page_routes(server)
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})
    return BrowserGuard(_EncodedPath(app), server)


class _EncodedPath:
    """Matches routes on the encoded path: a name with an encoded slash is one part."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")}
        await self._app(scope, receive, send)


def _guarded(endpoint: _Endpoint) -> _Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return error_answer(RefusedRequestError(400, "BadRequestException", "the client disconnected"))
        except Exception as error:  # noqa: BLE001 every error becomes an answer; unexpected ones are logged
            return error_answer(error)

    return answer


async def _answer(server: ServerContext, route: Route, request: Request) -> Response:
    server.access.check(request.headers.get("authorization"))
    if route.changes and server.options.read_only:
        raise RefusedRequestError(403, "ForbiddenException", "the server is read-only (--read-only)")
    call = ApiRequest(
        path={name: str(value) for name, value in request.path_params.items()},
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=await _body(server, request),
    )
    return await run_in_threadpool(route.handler, server, call)


async def _config(server: ServerContext, request: Request) -> Response:
    """The configuration of clients. It tells which routes exist, so it needs access as well."""
    server.access.check(request.headers.get("authorization"))
    endpoints = [route.endpoint for route in ROUTES if not (route.changes and server.options.read_only)]
    return json_answer({"defaults": dict(server.options.client_config), "overrides": {}, "endpoints": endpoints})


async def _token(server: ServerContext, request: Request) -> Response:
    return json_answer(server.access.issue(await _body(server, request)))


async def _body(server: ServerContext, request: Request) -> bytes:
    """The body of a request, within the limits of size and time."""
    limit = server.options.max_body_bytes
    try:
        async with asyncio.timeout(server.options.body_timeout_seconds):
            parts: list[bytes] = []
            size = 0
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise RefusedRequestError(413, "BadRequestException", f"the request is larger than {limit} bytes")
                parts.append(part)
    except TimeoutError as error:
        raise RefusedRequestError(408, "BadRequestException", "the request was not sent in time") from error
    return b"".join(parts)


async def _not_found(request: Request, error: Exception) -> Response:
    del error
    message = f"no such endpoint: {request.method} {request.url.path}"
    return error_answer(RefusedRequestError(404, "NotFoundException", message))
