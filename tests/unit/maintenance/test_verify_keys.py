"""`verify(keys=True)`: keys that more than one live row of a snapshot has (MT-120)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from damaged_tables import kinds, path_of, the_finding
from maintenance_tables import keyed_table, rows, table_of

import tableformat as tf
from spark_ext.service.procedures.calls import load_procedures
from spark_ext.service.registry import Request, handler_of
from spark_ext.service.session import Session
from tableformat.errors import InvalidKeyError, SnapshotNotFoundError
from tableformat.maintenance.verification.findings import FindingKind, Severity
from tableformat.testing.table_files import live_data_files


def with_repeated_keys(directory: Path) -> tf.Table:
    """Ids 2 and 3 have two rows each, id 1 has three, in and across files; the second row of id 4 is deleted."""
    table = keyed_table(directory)
    table.append(rows("a", [1, 1, 2, 3]))
    table.append(rows("a", [1, 2, 3, 4]))
    table.delete("id2 = 4")
    table.append(rows("a", [4, 5]))
    return table


def test_distinct_keys_are_not_a_finding(tmp_path: Path) -> None:
    table = table_of(tmp_path, range(0, 50, 2), range(1, 50, 2))
    found = table.verify(keys=True)
    assert (found.findings, found.repeated_key_count) == ((), 0)
    assert "0 keys with more than one row" in str(found)
    assert table.verify().repeated_key_count is None


def test_duplicate_keys_are_one_finding(tmp_path: Path) -> None:
    """MT-120: deleted rows do not count, and the keys with the most rows are shown."""
    table = with_repeated_keys(tmp_path)
    result = table.verify(keys=True)
    found = the_finding(result, FindingKind.REPEATED_KEY)
    assert found.what == (
        "3 keys have more than one live row, 7 rows in all: (id1='a', id2=1) 3 rows; (id1='a', id2=2) 2 rows; "
        "(id1='a', id2=3) 2 rows."
    )
    assert (found.severity, found.snapshot_ids) == (Severity.WARNING, (table.snapshot_id,))
    assert "upsert" in found.next_step
    assert (result.is_clean, result.repeated_key_count) == (True, 3)
    assert "3 keys with more than one row" in str(result)


def test_next_step_of_duplicate_keys_resolves_the_finding(tmp_path: Path) -> None:
    table = with_repeated_keys(tmp_path)
    table.upsert(rows("a", [1, 2, 3], "right"))
    assert table.verify(keys=True).repeated_key_count == 0
    assert table.scan().count() == 5


def test_at_most_five_duplicate_keys_are_shown(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    table.append(rows("a", [*range(9), *range(9), 3]))
    what = the_finding(table.verify(keys=True), FindingKind.REPEATED_KEY).what
    assert what.startswith("9 keys have more than one live row, 19 rows in all, such as (id1='a', id2=3) 3 rows; ")
    assert what.count("(id1=") == 5


def test_keys_are_verified_on_the_chosen_snapshot_and_branch(tmp_path: Path) -> None:
    table = table_of(tmp_path, range(3))
    first = table.snapshot_id
    table.create_branch("audit")
    table.append(rows("a", range(2)))
    assert table.verify(keys=True).repeated_key_count == 2
    assert table.verify(keys=True, snapshot_id=first).repeated_key_count == 0
    assert table.catalog is not None
    assert table.catalog.load_table("db.t", branch="audit").verify(keys=True).repeated_key_count == 0
    with pytest.raises(SnapshotNotFoundError):
        table.verify(keys=True, snapshot_id=5)


def test_table_without_snapshots_has_no_duplicate_keys(tmp_path: Path) -> None:
    assert keyed_table(tmp_path).verify(keys=True).repeated_key_count == 0


def test_table_without_a_key_is_refused(tmp_path: Path) -> None:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.write("db.t", {"id": 1})
    with pytest.raises(InvalidKeyError, match=r"db\.t has no key.*set_key"):
        catalog.load_table("db.t").verify(keys=True)


def test_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    """MT-120: the keys were not compared, which is not the same as no repeated key."""
    table = with_repeated_keys(tmp_path)
    path_of(live_data_files(table)[0].file_path).unlink()
    result = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t").verify(keys=True)
    assert sorted(kinds(result)) == ["missing-file", "not-checked"]
    assert (result.repeated_key_count, result.is_clean) == (None, False)


VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "date": (pa.date32(), dt.date(2026, 1, 2), "2026-01-02"),
    "timestamp": (pa.timestamp("us"), dt.datetime(2026, 1, 2, 3), "2026-01-02 03:00:00.000000"),
    "zoned": (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02 03:00:00.000000Z"),
    "nanoseconds": (pa.timestamp("ns"), pa.scalar(7, pa.timestamp("ns")), "1970-01-01 00:00:00.000000007"),
    "zoned nanoseconds": (pa.timestamp("ns", "UTC"), pa.scalar(7, pa.timestamp("ns", "UTC")), "00.000000007Z"),
    "time": (pa.time64("us"), dt.time(1, 2, 3), "01:02:03.000000"),
    "decimal": (pa.decimal128(12, 2), Decimal("1.50"), "1.50"),
    "text": (pa.string(), "é" * 80, "é" * 60 + "...'"),
    "empty text": (pa.string(), "", "''"),
    "bytes": (pa.binary(), b"\0\xff", "00ff"),
    "fixed": (pa.binary(2), b"\0\xff", "00ff"),
    "uuid": (pa.uuid(), UUID(int=7), "0" * 31 + "7"),
    "boolean": (pa.bool_(), True, "true"),
    "int": (pa.int32(), -5, "-5"),
}


@pytest.mark.parametrize("name", VALUES)
def test_duplicate_keys_of_each_type(tmp_path: Path, name: str) -> None:
    kind, value, shown = VALUES[name]
    schema = pa.schema([pa.field("k", kind, nullable=False), pa.field("id", pa.int64(), nullable=False)])
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema, key=["k", "id"], properties={"format-version": "3"})
    cells = value if isinstance(value, pa.Scalar) else pa.scalar(value, kind)
    column = pa.repeat(cells, 3)
    table.append(pa.table({"k": column, "id": [1, 1, 2]}, schema=schema))
    what = the_finding(table.verify(keys=True), FindingKind.REPEATED_KEY).what
    assert shown in what
    assert what.endswith("id=1) 2 rows.")


def test_progress_counts_rows(tmp_path: Path) -> None:
    table = table_of(tmp_path, range(10), range(10, 20))
    calls: list[tuple[int, int, str]] = []
    table.verify(keys=True, progress=lambda *call: calls.append(call))
    assert calls[-1] == (20, 20, "rows whose keys are compared")


def test_error_of_a_progress_callback_is_raised(tmp_path: Path) -> None:
    """MT-62: DuckDB reads the keys, and would turn the error into text."""

    def progress(done: int, total: int, what: str) -> None:
        if what.startswith("rows whose"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table_of(tmp_path, range(10)).verify(keys=True, progress=progress)


def test_spark_procedure_has_a_row_for_each_finding(tmp_path: Path) -> None:
    """PR-4: a row for each finding."""
    with_repeated_keys(tmp_path)
    session = Session.open("lake", {"warehouse": str(tmp_path / "lake")})
    load_procedures()
    request = {"table": ["db", "t"], "procedure": "verify", "is_in_test": False, "arguments": {"keys": KEYS_ON}}
    answer = handler_of("call_procedure")(session, Request(request))
    (row,) = pa.ipc.open_stream(answer.parts[0]).read_all().to_pylist()
    assert (row["severity"], row["kind"], row["command"]) == ("warning", "repeated-key", None)
    assert row["what"].startswith("3 keys have more than one live row")


KEYS_ON = {"literal": "true", "type": "boolean"}
