"""A branch with blind replacements and deletes, and its publish target, to which others append.

The deletes of the branch apply to the rows that the target received before, regardless of the position of files and
range partitions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from history_error_notes import told_with
from hypothesis import given, settings
from hypothesis import strategies as st
from soak_figures import count

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.testing.table_rows import live_tuples

STEPS: Final = 16
SIZE: Final = 40
_SCHEMA: Final = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
_JOBS: Final = ("convert_deletes", "drop_dead_deletes", "merge_range_deletes", "rewrite_manifests", "compact")
Row = tuple[int, int]
"""id and n"""


@dataclass
class Retired:
    """The rows that retiring a range removed from the branch, by tag."""

    numbers: set[int]
    branch: list[Row]
    coming: list[Row]
    """Rows of the target that the retirement removes when they are carried, unless it is undone before."""


@dataclass
class PublishedWorld:
    """The rows of both branches, and the rows of the target that the branch has not received yet."""

    catalog: tf.Catalog
    random: random.Random
    has_ranges: bool
    target: list[Row] = field(default_factory=list)
    branch: list[Row] = field(default_factory=list)
    coming: list[Row] = field(default_factory=list)
    existing: set[int] = field(default_factory=lambda: set(range(SIZE)))
    retired: dict[str, Retired] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    _last_id: int = 0

    def handle(self, branch: str = "ingest") -> tf.Table:
        return self.catalog.load_table("db.t", branch=branch)

    def row(self, *, lower: int = 0, upper: int = SIZE) -> Row:
        self._last_id += 1
        return self._last_id, self.random.choice(
            sorted(self.existing & set(range(lower, upper))) or [min(self.existing)]
        )

    def interval(self) -> tuple[int, int]:
        lower, upper = sorted(self.random.sample(range(SIZE + 1), 2))
        return lower, upper

    def delete(self, is_meant: Callable[[Row], bool]) -> None:
        """Delete matching rows, including rows that the target received before."""
        self.branch = [row for row in self.branch if not is_meant(row)]
        self.coming = [row for row in self.coming if not is_meant(row)]
        for retired in self.retired.values():
            retired.coming = [row for row in retired.coming if not is_meant(row)]

    def everything_was_carried(self) -> None:
        self.branch, self.coming = self.branch + self.coming, []
        for retired in self.retired.values():
            retired.coming = []

    def check(self) -> None:
        refs = self.handle().metadata.refs
        if "carried.ingest" in refs and refs["carried.ingest"].snapshot_id == refs["main"].snapshot_id:
            # A job has carried what there was.
            self.everything_was_carried()
        assert live_tuples(self.handle()) == sorted(self.branch), f"branch, {self.coming} to come"
        assert live_tuples(self.handle("main")) == sorted(self.target), "target"


def append_to_target(world: PublishedWorld) -> None:
    new = [world.row() for _ in range(world.random.choice((1, 2)))]
    world.handle("main").append(_batch(new))
    world.target += new
    world.coming += new


def upsert(world: PublishedWorld) -> None:
    """The key of any row, also of a row that is still to be carried."""
    known, (new_id, n) = [*world.branch, *world.coming], world.row()
    row = (world.random.choice(known)[0] if known else new_id, n)
    getattr(world.handle(), world.random.choice(("upsert", "replace")))(_batch([row]))
    world.delete(lambda each: each[0] == row[0])
    world.branch.append(row)


def delete(world: PublishedWorld) -> None:
    lower, upper = world.interval()
    if world.random.random() < 0.5:
        world.handle().delete(f"n >= {lower} AND n < {upper}")
    else:
        world.handle().delete_range(on=["n"], lower=(lower,), upper=(upper,))
    world.delete(lambda each: lower <= each[1] < upper)


def replace_interval(world: PublishedWorld) -> None:
    lower, upper = world.interval()
    new = [row for row in (world.row(lower=lower, upper=upper),) if lower <= row[1] < upper]
    blind = world.random.random() < 0.3
    world.handle().replace_interval(_batch(new), on="n", lower=lower, upper=upper, blind=blind)
    world.delete(lambda each: lower <= each[1] < upper)
    world.branch += new


def transaction(world: PublishedWorld) -> None:
    (lower, upper), row = world.interval(), world.row()
    with world.handle().transaction() as staged:
        staged.append(_batch([row]))
        staged.delete_range(on=["n"], lower=(lower,), upper=(upper,))
    world.branch.append(row)
    world.delete(lambda each: lower <= each[1] < upper)


def change_ranges(world: PublishedWorld) -> None:
    """RP-26"""
    if not world.has_ranges:
        return
    lower = world.random.choice((0, 10, 20, 30))
    numbers = set(range(lower, lower + 10))
    if not numbers <= world.existing:
        world.handle().range_partitions.add(lower, lower + 10)
        world.existing |= numbers
    elif world.existing - numbers:
        world.handle().range_partitions.drop(lower, lower + 10)
        world.existing -= numbers
        world.delete(lambda each: each[1] in numbers)


def retire(world: PublishedWorld) -> None:
    """RP-13, RP-26"""
    lower = world.random.choice((0, 10, 20, 30))
    numbers = set(range(lower, lower + 10))
    if not world.has_ranges or not numbers <= world.existing or not world.existing - numbers:
        return
    try:
        tag = world.handle().range_partitions.retire(lower, lower + 10).tag
    except InvalidArgumentError as refused:
        assert "rows both inside and outside" in str(refused)  # noqa: PT017 (others pass)
        return
    assert tag is not None
    branch, coming = ([row for row in rows if row[1] in numbers] for rows in (world.branch, world.coming))
    world.existing -= numbers
    world.delete(lambda each: each[1] in numbers)
    world.retired[tag] = Retired(numbers, branch, coming)
    if world.random.random() < 0.5:
        restore(world)


def restore(world: PublishedWorld) -> None:
    """RP-13, RP-26: after the restore, the retirement no longer removes rows that are carried later."""
    if not world.retired:
        return
    tag = world.random.choice(sorted(world.retired))
    try:
        world.handle().range_partitions.restore(tag, deletes="ignore")
    except InvalidArgumentError as refused:
        assert "exists already" in str(refused)  # noqa: PT017 (others pass)
        return
    retired = world.retired.pop(tag)
    world.existing |= retired.numbers
    world.branch += retired.branch
    world.coming += retired.coming


def expire(world: PublishedWorld) -> None:
    """MT-1, RP-26"""
    world.handle("main").maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)


def run_job(world: PublishedWorld) -> None:
    name = world.random.choice(_JOBS)
    world.log.append(name)
    options: dict[str, Any] = {"rewrite_all": True} if name == "compact" else {}
    getattr(world.handle().maintenance, name)(**options)


def evolve(world: PublishedWorld) -> None:
    table = world.handle("main")
    if world.random.random() < 0.5 and table.metadata.format_version < 3:
        table.upgrade()
    else:
        with table.update_spec() as update:
            update.add_field("id", f"bucket[{len(table.metadata.partition_specs) + 3}]")


def publish(world: PublishedWorld) -> None:
    world.handle("main").maintenance.publish("ingest")
    world.everything_was_carried()
    world.target = list(world.branch)


_STEPS: Final[dict[Callable[[PublishedWorld], None], int]] = {
    append_to_target: 3,
    upsert: 2,
    delete: 2,
    replace_interval: 2,
    transaction: 1,
    change_ranges: 1,
    retire: 2,
    restore: 1,
    expire: 1,
    run_job: 1,
    evolve: 1,
    publish: 1,
}


@pytest.mark.slow
@settings(max_examples=examples(0.08))
@given(seed=st.integers(0, 2**63))
def test_branch_deletes_apply_to_earlier_rows_of_publish_target(seed: int) -> None:
    """MT-31, MT-33, RP-17, RP-19, RP-26"""
    with fast_lake() as catalog:
        pick = random.Random(seed)
        world = PublishedWorld(catalog, pick, has_ranges=pick.random() < 0.5)
        with told_with(world.log):
            run(world)


def run(world: PublishedWorld) -> None:
    pick = world.random
    ranges = tf.RangePartitions(on=["n"], bounds=[(0, SIZE)], splits=[10, 20, 30]) if world.has_ranges else None
    table = world.catalog.create_table(
        "db.t",
        _SCHEMA,
        key=["id"],
        partition_by=pick.choice(([], ["bucket(2, id)"], ["truncate(10, n)"])),
        range_partitions=ranges,
        properties={
            "format-version": pick.choice(("2", "3")),
            "write.delete.prefix-encoding": pick.choice(("range", "equality")),
        },
    )
    world.branch = [world.row() for _ in range(4)]
    world.target = list(world.branch)
    table.append(_batch(world.branch))
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    for _ in range(STEPS):
        (step,) = pick.choices(list(_STEPS), list(_STEPS.values()))
        world.log.append(step.__name__)
        step(world)
        count("operations")
        world.check()
    publish(world)
    world.check()
    found = world.handle("main").verify(deep=True)
    assert found.is_clean, found


def _batch(rows: list[Row]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "n": [row[1] for row in rows]}, schema=_SCHEMA)
