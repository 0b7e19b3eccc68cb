"""Keeps the connections of a lake at the file that currently has the path of its SQLite file (LK-28).

A SQLite connection stays with the file that it opened, even if that file is moved or removed:

    mv lake old; cp -r backup lake      lake/catalog.db     opened by everybody else
                                        old/catalog.db      written by connections from before

So each connection remembers the file that it opened, and is checked before it is used and before it commits.
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
    """The file at a path, and the identity that this file had so far."""

    def __init__(self, path: str, on_replaced: Callable[[], None], *, must_exist: bool = False) -> None:
        """`on_replaced` is called when another file is found at the path. With `must_exist`, the first connection does
        not create the file; later connections never do."""
        self.path = os.path.abspath(path)
        self.replacements = 0
        """How often another file was found."""
        self._on_replaced = on_replaced
        self._must_exist = must_exist
        self._known: FileId | None = None

    def keep(self, engine: Engine) -> None:
        """Make the connections of the engine follow the path. The engine must not have connections yet."""
        event.listen(engine, "do_connect", self._before_connect)
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "checkout", self._checked_out)
        event.listen(engine, "commit", self._before_commit)

    def check_there(self) -> FileId:
        """LK-28: raise StorageError if no file exists at the path."""
        found = _file_id(self.path)
        if found is None:
            since = "it was opened" if self._known is not None else "its catalog was pickled, or on another machine"
            raise StorageError(
                f"the catalog file {self.path} does not exist: the lake was moved or removed since {since}. Nothing "
                "was changed. Open the lake at its current location. This catalog works again once its file is "
                "restored.",
                nothing_changed=True,
            )
        return found

    def _before_connect(self, _dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
        if self._must_exist:
            record.info[_BEFORE] = self.check_there()
            # By default, SQLite creates a file that is missing.
            arguments[:] = [f"{Path(self.path).as_uri()}?mode=rw"]
            options["uri"] = True

    def _connected(self, _connection: Any, record: Any) -> None:
        found = _file_id(self.path)
        # If the file was replaced while SQLite opened it, the checkout notices it.
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
                f"the catalog file {self.path} was replaced during the call. Nothing was changed. Repeat the call.",
                nothing_changed=True,
            )


def _file_id(path: str) -> FileId | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError(f"cannot check the catalog file {path}: {error}.", nothing_changed=True) from error
    return status.st_dev, status.st_ino
