"""One run of every operation and every job, on a small table with all kinds of deletes, branches and tags."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from unittest import mock

import pyarrow as pa
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.maintenance.upkeep.background import BACKGROUND
from tableformat.maintenance.upkeep.policy import UpkeepMode, UpkeepPolicy
from tableformat.server.served_tables import ServedTables

SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("payload", pa.int64()),
    ]
)
KEY: Final = ("id1", "id2")
FUTURE: Final = 10**15
QUICK: Final = {
    "tableformat.upkeep": "off",
    "tableformat.upkeep.files-per-level": "2",
    "tableformat.upkeep.write-amplification": "1000",
    "commit.retry.num-retries": "2",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.num-retries": "2",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "2",
    "commit.manifest.min-count-to-merge": "4",
    "write.metadata.previous-versions-max": "6",
}
"""Little patience; manifests get merged and metadata files logged out within a few commits."""

_PATIENCE_SECONDS: Final = 60

Action = Callable[[tf.Table], Any]
BatchAction = Callable[..., Any]


def rows(*keys: tuple[str, int], payload: int = 0) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*key, payload), strict=True)) for key in keys], schema=SCHEMA)


def make_lake(catalog: tf.Catalog, version: str) -> None:
    """Two tables: `db.t` with everything, `db.other` to be dropped and renamed."""
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", SCHEMA, key=KEY, partition_by=["bucket(2, id2)"], properties={**QUICK, "format-version": version}
    )
    first_id = table.append(rows(*((letter, n) for letter in "abc" for n in range(8)), payload=1)).snapshot_id
    table.create_tag("first")
    table.append(rows(*(("d", n) for n in range(4)), payload=2))
    table.delete("id2 = 5", mode="scan")
    table.delete("payload = 2 AND id2 = 3", mode="scan")
    table.create_branch("behind", first_id)
    table.delete_rows(pa.table({"id1": ["a"], "id2": [6]}))
    table.delete_prefix({"id1": "b", "id2": 1}, mode="equality")
    table.delete_range(lower=("a", 0), upper=("a", 2))
    table.create_branch("ingest")
    table.set_properties(owner="nobody")
    catalog.load_table("db.t", branch="ingest").delete_prefix({"id1": "c", "id2": 0})
    table.refresh().append(rows(("e", 0), payload=3))
    other = catalog.create_table("db.other", SCHEMA, key=KEY, properties={**QUICK, "format-version": version})
    other.append(rows(("x", 1)))
    other.delete_prefix({"id1": "x"})
    lines = catalog.create_table("db.lines", SCHEMA, key=KEY, properties={**QUICK, "format-version": version})
    lines.append(rows(("a", 1), ("a", 2), ("b", 2)))


def _transaction(table: tf.Table, **batch: Any) -> Any:
    with table.transaction(**batch) as tx:
        tx.delete_prefix({"id1": "a"})
        tx.append(rows(("a", 1), ("a", 2), payload=9))
        tx.upsert(rows(("c", 3), payload=9))
        tx.delete("id2 = 7", mode="scan")
    return tx.result


def _transaction_of_tables(table: tf.Table, **batch: Any) -> Any:
    """Two tables change, and a third one is read."""
    assert table.catalog is not None
    with table.catalog.transaction(**batch) as tx:
        tx.table("db.t").replace(rows(("a", 70), ("a", 71), payload=9), prefix=["id1"])
        tx.table("db.other").delete("id2 = 99", mode="scan")
        tx.table("db.lines").delete("id2 = 2", mode="scan")
        tx.table("db.lines").append(rows(("a", 7), payload=9))
    assert len({each.already_applied for each in tx.results.values()}) == 1, tx.results
    return tx.results["db.t"]


def _staged(kind: str) -> BatchAction:
    def run(table: tf.Table, **batch: Any) -> Any:
        write = table.new_write(kind=kind, prefix=["id1"] if kind == "replace" else None)
        staged = [write.write(rows((letter, 40), payload=9)) for letter in "ab"]
        return table.commit(write, staged, **batch)

    return run


def _changes() -> pa.Table:
    events = rows(("a", 3), ("b", 2), ("z", 1), payload=9)
    events = events.append_column("_op", pa.array(["update", "delete", "insert"]))
    return events.append_column("_ts", pa.array([1, 2, 3]))


def _with_upkeep(mode: UpkeepMode, act: BatchAction) -> BatchAction:
    """The operation and the upkeep after it, as if the table requested it: a death in the thread is a death of the
    process."""
    of = UpkeepPolicy.of

    def run(table: tf.Table, **batch: Any) -> Any:
        with (
            mock.patch.object(UpkeepPolicy, "of", lambda properties: replace(of(properties), mode=mode)),
            mock.patch.object(threading, "excepthook"),
        ):
            try:
                return act(table, **batch)
            finally:
                assert BACKGROUND.wait(_PATIENCE_SECONDS), "upkeep does not end"

    return run


def _append(table: tf.Table, **batch: Any) -> Any:
    return table.append(rows(("f", 1), ("f", 2), payload=9), **batch)


VERBS: Final[dict[str, BatchAction]] = {
    "append": _append,
    "append, and upkeep of the writer": _with_upkeep(UpkeepMode.WRITER, _append),
    "append, and upkeep in the background": _with_upkeep(UpkeepMode.BACKGROUND, _append),
    "append, duplicates ignored": lambda t, **b: t.append(rows(("a", 3), ("f", 1)), on_duplicate="ignore", **b),
    "append, duplicates refused": lambda t, **b: t.append(rows(("f", 1)), on_duplicate="error", **b),
    "append, duplicates replaced": lambda t, **b: t.append(rows(("a", 3), payload=9), on_duplicate="replace", **b),
    "delete by range": lambda t, **b: t.delete("id1 = 'a'", mode="range", **b),
    "delete by equality": lambda t, **b: t.delete("id1 = 'a' AND id2 = 4", mode="equality", **b),
    "delete by scan": lambda t, **b: t.delete("id2 = 4", mode="scan", **b),
    "delete_prefix": lambda t, **b: t.delete_prefix({"id1": "a"}, **b),
    "delete_prefix of many": lambda t, **b: t.delete_prefix(pa.table({"id1": list("abghijklmnop")}), **b),
    "delete_prefix by equality": lambda t, **b: t.delete_prefix({"id1": "a"}, mode="equality", **b),
    "delete_range": lambda t, **b: t.delete_range(lower=("a", 3), upper=("b", 4), **b),
    "delete_range by scan": lambda t, **b: t.delete_range(lower=("a", 3), upper=("b", 4), mode="scan", **b),
    "delete_rows": lambda t, **b: t.delete_rows(pa.table({"id1": ["a", "b"], "id2": [3, 4]}), **b),
    "replace": lambda t, **b: t.replace(rows(("a", 70), ("a", 71), payload=9), prefix=["id1"], **b),
    "replace_interval": lambda t, **b: t.replace_interval(rows(("a", 3), payload=9), on="id2", lower=2, upper=5, **b),
    "upsert": lambda t, **b: t.upsert(rows(("a", 3), ("y", 1), payload=9), **b),
    "apply_changes": lambda t, **b: t.apply_changes(_changes(), **b),
    "overwrite": lambda t, **b: t.overwrite(rows(("a", 3), payload=9), where="payload >= 2", allow_outside=True, **b),
    "overwrite of all": lambda t, **b: t.overwrite(rows(("a", 3), payload=9), **b),
    "transaction": _transaction,
    "transaction of several tables": _transaction_of_tables,
    "staged append": _staged("append"),
    "staged replace": _staged("replace"),
}
"""Verbs that take the name of a batch, and with it are committed once."""


def _add_column(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.add_column("note", LongType()).rename_column("payload", "load")


def _repartition(table: tf.Table) -> None:
    with table.update_spec() as update:
        update.add_field("id1", IdentityTransform(), "id1")


def _snapshot(table: tf.Table, tag: str) -> int:
    return table.metadata.refs[tag].snapshot_id


CHANGES_OF_METADATA: Final[dict[str, Action]] = {
    "rollback": lambda t: t.rollback(snapshot_id=_snapshot(t, "first")),
    "set_current_snapshot": lambda t: t.set_current_snapshot(ref_name="ingest"),
    "fast_forward": lambda t: t.fast_forward("behind", to="main"),
    "create_tag": lambda t: t.create_tag("second"),
    "create_branch": lambda t: t.create_branch("more", _snapshot(t, "first")),
    "drop_tag": lambda t: t.drop_tag("first"),
    "drop_branch": lambda t: t.drop_branch("behind"),
    "update_schema": _add_column,
    "update_spec": _repartition,
    "set_key": lambda t: t.set_key(["id2", "id1"]),
    "set_properties": lambda t: t.set_properties(owner="somebody", note="x"),
    "remove_properties": lambda t: t.remove_properties("owner"),
    "upgrade": lambda t: t.upgrade(3),
    "create_table": lambda t: t.catalog.create_table("db.new", SCHEMA, key=KEY),
    "create_namespace": lambda t: t.catalog.create_namespace("more", exist_ok=True),
    "rename_table": lambda t: t.catalog.rename_table("db.other", "db.renamed"),
    "drop_table": lambda t: t.catalog.drop_table("db.other"),
    "drop_table with its files": lambda t: t.catalog.drop_table("db.other", purge=True),
}
"""One commit each, without a batch's name."""

