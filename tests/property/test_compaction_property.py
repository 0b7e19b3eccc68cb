"""Compaction between the commits of others: no order of steps loses a row or brings one back.

Every job plans, then writes, then commits. The steps of others in between run in the job's own progress callback, so
each example is one schedule, and jobs may be nested in jobs. The oracle is a list of rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tableformat as tf
from tableformat.commit import conflicts
from tableformat.commit.change import ChangeKind
from tableformat.maintenance.compaction import compact as compaction
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("v", pa.int64()),
    ]
)
PROPERTIES = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "tableformat.upkeep.files-per-level": "2",
    "tableformat.upkeep.write-amplification": "1000",
}
Row = tuple[str, int, int]


@dataclass(frozen=True)
class Step:
    """One operation or job; the steps in `meanwhile` run between the plan of a job and its commit."""

    name: str
    id1: str = "a"
    lower: int = 0
    upper: int = 0
    meanwhile: tuple[Step, ...] = field(default=())


KEYS = {"id1": st.sampled_from("ab"), "lower": st.integers(0, 6), "upper": st.integers(0, 6)}
WRITES = st.sampled_from(
    ["append", "append", "delete_prefix", "delete_range", "upsert", "delete_rows", "delete_scan", "replace"]
)
WRITE_STEPS = st.builds(Step, WRITES, **KEYS)
JOB_NAMES = st.sampled_from(
    ["compact", "compact", "compact", "convert", "rewrite_manifests", "fold", "drop_dead", "merge", "upkeep"]
)
PLAIN_JOBS = st.builds(Step, JOB_NAMES)
JOBS = st.builds(
    Step,
    st.sampled_from(["compact", "compact", "fold", "convert", "upkeep", "upkeep"]),
    meanwhile=st.lists(
        WRITE_STEPS | PLAIN_JOBS | st.builds(Step, st.just("compact"), meanwhile=st.tuples(WRITE_STEPS | PLAIN_JOBS)),
        min_size=1,
        max_size=4,
    ).map(tuple),
)
SCHEDULES = st.lists(WRITE_STEPS | JOBS | JOBS, min_size=2, max_size=7)


class Schedule:
    """A table, the rows that it must have, and how steps change both."""

    def __init__(self, catalog: tf.Catalog, partition_by: list[str], version: str) -> None:
        catalog.create_namespace("db")
        self._catalog = catalog
        properties = {**PROPERTIES, "format-version": version}
        catalog.create_table("db.t", SCHEMA, key=["id1", "id2"], partition_by=partition_by, properties=properties)
        self.rows: list[Row] = []
        self._number = 0

    def handle(self) -> tf.Table:
        return self._catalog.load_table("db.t")

    def run(self, step: Step) -> None:
        getattr(self, f"_{step.name}")(step)

    def found(self) -> list[Row]:
        return live_tuples(self.handle())

    def _new_rows(self, step: Step) -> list[Row]:
        self._number += 1
        return [
            (step.id1, key, self._number) for key in range(min(step.lower, step.upper), max(step.lower, step.upper) + 1)
        ]

    def _keep(self, is_kept: Callable[[Row], bool]) -> None:
        self.rows = [row for row in self.rows if is_kept(row)]

    def _append(self, step: Step) -> None:
        new = self._new_rows(step)
        self.handle().append(as_table(new))
        self.rows += new

    def _upsert(self, step: Step) -> None:
        new = self._new_rows(step)
        self.handle().upsert(as_table(new))
        keys = {row[:2] for row in new}
        self._keep(lambda row: row[:2] not in keys)
        self.rows += new

    def _replace(self, step: Step) -> None:
        new = self._new_rows(step)
        self.handle().replace(as_table(new), prefix=["id1"])
        self._keep(lambda row: row[0] != step.id1)
        self.rows += new

    def _delete_prefix(self, step: Step) -> None:
        self.handle().delete_prefix({"id1": step.id1, "id2": step.lower})
        self._keep(lambda row: row[:2] != (step.id1, step.lower))

    def _delete_range(self, step: Step) -> None:
        lower, upper = sorted([step.lower, step.upper])
        self.handle().delete_range(lower=(step.id1, lower), upper=(step.id1, upper))
        self._keep(lambda row: not (row[0] == step.id1 and lower <= row[1] < upper))

    def _delete_rows(self, step: Step) -> None:
        self.handle().delete_rows(pa.table({"id2": [step.lower]}))
        self._keep(lambda row: row[1] != step.lower)

    def _delete_scan(self, step: Step) -> None:
        self.handle().delete(f"id1 = '{step.id1}' and id2 = {step.upper}", mode="scan")
        self._keep(lambda row: row[:2] != (step.id1, step.upper))

    def _compact(self, step: Step) -> None:
        self.handle().maintenance.compact(
            min_input_files=2, delete_ratio_threshold=0.01, progress=self._between(step), target_file_size_bytes=4000
        )

    def _fold(self, step: Step) -> None:
        self.handle().maintenance.compact(depth="fold", delete_ratio_threshold=0.01, progress=self._between(step))

    def _upkeep(self, step: Step) -> None:
        self.handle().maintenance.upkeep(progress=self._between(step))

    def _convert(self, step: Step) -> None:
        self.handle().maintenance.convert_deletes(progress=self._between(step))

    def _rewrite_manifests(self, step: Step) -> None:
        self.handle().maintenance.rewrite_manifests()

    def _drop_dead(self, step: Step) -> None:
        self.handle().maintenance.drop_dead_deletes()

    def _merge(self, step: Step) -> None:
        self.handle().maintenance.merge_range_deletes()

    def _between(self, step: Step) -> Callable[[int, int, str], None]:
        waiting = list(step.meanwhile)

        def progress(done: int, total: int, what: str) -> None:
            if waiting:
                self.run(waiting.pop(0))

        return progress


def as_table(rows: list[Row]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def check(steps: list[Step], partition_by: list[str], version: str) -> None:
    with tempfile.TemporaryDirectory() as directory, tf.open_catalog(f"{directory}/lake") as catalog:
        schedule = Schedule(catalog, partition_by, version)
        for step in steps:
            schedule.run(step)
            assert schedule.found() == sorted(schedule.rows), step
        for last in (Step("convert"), Step("compact"), Step("drop_dead")):
            schedule.run(last)
            assert schedule.found() == sorted(schedule.rows), last
        replaced_nothing(schedule.handle())


def replaced_nothing(table: tf.Table) -> None:
    """Check that a "replace" snapshot has the rows of its parent."""
    for snapshot in table.metadata.snapshots:
        assert snapshot.summary is not None
        if snapshot.summary.operation.value == "replace":
            new = live_tuples(table, snapshot_id=snapshot.snapshot_id)
            assert new == live_tuples(table, snapshot_id=snapshot.parent_snapshot_id)


COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}


@settings(max_examples=examples(0.6), **COMMON)
@given(steps=SCHEDULES, partition_by=st.sampled_from([[], ["id1"], ["bucket(2, id2)"]]), version=st.sampled_from("23"))
def test_compaction_under_any_schedule_keeps_exactly_the_live_rows(
    steps: list[Step], partition_by: list[str], version: str
) -> None:
    """CP-4, CP-7, CP-8, CP-9, CP-11, MT-43, MT-47, MT-48"""
    check(steps, partition_by, version)


# -- the test itself is tested: each mistake has to be found -----------------------------------------------------------

BASE = [Step("append", "a", 0, 6), Step("append", "a", 0, 6)]
RACES = st.builds(
    lambda job, between: [*BASE, Step(job, meanwhile=tuple(between))],
    st.sampled_from(["compact", "fold", "convert"]),
    st.lists(
        st.builds(Step, st.sampled_from(["delete_range", "delete_scan", "upsert", "convert", "compact"]), **KEYS),
        min_size=1,
        max_size=3,
    ),
)


def finds_a_mistake(examples: int) -> bool:
    @settings(max_examples=examples, database=None, derandomize=True, phases=[Phase.generate], **COMMON)
    @given(steps=RACES)
    def search(steps: list[Step]) -> None:
        check(steps, [], "2")

    try:
        search()
    except AssertionError:
        return True
    return False


def test_new_sequence_number_for_old_rows_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-7: the mistake of apache/iceberg issue 10312: rows that were deleted concurrently come back."""
    change_of = compaction._change

    def newer(*arguments: Any) -> Any:
        change = change_of(*arguments)
        added = tuple(replace(data, sequence_number=None) for data in change.added_data_files)
        return replace(change, kind=ChangeKind.ROW_DELTA, added_data_files=added)

    monkeypatch.setattr(compaction, "_change", newer)
    assert finds_a_mistake(60)


def test_missing_conflict_rules_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-8, CP-9: either rule is enough against a delete and its conversion; without both, rows come back."""
    rules = {
        **conflicts.CONFLICT_TABLE,
        ChangeKind.REWRITE: {conflicts.Theirs.DATA_REMOVED: (conflicts.files_named_are_live,)},
    }
    monkeypatch.setattr(conflicts, "CONFLICT_TABLE", rules)
    assert finds_a_mistake(60)
