"""The rows and bytes that operations read, the deleted rows in snapshot summaries, and estimates from metadata (CP-87,
CP-88)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidArgumentError, ScopeChangedError

SCHEMA = pa.schema([("customer", pa.string()), ("order", pa.int64()), ("note", pa.string())])
Call = Callable[..., Any]


def rows(*given: tuple[str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"customer": name, "order": number, "note": name} for name, number in given], SCHEMA)


@pytest.fixture(params=every(2, ["3", "2"]))
def table(tmp_path: Path, request: pytest.FixtureRequest) -> tf.Table:
    """Three files: ann and bob, ann alone, zoe alone."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table(
        "db.orders", SCHEMA, key=["customer", "order"], properties={"format-version": request.param}
    )
    created.append(rows(("ann", 1), ("bob", 1)))
    created.append(rows(("ann", 2), ("ann", 3), ("ann", 4)))
    created.append(rows(("zoe", 1)))
    return created


def summary(table: tf.Table) -> dict[str, str]:
    snapshot = table.view.snapshot
    assert snapshot is not None
    assert snapshot.summary is not None
    return snapshot.summary.additional_properties


DELETES: dict[str, Call] = {
    "delete": lambda table, **more: table.delete("customer = 'ann' AND \"order\" > 1", **more),
    "delete by values": lambda table, **more: table.delete("note = 'ann'", **more),
    "delete by scan": lambda table, **more: table.delete("customer = 'ann' AND note <> 'x'", **more),
    "delete_prefix": lambda table, **more: table.delete_prefix({"customer": "ann"}, **more),
    "delete_prefix scan": lambda table, **more: table.delete_prefix({"customer": "ann"}, mode="scan", **more),
    "delete_range": lambda table, **more: table.delete_range(lower=("ann", 1), upper=("b",), **more),
    "delete_ranges": lambda table, **more: table.delete_ranges(
        pa.table({"lower_customer": ["a", "ann"], "upper_customer": ["an", "b"]}), **more
    ),
    "delete_rows": lambda table, **more: table.delete_rows(pa.table({"note": ["ann"]}), **more),
}
REACHED = {"delete": (1, 3)}


@pytest.mark.parametrize("name", list(DELETES))
@pytest.mark.parametrize("blind", ["range", "off"])
def test_metadata_dry_run_opens_no_data_file(table: tf.Table, name: str, blind: str) -> None:
    """CP-88: the test moves the data files away; nothing is written, for any form of delete."""
    table.set_properties({"write.delete.blind": blind})
    files = sorted(path for path in Path(table.location.removeprefix("file://")).rglob("*"))
    sizes = {data.file_path: data.file_size_bytes for data in data_files(table)}

    for path in sizes:
        Path(path.removeprefix("file://")).rename(path.removeprefix("file://") + ".away")
    result = DELETES[name](table, dry_run="metadata")
    for path in sizes:
        Path(path.removeprefix("file://") + ".away").rename(path.removeprefix("file://"))
    assert result.dry_run
    assert result.deleted_row_count is None
    count, row_count = REACHED.get(name, (2, 5))
    assert (result.estimate.data_files_count, result.estimate.row_count_max) == (count, row_count)
    assert 0 < result.estimate.data_bytes < sum(sizes.values())
    assert sorted(path for path in Path(table.location.removeprefix("file://")).rglob("*")) == files
    assert DELETES[name](table, dry_run=True).deleted_row_count <= row_count


def data_files(table: tf.Table) -> list[Any]:
    from tableformat.testing.table_files import live_data_files

    return list(live_data_files(table))


def test_other_operations_reject_metadata_dry_run(table: tf.Table) -> None:
    with pytest.raises(InvalidArgumentError, match="dry_run"):
        table.delete("customer = 'ann'", dry_run="files")
    with pytest.raises(InvalidArgumentError, match="dry_run"):
        table.upsert(rows(("ann", 1)), dry_run="metadata")  # type: ignore[arg-type]


def test_metadata_dry_run_checks_if_unchanged_since(table: tf.Table) -> None:
    read = table.snapshot_id
    table.append(rows(("ann", 9)))
    with pytest.raises(ScopeChangedError):
        table.delete_prefix({"customer": "ann"}, dry_run="metadata", if_unchanged_since=read)
    assert table.delete_prefix({"customer": "bob"}, dry_run="metadata", if_unchanged_since=read).estimate


def test_results_report_read_rows_and_bytes(table: tf.Table) -> None:
    """CP-88: files that bounds rule out are not read; a blind operation reads none."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    blind = table.delete_prefix({"customer": "bob"})
    assert (blind.read_row_count, blind.read_bytes) == (0, 0)
    assert blind.committed_at is not None
    assert before < blind.committed_at < datetime.now(UTC) + timedelta(seconds=1)
    found = table.delete_prefix({"customer": "ann"}, mode="scan")
    assert (found.read_row_count, found.deleted_row_count) == (5, 4)
    assert 0 < found.read_bytes < sum(data.file_size_bytes for data in data_files(table)) + found.read_bytes
    updated = table.update("customer = 'zoe'", set={"note": "'y'"})
    assert updated.read_row_count == 1
    again = table.append(rows(("zoe", 1)), on_duplicate="ignore")
    assert (again.read_row_count, again.added_row_count) == (1, 0)
    assert again.committed_at == updated.committed_at
    assert table.delete("customer = 'nobody'", dry_run=True).read_row_count == 0


def test_summary_has_the_counted_deleted_rows(table: tf.Table) -> None:
    """CP-87: found rows, rows of whole files, and updated rows; Iceberg's own totals go on as they do."""
    table.delete_prefix({"customer": "ann", "order": 1}, mode="scan")
    assert summary(table)["tableformat.deleted-rows"] == "1"
    assert "deleted-records" not in summary(table)
    assert summary(table)["total-records"] == "6"
    table.delete("customer = 'zoe'")
    assert (summary(table)["tableformat.deleted-rows"], summary(table)["deleted-records"]) == ("1", "1")
    table.update("customer = 'bob'", set={"note": "'y'"})
    assert summary(table)["tableformat.deleted-rows"] == "1"
    table.replace_interval(rows(("ann", 7)), on="customer", lower="ann", upper="b")
    assert summary(table)["tableformat.deleted-rows"] == "3", "a whole file, without a deleted row"
    table.delete_prefix({"customer": "bob"})
    assert "tableformat.deleted-rows" not in summary(table)