JOBS: Final[dict[str, Action]] = {
    "convert_deletes": lambda t: t.maintenance.convert_deletes(partial_progress=False),
    "convert_deletes in parts": lambda t: t.maintenance.convert_deletes(),
    "drop_dead_deletes": lambda t: t.maintenance.drop_dead_deletes(),
    "merge_range_deletes": lambda t: t.maintenance.merge_range_deletes(),
    "rewrite_position_delete_files": lambda t: t.maintenance.rewrite_position_delete_files(),
    "publish": lambda t: t.maintenance.publish(),
    "expire_snapshots": lambda t: t.maintenance.expire_snapshots(older_than=FUTURE),
    "compact": lambda t: t.maintenance.compact(min_input_files=2, delete_ratio_threshold=0.01),
    "compact of all": lambda t: t.maintenance.compact(rewrite_all=True, partial_progress=False),
    "upkeep": lambda t: t.maintenance.upkeep(),
    "rewrite_manifests": lambda t: t.maintenance.rewrite_manifests(),
    "remove_orphan_files": lambda t: t.maintenance.remove_orphan_files(older_than=FUTURE, allow_recent=True),
    "compute_table_stats": lambda t: t.maintenance.compute_table_stats(),
    "repair": lambda t: t.maintenance.repair(),
    "run": lambda t: t.maintenance.run(),
    "serve": lambda t: ServedTables(t.iceberg.catalog, 0).load(("db", "t")),
}
"""They may commit in several steps. No step changes a row of any branch."""
