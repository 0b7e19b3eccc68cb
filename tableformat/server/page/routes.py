"""The routes of the page. Each request needs a session, and each form its token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tableformat.server.answers import RefusedRequestError, described
from tableformat.server.context import ServerContext
from tableformat.server.page import engines, job_pages, lake, query_pages, table_pages
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest, base_url_of, form_of
from tableformat.server.page.rendering import SECURITY_HEADERS, redirection, rendered
from tableformat.server.page.sessions import Session

logger = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[PageContext, PageRequest], Response]
_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_WRONG_TOKEN_SECONDS: Final = 0.5
"""A wrong token is answered after this time, so that guesses are slow."""
_STYLE_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class _Page:
    path: str
    handler: Handler
    method: str = "GET"
    needs_jobs: bool = False


_PAGES: Final = (
    _Page("/", lake.overview),
    _Page("/namespace", lake.namespace),
    _Page("/table", table_pages.overview),
    _Page("/table/schema", table_pages.schema),
    _Page("/table/history", table_pages.history),
    _Page("/table/files", table_pages.data_files),
    _Page("/table/deletes", table_pages.delete_files),
    _Page("/table/partitions", table_pages.partitions),
    _Page("/table/properties", table_pages.properties),
    _Page("/table/plan", table_pages.plan),
    _Page("/table/engines", engines.engines),
    _Page("/table/jobs", job_pages.table_jobs, needs_jobs=True),
    _Page("/jobs", job_pages.all_jobs, needs_jobs=True),
    _Page("/jobs/start", job_pages.start, "POST", needs_jobs=True),
    _Page("/jobs/cancel", job_pages.cancel, "POST", needs_jobs=True),
    _Page("/sql", query_pages.query_form),
    _Page("/sql", query_pages.run_query, "POST"),
)


def page_routes(server: ServerContext) -> list[Route]:
    """The routes of the page of one server."""
    page = PageContext.of(server)
    return [
        Route("/page.css", _guarded(_style), methods=["GET"]),
        Route("/login", _guarded(partial(_login, page)), methods=["POST"]),
        Route("/logout", _guarded(partial(_logout, page)), methods=["POST"]),
        *(Route(each.path, _guarded(partial(_answer, page, each)), methods=[each.method]) for each in _PAGES),
    ]


def _guarded(endpoint: _Endpoint) -> _Endpoint:
    """The endpoint with errors as pages, and with the headers that limit what a browser does with the answer."""

    async def answer(request: Request) -> Response:
        try:
            response = await endpoint(request)
        except ClientDisconnect:
            response = _problem(400, "the browser disconnected")
        except Exception as error:  # noqa: BLE001 every error becomes a page; unexpected ones are logged
            status, _, message = described(error)
            response = _problem(status, message)
        response.headers.update(SECURITY_HEADERS)
        return response

    return answer


async def _answer(page: PageContext, each: _Page, request: Request) -> Response:
    session = page.sessions.of(request)
    if session is None:
        return _login_page(_path_of(request) if each.method == "GET" else "/", "")
    if each.needs_jobs and not page.server.options.allow_jobs:
        raise RefusedRequestError(403, "ForbiddenException", "this server runs no jobs (--allow-jobs)")
    form = await _checked_form(page, request, session) if each.method == "POST" else {}
    query = dict(parse_qsl(request.url.query, keep_blank_values=True))
    call = PageRequest(session, base_url_of(request), each.path, query, form)
    response = await run_in_threadpool(each.handler, page, call)
    page.sessions.remember(request, response, session)
    return response


async def _login(page: PageContext, request: Request) -> Response:
    form = await form_of(request, page.server.options.body_timeout_seconds)
    after = _own_path(form.get("next", "/"))
    if page.server.access.is_open:
        return redirection(after)
    if not page.server.access.is_secret(form.get("token", "")):
        await asyncio.sleep(_WRONG_TOKEN_SECONDS)
        return _login_page(after, "This token is not valid.")
    response = redirection(after)
    page.sessions.remember(request, response, page.sessions.begin(), is_new=True)
    return response


async def _logout(page: PageContext, request: Request) -> Response:
    session = page.sessions.of(request)
    if session is not None:
        await _checked_form(page, request, session)
    response = redirection("/")
    page.sessions.end(request, response)
    return response


async def _style(request: Request) -> Response:
    del request
    style = (files("tableformat.server.page") / "page.css").read_bytes()
    return Response(style, media_type="text/css", headers={"Cache-Control": f"max-age={_STYLE_SECONDS}"})


async def _checked_form(page: PageContext, request: Request, session: Session) -> dict[str, str]:
    form = await form_of(request, page.server.options.body_timeout_seconds)
    if not page.sessions.accepts_form(session, form.pop("form_token", "")):
        raise RefusedRequestError(
            403, "ForbiddenException", "the form is not of this session. Go back, reload the page, and send it again."
        )
    return form


def _login_page(after: str, problem: str) -> Response:
    return rendered("login.html", {"lake": "", "after": after, "problem": problem}, 401)


def _problem(status: int, message: str) -> Response:
    return rendered("problem.html", {"lake": "", "status": status, "message": message}, status)


def _path_of(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path


def _own_path(path: str) -> str:
    """The path if it is one of this server, or else the first page. A login form of somebody else cannot lead away."""
    is_own = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if is_own else "/"
