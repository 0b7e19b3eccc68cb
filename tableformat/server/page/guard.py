"""Refuses requests that a web page of somebody else makes through a browser, for the API as well as for the page.

A server on loopback without a token trusts everyone on the machine. A browser on that machine also runs the pages of
strangers. Such a page can send requests here, and with DNS rebinding it can read the answers.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tableformat.server.answers import refusal
from tableformat.server.context import ServerContext

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_OWN_SITE: Final = frozenset({"same-origin", "none"})


class BrowserGuard:
    """An ASGI application that refuses such requests and passes all others on."""

    def __init__(self, app: ASGIApp, server: ServerContext) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            reason = self._reason_to_refuse(request)
            if reason:
                await _refused(request, reason)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _reason_to_refuse(self, request: Request) -> str:
        """Why the request is refused; empty if it is not."""
        host = host_of(request)
        if self._server.access.is_open and _is_on_loopback(request) and not is_local_name(host, self._server.host):
            return (
                f"the name {host!r:.200} is not a name of this machine. Use localhost, or give the server a token "
                "(--token-file), and it answers under every name."
            )
        if request.method not in _SAFE_METHODS and not _is_from_own_page(request):
            return "the request comes from a page of another site."
        return ""


def host_of(request: Request) -> str:
    """The host name of the request's `Host` header, without the port; empty if the header is missing or invalid."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def is_local_name(host: str, given: str) -> bool:
    """Whether a browser may reach a server on loopback under this name: `localhost`, an address, or the `--host` of the
    server. DNS rebinding needs another name."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or name == given.lower():
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_on_loopback(request: Request) -> bool:
    """Whether the connection was accepted on a loopback address."""
    server = request.scope.get("server")
    try:
        return server is not None and ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return False


def _is_from_own_page(request: Request) -> bool:
    """Whether the request comes from a page of this server, or from a client that is not a browser.

    Browsers send `Sec-Fetch-Site` to secure addresses and to this machine, and `Origin` with every change.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN_SITE
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()


def _refused(request: Request, reason: str) -> Response:
    if request.scope["path"].startswith("/v1/"):
        return refusal(403, "ForbiddenException", reason)
    return PlainTextResponse(f"Refused: {reason}\n", 403)
