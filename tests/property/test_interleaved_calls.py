"""Writers and jobs that are stepped through each other, one call to a file or to the catalog at a time."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from example_counts import examples
from fast_lake import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_history import NEW_COLUMN, History, Rollback, Setting
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType
from soak_figures import count
from stepped_jobs import file_calls_stop

import tableformat as tf
from tableformat.testing.acts import Act, InTransaction, Job, OneVerb, acts
from tableformat.testing.machine import FIXED_ROWS, KINDS_OF_DELETE, VARIANTS, Variant, delete_of, unique_append
from tableformat.testing.strategies import KEY, SCHEMA
from tableformat.testing.verbs import Verb, verbs

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
"""Of rows that are there at first, so that acts are about the same ones."""
ACTORS: Final[st.SearchStrategy[Act]] = st.integers(0, 9).flatmap(
    lambda luck: RARE if luck == 0 else HITS if luck < 4 else acts()
)
WRITERS: Final[st.SearchStrategy[Act]] = st.one_of(
    verbs().map(OneVerb), st.lists(verbs(), min_size=2, max_size=3).map(lambda made: InTransaction((*made,)))
)
STEPS: Final = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4) | st.integers(1, 40)), min_size=2, max_size=30)
"""Which of the acts under way goes on, and for how many calls."""


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    with file_calls_stop():
        yield


@pytest.mark.slow
@settings(max_examples=examples(0.2))
@given(
    layout=st.sampled_from(LAYOUTS),
    first=st.lists(st.one_of(WRITERS, HITS), max_size=4),
    stepped=st.lists(ACTORS, min_size=2, max_size=5),
    steps=STEPS,
)
def test_whatever_the_order_of_calls_the_history_is_one_after_the_other(
    layout: Variant, first: Sequence[Act], stepped: Sequence[Act], steps: Sequence[tuple[int, int]]
) -> None:
    """CP-1 to CP-11, CP-20 to CP-22: in the order of the snapshots each act does what it does alone; an act that fails
    changed nothing; no file that the table names is missing."""
    with tempfile.TemporaryDirectory(prefix="lake-", dir=MEMORY if MEMORY.is_dir() else None) as directory:
        history = History(_new_table(directory, layout), directory)
        numbers = itertools.count()
        for act in (OneVerb(Verb("append", FIXED_ROWS)), *first):
            history.finish(history.start(act.numbered(numbers)))
            count("operations")
        waiting = [act.numbered(numbers) for act in stepped]
        for which, calls in steps:
            while waiting and len(history.actors) < 3:
                _note(history, waiting[0])
                history.start(waiting.pop(0))
                count("operations")
            if history.actors:
                history.step(history.actors[which % len(history.actors)], calls)
        while history.actors:
            history.finish(history.actors[0])
        table = history.reader.refresh()
        assert table.verify(deep=True).is_clean
        table.catalog.close()


def _new_table(directory: str, layout: Variant) -> tf.Table:
    catalog = tf.open_catalog(directory)
    catalog.create_namespace("db")
    properties = {**PATIENT, **layout.properties}
    return catalog.create_table("db.t", SCHEMA, key=KEY, partition_by=layout.partition_by, properties=properties)


def _note(history: History, act: Act) -> None:
    history.may_lose_files |= act == EXPIRY
    history.was_rolled_back |= isinstance(act, Rollback)
