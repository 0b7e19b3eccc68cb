"""MT-111 to MT-119: random histories of all operations and jobs, and an erasure at the end."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from erased_tables import SENTINEL, traces

import tableformat as tf
from tableformat.errors import InvalidKeyError
from tableformat.metadata.snapshot_choice import ancestors

SCHEMA: Final = pa.schema(
    [
        pa.field("who", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)
PEOPLE: Final = ("alice", "bob", SENTINEL, "nina", "zoe")
PARTITIONS: Final = ((), ("who",), ("bucket(3, n)",), ("truncate(4, who)", "bucket(2, n)"))
STEPS: Final = 25
SEEDS: Final = int(os.environ.get("SOAK_ERASED_HISTORIES", "8"))
Act = Callable[[tf.Table, random.Random], Any]


def some_rows(dice: random.Random) -> pa.Table:
    keys = sorted({(dice.choice(PEOPLE), dice.randrange(20)) for _ in range(dice.randrange(1, 15))})
    return pa.table(
        {
            "who": [who for who, _ in keys],
            "n": [n for _, n in keys],
            "note": [dice.choice([None, "a", "b"]) for _ in keys],
            "amount": [dice.choice([None, 1.5, float("nan")]) for _ in keys],
        },
        schema=SCHEMA,
    )


def cut(dice: random.Random) -> tuple[Any, ...] | None:
    return dice.choice([None, (dice.choice(PEOPLE),), (dice.choice(PEOPLE), dice.randrange(20))])


def delete_range(table: tf.Table, dice: random.Random) -> None:
    lower, upper = cut(dice), cut(dice)
    if (lower, upper) != (None, None):
        table.delete_range(lower=lower, upper=upper)


def delete_rows(table: tf.Table, dice: random.Random) -> None:
    keys = some_rows(dice).select(["who", "n"])
    table.delete_rows(keys)


def on_a_branch(table: tf.Table, dice: random.Random) -> None:
    name = f"branch-{dice.randrange(3)}"
    if name not in table.metadata.refs:
        table.create_branch(name)
    assert table.catalog is not None
    other = table.catalog.load_table("db.t", branch=name)
    dice.choice(WRITES)(other, dice)


def rollback(table: tf.Table, dice: random.Random) -> None:
    line = list(ancestors(table.metadata, table.view.snapshot))
    table.rollback(snapshot_id=dice.choice(line).snapshot_id)


def upgrade(table: tf.Table, dice: random.Random) -> None:
    """Only a table with one line of snapshots: two lines would give different row ids to one file."""
    line = list(ancestors(table.metadata, table.view.snapshot))
    if dice.random() < 0.5 and len(line) == len(table.metadata.snapshots) and len(table.metadata.refs) == 1:
        table.upgrade(3)


def add_column(table: tf.Table, dice: random.Random) -> None:
    from pyiceberg.types import StringType

    with table.update_schema() as update:
        update.add_column(f"more_{dice.randrange(10**6)}", StringType())


WRITES: Final[list[Act]] = [
    lambda t, d: t.append(some_rows(d)),
    lambda t, d: t.append(some_rows(d)),
    lambda t, d: t.upsert(some_rows(d), missing="null"),
    lambda t, d: t.replace(some_rows(d), prefix=["who"]),
    lambda t, d: t.delete_prefix({"who": d.choice(PEOPLE)}),
    lambda t, d: t.delete_prefix({"who": d.choice(PEOPLE), "n": d.randrange(20)}, mode="equality"),
    lambda t, d: t.delete(f"n = {d.randrange(20)}", mode="scan"),
    lambda t, d: t.delete(f"n > {d.randrange(20)} AND note = 'a'", mode="scan"),
    delete_range,
    delete_rows,
]
ACTS: Final[list[Act]] = [
    *WRITES,
    *WRITES,
    on_a_branch,
    lambda t, d: t.create_tag(f"tag-{d.randrange(10**9)}"),
    lambda t, d: t.maintenance.compact(min_input_files=2, rewrite_all=d.random() < 0.3),
    lambda t, _: t.maintenance.convert_deletes(),
    lambda t, _: t.maintenance.merge_range_deletes(),
    lambda t, _: t.maintenance.drop_dead_deletes(),
    lambda t, _: t.maintenance.rewrite_position_delete_files(),
    lambda t, _: t.maintenance.rewrite_manifests(),
    lambda t, _: t.maintenance.compute_table_stats(),
    lambda t, d: t.maintenance.expire_snapshots(older_than=10**15, retain_last=d.randrange(1, 9)),
    upgrade,
    rollback,
    add_column,
]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_erasure_keeps_all_other_rows_of_the_history(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    table = random_table(tmp_path, dice)
    before = {each.snapshot_id: rows_at(table, each.snapshot_id) for each in table.metadata.snapshots}
    certificate = table.maintenance.erase({"who": SENTINEL})
    assert certificate.is_complete, certificate.tables[0].not_reached
    for snapshot_id, rows in before.items():
        assert rows_at(table, snapshot_id) == [row for row in rows if SENTINEL not in row], snapshot_id
    assert traces(tmp_path) == []
    assert table.verify(deep=True).errors == ()
    head = rows_at(table, table.snapshot_id)
    table.maintenance.run()
    table.maintenance.compact(rewrite_all=True)
    assert rows_at(table.refresh(), table.snapshot_id) == head
    table.append(some_rows(random.Random(1)))
    assert table.verify(deep=True).errors == ()


def random_table(directory: Path, dice: random.Random) -> tf.Table:
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        SCHEMA,
        key=["who", "n"],
        partition_by=dice.choice(PARTITIONS),
        properties={
            "format-version": dice.choice("23"),
            "write.parquet.bloom-filter-enabled.column.who": dice.choice(["true", "false"]),
            "write.delete.prefix-encoding": dice.choice(["range", "equality"]),
            "write.metadata.compression-codec": dice.choice(["none", "gzip"]),
            "commit.manifest.min-count-to-merge": dice.choice(["3", "100"]),
            "write.target-file-size-bytes": dice.choice(["2000", "1000000"]),
        },
    )
    table.append(some_rows(dice))
    for _ in range(STEPS):
        act = dice.choice(ACTS)
        with contextlib.suppress(InvalidKeyError):  # A range whose bounds are inverted.
            act(table.refresh(), dice)
    return table.refresh()


def rows_at(table: tf.Table, snapshot_id: int) -> list[str]:
    """As text, because NaN is not equal to itself."""
    found = table.scan(columns=["who", "n", "note", "amount"], snapshot_id=snapshot_id).to_arrow()
    return sorted(str(list(row.values())) for row in found.to_pylist())
