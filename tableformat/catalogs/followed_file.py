"""Keeps the connections of a lake at the file that has the name of its SQLite file (LK-28).

A connection of SQLite stays with the file that it opened, wherever that is moved, and when it is removed:

    mv lake old; cp -r backup lake      lake/catalog.db     what everybody opens
                                        old/catalog.db      what a connection from before commits to

So each connection remembers which file it opened, and is asked before it is used and before it commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError

from tableformat.errors import StorageError

_BEFORE: Final = "tableformat.file-before"
_OPENED: Final = "tableformat.file"

FileId = tuple[int, int]
"""Device and inode."""


class FollowedFile:
    """The file that has a name, and which one that was so far."""

    def __init__(self, path: str, on_replaced: Callable[[], None], *, must_exist: bool = False) -> None:
        """`on_replaced` is called when another file is found under the name. With `must_exist` the file is not made by
        the first connection, as it never is by later ones."""
        self.path = os.path.abspath(path)
        self.replacements = 0
        """How often another file was found."""
        self._on_replaced = on_replaced
        self._must_exist = must_exist
        self._known: FileId | None = None

    def keep(self, engine: Engine) -> None:
        """Have the connections of the engine, which has none yet, follow the name."""
        event.listen(engine, "do_connect", self._before_connect)
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "checkout", self._checked_out)
        event.listen(engine, "commit", self._before_commit)

    def check_there(self) -> FileId:
        """LK-28: raise StorageError where no file has the name."""
        found = _file_id(self.path)
        if found is None:
            since = "it was opened" if self._known is not None else "its catalog was pickled, or on another machine"
            raise StorageError(
                f"the catalog file {self.path} is not there: the lake was moved or removed since {since}. Nothing was "
                "changed. Open the lake where it is now; this catalog goes on when its file is back.",
                nothing_changed=True,
            )
        return found

    def _before_connect(self, _dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
        if self._must_exist:
            record.info[_BEFORE] = self.check_there()
            # SQLite makes a file that is missing, unless it is told not to.
            arguments[:] = [f"{Path(self.path).as_uri()}?mode=rw"]
            options["uri"] = True

    def _connected(self, _connection: Any, record: Any) -> None:
        found = _file_id(self.path)
        # One that came while SQLite opened the other is noticed at checkout.
        record.info[_OPENED] = found if record.info.get(_BEFORE, found) == found else None
        self._must_exist = True
        if found is not None and found != self._known:
            was_known, self._known = self._known is not None, found
            if was_known:
                self.replacements += 1
                self._on_replaced()

    def _checked_out(self, _connection: Any, record: Any, _proxy: Any) -> None:
        if record.info[_OPENED] != self.check_there():
            raise DisconnectionError(f"another file is at {self.path}")

    def _before_commit(self, connection: Connection) -> None:
        if connection.info[_OPENED] != self.check_there():
            raise StorageError(
                f"the catalog file {self.path} was replaced by another one during the call. Nothing was changed. Make "
                "the call again.",
                nothing_changed=True,
            )


def _file_id(path: str) -> FileId | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(f"the catalog file {path} cannot be looked at: {error}.", nothing_changed=True) from error
    return status.st_dev, status.st_ino
