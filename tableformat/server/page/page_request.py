"""A request as pages see it: its session, query and form, read completely and checked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from tableformat.errors import InvalidArgumentError
from tableformat.server.answers import RefusedRequestError
from tableformat.server.page.sessions import Session

_FORM_BYTES_MAX: Final = 200_000
_FORM_FIELDS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request of a browser."""

    session: Session
    base_url: str
    """The server's address as the browser sees it, such as `http://127.0.0.1:8181`."""
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The identifier of the table. Raises InvalidArgumentError if it is missing."""
        name = self.query.get("name") or self.form.get("name")
        if not name:
            raise InvalidArgumentError("the address lacks the name of a table.")
        return name

    @property
    def page_number(self) -> int:
        """The number of the page of a long list, from 1 on."""
        text = self.query.get("page", "1")
        if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text) > 0):
            raise InvalidArgumentError(f"page must be a number from 1 on, not {text!r:.40}.")
        return int(text)


async def form_of(request: Request, timeout_seconds: float) -> dict[str, str]:
    """The fields of a URL-encoded form. Raises RefusedRequestError if it is too large, too slow or of another type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise RefusedRequestError(415, "BadRequestException", "the request is not a form")
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_seconds):
            async for part in request.stream():
                body += part
                if len(body) > _FORM_BYTES_MAX:
                    raise RefusedRequestError(413, "BadRequestException", "the form is too large")
    except TimeoutError as error:
        raise RefusedRequestError(408, "BadRequestException", "the form was not sent in time") from error
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FORM_FIELDS_MAX)
    except ValueError as error:
        raise RefusedRequestError(400, "BadRequestException", "the form cannot be read") from error
    return dict(fields)


def base_url_of(request: Request) -> str:
    """The server's address as the browser sees it."""
    return f"{request.scope['scheme']}://{request.headers.get('host', 'localhost')}"
