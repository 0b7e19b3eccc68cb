"""Branches of tables with keys of every type, under every operation, and a publish target to which others append.

Blind deletes of a branch apply to the rows that the target received before, by their keys as encoded, compared and
bounded; deletes that searched for rows do not. Both branches have the rows of a plain model after each step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from history_error_notes import told_with
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from soak_figures import count
from test_typed_keys import Key, TypedWorld, _within
from typed_tables import TYPES, KeyType

import tableformat as tf
from tableformat.errors import TableFormatError

STEPS: Final = 14
_JOBS: Final = ("convert_deletes", "drop_dead_deletes", "merge_range_deletes", "rewrite_manifests", "compact")
_TRANSFORMS: Final = {
    "boolean": ("identity",),
    "int": ("bucket[2]", "truncate[10]", "identity"),
    "long": ("bucket[2]", "truncate[10]", "identity"),
    "string": ("bucket[2]", "truncate[1]"),
    "binary": ("bucket[2]", "truncate[1]"),
    "date": ("bucket[2]", "year", "month", "day"),
    "timestamp": ("bucket[2]", "year", "day"),
    "timestamptz": ("bucket[2]", "month"),
    "timestamp_ns": ("bucket[2]", "day"),
    "decimal9": ("bucket[2]",),
}


@dataclass
class PublishedKeys(TypedWorld):
    """`rows` has only the rows of the branch."""

    catalog: tf.Catalog | None = None
    target: dict[Key, int] = field(default_factory=dict)
    coming: dict[Key, int] = field(default_factory=dict)
    """Rows of the target that the branch has not received yet; their keys are not in `rows`."""

    def handle(self, branch: str = "ingest") -> tf.Table:
        assert self.catalog is not None
        return self.catalog.load_table("db.t", branch=branch)

    def free_keys(self) -> list[Key]:
        return [key for key in self.some_keys() if key not in self.rows | self.coming | self.target]

    def looked_up_keys(self) -> list[Key]:
        """Keys for operations that search for rows on the branch alone."""
        return [key for key in self.some_keys() if key not in self.coming]

    def blind_keys(self, most: int = 4) -> list[Key]:
        """Keys for blind operations, including rows that are still to be carried."""
        also = self.random.sample(sorted(self.coming), min(len(self.coming), self.random.randint(0, 2)))
        return sorted({*self.some_keys(most), *also})

    def delete(self, is_meant: Callable[[Key], bool], *, reaches: bool) -> None:
        """`reaches`: whether the delete also applies to rows that the target received before."""
        self.rows = {key: value for key, value in self.rows.items() if not is_meant(key)}
        if reaches:
            self.coming = {key: value for key, value in self.coming.items() if not is_meant(key)}

    def write(self, rows: dict[Key, int]) -> None:
        self.rows.update(rows)
        self.coming = {key: value for key, value in self.coming.items() if key not in rows}

    def everything_was_carried(self) -> None:
        self.rows, self.coming = self.rows | self.coming, {}

    def check(self) -> None:
        refs = self.handle().metadata.refs
        if "carried.ingest" in refs and refs["carried.ingest"].snapshot_id == refs["main"].snapshot_id:
            # A job has carried what there was.
            self.everything_was_carried()
        where, matches = self.where()
        asked = self.blind_keys(6)
        for branch, rows in (("ingest", self.rows), ("main", self.target)):
            want, table = sorted(rows.items()), self.handle(branch)
            assert self.of_arrow(table.scan().to_arrow()) == want, branch
            assert self.of_arrow(table.scan(where=where).to_arrow()) == [row for row in want if matches(row[0])], where
            found = self.of_arrow(table.get_many(pa.table(self.columns(asked))))
            assert found == sorted((key, rows[key]) for key in asked if key in rows), branch


def append_to_target(world: PublishedKeys) -> None:
    if rows := world.new(world.free_keys()):
        world.handle("main").append(world.arrow(rows))
        world.target.update(rows)
        world.coming.update(rows)


def append(world: PublishedKeys) -> None:
    if rows := world.new([key for key in world.looked_up_keys() if key not in world.rows]):
        world.handle().append(world.arrow(rows))
        world.rows.update(rows)


def append_unknown(world: PublishedKeys) -> None:
    rows = world.new(world.looked_up_keys())
    if rows:
        world.handle().append(world.arrow(rows), on_duplicate="ignore")
        world.rows = {**rows, **world.rows}


def upsert(world: PublishedKeys) -> None:
    rows = world.new(world.blind_keys())
    world.handle().upsert(world.arrow(rows))
    world.write(rows)


def replace(world: PublishedKeys) -> None:
    depth = world.random.randint(1, len(world.types))
    rows = world.new(world.blind_keys())
    world.handle().replace(world.arrow(rows), prefix=world.names[:depth])
    gone = {key[:depth] for key in rows}
    world.delete(lambda key: key[:depth] in gone, reaches=True)
    world.rows.update(rows)


def delete_prefix(world: PublishedKeys) -> None:
    depth = world.random.randint(1, len(world.types))
    gone = {key[:depth] for key in world.blind_keys(2)}
    mode = world.random.choice(world.prefix_modes(depth))
    world.handle().delete_prefix(pa.table(world.columns(sorted(gone), depth)), mode=mode)
    world.delete(lambda key: key[:depth] in gone, reaches=mode != "scan")


def delete_rows(world: PublishedKeys) -> None:
    gone = world.blind_keys(2)
    world.handle().delete_rows(pa.table(world.columns(gone)))
    world.delete(lambda key: key in gone, reaches=True)


def delete_range(world: PublishedKeys) -> None:
    lower, upper = world.bounds()
    mode = world.random.choice(["auto", "scan"])
    world.handle().delete_range(lower=_said(world, lower), upper=_said(world, upper), mode=mode)
    world.delete(lambda key: _within(key, lower, upper), reaches=mode == "auto")


def delete(world: PublishedKeys) -> None:
    where, matches = world.where()
    mode = world.random.choice(["auto", "scan"])
    world.handle().delete(where, mode=mode)
    world.delete(matches, reaches=mode == "auto")


def replace_interval(world: PublishedKeys) -> None:
    lower, upper = world.bounds()
    rows = world.new([key for key in world.some_keys(8) if _within(key, lower, upper)])
    said = {"lower": _said(world, lower), "upper": _said(world, upper)}
    world.handle().replace_interval(world.arrow(rows), on=world.names, blind=world.random.random() < 0.5, **said)
    world.delete(lambda key: _within(key, lower, upper), reaches=True)
    world.rows.update(rows)


def merge(world: PublishedKeys) -> None:
    rows = world.new(world.looked_up_keys())
    if not rows:
        return
    statement = world.handle().merge(world.arrow(rows), on=world.names)
    if world.random.random() < 0.7:
        statement.when_matched_update_all().when_not_matched_insert_all().execute()
        world.rows.update(rows)
    else:
        statement.when_matched_delete().execute()
        world.delete(lambda key: key in rows, reaches=False)


def apply_changes(world: PublishedKeys) -> None:
    rows = world.new(world.blind_keys())
    operations = [world.random.choice(["insert", "update", "delete"]) for _ in rows]
    events = world.arrow(rows).append_column("_op", pa.array(operations))
    world.handle().apply_changes(events.append_column("_ts", pa.array(range(len(rows)), pa.int64())))
    world.delete(lambda key: key in rows, reaches=True)
    world.rows.update({key: rows[key] for key, each in zip(rows, operations, strict=True) if each != "delete"})


def transaction(world: PublishedKeys) -> None:
    """Its deletes leave its own rows of before."""
    rows, (lower, upper) = world.new(world.blind_keys()), world.bounds()
    with world.handle().transaction() as staged:
        staged.delete_range(lower=_said(world, lower), upper=_said(world, upper))
        staged.upsert(world.arrow(rows))
    world.delete(lambda key: _within(key, lower, upper), reaches=True)
    world.write(rows)


def run_job(world: PublishedKeys) -> None:
    name = world.random.choice(_JOBS)
    world.log.append(name)
    getattr(world.handle().maintenance, name)(**({"rewrite_all": True} if name == "compact" else {}))


def expire(world: PublishedKeys) -> None:
    """MT-1"""
    world.handle("main").maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)


def upgrade(world: PublishedKeys) -> None:
    if world.handle().metadata.format_version < 3:
        world.handle("main").upgrade()


def publish(world: PublishedKeys) -> None:
    world.handle("main").maintenance.publish("ingest")
    world.everything_was_carried()
    world.target = dict(world.rows)


def fast_forward(world: PublishedKeys) -> None:
    """MT-30: if nothing is to be carried, and no equality or range delete is left; rejected otherwise."""
    try:
        world.handle("main").fast_forward("main", to="ingest")
    except TableFormatError as refused:
        world.log.append(str(refused))
        return
    assert not world.coming
    world.target = dict(world.rows)


_STEPS: Final[dict[Callable[[PublishedKeys], None], int]] = {
    append_to_target: 6,
    **dict.fromkeys((append, append_unknown, upsert, replace, delete_prefix, delete_rows, delete_range, delete), 2),
    **dict.fromkeys((replace_interval, merge, apply_changes, transaction, publish, run_job), 2),
    **dict.fromkeys((expire, upgrade, fast_forward), 1),
}


@pytest.mark.slow
@settings(max_examples=examples(0.08), phases=[Phase.generate])
@given(seed=st.integers(0, 2**63), names=st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3))
def test_publish_agrees_with_model_for_all_key_types(seed: int, names: list[str]) -> None:
    """MT-31, MT-33, RD-4, DA-4"""
    types, pick = tuple(TYPES[name] for name in names), random.Random(seed)
    with fast_lake() as catalog:
        world = PublishedKeys(_table(catalog, types, pick), types, pick, catalog=catalog)
        with told_with(world.log):
            run(world)


def run(world: PublishedKeys) -> None:
    pick = world.random
    first = world.new(world.some_keys(6))
    world.table.append(world.arrow(first))
    world.rows, world.target = dict(first), dict(first)
    world.table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    world.log.append(f"v{world.table.metadata.format_version} {[each.name for each in world.types]}")
    for _ in range(STEPS):
        (step,) = pick.choices(list(_STEPS), list(_STEPS.values()))
        world.log.append(f"{step.__name__} with {world.last_value}")
        step(world)
        count("operations")
        world.check()
    publish(world)
    world.check()
    found = world.handle("main").verify(deep=True)
    assert found.is_clean, found


def _table(catalog: tf.Catalog, types: tuple[KeyType, ...], pick: random.Random) -> tf.Table:
    """`db.t`, empty; half of them have partitions of a key column."""
    keys = [pa.field(f"k{place}", each.arrow, nullable=False) for place, each in enumerate(types)]
    table = catalog.create_table(
        "db.t",
        pa.schema([*keys, ("v", pa.int64())]),
        key=[each.name for each in keys],
        properties={
            "format-version": str(max(pick.choice((2, 3)), *(each.version for each in types))),
            "write.delete.prefix-encoding": "range"
            if any(each.name == "fixed" for each in types)
            else pick.choice(("range", "equality")),
        },
    )
    place = pick.randrange(len(types))
    transforms = _TRANSFORMS.get(types[place].name)
    if transforms and pick.random() < 0.6:
        with table.update_spec() as update:
            update.add_field(keys[place].name, pick.choice(transforms), "p")
    return table


def _said(world: PublishedKeys, bound: Key | None) -> Key | None:
    return None if bound is None else world.arguments(bound)
