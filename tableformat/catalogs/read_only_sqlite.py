"""Opens the SQLite file of a lake that cannot be written to (LK-5).

SQLite in WAL mode writes to read: it makes an index of the log beside the file. Where that is not possible, it depends
on what the last writer left:

    catalog.db  -wal  -shm      a writer is there, or ended without closing: SQLite reads with the index that is there
    catalog.db                  nobody writes: the file is read as one that never changes
    catalog.db  -wal            the log has commits and no index: file and log are copied, and the copy is read
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

_LOG: Final = "-wal"


def is_writable(file: str) -> bool:
    """Whether SQLite can write to the file, and make its log beside it. Asks the system, which knows of mounts, rights
    and attributes; a file that is not there yet is as writable as its directory."""
    directory = os.path.dirname(os.path.abspath(file))
    return os.access(directory, os.W_OK) and (not os.path.exists(file) or os.access(file, os.W_OK))


def connect_read_only(file: str) -> sqlite3.Connection:
    """A new connection that sees what is committed now; made anew for each use, since writers elsewhere come and go.

    Raises sqlite3.OperationalError where there is no such file, or none that can be read.
    """
    address = Path(os.path.abspath(file)).as_uri()
    connection = sqlite3.connect(f"{address}?mode=ro", uri=True, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if not os.path.isfile(file):
            raise
    else:
        return connection
    if os.path.exists(file + _LOG) and os.path.getsize(file + _LOG):
        return _copied(file)
    return sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _copied(file: str) -> sqlite3.Connection:
    """The file with its log, in memory."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory(prefix="tableformat-") as directory:
        for suffix in ("", _LOG):
            shutil.copyfile(file + suffix, f"{directory}/catalog.db{suffix}")
        with closing(sqlite3.connect(f"{directory}/catalog.db")) as source:
            source.backup(copy)
    return copy
