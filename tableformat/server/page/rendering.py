"""Pages as HTML. Every value is escaped, except parts that `tableformat.markup.html` made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tableformat.markup import figures, html

SECURITY_HEADERS: Final = {
    # No script at all. `data:` is for the empty icon.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it, browsers send forms of this page with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NOT_STORED: Final = {"Cache-Control": "no-store"}


def rendered(template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """The page of a template."""
    return HTMLResponse(_environment().get_template(template).render(values), status, _NOT_STORED)


def redirection(location: str) -> Response:
    """An answer to a form: the browser loads another page of this server."""
    return RedirectResponse(location, 303, _NOT_STORED)


def trusted(part: str) -> Markup:
    """A part of a page that `tableformat.markup.html` or `tableformat.snapshot_layers.svg` made. Its values are
    escaped."""
    return Markup(part)


def address(path: str, **query: object) -> str:
    """The address of a page, with its query. Parameters that are None or empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tableformat.server.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["address"] = address
    environment.filters.update(count=figures.count, size=figures.size, seconds=figures.seconds, age=figures.age)
    return environment


def _shown(value: object) -> object:
    """A value for a page: without characters that HTML cannot represent."""
    return value if isinstance(value, Markup) else Markup(html.escaped("" if value is None else value))
