"""Queries of the page: each runs in a process of its own, one at a time for a session and few at a time together."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

import pyarrow as pa

from tableformat.catalogs.catalog import Catalog
from tableformat.errors import UnsupportedFeatureError
from tableformat.server.answers import RefusedRequestError
from tableformat.server.page.query_limits import QueryLimits, QueryOutcome, without_result

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 3
"""Queries that run at the same time, of all sessions."""
_IDLE_SECONDS: Final = 300
"""A process that gets no query ends after this time."""
_START_SECONDS: Final = 30
"""How long a process may take to start and to open the catalog, beyond the time of its query."""
_LOGGED_CHARACTERS: Final = 4_000


class Queries:
    """Runs queries on a catalog. One process is started ahead, because its imports take longer than most queries."""

    def __init__(self, catalog: Catalog, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._catalog = catalog
        self._lock = Lock()
        self._running: set[str] = set()
        self._spare: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end, self._spare)

    def prepare(self) -> None:
        """Start a process for the next query, unless one is ready."""
        with self._lock:
            if not self._spare or self._spare[0].poll() is not None:
                _end(self._spare)
                self._spare.append(_started())

    def run(self, session_id: str, sql: str) -> QueryOutcome:
        """Run a query. Raises RefusedRequestError if the session or the server runs too many, and
        UnsupportedFeatureError for a catalog that another process cannot open."""
        request = self._pickled(sql)
        with self._counted(session_id):
            process = self._taken()
            seconds = self.limits.seconds + _START_SECONDS
            try:
                written, errors = process.communicate(request, timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return without_result(f"The query was ended after {seconds:g} s.")
            except BaseException:
                process.kill()
                process.communicate()
                raise
        return _outcome(process.returncode, written, errors)

    def _pickled(self, sql: str) -> bytes:
        try:
            return pickle.dumps((self._catalog, sql, self.limits))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise UnsupportedFeatureError(
                f"the SQL box needs a catalog of open_catalog(), which its processes can open again: {error}"
            ) from error

    @contextmanager
    def _counted(self, session_id: str) -> Iterator[None]:
        with self._lock:
            if session_id in self._running:
                raise RefusedRequestError(429, "TooManyRequests", "a query of this session is still running.")
            if len(self._running) >= _AT_ONCE:
                raise RefusedRequestError(429, "TooManyRequests", f"{_AT_ONCE} queries are running. Try again soon.")
            self._running.add(session_id)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(session_id)

    def _taken(self) -> subprocess.Popen[bytes]:
        with self._lock:
            process = self._spare.pop() if self._spare else None
        if process is not None and process.poll() is None:
            return process
        if process is not None:
            process.communicate()
        return _started()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tableformat.server.page.query_process", str(_IDLE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        process = processes.pop()
        process.kill()
        process.communicate()


def _outcome(status: int, written: bytes, errors: bytes) -> QueryOutcome:
    try:
        if status == 0:
            return QueryOutcome.from_bytes(written)
    except (pa.ArrowInvalid, KeyError):
        logger.exception("the outcome of a query cannot be read")
    told = errors.decode("utf-8", "replace")[-_LOGGED_CHARACTERS:]
    logger.warning("the process of a query ended with status %s: %s", status, told)
    return without_result(
        "The query ended without a result, most likely because it used up its memory. Select fewer rows, or "
        "aggregate. The server's log has more."
    )
