"""Sessions of the page: a signed cookie, and the token that binds a form to it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tableformat.server.access import Access

LIFETIME_SECONDS: Final = 3_600
"""A session ends this long after its last request."""
_LONGEST_SECONDS: Final = 12 * 3_600
"""A session ends this long after the login."""
_RENEWED_SECONDS: Final = 300
"""A cookie that is older gets a new time."""


@dataclass(frozen=True, slots=True)
class Session:
    """The session of one browser."""

    begun_at: int
    """Seconds since 1970."""
    used_at: int
    """When the cookie was signed, in seconds since 1970."""
    id: str
    form_token: str
    """A form that changes something has to contain it."""


class Sessions:
    """Signs and checks sessions. The server stores none: a cookie is valid on every server with the same secret."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._key = access.key_for("page-session")
        self._form_key = access.key_for("page-form")

    def begin(self) -> Session:
        """A new session."""
        now = int(time.time())
        return self._session(now, now, secrets.token_hex(16))

    def of(self, request: Request) -> Session | None:
        """The session of the request's cookie. Without a secret, a request without a session begins one. None if the
        request needs a login."""
        session = self._parsed(request.cookies.get(_cookie_name(request), ""))
        return self.begin() if session is None and self._access.is_open else session

    def accepts_form(self, session: Session, token: str) -> bool:
        """Whether a form was made for the session."""
        return hmac.compare_digest(session.form_token.encode(), token.encode("utf-8", "replace"))

    def remember(self, request: Request, response: Response, session: Session, *, is_new: bool = False) -> None:
        """Set the cookie, if the browser does not have it or its time is old."""
        now = int(time.time())
        has_cookie = not is_new and self._parsed(request.cookies.get(_cookie_name(request), "")) is not None
        if has_cookie and now - session.used_at < _RENEWED_SECONDS:
            return
        response.set_cookie(
            _cookie_name(request),
            self._text(session.begun_at, now, session.id),
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def end(self, request: Request, response: Response) -> None:
        """Remove the cookie."""
        response.delete_cookie(_cookie_name(request), path="/", httponly=True, samesite="strict")

    def _session(self, begun_at: int, used_at: int, id: str) -> Session:
        form_token = hmac.new(self._form_key, id.encode(), hashlib.sha256).hexdigest()
        return Session(begun_at, used_at, id, form_token)

    def _parsed(self, text: str) -> Session | None:
        values, _, signature = text.rpartition(".")
        expected = hmac.new(self._key, values.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode()):
            return None
        begun_text, used_text, id = values.split(".")
        begun_at, used_at, now = int(begun_text), int(used_text), time.time()
        is_over = now > used_at + LIFETIME_SECONDS or now > begun_at + _LONGEST_SECONDS
        return None if is_over else self._session(begun_at, used_at, id)

    def _text(self, begun_at: int, used_at: int, id: str) -> str:
        values = f"{begun_at}.{used_at}.{id}"
        return f"{values}.{hmac.new(self._key, values.encode(), hashlib.sha256).hexdigest()}"


def _cookie_name(request: Request) -> str:
    """Browsers send a cookie to every port of a host, so that servers on one machine need names of their own."""
    address = request.scope.get("server")
    return f"tableformat-{address[1] if address is not None else request.scope['scheme']}"
