"""Names in the SQLite file of a lake. Without imports, for shell completion."""

from __future__ import annotations

from typing import Final

CATALOG_FILE: Final = "catalog.db"
"""The SQLite file in the directory of a lake."""
CATALOG_NAME: Final = "tableformat"
"""PyIceberg keys its rows by catalog name, so every alias of a directory uses this name."""
