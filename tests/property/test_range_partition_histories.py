"""Histories of range partitions on a table and on a set of numbers, races step by step, and mistakes that the tests
find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from range_partition_model import SIZE, World
from stepped_jobs import SteppedJob

import tableformat as tf
from tableformat.commit import coverage_change
from tableformat.errors import CommitConflictError, UncoveredRowsError
from tableformat.maintenance.publishing.carried_drops import CarriedDrops
from tableformat.operations.ranges import dropped
from tableformat.operations.ranges.alter import PlannedAlteration
from tableformat.range_partitions import definition
from tableformat.testing.replacing import replaced, replaced_method
from tableformat.testing.table_rows import live_rows, live_values
from tableformat.write.rows.conform import ConformedRows

NUMBERS = st.integers(0, SIZE - 1)
GIVEN = st.dictionaries(st.integers(0, 5), NUMBERS, min_size=1, max_size=3)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["replace", "upsert"]), GIVEN),
    st.tuples(st.just("delete"), NUMBERS, NUMBERS),
    st.tuples(st.just("update"), NUMBERS, NUMBERS, NUMBERS),
    st.tuples(st.just("merge"), GIVEN),
    st.tuples(st.just("interval"), NUMBERS, NUMBERS, GIVEN, st.booleans()),
    st.tuples(st.just("staged"), GIVEN, st.tuples(st.sampled_from(["add", "drop"]), NUMBERS, NUMBERS)),
    st.tuples(st.just("alter"), st.sampled_from(["add", "drop", "merge"]), NUMBERS, NUMBERS),
    st.tuples(st.just("alter"), st.just("split"), NUMBERS),
    st.tuples(st.just("alter"), st.just("drop"), st.sampled_from([2, 6, 10, 14]), st.sampled_from([6, 10, 20])),
    st.tuples(st.just("retire"), NUMBERS),
    st.tuples(st.just("rollback"), NUMBERS),
    st.sampled_from([("restore",), ("compact",), ("convert",)]),
)


@given(st.sampled_from("23"), st.lists(STEPS, min_size=3, max_size=8))
@settings(max_examples=examples(0.15), suppress_health_check=[HealthCheck.too_slow])
def test_range_partition_history_agrees_with_a_set_of_numbers(version: str, steps: list[tuple[Any, ...]]) -> None:
    """RP-2, RP-3, RP-5, RP-8, RP-12, RP-13, RP-15, RP-30, RP-32"""
    with fast_lake() as catalog:
        world = World.made(catalog, "db.t", version)
        for step in steps:
            world.step(*step)
        world.check_past()


@given(st.sampled_from("23"), st.lists(st.one_of(STEPS, st.just(("branch",))), min_size=4, max_size=9))
@settings(max_examples=examples(0.08), suppress_health_check=[HealthCheck.too_slow])
def test_range_partition_history_on_two_branches(version: str, steps: list[tuple[Any, ...]]) -> None:
    """RP-8, RP-12, RP-15: a drop takes the rows of its branch, and what exists is the table's."""
    with fast_lake() as catalog:
        world = World.made(catalog, "db.t", version)
        for step in [("upsert", {0: 3, 1: 7, 2: 15}), ("branch",), *steps]:
            if step[0] not in ("retire", "restore"):
                world.step(*step)


@given(
    st.sampled_from("23"), st.lists(st.one_of(STEPS, st.tuples(st.just("advance"), NUMBERS)), min_size=3, max_size=8)
)
@settings(max_examples=examples(0.1), suppress_health_check=[HealthCheck.too_slow])
def test_range_partition_history_with_on_demand_ranges_and_window(version: str, steps: list[tuple[Any, ...]]) -> None:
    """RP-4, RP-9, RP-11, RP-15: steps are added with rows and ahead of time, and are dropped when they are old."""
    with fast_lake() as catalog:
        world = World.on_demand(catalog, "db.t", version)
        for step in steps:
            world.step(*step)


