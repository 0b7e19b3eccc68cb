"""The place where a lake was created or last relocated to, stored in its SQLite file. It reveals a lake that was moved
or copied (LK-3).

    tableformat_lake    catalog_file = /data/lake/catalog.db    warehouse = file:///data/lake    (one row)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Column, Engine, MetaData, String, Table, delete, insert, inspect, select
from sqlalchemy.schema import CreateTable

_TABLE: Final = Table(
    "tableformat_lake",
    MetaData(),
    Column("catalog_file", String, nullable=False),
    Column("warehouse", String, nullable=False),
)


@dataclass(frozen=True, slots=True)
class LakeHome:
    """The location of a lake."""

    catalog_file: str
    """Path of the SQLite file, with links resolved."""
    warehouse: str
    """Prefix of the locations of its tables; empty for a catalog without one."""

    def is_here(self, catalog_file: str) -> bool:
        """Whether the path is that home's SQLite file, under any name."""
        if os.path.realpath(catalog_file) == self.catalog_file:
            return True
        return os.path.exists(self.catalog_file) and os.path.samefile(catalog_file, self.catalog_file)


def read_home(engine: Engine) -> LakeHome | None:
    """The stored home; None for a catalog that an older version or another writer created."""
    if not inspect(engine).has_table(_TABLE.name):
        return None
    with engine.connect() as connection:
        row = connection.execute(select(_TABLE)).first()
    return None if row is None else LakeHome(row.catalog_file, row.warehouse)


def write_home(engine: Engine, home: LakeHome) -> None:
    """Store the home in place of the existing one. Several processes may open a new directory at the same moment."""
    with engine.begin() as connection:
        connection.execute(CreateTable(_TABLE, if_not_exists=True))
    with engine.begin() as connection:
        connection.execute(delete(_TABLE))
        connection.execute(insert(_TABLE).values(catalog_file=home.catalog_file, warehouse=home.warehouse))
