"""Successive operations of one transaction: equality and range deletes are applied to rows of earlier operations by
position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.operations.transaction import Transaction
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])
DELETES: dict[str, Callable[[Transaction, Sequence[int]], object]] = {
    "range": lambda open_transaction, ids: open_transaction.delete_range(lower=(min(ids),), upper=(max(ids) + 1,)),
    "equality": lambda open_transaction, ids: open_transaction.delete_rows(rows(*ids)),
    "scan": lambda open_transaction, ids: open_transaction.delete(
        f"id >= {min(ids)} AND id <= {max(ids)}", mode="scan"
    ),
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids}, schema=SCHEMA)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", DELETES)
def test_delete_removes_rows_of_earlier_operations(tmp_path: Path, kind: str, version: str) -> None:
    """DA-2, RD-2: some rows of one file, and all rows of another, which is then not committed."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": version})
        table.append(rows(0, 5, 9))
        with table.transaction() as open_transaction:
            open_transaction.append(rows(1, 2, 3))
            open_transaction.append(rows(4, 5))
            DELETES[kind](open_transaction, [3, 4, 5])
            open_transaction.append(rows(5))
        assert live_values(table, "id") == [0, 1, 2, 5, 9]
        assert sorted(data.record_count for data in live_data_files(table)) == [1, 3, 3]
        assert table.verify(deep=True).findings == ()
