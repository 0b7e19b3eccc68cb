"""A queue of the writers that want to commit to one table, using advisory locks of PostgreSQL (decision 30).

    writer 1    BEGIN  lock  granted ........ load, write, commit ........ ROLLBACK
    writer 2       BEGIN  lock  waits .................................... granted ...
    writer 3          BEGIN  lock  waits ............................................. ...

The database grants a lock in order of arrival, for writers on any machine. The lock belongs to a transaction that does
nothing else, on a connection of its own, and ends with both.

The queue only orders the writers, like `commit_queue`.

Source: PostgreSQL's manual, "Advisory Locks", `pg_advisory_xact_lock` and `lock_timeout`.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection

from tableformat.storage.forks import new_lock

logger = logging.getLogger(__name__)

POSTGRESQL: Final = "postgresql"
"""The name of PostgreSQL in SQLAlchemy."""
_NOT_AVAILABLE: Final = "55P03"
"""PostgreSQL's code for a lock that was not granted in time."""
_LOCK: Final = "pg_advisory_xact_lock"
_MAX_MS: Final = 2**31 - 1
_PURPOSE: Final = b"tableformat.turn"
_queueing: Final[WeakKeyDictionary[Engine, Engine]] = WeakKeyDictionary()
_lock: Final = new_lock()
_of_the_parent: Final[list[PoolProxiedConnection]] = []
"""Connections of the parent after a fork. They are kept here: a connection without references returns to its pool, and
the lock belongs to the parent."""


def _leave_connections_to_the_parent() -> None:
    """Dispose of the pools in a forked process. A connection must not cross a fork, so the child opens its own. The
    queue's pools come first: disposing of the catalog's pool closes what is still in the queue's pool, which would end
    the connection of the parent."""
    for of_catalog, of_queue in list(_queueing.items()):
        of_queue.dispose(close=False)
        of_catalog.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections_to_the_parent)


class PostgresQueue:
    """CP-32: the queue of one table."""

    def __init__(self, engine: Engine, table_uuid: UUID) -> None:
        """`engine` connects to the database of the catalog."""
        self._engine = engine
        # Two tables with the same number only wait for each other.
        digest = hashlib.blake2b(table_uuid.bytes, digest_size=8, person=_PURPOSE).digest()
        self.number = int.from_bytes(digest, "big", signed=True)

    def is_busy(self) -> bool:
        """Always True: checking costs as much as taking a position in an empty queue."""
        return True

    def take(self) -> PostgresPlace:
        """A position. It is behind all writers that started to wait before it."""
        return PostgresPlace(self._engine, self.number)


class PostgresPlace:
    """A position in the queue, from `wait` until it is given back or the connection ends."""

    def __init__(self, engine: Engine, number: int) -> None:
        self._engine = engine
        self._number = number
        self._connection: PoolProxiedConnection | None = None
        self._process = os.getpid()

    def wait(self, patience_seconds: float) -> None:
        """Wait until all writers ahead have committed. After `patience_seconds` for each of them, the writer gives up
        its position and continues, so that a hanging writer blocks nobody. Raises OSError if the database has no such
        locks or cannot be reached."""
        if self._connection is not None:
            return
        # In PostgreSQL, a timeout of 0 means no timeout.
        patience_ms = max(1, math.ceil(patience_seconds * 1000))
        driver: Any = self._engine.dialect.dbapi
        errors: tuple[type[Exception], ...] = (SQLAlchemyError, driver.Error)
        try:
            connection = _queueing_engine(self._engine).raw_connection()
        except errors as error:
            raise OSError(f"could not connect for the commit queue: {error}") from error
        try:
            # One query, evaluated from left to right. The setting is valid until the end of the transaction.
            connection.cursor().execute(
                f"SELECT set_config('lock_timeout', least({patience_ms} * greatest(({self._count()}), 1), {_MAX_MS})"
                f" || 'ms', true), {_LOCK}({self._number})"
            )
        except errors as error:
            connection.close()
            if _code(error) != _NOT_AVAILABLE:
                raise OSError(f"could not take the advisory lock: {error}") from error
            logger.warning(
                "waited %s s for each earlier writer; committing without the lock", round(patience_seconds, 3)
            )
            return
        except BaseException:
            connection.invalidate()
            raise
        self._connection = connection

    def _count(self) -> str:
        """The query for the number of writers that hold the lock or wait for it. PostgreSQL shows the number of a lock
        in two halves."""
        high, low = divmod(self._number % 2**64, 2**32)
        return (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
            f"AND classid = {high} AND objid = {low} "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )

    def give_back(self) -> None:
        """Leave the queue: the connection goes back to its pool, which ends the transaction."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if os.getpid() != self._process:
            _of_the_parent.append(connection)
            return
        connection.close()


def _queueing_engine(engine: Engine) -> Engine:
    """An engine for the connections of the queue. The writer whose turn it is needs a connection of the catalog, so
    waiting writers must not use those. It is disposed of together with the catalog's engine."""
    with _lock:
        known = _queueing.get(engine)
        if known is None:
            made = known = _queueing[engine] = create_engine(engine.url)
            event.listen(engine, "engine_disposed", lambda _engine: made.dispose())
        return known


def _code(error: Exception) -> str | None:
    """The error code as psycopg 3 and psycopg 2 report it."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
