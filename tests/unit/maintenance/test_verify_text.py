"""The text of verification and repair: valid summaries, the order of findings, remaining findings and next steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damaged_tables import alter_entries, alter_manifests, kinds, path_of, the_finding
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.testing.table_files import live_data_files, live_delete_files


def two_files(directory: Path, version: str = "2") -> tf.Table:
    table = keyed_table(directory, properties={"format-version": version})
    for name in "ab":
        table.append(rows(name, range(4)))
    return table


def stating(**changes: Any) -> Callable[[Any], list[Any]]:
    """Change the only partition field in the summary of each manifest."""

    def change(manifest: Any) -> list[Any]:
        (summary,) = manifest.partitions
        return [replace(manifest, partitions=(replace(summary, **changes),))]

    return change


@pytest.mark.parametrize(
    ("lower", "upper", "is_sound"),
    [
        (b"b", b"b", True),
        (b"a", b"c", True),
        (b"a", None, True),
        (None, b"c", True),
        (None, None, False),
        (b"c", None, False),
        (None, b"a", False),
        (b"c", b"d", False),
        (b"A", b"a", False),
    ],
)
def test_partition_summary_with_one_bound_is_valid(
    tmp_path: Path, lower: bytes | None, upper: bytes | None, is_sound: bool
) -> None:
    """MT-72: a summary without bounds states that all values are null or NaN."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    table.append(rows("b", range(3)))
    alter_manifests(table, stating(lower_bound=lower, upper_bound=upper))
    assert kinds(table.verify()) == ([] if is_sound else ["wrong-bounds"])


def test_errors_precede_warnings_and_have_next_steps(tmp_path: Path) -> None:
    """MT-76"""
    table = two_files(tmp_path)
    path_of(table.metadata.metadata_log[0].metadata_file).unlink()
    path_of(live_data_files(table)[0].file_path).unlink()
    head = table.view.snapshot
    assert head is not None
    assert head.summary is not None
    head.summary.additional_properties["total-records"] = "99"
    found = table.verify()
    assert kinds(found)[0] == "missing-file"
    assert set(kinds(found)[1:]) == {"missing-log", "wrong-total"}
    steps = {str(each.kind): each.next_step for each in found.findings}
    assert steps["missing-file"].startswith("Restore the file from a copy")
    assert steps["missing-log"] == "No action: readers do not need it."
    assert steps["wrong-total"].startswith("Do not use counts from summaries")
    assert all(each.what[0].isupper() for each in found.findings)


def test_rollback_of_the_last_snapshot_is_suggested(tmp_path: Path) -> None:
    """MT-76: what is stated wrongly is compared, not restored."""
    table = two_files(tmp_path)
    first = min(table.metadata.snapshots, key=lambda each: each.sequence_number or 0).snapshot_id
    newest = max(live_data_files(table), key=lambda file: file.sequence_number or 0)

    def damage(entry: Any) -> Any:
        is_newest = entry.file.file_path == newest.file_path
        return [replace(entry, file=replace(entry.file, record_count=-4)) if is_newest else entry]

    alter_entries(table, damage)
    finding = next(each for each in table.verify().errors if each.file == newest.file_path)
    assert finding.next_step.startswith("Compare it with a copy")
    assert "roll back the last snapshot" in finding.next_step
    assert finding.command == f"table.rollback(snapshot_id={first})"


def test_table_without_catalog_is_verified(tmp_path: Path) -> None:
    """MT-76: without a catalog, later changes cannot be looked up."""
    table = two_files(tmp_path)
    missing = live_data_files(table)[0].file_path
    path_of(missing).unlink()
    read = tf.read_metadata(table.iceberg.metadata_location)
    assert the_finding(read.verify(), FindingKind.MISSING_FILE).file == missing


@pytest.mark.parametrize("version", ["2", "3"])
def test_remaining_findings_after_a_repair(tmp_path: Path, version: str) -> None:
    """MT-77: findings in older snapshots, and findings that no repair fixes; a dry run reports the same for the
    head."""
    table = two_files(tmp_path, version)
    table.delete("id2 = 1", mode="scan")
    gone = live_data_files(table)[0].file_path
    alter_entries(table, lambda entry: [] if entry.file.file_path == gone else [entry])
    dead = next(each for each in live_delete_files(table) if each.referenced_data_file == gone)
    damaged = table.snapshot_id
    kind = "dangling-vector" if version == "3" else "dead-delete"
    if version == "2":
        path_of(dead.file_path).unlink()
    planned = table.maintenance.repair(dry_run=True)
    assert {str(each.kind) for each in planned.left} - {"wrong-total"} == (
        {"missing-file"} if version == "2" else set()
    )
    assert str(planned).startswith("would drop 1 delete file that matches no rows")
    mended = table.maintenance.repair()
    left = {str(each.kind) for each in mended.left} - {"wrong-total"}
    assert left == ({"missing-file"} if version == "2" else {kind}), "of the snapshot before"
    assert kind in kinds(mended.found)
    assert kind in kinds(table.verify(snapshot_id=damaged)), "of the one that is asked for"
    assert kind not in kinds(table.verify(snapshot_id=table.snapshot_id))
    assert str(table.maintenance.repair()).startswith("dropped 0 delete files that match no rows")
