"""Transactions over two tables that stop at every call to the catalog, while others commit to the same tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from stepped_jobs import SteppedJob

import tableformat as tf
from tableformat.catalogs.heads import Heads
from tableformat.errors import CommitConflictError

NAMES: Final = ("db.t", "db.lines")
SCHEMA: Final = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("writer", pa.string()), pa.field("shared", pa.bool_())]
)
PROPERTIES: Final = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "tableformat.upkeep": "off",
}
Act = Callable[[tf.Table], Any]


def rows(number: int, writer: str, *, shared: bool = True) -> pa.Table:
    return pa.table({"id": [number], "writer": [writer], "shared": [shared]}, schema=SCHEMA)


def transaction(table: tf.Table, *, writer: str, names: tuple[str, ...], verb: str) -> Any:
    """The same rows in both tables."""
    assert table.catalog is not None
    with table.catalog.transaction(application_id=writer, batch_id=1) as tx:
        for name in names:
            part = tx.table(name)
            match verb:
                case "append":
                    part.append(rows(len(writer), writer))
                case "replace":
                    part.replace(rows(1, writer))
                case "scan":
                    part.delete("id = 2 AND shared", mode="scan")
                    part.append(rows(2, writer))
    return tx.results


def alone(table: tf.Table, *, writer: str) -> Any:
    assert table.catalog is not None
    return table.catalog.load_table("db.lines").append(rows(9, writer, shared=False))


def compaction(table: tf.Table) -> Any:
    return table.maintenance.compact(rewrite_all=True)


ACTS: Final[dict[str, Act]] = {
    "append": partial(transaction, writer="a", names=NAMES, verb="append"),
    "append in the other order": partial(transaction, writer="bb", names=NAMES[::-1], verb="append"),
    "replace": partial(transaction, writer="ccc", names=NAMES, verb="replace"),
    "replace in the other order": partial(transaction, writer="dddd", names=NAMES[::-1], verb="replace"),
    "scan": partial(transaction, writer="eeeee", names=NAMES, verb="scan"),
    "the batch of another process": partial(transaction, writer="a", names=NAMES, verb="append"),
    "only one table": partial(alone, writer="ffffff"),
    "compaction": compaction,
}


def shared_rows(catalog: tf.Catalog) -> list[list[tuple[Any, ...]]]:
    """The rows of each table, as one reader sees them."""
    heads = Heads.of(catalog)
    found = [heads.load(name).scan(where="shared", columns=["id", "writer"]).to_arrow() for name in NAMES]
    return [sorted(zip(*each.to_pydict().values(), strict=True)) for each in found]


@settings(max_examples=examples(0.1), deadline=None)
@given(st.lists(st.sampled_from(sorted(ACTS)), min_size=2, max_size=3, unique=True), st.data())
def test_two_table_transaction_is_atomic_at_every_moment(acts: list[str], data: st.DataObject) -> None:
    """CP-74, CP-78, CP-80: with commits between any two calls to the catalog."""
    with tempfile.TemporaryDirectory() as directory, tf.open_catalog(f"{directory}/lake") as catalog:
        catalog.create_namespace("db")
        for name in NAMES:
            table = catalog.create_table(name, SCHEMA, key=["id"], properties=PROPERTIES)
            table.append(rows(1, "first"))
            table.append(rows(2, "first"))
        jobs = [SteppedJob(name, str(Path(directory) / "lake"), ACTS[name]) for name in acts]
        running = list(jobs)
        while running:
            job = data.draw(st.sampled_from(running), label="next")
            job.step()
            running = [each for each in running if not each.is_done]
            of_orders, of_lines = shared_rows(catalog)
            assert of_orders == of_lines
        for job in jobs:
            job.finish()
            assert job.error is None or isinstance(job.error, CommitConflictError), job.error
        writers = [writer for _, writer in shared_rows(catalog)[0]]
        assert writers.count("a") <= 1, "the batch is there once"
        for name in NAMES:
            assert catalog.load_table(name).verify(deep=True).is_clean
