"""Streams from a table with random operations and jobs, stopped and restarted: each row arrives once, in batches of any
size."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from stream_runs import Source

from tableformat import Catalog, Table
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.metadata.snapshot_choice import ancestors

EXAMPLES = max(1, settings().max_examples // 50)
RUNS = 4
ACTS_BETWEEN_RUNS = 4
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("number", pa.int64())])
IDS = range(6)
LAYOUTS: tuple[tuple[tuple[str, ...], tuple[str, ...], dict[str, str]], ...] = (
    (("id",), (), {"format-version": "2"}),
    (("id",), ("bucket(2, id)",), {"format-version": "3"}),
    ((), ("v",), {"format-version": "2", "commit.manifest.min-count-to-merge": "2"}),
    (("id",), (), {"format-version": "3", "write.parquet.row-group-limit": "1", "write.delete.mode": "copy-on-write"}),
    (("id",), (), {"format-version": "2", "write.target-file-size-bytes": "1", "write.merge.mode": "copy-on-write"}),
)
Rows = Counter[tuple[Any, ...]]


class StreamedTable:
    """A table, and the expected rows of a stream of its appended rows or of its changes."""

    def __init__(self, spark: SparkSession, table: Table, pick: random.Random) -> None:
        self.spark = spark
        self.table = table
        self.pick = pick
        self.log: list[str] = []
        self._next_number = 0

    def rows(self) -> pa.Table:
        found = []
        for _ in range(self.pick.randint(1, 4)):
            self._next_number += 1
            row = {"id": self.pick.choice(IDS), "v": self.pick.choice("abc"), "number": self._next_number}
            found.append(row)
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def act(self) -> None:
        table, rows, number = self.table.refresh(), self.rows(), self.pick.choice(IDS)
        name = f"lake.{table.name}"
        acts: dict[str, Callable[[], object]] = {
            "append": lambda: table.append(rows),
            "append again": lambda: table.append(rows),
            "insert": lambda: self.spark.sql(f"INSERT INTO {name} VALUES ({number}, 'a', {rows['number'][0]})"),
            "delete_rows": lambda: table.delete_rows(pa.table({"id": [number]})),
            "delete_range": lambda: table.delete_range(lower=(number,), upper=(number + 2,), on=["id"]),
            "scan": lambda: table.delete(f"id = {number} AND v = 'a'", mode="scan"),
            "update": lambda: self.spark.sql(f"UPDATE {name} SET v = 'u' WHERE id = {number}"),
            "overwrite": lambda: table.overwrite(rows, where=f"id = {number}", allow_outside=True),
            "convert": table.maintenance.convert_deletes,
            "compact": lambda: table.maintenance.compact(rewrite_all=True),
            "manifests": table.maintenance.rewrite_manifests,
        }
        if table.key:
            acts |= {"upsert": lambda: table.upsert(rows)}
        chosen = self.pick.choice(sorted(acts))
        self.log.append(f"{chosen} {number} {rows.to_pylist()}")
        acts[chosen]()

    def snapshots(self) -> list[Any]:
        table = self.table.refresh()
        return list(ancestors(table.metadata, table.view.snapshot))[::-1]

    def rows_at(self, snapshot_id: int) -> Rows:
        return Counter(
            map(tuple, (row.values() for row in self.table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()))
        )

    def appended(self, first: int | None) -> Rows:
        """SS-1, SS-3: the rows at the first snapshot, and the rows of each later snapshot that only appends."""
        line = self.snapshots()
        found: Rows = Counter()
        is_old = first is not None
        for before, snapshot in zip([None, *line], line, strict=False):
            if is_old:
                is_old = snapshot.snapshot_id != first
                found = self.rows_at(snapshot.snapshot_id)
            elif snapshot.summary.operation.value == "append" and not changes_no_row(snapshot):
                had = Counter() if before is None else self.rows_at(before.snapshot_id)
                found += self.rows_at(snapshot.snapshot_id) - had
        return found


class Batches:
    """The rows of each micro-batch; a micro-batch that is run again has the same rows (SS-4)."""

    def __init__(self) -> None:
        self.by_number: dict[int, Rows] = {}

    def take(self, batch: DataFrame, number: int) -> None:
        rows = Counter(map(tuple, batch.collect()))
        assert self.by_number.setdefault(number, rows) == rows, f"micro-batch {number} has other rows than before"

    def all(self) -> Rows:
        return sum(self.by_number.values(), Counter())


@pytest.mark.since_spark("4.2", "streams of changes")
def test_random_streams_deliver_each_row_once(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """SS-1 to SS-5, SS-9, CF-6: the rows of each snapshot that appends; the changes make the table."""
    numbers = iter(range(10**6))

    @settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(seed=st.integers(0, 2**63))
    def run(seed: int) -> None:
        pick = random.Random(seed)
        number = next(numbers)
        key, partition_by, properties = pick.choice(LAYOUTS)
        table = lake.create_table(
            (namespace, f"t{number}"), SCHEMA, key=key, partition_by=partition_by, properties=properties
        )
        known = StreamedTable(spark, table, pick)
        try:
            stop_and_go(known, tmp_path / str(number))
        except Exception as error:
            error.add_note("\n".join(known.log))
            raise

    run()


def stop_and_go(known: StreamedTable, checkpoint: Path) -> None:
    pick, name = known.pick, f"lake.{known.table.name}"
    for _ in range(pick.choice((0, ACTS_BETWEEN_RUNS))):
        known.act()
    first = known.table.refresh().snapshot_id
    appended, changed = Batches(), Batches()
    skip = {"streaming_skip_delete_snapshots": "true", "streaming_skip_overwrite_snapshots": "true"}
    for run in range(RUNS):
        limits = pick.choice(
            ({}, {"streaming_max_files_per_micro_batch": 1}, {"streaming_max_rows_per_micro_batch": 3})
        )
        known.log.append(f"run {run} with {limits}")
        rows = Source(known.spark, name, checkpoint / "rows", **skip, **limits)
        changes = Source(known.spark, name, checkpoint / "changes", has_changes=True, **limits)
        for source, batches in ((rows, appended), (changes, changed)):
            if batches.by_number and pick.random() < 0.4:
                known.log.append("the last commit is forgotten")
                source.forget_last_commit()
            source.run_numbered(batches.take)
        assert appended.all() == known.appended(first), "rows that were appended"
        assert applied(changed.all()) == known.rows_at(known.table.refresh().snapshot_id), "rows of the changes"
        for _ in range(ACTS_BETWEEN_RUNS):
            known.act()


def applied(changes: Rows) -> Rows:
    """The inserts minus the deletes; row numbers distinguish equal rows."""
    found: Rows = Counter()
    width = len(SCHEMA.names)
    for event, count in changes.items():
        row, kind = event[:width], event[width]
        found[row] += count if kind == "insert" else -count
    assert min(found.values(), default=0) >= 0, "a row was deleted that was not there"
    return +found
