"""Reads the names of tables from the SQLite file of a lake, for shell completion.

SQLAlchemy and PyIceberg take longer to import than a shell should wait for a word. `EmbeddedCatalog` does the same work
for everything else.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

from tableformat.catalogs.read_only_sqlite import connect_read_only
from tableformat.metadata.identifiers import identifier_text
from tableformat.storage.lake_file import CATALOG_NAME

_NAMES: Final = """
SELECT table_namespace, table_name FROM iceberg_tables
WHERE catalog_name = ? AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)
"""


def table_names(file: Path) -> list[str]:
    """The tables of a lake, sorted, as `Catalog.list_tables` returns them. Raises sqlite3.Error for a file of another
    form."""
    with closing(connect_read_only(str(file))) as connection:
        rows = connection.execute(_NAMES, (CATALOG_NAME,)).fetchall()
    return sorted(identifier_text((*namespace.split("."), name)) for namespace, name in rows)
