"""Each call works on its own handle, so that threads can share a table (CP-61).

    shared handle   v5 ─────────────────────────────── v7 ────────── v7      never back to v6
    one thread       └ append: plans on v5, commits v6 ──────────────┘
    another one       └ delete: plans on v5, commits v7 ┘

A PyIceberg table is a handle that moves with each commit. A call that reads its metadata twice could plan on one
version and commit, or be checked, against another.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pyiceberg.table import Table as IcebergTable

from tableformat.metadata.snapshot_view import last_sequence_number
from tableformat.storage.forks import new_lock

_Kind = TypeVar("_Kind", bound=type)
_MOVED: Final = ("metadata", "metadata_location", "io", "config")
"""The attributes of a handle that a refresh or a commit changes."""
_moving: Final = new_lock()


@contextmanager
def own_handle(shared: IcebergTable) -> Iterator[IcebergTable]:
    """CP-61: a handle for one call, at the metadata of the shared one. At the end, also after an error, the shared
    handle follows it, unless another thread has moved it further."""
    with _moving:
        own = copy.copy(shared)
    before = own.metadata
    try:
        yield own
    finally:
        with _moving:
            if own.metadata is not before and (shared.metadata is before or not _is_older(own, shared)):
                for name in _MOVED:
                    setattr(shared, name, getattr(own, name))


def calls_on_own_handles(attribute: str) -> Callable[[_Kind], _Kind]:
    """A class decorator: each public method of the class runs on a copy of the object with its own handle, in
    `attribute`. For methods that do not return their object."""

    def decorate(kind: _Kind) -> _Kind:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and inspect.isfunction(method):
                setattr(kind, name, _on_own_handle(method, attribute))
        return kind

    return decorate


def _on_own_handle(method: Callable[..., Any], attribute: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with own_handle(getattr(self, attribute)) as own:
            mine = copy.copy(self)
            object.__setattr__(mine, attribute, own)  # Classes of jobs are frozen.
            return method(mine, *args, **kwargs)

    return call


def _is_older(one: IcebergTable, other: IcebergTable) -> bool:
    """Whether the metadata of `one` is a former version of that of `other`. If a file was removed from the log, many
    commits followed it, and most of them added a snapshot."""
    former = {entry.metadata_file for entry in other.metadata.metadata_log}
    if one.metadata_location in former or one.metadata_location == other.metadata_location:
        return True
    return last_sequence_number(one.metadata) < last_sequence_number(other.metadata)
