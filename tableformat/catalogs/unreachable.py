"""Raises one error of the library, for every call, if a catalog's service or database cannot be reached (LK-11)."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ServiceUnavailableError
from sqlalchemy.exc import DBAPIError

from tableformat.errors import CommitStateUnknownError, StorageError

_OUTAGES: Final = frozenset(
    {
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("botocore", "ConnectionError"),
        ("botocore", "HTTPClientError"),
        ("thrift", "TTransportException"),
    }
)
"""(package, class) of client errors without any answer. An answer that rejects the request does not count."""
_METHODS: Final = tuple(
    name
    for name, member in vars(Catalog).items()
    if inspect.isfunction(member) and not name.startswith("_") and name not in ("commit_table", "close")
)
"""Methods that may call the service. `commit_table` is handled elsewhere: without an answer, a commit may have
succeeded (CP-13)."""


def type_outages(catalog: Catalog) -> None:
    """LK-11: make a PyIceberg catalog raise StorageError if its service or its database cannot be reached."""
    for name in _METHODS:
        setattr(catalog, name, partial(_ask, catalog, name))


@contextmanager
def creation_without_answer(catalog: Catalog, identifier: str) -> Iterator[None]:
    """Creating a table is a commit: if its answer was lost, the table may exist (CP-13)."""
    try:
        yield
    except Exception as error:
        if not _is_outage(error):
            raise
        raise CommitStateUnknownError(
            f"catalog {catalog.name!r} did not confirm the creation of table {identifier!r}: {error}. The table may "
            "exist. Check with table_exists(), or repeat the call with create_table(exist_ok=True)."
        ) from error


def unreachable(name: str, error: BaseException) -> StorageError:
    """The error to raise for a catalog that cannot be reached."""
    cause = str(error.orig if isinstance(error, DBAPIError) else error).partition("\n")[0]
    is_file = isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error)
    look = (
        "its file, the permissions on its directory and the free disk space"
        if is_file
        else "its address and credentials"
    )
    return StorageError(f"catalog {name!r} cannot be reached: {cause}. Check {look}, and try again.")


def _ask(catalog: Catalog, method: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return getattr(type(catalog), method)(catalog, *args, **kwargs)
    except Exception as error:
        if not _is_outage(error):
            raise
        raise unreachable(catalog.name, error) from error


def _is_outage(error: Exception) -> bool:
    if isinstance(error, ServiceUnavailableError):
        return True
    if isinstance(error, DBAPIError):
        # An error without a statement means that the connection was refused.
        return error.connection_invalidated or error.statement is None
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    return not kinds.isdisjoint(_OUTAGES)
