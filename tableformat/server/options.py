"""The options of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tableformat.errors import InvalidArgumentError
from tableformat.properties import SERVE_DELETE_FORMAT_DEFAULT, SERVE_DELETE_FORMATS

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Limits of access, and the freshness of answers."""

    read_only: bool = False
    """Refuse every change by a client. The server still writes staged conversions."""
    token: str | None = None
    """The secret that clients send as bearer token, or as the client secret of OAuth2. None: everyone has access."""
    freshness_seconds: float = 1.0
    """The greatest age of the state that a client gets while a newer one is being converted. With 0, each load waits
    for the conversion of the head."""
    delete_format: str = SERVE_DELETE_FORMAT_DEFAULT
    """The row deletes that clients can read, for tables without the property `tableformat.serve.delete-format`."""
    allow_jobs: bool = False
    """Let people start maintenance jobs on the web page. Needs a token."""
    client_config: Mapping[str, str] = field(default_factory=dict)
    """Properties that clients get with the catalog's configuration, such as `s3.endpoint`. Secrets in them are sent to
    every client that has access."""
    vend_credentials: Mapping[str, str] = field(default_factory=dict)
    """How clients get credentials of S3 for one table (`vended_credentials.OPTIONS`). Empty: the server gives none."""
    max_body_bytes: int = 64 * _MEBIBYTE
    """A larger request is refused."""
    body_timeout_seconds: float = 60.0
    """A client that needs longer to send its request is disconnected."""

    def __post_init__(self) -> None:
        if not self.freshness_seconds >= 0:
            raise InvalidArgumentError(f"freshness must be 0 seconds or more, not {self.freshness_seconds!r}.")
        if self.token is not None and not self.token.strip():
            raise InvalidArgumentError("the token is empty. Write a secret into the token file.")
        if self.delete_format not in SERVE_DELETE_FORMATS:
            expected = " or ".join(SERVE_DELETE_FORMATS)
            raise InvalidArgumentError(f"the delete format must be {expected}, not {self.delete_format!r}.")
        if self.allow_jobs and self.token is None:
            raise InvalidArgumentError(
                "jobs on the page need a token, because a job changes tables and removes files. Set a token "
                "(--token-file), or leave out --allow-jobs."
            )
        if self.allow_jobs and self.read_only:
            raise InvalidArgumentError("a read-only server runs no jobs. Leave out --read-only or --allow-jobs.")
