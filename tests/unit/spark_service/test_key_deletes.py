"""Plans of scans whose range and equality deletes are compared with rows by executors (decision 65); needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

from spark_ext.service.registry import Answer, Request, handler_of
from spark_ext.service.session import Session
from spark_ext.service.wire.span_bytes import span_bytes
from tableformat import Table
from tableformat.deletes.spans.spans import SpanArray, spans_of_prefixes
from tableformat.keys.encoding import encode_values
from tableformat.keys.key_columns import KeyColumns

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("at", pa.struct([("x", pa.int64())])),
    ]
)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session.open("lake", {"warehouse": str(tmp_path / "lake")})


@pytest.fixture
def table(session: Session) -> Table:
    session.catalog.create_namespace("db")
    created = session.catalog.create_table("db.t", SCHEMA, key=["id"])
    for first in (0, 10):
        rows = [{"id": first + n, "name": f"n{n}", "at": {"x": n}} for n in range(10)]
        created.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return created


def planned(session: Session, columns: tuple[str, ...] = ("name",)) -> Answer:
    pin = handler_of("load_table")(session, Request({"table": ["db", "t"]}))["pin"]
    arguments = {"table": ["db", "t"], "pin": pin, "columns": list(columns), "predicates": []}
    answer = handler_of("scan_files")(session, Request(arguments))
    assert isinstance(answer, Answer)
    return answer


def test_only_metadata_is_read_to_plan(session: Session, table: Table, tmp_path: Path) -> None:
    """Neither a data file nor an equality delete file is opened; the entry of a range delete carries its spans."""
    table.delete_prefix({"id": 3})
    table.delete("name = 'n5'", mode="equality")
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    result = planned(session).result
    assert [key["name"] for key in result["keys"]] == ["id", "name"]
    compared = [file["compared"] for file in result["files"]]
    assert sorted(len(each["spans"]) for each in compared) == [0, 1], "bounds exclude the span for one file"
    assert [each["equality"] for each in compared] == [[0], [0]], "both files share the set of delete files"
    assert [delete["rows"] for delete in result["delete_files"]] == [1]


def drop_name(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("name")


def rename(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("name", "title")


@pytest.mark.parametrize(
    ("where", "then", "is_compared"),
    [("name = 'n5'", None, True), ("name = 'n5'", drop_name, False), ("name = 'n5'", rename, False)],
)
def test_rows_that_executors_cannot_compare_are_found_here(
    session: Session, table: Table, where: str, then: Callable[[Table], None] | None, is_compared: bool
) -> None:
    """DA-6: the column was dropped, or the delete file has it under another name. The plan has positions."""
    table.delete(where, mode="equality")
    if then is not None:
        then(table)
    files: list[dict[str, Any]] = planned(session, ("id",)).result["files"]
    assert ["compared" in file for file in files] == [is_compared] * 2
    assert ["deleted" in file for file in files] == [not is_compared] * 2


def test_bytes_of_spans() -> None:
    """The header, the offsets, the numbers and the cuts, of which each upper one follows its lower one."""
    key = KeyColumns((1, 2), ("a", "b"), (StringType(), LongType()))
    spans: SpanArray = spans_of_prefixes(key, pa.table({"a": ["x", "y"]})).with_sequence_number(7)
    cuts = [encode_values((value,), key.types) + after for value in "xy" for after in (b"", b"\xff")]
    offsets = np.cumsum([0, *map(len, cuts)])
    for is_numbered, numbers in ((True, [7, 7]), (False, [])):
        expected = np.array([4, is_numbered, *offsets], "<u4").tobytes() + np.array(numbers, "<i8").tobytes()
        assert span_bytes(spans, is_numbered=is_numbered) == expected + b"".join(cuts)
