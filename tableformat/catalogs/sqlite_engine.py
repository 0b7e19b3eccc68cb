"""Connections to the SQLite file of a lake: several processes read and write it at once."""

from __future__ import annotations

import os
import weakref
from typing import Any, Final

from sqlalchemy import Engine, event

BUSY_TIMEOUT_SECONDS: Final = 60
"""How long a writer waits for another's SQLite transaction, which lasts a few milliseconds."""

_engines: Final[weakref.WeakSet[Engine]] = weakref.WeakSet()


def prepare_engine(engine: Engine) -> None:
    """Have each new connection of the engine prepared, and none of them cross a fork."""
    event.listen(engine, "connect", _prepare_connection)
    _engines.add(engine)


def _prepare_connection(connection: Any, _record: Any) -> None:
    """Readers do not block writers (WAL), and a writer waits for another instead of failing."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    # The files that a commit points to are not synced: a pointer that outlives them in a power cut is worse than none.
    # Where a table asks for both (`tableformat.write.sync`), its commits set it anew.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _leave_connections_to_the_parent() -> None:
    """A SQLite connection must not cross a fork; the child opens its own."""
    for engine in _engines:
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections_to_the_parent)
