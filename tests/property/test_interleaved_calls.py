"""Writers and jobs that are stepped through each other, one call to a file or to the catalog at a time."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from example_counts import examples
from fast_lake import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_history import NEW_COLUMN, History, Rollback, Setting
from new_lakes import new_lake
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType
from soak_figures import count
from stepped_jobs import every_file_is_a_slice, file_calls_stop

import tableformat as tf
from tableformat.testing.acts import CONVERSION, EVERY_FILE, Act, InTransaction, Job, OneVerb, Rewrite, acts
from tableformat.testing.machine import (
    FIXED_ROWS,
    KINDS_OF_DELETE,
    VARIANTS,
    Variant,
    delete_of,
    filter_of_key,
    inserting_merge,
    unique_append,
)
from tableformat.testing.strategies import KEY, SCHEMA
from tableformat.testing.verbs import Change, Verb, verbs

PATIENT: Final = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "0",
    "commit.retry.max-wait-ms": "1",
    "commit.manifest.min-count-to-merge": "3",
}
COPY_ON_WRITE: Final = {f"write.{statement}.mode": "copy-on-write" for statement in ("delete", "update", "merge")}
LAYOUTS: Final = (
    *(variant for variant in VARIANTS if "tableformat.upkeep" not in variant.properties),
    Variant((), COPY_ON_WRITE),
    Variant(("bucket(2, id)",), {"format-version": "3", "write.delete.blind": "off"}),
)
FUTURE: Final = 10**15


def _add_column(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.add_column(NEW_COLUMN, LongType())


def _repartition(table: tf.Table) -> None:
    with table.update_spec() as update:
        update.add_field("number", BucketTransform(2), "number_bucket")


SETTINGS: Final = (
    Setting("add column", _add_column),
    Setting("repartition", _repartition),
    Setting("upgrade", lambda table: table.upgrade(3)),
    Setting("property", lambda table: table.set_properties(**{"write.parquet.row-group-limit": "2"})),
    Setting("tag", lambda table: table.create_tag("kept") if table.snapshot_id else None),
)
CHANGE: Final = Change({"note": "'b'"}, lambda *_: {"note": "b"})
EXPIRY: Final = Job("expire_snapshots", {"older_than": FUTURE})
RARE: Final = st.sampled_from([*SETTINGS, EXPIRY]) | st.integers(0, 2).map(Rollback)
PICKS: Final = st.integers(0, len(FIXED_ROWS) - 1)
HITS: Final[st.SearchStrategy[Act]] = st.one_of(
    st.builds(lambda pick, kind: OneVerb(delete_of(FIXED_ROWS, pick, kind)), PICKS, KINDS_OF_DELETE),
    st.builds(
        lambda pick, choice: OneVerb(unique_append(FIXED_ROWS[pick], choice)),
        PICKS,
        st.sampled_from(["ignore", "error"]),
    ),
)
"""Acts on rows that exist at first, so that several acts concern the same ones."""
ACTORS: Final[st.SearchStrategy[Act]] = st.integers(0, 9).flatmap(
    lambda luck: RARE if luck == 0 else HITS if luck < 4 else acts()
)
WRITERS: Final[st.SearchStrategy[Act]] = st.one_of(
    verbs().map(OneVerb), st.lists(verbs(), min_size=2, max_size=3).map(lambda made: InTransaction((*made,)))
)
STEPS: Final = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4) | st.integers(1, 40)), min_size=2, max_size=30)
"""The running act that continues, and the number of its calls."""
TO_ITS_END: Final = 1_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """The acts that run first, one after another, and then the acts that are stepped through each other."""

    first: Sequence[Act]
    stepped: Sequence[Act]
    steps: Sequence[tuple[int, int | None]]
    """The act that continues, and the number of its calls; None: up to its request to commit."""


RANDOM: Final = st.builds(
    Scenario, st.lists(st.one_of(WRITERS, HITS), max_size=4), st.lists(ACTORS, min_size=2, max_size=5), STEPS
)


@st.composite
def overtaken(draw: st.DrawFn) -> Scenario:
    """Acts on one row: the first one has made some of its calls when the others begin, which make all of theirs.

    Independently drawn acts seldom concern the same rows, and seldom conflict.
    """
    pick, row = draw(PICKS.map(lambda pick: (pick, FIXED_ROWS[pick])))
    hit = OneVerb(delete_of(FIXED_ROWS, pick, draw(KINDS_OF_DELETE)))
    beside = OneVerb(Verb("append", (row, {**row, "number": row["number"] ^ 1})))
    rewrite = draw(st.sampled_from([Rewrite(EVERY_FILE), Job("compact", {"rewrite_all": True})]))
    deciding: Act = draw(
        st.sampled_from(
            [
                OneVerb(unique_append(row, "ignore")),
                OneVerb(unique_append(row, "error")),
                OneVerb(inserting_merge(row)),
                OneVerb(delete_of(FIXED_ROWS, pick, "scan")),
                OneVerb(Verb("update", where=filter_of_key(row), change=CHANGE)),
                InTransaction((delete_of(FIXED_ROWS, pick, "scan"), unique_append(row, "ignore"))),
            ]
        )
    )
    first, overtaken, others = draw(
        st.sampled_from(
            [
                ([], rewrite, [hit]),
                ([beside], rewrite, [hit, CONVERSION]),
                ([], deciding, [hit]),
                ([], deciding, [hit]),
                ([], deciding, [rewrite]),
                ([], deciding, [beside]),
                ([hit], deciding, [Rollback(1)]),
                ([hit], deciding, [Rollback(1)]),
                ([beside, hit], CONVERSION, [Rollback(1)]),
                ([beside, hit], CONVERSION, [rewrite]),
                ([beside, hit], CONVERSION, [deciding]),
                ([beside, hit], CONVERSION, [Rollback(1), hit]),
            ]
        )
    )
    calls = draw(st.none() | st.none() | st.integers(0, 80))
    return Scenario(first, [overtaken, *others], [(0, calls), *[(1, TO_ITS_END)] * len(others)])


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    with file_calls_stop(), every_file_is_a_slice():
        yield


@pytest.mark.slow
@settings(max_examples=examples(0.2))
@given(layout=st.sampled_from(LAYOUTS), scenario=st.one_of(RANDOM, overtaken(), overtaken()))
def test_interleaved_calls_are_serializable(layout: Variant, scenario: Scenario) -> None:
    """CP-1 to CP-11, CP-20 to CP-22: in the order of the snapshots each act does what it does alone; an act that fails
    changed nothing; no file that the table names is missing."""
    with tempfile.TemporaryDirectory(prefix="lake-", dir=MEMORY if MEMORY.is_dir() else None) as directory:
        history = History(_new_table(directory, layout), directory)
        numbers = itertools.count()
        for act in (OneVerb(Verb("append", FIXED_ROWS)), *scenario.first):
            history.finish(history.start(act.numbered(numbers)))
            count("operations")
        waiting = [act.numbered(numbers) for act in scenario.stepped]
        for which, calls in scenario.steps:
            while waiting and len(history.actors) < 3:
                _note(history, waiting[0])
                history.start(waiting.pop(0))
                count("operations")
            if not history.actors:
                continue
            actor = history.actors[which % len(history.actors)]
            if calls is None:
                history.step_to_commit(actor)
            else:
                history.step(actor, calls)
        while history.actors:
            history.finish(history.actors[0])
        table = history.reader.refresh()
        assert table.verify(deep=True).is_clean
        table.catalog.close()


def _new_table(directory: str, layout: Variant) -> tf.Table:
    catalog = new_lake(directory)
    properties = {**PATIENT, **layout.properties}
    return catalog.create_table("db.t", SCHEMA, key=KEY, partition_by=layout.partition_by, properties=properties)


def _note(history: History, act: Act) -> None:
    history.may_lose_files |= act == EXPIRY
    history.was_rolled_back |= isinstance(act, Rollback)
