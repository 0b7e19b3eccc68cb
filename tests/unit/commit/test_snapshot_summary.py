"""FM-18: the counts that a summary has for each kind of file; engines answer COUNT(*) from the totals."""

from __future__ import annotations

from pathlib import Path

from commit_tables import data_file, equality_delete, new_table, position_delete, range_delete, vector
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.snapshot_summary import build_summary
from tableformat.metadata.content_file import DataFile, DeleteFile

TOTALS = dict.fromkeys(
    [f"total-{what}" for what in ("records", "files-size", "data-files", "delete-files")]
    + ["total-position-deletes", "total-equality-deletes"],
    100_000,
)
PARTITIONS = "changed-partition-count"


def files_of_each_kind(table: Table, prefix: str) -> tuple[tuple[DataFile, ...], tuple[DeleteFile, ...]]:
    """Two files of each kind, distinguished by their numbers of rows."""
    data = tuple(data_file(table, f"{prefix}{number}.parquet", record_count=10**number) for number in range(2))
    deletes: list[DeleteFile] = []
    for number in range(2):
        name = f"{prefix}{number}"
        deletes += [
            position_delete(table, f"{name}-p.parquet", data[0], [0], record_count=2 * 10**number),
            vector(table, f"{name}-v.puffin", data[0], record_count=3 * 10**number),
            equality_delete(table, f"{name}-e.parquet", record_count=4 * 10**number),
            range_delete(table, f"{name}-r.parquet", record_count=5 * 10**number),
        ]
    return data, tuple(deletes)


def sizes(*files: DataFile | DeleteFile) -> int:
    """The size of files in bytes. Vectors share a file, so a vector counts with the size of its blob."""
    return sum(getattr(file, "content_size_bytes", None) or file.file_size_bytes for file in files)


def test_added_and_removed_files_are_counted_by_kind(tmp_path: Path) -> None:
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    data, deletes = files_of_each_kind(table, "a")
    bytes_ = sizes(*data, *deletes)
    of_kinds = {"position-delete-files": 2, "dvs": 2, "position-deletes": 55, "equality-delete-files": 4}
    of_kinds |= {"equality-deletes": 99, "range-delete-files": 2, "range-deletes": 55}
    of_kinds |= {"delete-files": 8, "files-size": bytes_}
    kind = ChangeKind.SCAN_BASED
    came = TableChange(operation=Operation.OVERWRITE, kind=kind, added_data_files=data, added_delete_files=deletes)
    went = TableChange(operation=Operation.DELETE, kind=kind, removed_data_files=data, removed_delete_files=deletes)
    for change, sign, verb, of_data in ((came, 1, "added", "added"), (went, -1, "removed", "deleted")):
        counts = {f"{verb}-{name}": number for name, number in of_kinds.items()}
        counts |= {f"{of_data}-data-files": 2, f"{of_data}-records": 11, PARTITIONS: 1}
        totals = {"data-files": 2, "records": 11, "delete-files": 8, "files-size": bytes_, "position-deletes": 55}
        totals |= {"equality-deletes": 99}
        counts |= {f"total-{name}": 100_000 + sign * number for name, number in totals.items()}
        summary = build_summary(change, TOTALS, {})
        assert summary.operation is change.operation
        assert summary.additional_properties == {name: str(number) for name, number in counts.items()}


def test_totals_never_become_negative(tmp_path: Path) -> None:
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    data, deletes = files_of_each_kind(table, "a")
    kind = ChangeKind.SCAN_BASED
    went = TableChange(operation=Operation.DELETE, kind=kind, removed_data_files=data, removed_delete_files=deletes)
    summary = build_summary(went, dict.fromkeys(TOTALS, 1), {})
    assert {summary.additional_properties[name] for name in TOTALS} == {"0"}
