"""A catalog that DuckDB has attached, whose tables are created, renamed, dropped and created again under the same
names. Columns and rows change, and old snapshots expire. After each step every view has the rows of its table, and no
other view exists."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import DoubleType, IntegerType, StringType
from soak_figures import count

import tableformat as tf

STEPS: Final = 25
_NAMES: Final = ("db.a", "db.B", "db.c", "db.b")
"""DuckDB does not distinguish the names that differ only in case; only one of them exists at a time."""
_TYPES: Final = (StringType(), IntegerType(), DoubleType())
_ANY_AGE: Final = 2**42


@dataclass
class AttachedWorld:
    """The tables of a catalog with the rows that they must have, and a connection that shows them."""

    catalog: tf.Catalog
    connection: duckdb.DuckDBPyConnection
    random: random.Random
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By the table's name."""
    views: set[str] = field(default_factory=set)
    """Tables over which a user has created a view."""
    log: list[str] = field(default_factory=list)
    _last_id: int = 0

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def free_names(self) -> list[str]:
        taken = {name.casefold() for name in self.rows}
        return [name for name in _NAMES if name.casefold() not in taken]

    def check(self) -> None:
        tf.duckdb.refresh(self.connection)
        query = "SELECT view_name FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal"
        assert {f"db.{name}" for (name,) in self.connection.execute(query).fetchall()} == set(self.rows)
        for name, rows in self.rows.items():
            columns = self.catalog.load_table(name).schema.names
            want = sorted(repr(tuple(row.get(column) for column in columns)) for row in rows)
            asked = self.connection.sql(f"SELECT * FROM lake.{name}")
            assert asked.columns == columns, f"{name} has the columns {columns}, its view {asked.columns}"
            assert sorted(map(repr, asked.fetchall())) == want, f"rows of {name}"
            for where in ("", " WHERE id >= 0"):
                counted = self.connection.sql(f"SELECT count(*) FROM lake.{name}{where}").fetchall()
                assert counted == [(len(rows),)], f"count of {name}{where}"
            if name.casefold() in self.views:
                self.check_own_view(name, want)

    def check_own_view(self, name: str, want: list[str]) -> None:
        """Check that it has the current rows, or that DuckDB reports that its columns have changed since it was
        created."""
        try:
            found = self.connection.sql(f"SELECT * FROM {_own_view(name)}").fetchall()
        except duckdb.BinderException:
            return
        assert sorted(map(repr, found)) == want, f"a view over {name}"


def _own_view(name: str) -> str:
    return f"own_{name[3:].casefold()}"


def create(world: AttachedWorld, _name: str | None) -> None:
    if free := world.free_names():
        name = world.random.choice(free)
        more = [(f"c{place}", world.random.choice([pa.string(), pa.int32(), pa.float64()])) for place in range(2)]
        world.catalog.create_table(name, pa.schema([("id", pa.int64()), *more[: world.random.randint(0, 2)]]))
        world.rows[name] = []
        world.log.append(f"create {name}")


def rename(world: AttachedWorld, name: str | None) -> None:
    """Rename to an unused name, or to another spelling of the current one."""
    if name is None:
        return
    other = f"db.{name[3:].swapcase()}"
    to = world.random.choice([*world.free_names(), other])
    world.catalog.rename_table(name, to)
    world.rows[to] = world.rows.pop(name)
    world.log.append(f"rename {name} to {to}")


def drop(world: AttachedWorld, name: str | None) -> None:
    if name is not None:
        world.catalog.drop_table(name, purge=world.random.random() < 0.5)
        del world.rows[name]
        world.log.append(f"drop {name}")


def append(world: AttachedWorld, name: str | None) -> None:
    if name is None:
        return
    table, new = world.catalog.load_table(name), []
    for _ in range(world.random.randint(1, 3)):
        number = world.new_id()
        values = {"id": number}
        for each in table.schema:
            if each.name != "id" and world.random.random() < 0.7:
                values[each.name] = pa.scalar(number).cast(each.type).as_py()
        new.append(values)
    table.append(pa.Table.from_pylist(new, schema=table.schema))
    world.rows[name] += new
    world.log.append(f"append {new} to {name}")


def delete(world: AttachedWorld, name: str | None) -> None:
    if name is not None and world.rows[name]:
        gone = world.random.choice(world.rows[name])["id"]
        world.catalog.load_table(name).delete(f"id = {gone}")
        world.rows[name] = [row for row in world.rows[name] if row["id"] != gone]
        world.log.append(f"delete {gone} of {name}")


def change_columns(world: AttachedWorld, name: str | None) -> None:
    if name is None:
        return
    table, new = world.catalog.load_table(name), f"n{world.new_id()}"
    others = [each for each in table.schema.names if each != "id"]
    change = world.random.choice(["add", "drop", "rename"]) if others else "add"
    world.log.append(f"{change} a column of {name}")
    with table.update_schema() as update:
        if change == "add":
            update.add_column(new, world.random.choice(_TYPES))
            return
        old = world.random.choice(others)
        if change == "drop":
            update.delete_column(old)
        else:
            update.rename_column(old, new)
    for row in world.rows[name]:
        value = row.pop(old, None)
        if change == "rename":
            row[new] = value


def expire(world: AttachedWorld, name: str | None) -> None:
    if name is not None:
        table = world.catalog.load_table(name)
        table.maintenance.compact(rewrite_all=True)
        table.maintenance.expire_snapshots(older_than=_ANY_AGE, retain_last=1)
        world.log.append(f"compact and expire {name}")


def own_view(world: AttachedWorld, name: str | None) -> None:
    if name is not None:
        world.connection.execute(f"CREATE OR REPLACE VIEW {_own_view(name)} AS SELECT * FROM lake.{name}")
        world.views.add(name.casefold())


_STEPS: Final[tuple[Callable[[AttachedWorld, str | None], None], ...]] = (
    *(create, create, rename, drop, append, append, delete, change_columns, expire, own_view),
)


@pytest.mark.slow
@settings(max_examples=examples(0.04))
@given(seed=st.integers(0, 2**63))
def test_attached_views_follow_table_creates_renames_and_drops(seed: int) -> None:
    """LK-2, LK-17"""
    with fast_lake() as catalog, duckdb.connect() as connection:
        tf.duckdb.attach(connection, catalog)
        world = AttachedWorld(catalog, connection, random.Random(seed))
        try:
            for _ in range(STEPS):
                step = world.random.choice(_STEPS)
                step(world, world.random.choice(sorted(world.rows)) if world.rows else None)
                world.check()
                count("operations")
        except Exception as error:
            error.add_note("\n".join(world.log))
            raise
        tf.duckdb.detach(connection)
