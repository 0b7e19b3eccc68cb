"""Connections to the SQLite file of a lake, for several processes that read and write it concurrently."""

from __future__ import annotations

import os
import weakref
from typing import Any, Final

from sqlalchemy import Engine, event

BUSY_TIMEOUT_SECONDS: Final = 60
"""Maximum time that a writer waits for another's SQLite transaction. A transaction takes a few milliseconds."""

_engines: Final[weakref.WeakSet[Engine]] = weakref.WeakSet()


def prepare_engine(engine: Engine) -> None:
    """Prepare each new connection of the engine, and let no connection cross a fork."""
    event.listen(engine, "connect", _prepare_connection)
    _engines.add(engine)


def _prepare_connection(connection: Any, _record: Any) -> None:
    """Use WAL, so that readers do not block writers, and a writer waits for another one instead of failing."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    # The files of a commit are not synced. After a power cut, a catalog row that points to a lost file would be worse
    # than a missing row. If a table asks for both to be synced (`tableformat.write.sync`), its commits set this again.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _leave_connections_to_the_parent() -> None:
    """A SQLite connection must not cross a fork; the child opens its own."""
    for engine in _engines:
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections_to_the_parent)
