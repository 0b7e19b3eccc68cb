"""Write diverted rows to another table, coordinated with the commit of the accepted rows (RP-22).

    other table   staged: snapshot 8, no branch moves                     published: 9 has the files of 8
    table                               snapshot 5, whose summary names 8

If the process fails between two steps, a repeated batch completes them: the summary names the remaining work.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyiceberg.table import Table as IcebergTable

from spark_ext.service.session import Session
from tableformat.commit.idempotence import applied_batch
from tableformat.errors import CommitStateUnknownError, SnapshotNotFoundError
from tableformat.maintenance.upkeep.after_commit import after_commit
from tableformat.operations.history.cherrypick import publish_append
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.run import run_verb
from tableformat.operations.verbs.append import append
from tableformat.table import Table

_REFUSED_ROWS: Final = "tableformat.refused-rows"
"""In the summary of a snapshot that diverted rows: the other table, and the snapshot with the staged rows."""
_WHOLE: Final = "tableformat.refused-rows-alone"
"""In the summary of the other table's snapshot, if all rows of the batch were diverted and it has no snapshot of its
own."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows in a snapshot of the other table that is on no branch yet."""

    table: tuple[str, ...]
    snapshot_id: int

    @property
    def summary(self) -> dict[str, str]:
        """The summary entry for the snapshot of the write that diverted the rows."""
        value = {"table": list(self.table), "snapshot-id": self.snapshot_id}
        return {_REFUSED_ROWS: json.dumps(value)}


def stage_rows(table: Table, schema: pa.Schema, rows: Iterator[pa.RecordBatch], options: CommitOptions) -> StagedRows:
    """RP-22: append the rows in a snapshot of the table without moving a branch."""
    reader = pa.RecordBatchReader.from_batches(schema, rows)
    result = run_verb(
        partial(append, rows=reader),
        partial(Draft, table.iceberg, table.branch),
        CommitOptions(snapshot_properties=options.snapshot_properties, is_staged=True),
        one_shot=True,
    )
    assert result.snapshot_id is not None, "some row was rejected"
    return StagedRows(tuple(table.iceberg.name()), result.snapshot_id)


def rows_left_to_publish(iceberg: IcebergTable, branch: str, options: CommitOptions) -> StagedRows | None:
    """The diverted rows in the snapshot of an already committed batch; None if it diverted no rows."""
    assert options.application_id is not None, "a committed batch has a name"
    stored = applied_batch(iceberg.metadata.properties, branch, options.application_id)
    snapshot = None if stored is None else iceberg.metadata.snapshot_by_id(stored.snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return None
    text = snapshot.summary.additional_properties.get(_REFUSED_ROWS)
    if text is None:
        return None
    value = json.loads(text)
    return StagedRows(tuple(value["table"]), value["snapshot-id"])


def is_refused_whole(table: Table, options: CommitOptions) -> bool:
    """RP-22: whether an earlier run wrote all rows of the batch to this table. A repetition must not decide this again,
    because ranges may have been added since then."""
    assert options.application_id is not None, "Spark assigns names to its batches"
    metadata = table.iceberg.metadata
    stored = applied_batch(metadata.properties, table.branch, options.application_id)
    if stored is None or stored.batch_id != options.batch_id:
        return False
    snapshot = metadata.snapshot_by_id(stored.snapshot_id)
    summary = None if snapshot is None else snapshot.summary
    return summary is not None and _WHOLE in summary.additional_properties


def publish_rows(session: Session, staged: StagedRows, options: CommitOptions, *, is_alone: bool) -> None:
    """RP-22: publish the staged rows on the branch of the table, once for each batch (CP-14).

    `is_alone` is whether all rows of the batch were diverted. RP-28: raises CommitStateUnknownError if publishing
    fails, because the accepted rows are already committed.
    """
    name = ".".join(staged.table)
    try:
        table = session.load(staged.table)
        if Draft(table.iceberg, table.branch).is_applied(options):
            return
        summary = {**(options.snapshot_properties or {}), **({_WHOLE: "true"} if is_alone else {})}
        options = replace(options, snapshot_properties=summary)
        publish_append(table.iceberg, table.branch, staged.snapshot_id, options)
    except SnapshotNotFoundError as error:
        raise CommitStateUnknownError(
            f"the accepted rows were committed. The rows for {name} were staged there as snapshot "
            f"{staged.snapshot_id}, which has expired. Without on-refused, the write is complete without them."
        ) from error
    except Exception as error:
        raise CommitStateUnknownError(
            f"the accepted rows were committed, but the rows for {name} were not: {error} They are staged there as "
            f"snapshot {staged.snapshot_id}. To add them, restart the streaming query, or run CALL "
            f"system.cherrypick_snapshot('{name}', {staged.snapshot_id})."
        ) from error
    after_commit(table.iceberg, table.branch, executor=session.upkeep_executor)
