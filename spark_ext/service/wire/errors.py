"""Converts Python's errors to Spark's: a condition, an SQLSTATE and the message.

The conditions correspond to the error classes of the library. Any other error is reported as
TABLEFORMAT_INTERNAL_ERROR, with its traceback on standard error.
"""

from __future__ import annotations

import re
import sys
import traceback
from typing import Any, Final

from tableformat.errors import (
    AlreadyExistsError,
    CatalogNotFoundError,
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    DuplicateKeyError,
    InvalidArgumentError,
    NamespaceNotFoundError,
    OperationCancelledError,
    RowsRefusedError,
    SnapshotNotFoundError,
    TableFormatError,
    TableNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
    ViewNotFoundError,
)

_SQL_STATES: Final[dict[type[TableFormatError], str]] = {
    UnknownColumnError: "42703",
    InvalidArgumentError: "22023",
    CatalogNotFoundError: "42704",
    NamespaceNotFoundError: "42704",
    TableNotFoundError: "42P01",
    ViewNotFoundError: "42P01",
    SnapshotNotFoundError: "42704",
    AlreadyExistsError: "42710",
    RowsRefusedError: "22000",
    DuplicateKeyError: "23505",
    CommitConflictError: "40001",
    CommitStateUnknownError: "40003",
    OperationCancelledError: "57014",
    CorruptFileError: "58030",
    UnsupportedFeatureError: "0A000",
}
_INTERNAL: Final = "XX000"


def describe_error(error: BaseException) -> dict[str, Any]:
    """The error as the `error` field of the answer."""
    if isinstance(error, TableFormatError):
        return {
            "type": _known_type(error).__name__,
            "condition": condition_of(type(error)),
            "sql_state": _sql_state(error),
            "message": str(error),
        }
    traceback.print_exception(error, file=sys.stderr)
    return {
        "type": type(error).__name__,
        "condition": "TABLEFORMAT_INTERNAL_ERROR",
        "sql_state": _INTERNAL,
        "message": f"{type(error).__name__}: {error}",
    }


def condition_of(error_type: type[TableFormatError]) -> str:
    """The condition of an error class, for example TABLEFORMAT_COMMIT_CONFLICT for CommitConflictError."""
    words = re.findall(r"[A-Z][a-z]*", error_type.__name__.removesuffix("Error"))
    return "_".join(["TABLEFORMAT", *(word.upper() for word in words)])


def _known_type(error: TableFormatError) -> type[TableFormatError]:
    return next((known for known in type(error).__mro__ if known in _SQL_STATES), type(error))


def _sql_state(error: TableFormatError) -> str:
    return _SQL_STATES.get(_known_type(error), _INTERNAL)
