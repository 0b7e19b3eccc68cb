"""Translates errors of a catalog's database to errors of the library, for every call (LK-29)."""

from __future__ import annotations

import sqlite3
from typing import Final

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, SQLAlchemyError

from tableformat.catalogs.unreachable import unreachable
from tableformat.errors import CorruptFileError, ReadOnlyLakeError, StorageError, TableFormatError

_LOCKED: Final = "locked"
_ADVICE: Final = (
    (
        _LOCKED,
        "Another process has had a transaction open for too long. End that process, or try again.",
    ),
    (
        "no such table",
        "This file does not belong to a catalog: it was replaced, or its tables were dropped. Restore the previous "
        "file. To start with an empty catalog, open the catalog again.",
    ),
    (
        "full",
        "Free some disk space, and try again.",
    ),
)
"""Pairs: a part of SQLite's message, and the advice for it."""
_OTHER_ADVICE: Final = (
    "Check the disk, the permissions and the free space in the directory of the file, and whether its log (-wal, "
    "-shm) was moved or removed while it was in use. Then open the catalog again, in another process if necessary."
)


def type_database_errors(engine: Engine, name: str) -> None:
    """LK-29: translate errors that the statement itself did not cause to StorageError, ReadOnlyLakeError or
    CorruptFileError, and a missing connection to StorageError (LK-11). `name` is the catalog's name.

    Not translated: violations of constraints, errors that end a connection, and errors at a commit (CP-13).
    """

    def translate(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if not isinstance(error, DatabaseError) or isinstance(error, IntegrityError):
            return
        cause, file = context.original_exception, file_of(engine)
        is_of_statement = error.statement is not None
        if type(cause) is sqlite3.DatabaseError or (isinstance(cause, sqlite3.Error) and is_of_statement):
            raise sqlite_error(file or name, error) from cause
        if context.connection is None:
            raise unreachable(file or name, error) from cause
        if not is_of_statement:
            # SQLite keeps the transaction open. The next user of this connection from the pool would commit it.
            context.is_disconnect, context.invalidate_pool_on_disconnect = True, False
        elif not context.is_disconnect:
            raise StorageError(
                f"catalog {name!r} cannot answer: {_first_line(error)}. Nothing was changed. Check its database, and "
                "try again.",
                nothing_changed=True,
            ) from cause

    event.listen(engine, "handle_error", translate)


def file_of(engine: Engine) -> str | None:
    """The SQLite file of an engine on this machine; None for a database in memory or of another kind."""
    file = engine.url.database
    is_file = engine.dialect.name == "sqlite" and file and not file.startswith((":memory:", "file:"))
    return file if is_file else None


def sqlite_error(file: str, error: DBAPIError) -> TableFormatError:
    """The error to raise for an error of SQLite, from a statement or from opening the file."""
    cause = _first_line(error)
    if type(error.orig) is sqlite3.DatabaseError:
        return CorruptFileError(
            file,
            f"it is not a SQLite database, or it is damaged ({cause}). Restore a copy, such as one made by "
            "relocate(to=...).",
        )
    if "readonly" in cause:
        return ReadOnlyLakeError(file)
    advice = next((advice for words, advice in _ADVICE if words in cause), _OTHER_ADVICE)
    return StorageError(f"the catalog file {file}: {cause}. Nothing was changed. {advice}", nothing_changed=True)


def is_locked(error: StorageError) -> bool:
    """Whether SQLite gave up waiting for another process."""
    return isinstance(error.__cause__, sqlite3.OperationalError) and _LOCKED in str(error.__cause__)


def _first_line(error: SQLAlchemyError) -> str:
    return str(error.orig if isinstance(error, DBAPIError) else error).partition("\n")[0]
