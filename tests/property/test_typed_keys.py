"""Tables with keys of every type, under every operation and job: each entry point returns the rows of a plain model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan
from soak_figures import count
from typed_tables import TYPES, KeyType

import tableformat as tf

STEPS: Final = 12
Key: TypeAlias = tuple[Any, ...]


@dataclass
class TypedWorld:
    """One table, its rows by key, and what was done."""

    table: tf.Table
    types: tuple[KeyType, ...]
    random: random.Random
    rows: dict[Key, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    last_value: int = 0

    @property
    def names(self) -> list[str]:
        return [f"k{place}" for place in range(len(self.types))]

    def some_keys(self, most: int = 4) -> list[Key]:
        """Distinct keys; many of them are in the table."""
        taken = sorted(self.rows)
        chosen = {
            self.random.choice(taken)
            if taken and self.random.random() < 0.4
            else tuple(self.random.choice(each.values) for each in self.types)
            for _ in range(self.random.randint(1, most))
        }
        found = sorted(chosen)
        self.random.shuffle(found)
        return found

    def new(self, keys: list[Key]) -> dict[Key, int]:
        self.last_value += len(keys)
        return {key: self.last_value - place for place, key in enumerate(keys)}

    def said_keys(self) -> list[Key]:
        """The keys that a caller can give as Python values."""
        return [key for key in self.some_keys(8) if all(map(KeyType.can_be_said, self.types, key))]

    def columns(self, keys: list[Key], depth: int | None = None) -> dict[str, pa.Array]:
        return {
            name: each.array(key[place] for key in keys)
            for place, (name, each) in enumerate(zip(self.names[:depth], self.types, strict=False))
        }

    def arrow(self, rows: dict[Key, int]) -> pa.Table:
        return pa.table({**self.columns(list(rows)), "v": pa.array(rows.values(), pa.int64())})

    def of_arrow(self, found: pa.Table) -> list[tuple[Key, int]]:
        columns = [each.values_of(found[name]) for name, each in zip(self.names, self.types, strict=True)]
        return sorted(zip(zip(*columns, strict=True), found["v"].to_pylist(), strict=True))

    def arguments(self, values: Key) -> Key:
        return tuple(each.as_argument(value) for each, value in zip(self.types, values, strict=False))

    def prefix_modes(self, depth: int) -> list[str]:
        """Equality deletes of several `fixed` values are rejected: Iceberg's Java library would apply only one of
        them."""
        is_fixed = any(each.name == "fixed" for each in self.types[:depth])
        return ["auto", "range", "scan", *(() if is_fixed else ("equality",))]

    def where(self) -> tuple[BooleanExpression, Callable[[Key], bool]]:
        place = self.random.randrange(len(self.types))
        each, name = self.types[place], self.names[place]
        one, two = sorted(self.random.choices([value for value in each.values if each.can_be_filtered_by(value)], k=2))
        if one == two:
            return EqualTo(name, each.literal(one)), lambda key: key[place] == one
        expression = And(GreaterThanOrEqual(name, each.literal(one)), LessThan(name, each.literal(two)))
        return expression, lambda key: one <= key[place] < two

    def bounds(self) -> tuple[Key | None, Key | None]:
        """Bounds from prefixes, in order; None is open."""
        cut = [key[: self.random.randint(1, len(key))] for key in self.said_keys()]
        if not cut:
            return None, tuple(next(filter(each.can_be_said, each.values)) for each in self.types)
        lower, upper = sorted(self.random.choices(cut, k=2))
        if self.random.random() < 0.15:
            return None, upper
        return lower, None if self.random.random() < 0.15 else upper


def _within(key: Key, lower: Key | None, upper: Key | None) -> bool:
    return (lower is None or key[: len(lower)] >= lower) and (upper is None or key[: len(upper)] < upper)


def append(world: TypedWorld) -> None:
    rows = world.new([key for key in world.some_keys() if key not in world.rows])
    if rows:
        world.table.append(world.arrow(rows))
        world.rows.update(rows)


def append_unknown(world: TypedWorld) -> None:
    rows = world.new(world.some_keys())
    world.table.append(world.arrow(rows), on_duplicate="ignore")
    world.rows = {**rows, **world.rows}


def upsert(world: TypedWorld) -> None:
    rows = world.new(world.some_keys())
    world.table.upsert(world.arrow(rows))
    world.rows.update(rows)


def replace(world: TypedWorld) -> None:
    depth = world.random.randint(1, len(world.types))
    rows = world.new(world.some_keys())
    world.table.replace(world.arrow(rows), prefix=world.names[:depth])
    gone = {key[:depth] for key in rows}
    world.rows = {**{key: value for key, value in world.rows.items() if key[:depth] not in gone}, **rows}


def delete_prefix(world: TypedWorld) -> None:
    depth = world.random.randint(1, len(world.types))
    gone = {key[:depth] for key in world.some_keys(2)}
    mode = world.random.choice(world.prefix_modes(depth))
    world.table.delete_prefix(pa.table(world.columns(sorted(gone), depth)), mode=mode)
    world.rows = {key: value for key, value in world.rows.items() if key[:depth] not in gone}


def delete_rows(world: TypedWorld) -> None:
    gone = world.some_keys(2)
    world.table.delete_rows(pa.table(world.columns(gone)))
    world.rows = {key: value for key, value in world.rows.items() if key not in gone}


def delete_range(world: TypedWorld) -> None:
    lower, upper = world.bounds()
    world.table.delete_range(
        lower=None if lower is None else world.arguments(lower),
        upper=None if upper is None else world.arguments(upper),
        mode=world.random.choice(["auto", "scan"]),
    )
    world.rows = {key: value for key, value in world.rows.items() if not _within(key, lower, upper)}


def delete(world: TypedWorld) -> None:
    where, matches = world.where()
    world.table.delete(where, mode=world.random.choice(["auto", "scan"]))
    world.rows = {key: value for key, value in world.rows.items() if not matches(key)}


def merge(world: TypedWorld) -> None:
    rows = world.new(world.some_keys())
    statement = world.table.merge(world.arrow(rows), on=world.names)
    if world.random.random() < 0.7:
        statement.when_matched_update_all().when_not_matched_insert_all().execute()
        world.rows.update(rows)
    else:
        statement.when_matched_delete().execute()
        world.rows = {key: value for key, value in world.rows.items() if key not in rows}


def apply_changes(world: TypedWorld) -> None:
    rows = world.new(world.some_keys())
    operations = [world.random.choice(["insert", "update", "delete"]) for _ in rows]
    events = world.arrow(rows).append_column("_op", pa.array(operations))
    world.table.apply_changes(events.append_column("_ts", pa.array(range(len(rows)), pa.int64())))
    for (key, value), operation in zip(rows.items(), operations, strict=True):
        world.rows.pop(key, None)
        if operation != "delete":
            world.rows[key] = value


def replace_interval(world: TypedWorld) -> None:
    lower, upper = world.bounds()
    rows = world.new([key for key in world.some_keys(8) if _within(key, lower, upper)])
    world.table.replace_interval(
        world.arrow(rows),
        on=world.names,
        lower=None if lower is None else world.arguments(lower),
        upper=None if upper is None else world.arguments(upper),
        blind=world.random.random() < 0.5,
    )
    world.rows = {**{key: value for key, value in world.rows.items() if not _within(key, lower, upper)}, **rows}


def convert(world: TypedWorld) -> None:
    world.table.maintenance.convert_deletes()


def compact(world: TypedWorld) -> None:
    world.table.maintenance.compact(rewrite_all=world.random.random() < 0.5)


def merge_deletes(world: TypedWorld) -> None:
    world.table.maintenance.merge_range_deletes()


_STEPS: Final[tuple[Callable[[TypedWorld], None], ...]] = (
    *(append, append, append_unknown, upsert, upsert, replace, replace, delete_prefix, delete_rows, delete_range),
    *(delete, merge, apply_changes, replace_interval, convert, compact, merge_deletes),
)


def check(world: TypedWorld, before: dict[Key, int], head: int | None) -> None:
    """Check the table through every entry point."""
    want, scan = sorted(world.rows.items()), world.table.scan()
    assert world.of_arrow(scan.to_arrow()) == want, "pyarrow"
    where, matches = world.where()
    assert world.of_arrow(world.table.scan(where=where).to_arrow()) == [row for row in want if matches(row[0])], where
    asked = world.some_keys(6)
    got = world.table.get_many(pa.table(world.columns(asked)))
    assert world.of_arrow(got) == sorted((key, world.rows[key]) for key in asked if key in world.rows), "get_many"
    for key in world.said_keys()[:2]:
        row = world.table.get(world.arguments(key))
        assert (None if row is None else row["v"]) == world.rows.get(key), key
    assert sorted(scan.to_polars()["v"].to_list()) == sorted(world.rows.values()), "polars"
    with duckdb.connect() as connection:
        rows = scan.to_duckdb(connection).order("v").project("v").fetchall()
    assert [value for (value,) in rows] == sorted(world.rows.values()), "duckdb"
    if world.table.snapshot_id != head:
        replayed = dict(before)
        events = world.table.changes(from_snapshot_id=head).to_arrow()
        keys = [each.values_of(events[name]) for name, each in zip(world.names, world.types, strict=True)]
        for kind, value, *key in zip(events["_change_type"].to_pylist(), events["v"].to_pylist(), *keys, strict=True):
            if kind == "insert":
                assert tuple(key) not in replayed, "an insert of a key that is there"
                replayed[tuple(key)] = value
            else:
                assert replayed.pop(tuple(key)) == value, "a delete of another row"
        assert replayed == world.rows, "change feed"


@pytest.mark.slow
@settings(max_examples=examples(0.1), phases=[Phase.generate])
@given(seed=st.integers(0, 2**63), names=st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3))
def test_all_readers_agree_with_model_for_all_key_types(seed: int, names: list[str]) -> None:
    """RD-1, RD-4, DA-4"""
    types = tuple(TYPES[name] for name in names)
    chosen = random.Random(seed)
    version = max(chosen.choice([2, 3]), *(each.version for each in types))
    schema = pa.schema(
        [*(pa.field(f"k{place}", each.arrow, nullable=False) for place, each in enumerate(types)), ("v", pa.int64())]
    )
    with fast_lake() as catalog:
        properties = {"format-version": str(version)}
        table = catalog.create_table("db.t", schema, key=schema.names[:-1], properties=properties)
        world = TypedWorld(table, types, chosen)
        try:
            for _ in range(STEPS):
                before, head = dict(world.rows), table.snapshot_id
                step = chosen.choice(_STEPS)
                world.log.append(f"{step.__name__} with {world.last_value}")
                step(world)
                check(world, before, head)
                count("operations")
            assert table.verify(deep=True).is_clean
        except BaseException as error:
            error.add_note("\n".join([f"v{version} {names}", *world.log]))
            raise
