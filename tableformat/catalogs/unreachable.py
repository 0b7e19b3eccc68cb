"""A catalog service that cannot be reached: one error of the library, whatever call met it (LK-11)."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ServiceUnavailableError

from tableformat.errors import StorageError

_OUTAGES: Final = frozenset(
    {
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("botocore", "ConnectionError"),
        ("botocore", "HTTPClientError"),
    }
)
"""(package, class) of the errors of HTTP clients that never got an answer. An answer that refuses is none of them."""
_METHODS: Final = tuple(
    name
    for name, member in vars(Catalog).items()
    if inspect.isfunction(member) and not name.startswith("_") and name not in ("commit_table", "close")
)
"""What may ask the service. Whether a commit without an answer happened is a question of its own (CP-13)."""


def type_outages(catalog: Catalog) -> None:
    """LK-11: make a catalog of PyIceberg raise StorageError where its service cannot be reached.

    A database (`SqlCatalog`) is left alone: its driver's errors do not tell an outage from a refusal.
    """
    if isinstance(catalog, SqlCatalog):
        return
    for name in _METHODS:
        setattr(catalog, name, partial(_ask, catalog, name))


def unreachable(name: str, error: BaseException) -> StorageError:
    """What to raise for a catalog that cannot be reached."""
    return StorageError(
        f"catalog {name!r} cannot be reached: {error}. Look at its address and credentials, and try again."
    )


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
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    return not kinds.isdisjoint(_OUTAGES)
