"""Access to the server: bearer tokens, and the exchange of a client secret for one (OAuth2 client credentials)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Any, Final
from urllib.parse import parse_qsl

_LIFETIME_SECONDS: Final = 3_600
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"


class NotAuthorizedError(Exception):
    """The request has no valid token."""


class OAuthRefusedError(Exception):
    """A request for a token was refused, for a reason of RFC 6749, section 5.2."""

    def __init__(self, reason: str, description: str) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description


class Access:
    """Checks requests against one secret. Issued tokens are signed with it, so they are valid on every server that has
    the secret, also after a restart."""

    def __init__(self, secret: str | None) -> None:
        """Without a secret, everyone has access."""
        self._secret = secret.strip().encode() if secret is not None else None
        self._own = secrets.token_bytes(32)

    @property
    def is_open(self) -> bool:
        """Whether everyone has access."""
        return self._secret is None

    def key_for(self, purpose: str) -> bytes:
        """A key for signatures of one purpose. With a secret, every server that has it derives the same key."""
        return hmac.new(self._secret or self._own, f"key:{purpose}".encode(), hashlib.sha256).digest()

    def check(self, authorization: str | None) -> None:
        """Raise NotAuthorizedError unless the header `Authorization` has the secret or an issued token."""
        if self._secret is None:
            return
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not self.accepts(token.strip()):
            raise NotAuthorizedError("the request has no valid bearer token")

    def is_secret(self, text: str) -> bool:
        """Whether the text is the secret itself; surrounding white space does not matter."""
        given = text.strip().encode("utf-8", "replace")
        return self._secret is not None and hmac.compare_digest(given, self._secret)

    def accepts(self, token: str) -> bool:
        """Whether the text is the secret or a token that was issued and has not expired."""
        if self._secret is None:
            return True
        if hmac.compare_digest(token.encode(), self._secret):
            return True
        expires, _, rest = token.partition(".")
        nonce, _, signature = rest.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(self._secret, expires, nonce).encode()):
            return False
        return int(expires) > time.time()

    def issue(self, form: bytes) -> dict[str, Any]:
        """Answer a form-encoded request for a token. Raises OAuthRefusedError."""
        fields = dict(parse_qsl(form.decode("utf-8", "replace")))
        match fields.get("grant_type"):
            case "client_credentials":
                given = fields.get("client_secret", "")
            case grant if grant == _EXCHANGE:
                given = fields.get("subject_token", "")
            case grant:
                raise OAuthRefusedError("unsupported_grant_type", f"grant_type {grant!r:.80} is not supported")
        if not self.accepts(given):
            raise OAuthRefusedError("invalid_client", "the client secret is wrong")
        return {
            "access_token": self._token(),
            "token_type": "bearer",
            "expires_in": _LIFETIME_SECONDS,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }

    def _token(self) -> str:
        if self._secret is None:
            return "none"
        expires, nonce = str(int(time.time()) + _LIFETIME_SECONDS), secrets.token_hex(8)
        return f"{expires}.{nonce}.{self._signature(self._secret, expires, nonce)}"

    @staticmethod
    def _signature(secret: bytes, expires: str, nonce: str) -> str:
        return hmac.new(secret, f"{expires}.{nonce}".encode(), hashlib.sha256).hexdigest()
