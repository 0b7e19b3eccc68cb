"""Every operation and every job once, in an order in which each has something to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

import tableformat as tf

SCHEMA = pa.schema([("id1", pa.string()), ("id2", pa.int64()), ("v", pa.string())])
NAME = "db.t"
Step = Callable[[tf.Table], Any]


def rows(*found: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def create(catalog: tf.Catalog, version: str, name: str = NAME) -> tf.Table:
    """An empty table in a namespace that is made if missing."""
    catalog.create_namespace("db", exist_ok=True)
    properties = {"format-version": version, "commit.retry.min-wait-ms": "1"}
    return catalog.create_table(
        name, SCHEMA, key=["id1", "id2"], partition_by=["bucket(2, id1)"], properties=properties
    )


def _staged(table: tf.Table) -> None:
    write = table.new_write()
    table.commit(write, [write.write(rows(("s", 1, "staged")))])


def _transaction(table: tf.Table) -> None:
    with table.transaction(application_id="estate", batch_id=1) as tx:
        tx.append(rows(("t", 1, "x"), ("t", 2, "x")))
        tx.delete_prefix({"id1": "t", "id2": 1})


def _schema(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "w")
    with table.refresh().update_schema() as update:
        update.rename_column("w", "v")
    table.refresh()


def _publish(table: tf.Table) -> None:
    """Onto `published`, from `main`."""
    table.create_branch("published")
    table.append(rows(("p", 1, "x")))
    table.delete_prefix({"id1": "p"})
    table.maintenance.publish(source="main", target="published")
    table.refresh()


def _sound(table: tf.Table) -> None:
    errors = table.verify(deep=True).errors
    assert errors == (), errors


STEPS: Mapping[str, Step] = {
    "append": lambda t: t.append(rows(*((key, n, "x") for key in "abcd" for n in range(4)))),
    "create_tag": lambda t: t.create_tag("first"),
    "upsert": lambda t: t.upsert(rows(("a", 1, "y"), ("z", 1, "y"))),
    "replace": lambda t: t.replace(rows(("b", 9, "y")), prefix=["id1"]),
    "replace_interval": lambda t: t.replace_interval(rows(("c", 5, "i")), on=["id1"], lower=("c",), upper=("d",)),
    "delete_prefix": lambda t: t.delete_prefix({"id1": "d", "id2": 0}),
    "delete_range": lambda t: t.delete_range(lower=("d", 3), upper=("e",)),
    "delete_rows": lambda t: t.delete_rows(pa.table({"id1": ["d"], "id2": [1]})),
    "delete": lambda t: t.delete("v = 'y' AND id1 = 'z'", mode="scan"),
    "update": lambda t: t.update("id1 = 'a' AND id2 = 2", set={"v": "'u'"}),
    "merge": lambda t: (
        t.merge(rows(("a", 0, "m"), ("m", 1, "m")), on=["id1", "id2"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
    "apply_changes": lambda t: t.apply_changes(
        pa.table({"id1": ["a"], "id2": [3], "v": ["c"], "_op": ["update"], "_ts": [1]})
    ),
    "overwrite": lambda t: t.overwrite(rows(("b", 8, "o")), where="id1 = 'b'"),
    "transaction": _transaction,
    "new_write": _staged,
    "changes": lambda t: t.changes().to_arrow(),
    "create_branch": lambda t: t.create_branch("work"),
    "set_properties": lambda t: t.set_properties({"owner": "estate"}),
    "update_schema": _schema,
    "merge_range_deletes": lambda t: t.maintenance.merge_range_deletes(),
    "drop_dead_deletes": lambda t: t.maintenance.drop_dead_deletes(),
    "convert_deletes": lambda t: t.maintenance.convert_deletes(),
    "rewrite_position_delete_files": lambda t: t.maintenance.rewrite_position_delete_files(),
    "rewrite_manifests": lambda t: t.maintenance.rewrite_manifests(),
    "compact": lambda t: t.maintenance.compact(),
    "compute_table_stats": lambda t: t.maintenance.compute_table_stats(),
    "publish": _publish,
    "upkeep": lambda t: t.maintenance.upkeep(),
    "rollback": lambda t: t.rollback(snapshot_id=t.history()["snapshot_id"][-2].as_py()),
    "drop_branch": lambda t: t.drop_branch("work"),
    "expire_snapshots": lambda t: t.maintenance.expire_snapshots(older_than="2100-01-01"),
    "remove_orphan_files": lambda t: t.maintenance.remove_orphan_files(dry_run=True),
    "verify": _sound,
    "health": lambda t: t.maintenance.health(),
    "run": lambda t: t.maintenance.run(),
}
"""By the name that the documents have for it."""
