"""Small keyed tables for the tests of maintenance jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.testing.raw_files import foreign_position_delete
from tableformat.write.context import WriteContext

KEYED = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("payload", pa.string()),
    ]
)
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20"}


def keyed_table(directory: Path, *, partition_by: tuple[str, ...] = (), properties: dict[str, str] | None = None):
    """An empty table `db.t` with the key (id1, id2) in its own catalog."""
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db", exist_ok=True)
    return catalog.create_table(
        "db.t", KEYED, key=["id1", "id2"], partition_by=partition_by, properties={**FAST, **(properties or {})}
    )


def table_of(directory: Path, *appends: range, **options: Any) -> tf.Table:
    """A keyed table with one data file for each range of ids."""
    table = keyed_table(directory, **options)
    for ids in appends:
        table.append(rows("a", ids))
    return table


def five_files(directory: Path, **options: Any) -> tf.Table:
    """Rows 0 to 49 in five files; each file has every fifth row."""
    return table_of(directory, *(range(start, 50, 5) for start in range(5)), **options)


def another_handle(table: tf.Table) -> tf.Table:
    """Another writer's, at the head."""
    assert table.catalog is not None
    return table.catalog.load_table(table.name)


def rows(id1: str, ids: range | list[int], payload: str = "x") -> pa.Table:
    ids = list(ids)
    return pa.table({"id1": [id1] * len(ids), "id2": ids, "payload": [payload] * len(ids)}, schema=KEYED)


def planned(table: tf.Table) -> dict[str, Any]:
    return {"planned_snapshot_id": table.snapshot_id, "planned_sequence_number": table.view.sequence_number}


def commit_deletes(table: tf.Table, *deletes: DeleteFile) -> None:
    """Commit delete files as another writer might."""
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE, kind=ChangeKind.ROW_DELTA, **planned(table), added_delete_files=deletes
        ),
    )
    table.refresh()


def unnamed_position_delete(table: tf.Table, pairs: list[tuple[DataFile, int]]) -> DeleteFile:
    """A position delete file for a whole partition, as some writers create it: the entry names no data file."""
    pairs = sorted(pairs, key=lambda pair: (pair[0].file_path, pair[1]))
    context = WriteContext.of(table.metadata, table.view.io)
    paths = [(file.file_path, position) for file, position in pairs]
    return foreign_position_delete(context, paths, pairs[0][0], has_metrics=False)


class Meanwhile:
    """A progress callback that does something once, while the compaction has planned and not committed."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        self._actions = list(actions)

    def __call__(self, done: int, total: int, what: str) -> None:
        while self._actions:
            self._actions.pop(0)()
