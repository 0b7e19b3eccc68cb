"""Errors as answers: status, type and message in the form of Iceberg's REST specification."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from pydantic import ValidationError as ModelError
from pyiceberg import exceptions as iceberg
from starlette.responses import JSONResponse, Response

from tableformat import errors
from tableformat.server.access import NotAuthorizedError, OAuthRefusedError

logger = logging.getLogger(__name__)

_ANSWERS: Final[tuple[tuple[tuple[type[Exception], ...], int, str], ...]] = (
    ((NotAuthorizedError,), 401, "NotAuthorizedException"),
    ((iceberg.NoSuchViewError, errors.ViewNotFoundError), 404, "NoSuchViewException"),
    ((iceberg.NoSuchNamespaceError, errors.NamespaceNotFoundError), 404, "NoSuchNamespaceException"),
    (
        (iceberg.NoSuchTableError, iceberg.NoSuchIdentifierError, errors.TableNotFoundError),
        404,
        "NoSuchTableException",
    ),
    ((iceberg.NoSuchPlanTaskError,), 404, "NoSuchPlanTaskException"),
    (
        (
            iceberg.TableAlreadyExistsError,
            iceberg.NamespaceAlreadyExistsError,
            iceberg.ViewAlreadyExistsError,
            errors.AlreadyExistsError,
        ),
        409,
        "AlreadyExistsException",
    ),
    ((iceberg.NamespaceNotEmptyError,), 409, "NamespaceNotEmptyException"),
    ((iceberg.CommitStateUnknownException, errors.CommitStateUnknownError), 500, "CommitStateUnknownException"),
    ((iceberg.CommitFailedException, errors.CommitConflictError), 409, "CommitFailedException"),
    ((errors.ReadOnlyLakeError, iceberg.ForbiddenError), 403, "ForbiddenException"),
    ((errors.UnsupportedFeatureError, NotImplementedError), 406, "UnsupportedOperationException"),
    ((errors.StorageError,), 503, "ServiceUnavailableException"),
    (
        (
            ModelError,
            json.JSONDecodeError,
            KeyError,
            TypeError,
            iceberg.BadRequestError,
        ),
        400,
        "BadRequestException",
    ),
    ((iceberg.ValidationError, iceberg.ValidationException), 400, "ValidationException"),
    ((errors.SnapshotNotFoundError, ValueError), 400, "IllegalArgumentException"),
    ((errors.CorruptFileError,), 500, "CorruptFileException"),
    ((OSError,), 503, "ServiceUnavailableException"),
)
"""Error types, most specific first -> status and the name of the exception that Iceberg's Java client raises."""


_UNTYPED: Final = (ValueError, KeyError, TypeError)
"""Most are faults of a request. They are logged, because they may be faults of the server."""


class RefusedRequestError(Exception):
    """A request that is refused before its route is called."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def error_answer(error: Exception) -> Response:
    """The answer for an error. Unexpected errors are logged, and the client learns nothing about them."""
    if isinstance(error, OAuthRefusedError):
        body = {"error": error.reason, "error_description": error.description}
        return JSONResponse(body, 401 if error.reason == "invalid_client" else 400)
    return refusal(*described(error))


def described(error: Exception) -> tuple[int, str, str]:
    """The status, the kind and the message that a client gets for an error. Errors of the server are logged."""
    if isinstance(error, RefusedRequestError):
        return error.status, error.kind, str(error)
    if isinstance(error, errors.CorruptFileError) and isinstance(error.__cause__, FileNotFoundError):
        return 404, "NotFoundException", str(error)
    for types, status, kind in _ANSWERS:
        if isinstance(error, types):
            if status >= 500:
                logger.warning("a request failed", exc_info=error)
            elif type(error) in _UNTYPED:
                logger.info("a request was refused", exc_info=error)
            return status, kind, _message(error)
    logger.error("a request failed", exc_info=error)
    return 500, "InternalServerError", "the server failed; its log has the reason"


def refusal(status: int, kind: str, message: str) -> Response:
    """An error in the form of the specification."""
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer with a value as JSON."""
    return JSONResponse(body, status, headers)


def text_answer(body: bytes, headers: dict[str, str] | None = None) -> Response:
    """An answer whose JSON is made already."""
    return Response(body, media_type="application/json", headers=headers)


NO_CONTENT: Final = 204


def nothing(status: int = NO_CONTENT) -> Response:
    """An answer without a body."""
    return Response(status_code=status)


def _message(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the request lacks {error}"
    return str(error)
