"""Every call of a run to files and to the catalog, with a failure injected into one of them.

    before        the process dies before the call: neither this call happens nor any that clean-up would make
    torn          it dies in the middle of the call: a file that is being written keeps its first half
    interrupted   the call raises a BaseException that is not an Exception, like Ctrl-C, and clean-up runs
    refused       the call raises OSError, and clean-up and retries run
    unanswered    the call happens, and then raises OSError
    late          the call happens, and then raises a BaseException that is not an Exception

A process that dies after a call is the same as one that dies before the next call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final
from unittest import mock

from pyiceberg.io import FileIO

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.storage import listing, storage
from tableformat.storage.location import local_path
from tableformat.testing.replacing import replaced

FILE_CALLS: Final = (
    storage.exists,
    storage.size_bytes,
    storage.open_input,
    storage.read_bytes,
    storage.delete_if_present,
    listing.list_files,
)
"""All functions that access files, except the two that write files: `write_bytes` and `open_output` of `storage`."""
_CATALOG_CALLS: Final = (
    "load_table",
    "commit_table",
    "commit_tables",
    "replace_histories",
    "drop_table",
    "rename_table",
    "create_namespace",
    "point_to",
)


class Failure(StrEnum):
    """The failure that is injected into a call."""

    BEFORE = "before"
    TORN = "torn"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"
    UNANSWERED = "unanswered"
    LATE = "late"


DEATHS: Final = (Failure.BEFORE, Failure.TORN)


class ProcessDied(BaseException):
    """After this error, no call of the library reaches a file or the catalog."""


class Interrupted(BaseException):
    """Raised once, by one call."""


class InjectedError(OSError):
    """Raised once, by one call."""


@dataclass(slots=True)
class Door:
    """Intercepts all calls to files and to the catalog while `installed`; it passes them on until it is armed."""

    calls: list[str] = field(default_factory=list)
    """The calls since the object was `armed`, by name."""
    _failing_call: int | None = None
    _failure: Failure = Failure.BEFORE
    _is_watching: bool = False
    _has_died: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def armed(self, failing_call: int | None = None, failure: Failure = Failure.BEFORE) -> Iterator[Door]:
        """Count calls, and fail at one of them; without a number no call fails."""
        self.calls.clear()
        self._failing_call, self._failure = failing_call, failure
        self._is_watching, self._has_died = True, False
        try:
            yield self
        finally:
            self._is_watching = self._has_died = False

    def through(self, name: str, call: Callable[[], Any], tear: Callable[[], object] | None = None) -> Any:
        """Make the call, or inject the failure; `tear` does the first half of the call."""
        if not self._is_watching:
            return call()
        with self._lock:
            if self._has_died:
                raise ProcessDied(name)
            number = len(self.calls)
            self.calls.append(name)
            is_failing = number == self._failing_call
            self._has_died = is_failing and self._failure in DEATHS
        if not is_failing:
            return call()
        match self._failure:
            case Failure.TORN:
                if tear is not None:
                    tear()
                raise ProcessDied(name)
            case Failure.BEFORE:
                raise ProcessDied(name)
            case Failure.INTERRUPTED:
                raise Interrupted(name)
            case Failure.REFUSED:
                raise InjectedError(f"refused: {name}")
            case Failure.UNANSWERED:
                call()
                raise InjectedError(f"no answer: {name}")
            case Failure.LATE:
                call()
                raise Interrupted(name)

    @contextmanager
    def installed(self) -> Iterator[Door]:
        """Intercept the calls in every module of the library."""
        with ExitStack() as patches:
            for function in FILE_CALLS:
                patches.enter_context(replaced(function, partial(self._passing, function)))
            patches.enter_context(replaced(storage.write_bytes, partial(self._writing, storage.write_bytes)))
            patches.enter_context(replaced(storage.open_output, partial(self._output, storage.open_output)))
            for name in _CATALOG_CALLS:
                patches.enter_context(mock.patch.object(EmbeddedCatalog, name, self._method(name)))
            yield self

    def _passing(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        return self.through(function.__name__, lambda: function(*arguments, **keywords))

    def _writing(self, write: Callable[..., int], io: FileIO, location: str, data: bytes, **keywords: Any) -> Any:
        return self.through(
            "write_bytes",
            lambda: write(io, location, data, **keywords),
            tear=lambda: write(io, location, data[: len(data) // 2], **keywords),
        )

    @contextmanager
    def _output(self, open_output: Callable[..., Any], io: FileIO, location: str, **keywords: Any) -> Iterator[Any]:
        """Two calls: the file is created, and the file is whole."""
        with ExitStack() as opened:
            sink = self.through("open_output", lambda: opened.enter_context(open_output(io, location, **keywords)))
            yield sink
            self.through("close_output", opened.close, tear=partial(_close_torn, opened, location))

    def _method(self, name: str) -> Callable[..., Any]:
        original = getattr(EmbeddedCatalog, name)

        def passing(catalog: EmbeddedCatalog, *arguments: Any, **keywords: Any) -> Any:
            return self.through(name, lambda: original(catalog, *arguments, **keywords))

        return passing


def _close_torn(opened: ExitStack, location: str) -> None:
    opened.close()
    path = local_path(location)
    assert path is not None
    os.truncate(path, os.path.getsize(path) // 2)
