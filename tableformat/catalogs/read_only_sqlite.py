"""Opens the SQLite file of a lake that is not writable (LK-5).

In WAL mode, SQLite has to write even for reading: it creates an index of the log next to the file. If that is not
possible, the files that the last writer left decide:

    catalog.db  -wal  -shm      a writer is active, or ended without closing: SQLite reads with the existing index
    catalog.db                  no active writer: the file is opened as immutable
    catalog.db  -wal            the log has commits but no index: file and log are copied, and the copy is read
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
    """Whether SQLite can write to the file and create its log next to it.

    Asks the operating system, which considers mounts, permissions and attributes. A file that does not exist yet is as
    writable as its directory.
    """
    directory = os.path.dirname(os.path.abspath(file))
    return os.access(directory, os.W_OK) and (not os.path.exists(file) or os.access(file, os.W_OK))


def connect_read_only(file: str) -> sqlite3.Connection:
    """A new connection that sees the current commits. Each use needs a new one, because writers on other machines start
    and stop.

    Raises sqlite3.OperationalError if the file does not exist or cannot be read.
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
    """A copy of the file with its log, in memory."""
    copy = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory(prefix="tableformat-") as directory:
        for suffix in ("", _LOG):
            shutil.copyfile(file + suffix, f"{directory}/catalog.db{suffix}")
        with closing(sqlite3.connect(f"{directory}/catalog.db")) as source:
            source.backup(copy)
    return copy