def _inclusive_upper_end(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(key: Any, bound: Any) -> Any:
        found = original(key, bound)
        return replace(found, upper=replace(found.upper, after=True, encoded=found.upper.encoded + b"\xff"))

    return wrong


def _straddling_files_removed_whole(original: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        files = original(*arguments)
        return replace(files, inside=(*files.inside, *files.straddling), straddling=())

    return wrong


def _filled(rows: ConformedRows, held: Any) -> Any:
    """Read the rows, and let each be rejected individually."""
    for batch in rows._reader:
        held.append(batch)
    return rows._conformer


MISTAKES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "an inclusive upper end": lambda: replaced(definition.range_of, _inclusive_upper_end(definition.range_of)),
    "a straddling file removed whole": lambda: replaced(
        dropped.dropped_files, _straddling_files_removed_whole(dropped.dropped_files)
    ),
    "narrowing without a snapshot": lambda: replaced_method(PlannedAlteration, "needs_snapshot", lambda *_: False),
    "the prefix of a refused row deleted": lambda: replaced_method(
        ConformedRows, "_conformer_of_whole_groups", _filled
    ),
}
HISTORIES: dict[str, list[tuple[Any, ...]]] = {
    "an inclusive upper end": [("replace", {0: 10})],
    "a straddling file removed whole": [
        ("upsert", {0: 7, 1: 9}),
        ("alter", "split", 8),
        ("alter", "drop", 8, 10),
    ],
    "narrowing without a snapshot": [("alter", "drop", 14, 20)],
}


def history(steps: list[tuple[Any, ...]]) -> None:
    with fast_lake() as catalog:
        world = World.made(catalog, "db.t", "2")
        for step in steps:
            world.step(*step)


@pytest.mark.parametrize("mistake", HISTORIES)
def test_injected_range_partition_mistakes_are_detected(mistake: str) -> None:
    """RP-2, RP-8, RP-12: broken, table and numbers differ; without the mistake they do not."""
    history(HISTORIES[mistake])
    with MISTAKES[mistake](), pytest.raises((AssertionError, tf.TableFormatError)):
        history(HISTORIES[mistake])


def half_replaced() -> list[dict[str, Any]]:
    """Two rows of one prefix, one of which is rejected."""
    schema = pa.schema([("message", pa.string()), ("n", pa.int64())])
    ranges = tf.RangePartitions(on=["n"], bounds=[(0, 10)])
    with fast_lake() as catalog:
        table = catalog.create_table("db.t", schema, key=["message", "n"], range_partitions=ranges)
        table.append(pa.table({"message": ["a"], "n": [1]}))
        new = pa.table({"message": ["a", "a"], "n": [2, 10]})
        table.replace(new, prefix=["message"], on_refused="divert")
        return live_rows(table)


def test_prefix_is_never_replaced_partially() -> None:
    """RP-5, CP-24: and the test finds the mistake of deleting the prefix of a rejected row."""
    assert half_replaced() == [{"message": "a", "n": 1}]
    with MISTAKES["the prefix of a refused row deleted"]():
        assert half_replaced() == [{"message": "a", "n": 2}]


# -- races ------------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "id": [1] * len(numbers)}, schema=SCHEMA)


def made(catalog: tf.Catalog, **given: Any) -> tf.Table:
    ranges = tf.RangePartitions(**{"on": ["n"], "bounds": [(0, 100)], "step": 10, **given})
    options = {"commit.retry.min-wait-ms": "1"}
    return catalog.create_table("db.t", SCHEMA, key=["n"], range_partitions=ranges, properties=options)


def directory_of(catalog: tf.Catalog) -> str:
    return catalog.iceberg.properties["warehouse"].removeprefix("file://")


def like_a_catalog_service() -> AbstractContextManager[None]:
    """Catalog services compare no property."""
    return replaced(coverage_change.coverage_is, lambda _text, _catalog: ())


def append_beside_a_drop(steps: int) -> None:
    with fast_lake() as catalog:
        table = made(catalog)
        table.append(rows(5))
        append = SteppedJob("append", directory_of(catalog), lambda other: other.append(rows(15, 55)))
        for _ in range(steps):
            if not append.is_done:
                append.step()
        was_done = append.is_done
        table.refresh().range_partitions.drop(50, 60)
        append.finish()
        found = live_values(table.refresh(), "n")
        if was_done:
            assert append.error is None
            assert found == [5, 15]
        else:
            assert isinstance(append.error, UncoveredRowsError | CommitConflictError), append.error
            assert found == [5]


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("catalog_is", [nullcontext, like_a_catalog_service], ids=["in process", "service"])
def test_append_concurrent_with_drop(steps: int, catalog_is: Callable[[], AbstractContextManager[None]]) -> None:
    """RP-6, RP-8: regardless of the steps in between, no row lies outside every range; the drop finds no file there."""
    with catalog_is():
        append_beside_a_drop(steps)


def append_beside_drops() -> None:
    for steps in range(6):
        append_beside_a_drop(steps)


def test_injected_narrowing_without_snapshot_is_detected() -> None:
    """RP-8: on a catalog service."""
    with like_a_catalog_service(), MISTAKES["narrowing without a snapshot"](), pytest.raises(AssertionError):
        append_beside_drops()


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("other", [25, 35, 300], ids=["the same step", "the next step", "another step"])
def test_concurrent_on_demand_additions_are_merged(steps: int, other: int) -> None:
    """RP-9"""
    with fast_lake() as catalog:
        table = made(catalog, bounds=[(0, 10)], on_demand=True)
        job = SteppedJob("append", directory_of(catalog), lambda mine: mine.append(rows(5, 25)))
        for _ in range(steps):
            if not job.is_done:
                job.step()
        table.refresh().append(rows(other))
        job.finish()
        assert job.error is None
        assert live_values(table.refresh(), "n") == sorted([5, 25, other])
        begin = other // 10 * 10
        listed = table.range_partitions.list()["partition"].to_pylist()
        assert sorted(listed) == sorted({"[0, 10)", "[20, 30)", f"[{begin}, {begin + 10})"})


@pytest.mark.parametrize("steps", range(6))
def test_concurrent_manual_additions_are_merged(steps: int) -> None:
    """RP-8"""
    with fast_lake() as catalog:
        table = made(catalog, bounds=[(0, 10)])
        job = SteppedJob("add", directory_of(catalog), lambda mine: mine.range_partitions.add(20, 30))
        for _ in range(steps):
            if not job.is_done:
                job.step()
        table.refresh().range_partitions.add(40, 50)
        job.finish()
        assert job.error is None
        assert table.refresh().range_partitions.list()["partition"].to_pylist() == ["[0, 10)", "[20, 30)", "[40, 50)"]


@pytest.mark.parametrize("steps", range(8))
def test_compaction_concurrent_with_split_and_drop(steps: int) -> None:
    """RP-12, CP-7: rows that a compaction has in hand stay dropped, and the others stay."""
    with fast_lake() as catalog:
        table = made(catalog, step=None)
        for number in (5, 15, 55, 65):
            table.append(rows(number, number + 1))
        job = SteppedJob("compact", directory_of(catalog), lambda other: other.maintenance.compact(rewrite_all=True))
        for _ in range(steps):
            if not job.is_done:
                job.step()
        changes = table.refresh().range_partitions
        changes.split(56)
        changes.drop(56, 100)
        job.finish()
        assert job.error is None or isinstance(job.error, CommitConflictError)
        assert live_values(table.refresh(), "n") == [5, 6, 15, 16, 55]


@pytest.mark.parametrize("steps", range(10))
def test_publish_concurrent_with_drop(steps: int) -> None:
    """RP-8, MT-30: what is published shows the branch before the drop or after it, and the next publish the drop; rows
    that others appended to the target are carried over."""
    with fast_lake() as catalog:
        table = made(catalog)
        table.append(rows(5, 55))
        table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
        branch = catalog.load_table("db.t", branch="ingest")
        branch.append(rows(15, 56))
        branch.delete("n = 5")
        table.refresh().append(rows(25))
        job = SteppedJob("publish", directory_of(catalog), lambda other: other.maintenance.publish("ingest"))
        for _ in range(steps):
            if not job.is_done:
                job.step()
        branch.refresh().range_partitions.drop(50, 60)
        job.finish()
        assert job.error is None or isinstance(job.error, CommitConflictError), job.error
        seen = live_values(table.refresh(), "n")
        assert seen in ([5, 25, 55], [15, 25, 55, 56], [15, 25]), seen
        table.maintenance.publish("ingest")
        assert live_values(table.refresh(), "n") == live_values(branch.refresh(), "n") == [15, 25]
        assert "uncovered" not in table.range_partitions.list()["state"].to_pylist()


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("added_again", [True, False])
def test_publish_with_carried_rows_concurrent_with_drops(steps: int, added_again: bool) -> None:
    """RP-26, MT-31: drops of the branch apply to rows of the target. This includes a drop between two attempts of the
    carry, and rows in files that cross a bound. Rows that the branch wrote into a range that was added again stay."""
    with fast_lake() as catalog:
        table = made(catalog, step=None, splits=[50])
        table.append(rows(5))
        table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
        branch = catalog.load_table("db.t", branch="ingest")
        table.refresh().append(rows(25, 55))
        branch.refresh().range_partitions.drop(0, 50)
        job = SteppedJob("publish", directory_of(catalog), lambda other: other.maintenance.publish("ingest"))
        for _ in range(steps):
            if not job.is_done:
                job.step()
        changes = branch.refresh().range_partitions
        changes.split(60)
        changes.drop(50, 60)
        if added_again:
            changes.add(0, 60)
            branch.append(rows(26, 56))
        job.finish()
        assert job.error is None or isinstance(job.error, CommitConflictError), job.error
        table.maintenance.publish("ingest")
        assert live_values(table.refresh(), "n") == ([26, 56] if added_again else [])
        assert live_values(branch.refresh(), "n") == live_values(table, "n")


def _of_first_attempt(original: Callable[..., Any]) -> Callable[..., Any]:
    found: dict[CarriedDrops, Any] = {}

    def wrong(drops: CarriedDrops, *arguments: Any) -> Any:
        if drops not in found:
            found[drops] = original(drops, *arguments)
        return found[drops]

    return wrong


@pytest.mark.parametrize("mistake", [lambda *_: (), _of_first_attempt(CarriedDrops.deletes)], ids=["none", "the first"])
def test_carry_with_wrong_drops_is_detected(mistake: Callable[..., Any]) -> None:
    """RP-26: without the drops of the branch, or with the drops from before the carry was tried again."""
    with replaced_method(CarriedDrops, "deletes", mistake), pytest.raises(AssertionError):
        publishes_that_carry_beside_drops()


def publishes_that_carry_beside_drops() -> None:
    for steps in range(6, 12):
        test_publish_with_carried_rows_concurrent_with_drops(steps, False)


BESIDE: dict[str, tuple[Callable[[tf.Table], Any], list[list[int]]]] = {
    "an append": (lambda table: table.append(rows(20, 80)), [[5, 18, 65, 80], [5, 18, 20, 65, 80]]),
    "a compaction": (lambda table: table.maintenance.compact(rewrite_all=True), [[5, 18, 65]]),
    "a delete that reads": (lambda table: table.delete("n = 15", mode="scan"), [[5, 18, 65]]),
}


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("replacement_waits", [True, False])
def test_replace_interval_concurrent_with_other_commits(replacement_waits: bool, beside: str, steps: int) -> None:
    """RP-19: the interval has the new rows, and the rows of later commits."""
    other, allowed = BESIDE[beside]
    with fast_lake() as catalog:
        table = made(catalog, step=None)
        for numbers in ((5, 11), (15,), (55, 65)):
            table.append(rows(*numbers))

        def replacement(mine: tf.Table) -> None:
            mine.replace_interval(rows(18), on="n", lower=10, upper=60)

        first, second = (replacement, other) if replacement_waits else (other, replacement)
        job = SteppedJob("first", directory_of(catalog), first)
        for _ in range(steps):
            if not job.is_done:
                job.step()
        second(table.refresh())
        job.finish()
        assert job.error is None or (isinstance(job.error, CommitConflictError) and not replacement_waits), job.error
        assert live_values(table.refresh(), "n") in allowed
