"""`overwrite(where=)`: rows outside the condition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import RowsRefusedError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    created.append(rows((1, "a"), (2, "b"), (3, "b")))
    return created


def rows(*given: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value} for key, value in given], schema=SCHEMA)


def stored(table: tf.Table) -> list[tuple[int, str | None]]:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def test_rows_outside_of_the_condition_are_refused(table: tf.Table) -> None:
    """RP-24: a null does not match either, and a rejected call deletes nothing."""
    new = rows((2, "b"), (4, None), (5, "c"))
    with pytest.raises(RowsRefusedError, match=r"2 of 3 rows do not fit.*is outside the overwritten rows") as error:
        table.overwrite(new, where="v = 'b'")
    assert error.value.refused["row_index"].to_pylist() == [1, 2]
    with pytest.raises(RowsRefusedError), table.transaction() as tx:
        tx.overwrite(new, where="v = 'b'")
    assert len(stored(table)) == 3

    result = table.overwrite(new, where="v = 'b'", on_refused="divert")
    assert result.refused is not None
    assert result.refused["id"].to_pylist() == [4, 5]
    assert stored(table) == [(1, "a"), (2, "b")]
    table.overwrite(new, where="v = 'b'", allow_outside=True)
    assert stored(table) == [(1, "a"), (2, "b"), (4, None), (5, "c")]
    table.overwrite(rows((9, None)))
    assert stored(table) == [(9, None)]
