"""Health numbers of small tables that can be counted by hand, and the commands that health suggests."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.write.delete_files import range_deletes


def findings(table: tf.Table) -> dict[str, str]:
    return {finding.name: finding.command for finding in table.maintenance.health().findings}


def test_fresh_table_has_no_findings(tmp_path: Path) -> None:
    """MT-20: one file, clean, and a lookup opens it and no other."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    health = table.maintenance.health()
    assert (health.data_file_count, health.record_count, health.small_file_count) == (1, 10, 0)
    assert (health.clean_file_count, health.clean_file_share, health.read_amplification) == (1, 1.0, 1.0)
    assert health.lookup_depth is not None
    assert (health.lookup_depth.average, health.lookup_depth.largest) == (1.0, 1)
    assert health.findings == ()
    assert "nothing to do" in str(health)


def test_empty_table_has_no_findings(tmp_path: Path) -> None:
    """MT-20"""
    health = keyed_table(tmp_path).maintenance.health()
    assert (health.snapshot_id, health.read_amplification, health.lookup_depth) == (None, 1.0, None)
    assert (health.deleted_row_ratio, health.clean_file_share) == (0.0, 1.0)
    assert health.findings == ()
    assert str(health)


def test_files_are_classified_by_delete_coverage(tmp_path: Path) -> None:
    """MT-20, RD-10: one covered, one partial, one with deleted positions, one clean."""
    table = keyed_table(tmp_path)
    for id1 in "abcd":
        table.append(rows(id1, range(10)))
    table.delete(where="id1 = 'c' AND id2 = 3", mode="scan")
    table.delete_prefix({"id1": "a"})
    table.delete_prefix({"id1": "b", "id2": 5})
    health = table.maintenance.health()
    assert (
        health.clean_file_count,
        health.position_deleted_file_count,
        health.partial_file_count,
        health.covered_file_count,
    ) == (1, 1, 1, 1)
    assert health.clean_file_share == 0.5
    assert health.deleted_row_ratio == pytest.approx(11 / 40)
    assert {each.kind: each.file_count for each in health.delete_files} == {"position": 1, "range": 2}
    assert all(0 <= (each.oldest_age_seconds or 0) < 60 for each in health.delete_files)
    assert findings(table)["keyed-deletes"] == "table.maintenance.convert_deletes()"


def test_lookup_depth_counts_overlapping_files(tmp_path: Path) -> None:
    """MT-20: three files over the same keys, and one with other keys."""
    table = keyed_table(tmp_path)
    for payload in "xyz":
        table.append(rows("a", range(10), payload))
    table.append(rows("b", range(10)))
    depth = table.maintenance.health().lookup_depth
    assert depth is not None
    assert depth.largest == 3
    assert depth.average == pytest.approx((3 * 30 + 10) / 40, rel=0.3)
    assert findings(table)["overlap"] == "table.maintenance.compact()"


def test_lookup_depth_is_per_partition(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path, partition_by=("bucket(2, id1)",))
    for _ in range(2):
        table.append(pa.concat_tables([rows(letter, [1]) for letter in "abcdefgh"]))
    depth = table.maintenance.health().lookup_depth
    assert depth is not None
    assert depth.largest == 2


def test_inline_range_deletes_cause_no_read_amplification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-20, RD-13"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    for number in range(4):
        table.delete_prefix({"id1": "a", "id2": number})
    assert table.maintenance.health().read_amplification == pytest.approx(1)
    monkeypatch.setattr(range_deletes, "encode_spans", lambda *_: None)
    table.delete_prefix({"id1": "a", "id2": 7})
    assert table.maintenance.health().read_amplification == pytest.approx(2, rel=0.1)


def test_small_files_and_deleted_rows_findings(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path)
    for id1 in "abcde":
        table.append(rows(id1, range(10)))
    table.delete(where="id2 < 4", mode="scan")
    health = table.maintenance.health()
    assert (health.small_file_count, health.deleted_row_ratio) == (5, pytest.approx(0.4))
    assert health.read_amplification == pytest.approx(10, rel=0.2), "five small files and five of deletes, for one"
    assert findings(table) == {
        "small-files": "table.maintenance.compact()",
        "deleted-rows": 'table.maintenance.compact(depth="fold")',
    }


def test_dead_deletes_and_range_delete_files_findings(tmp_path: Path) -> None:
    """MT-20, MT-10"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    for id2 in range(10):
        table.delete_prefix({"id1": "b", "id2": id2})
    assert table.maintenance.health().dead_delete_file_count == 10
    assert findings(table)["dead-deletes"] == "table.maintenance.drop_dead_deletes()"
    assert findings(table)["range-delete-files"] == "table.maintenance.merge_range_deletes()"


def test_snapshots_and_manifests_findings(tmp_path: Path) -> None:
    """MT-20, MT-1"""
    table = keyed_table(
        tmp_path,
        properties={
            "history.expire.max-snapshot-age-ms": "1",
            "commit.manifest-merge.enabled": "false",
            "commit.manifest.min-count-to-merge": "3",
        },
    )
    for id2 in range(3):
        table.append(rows("a", [id2]))
    time.sleep(0.01)
    health = table.maintenance.health()
    assert (health.snapshot_count, health.manifest_count) == (3, 3)
    assert health.metadata_bytes > 0
    found = findings(table)
    assert found["snapshots"] == "table.maintenance.expire_snapshots()"
    assert found["manifests"] == "table.maintenance.rewrite_manifests()"


def test_branch_with_publish_target_suggests_publish(tmp_path: Path) -> None:
    """MT-20, MT-30"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.create_branch("ingest")
    table.set_properties(**{"tableformat.publish-target.ingest": "main"})
    branch = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    branch.delete_prefix({"id1": "a", "id2": 1})
    assert findings(branch)["keyed-deletes"] == "table.maintenance.publish(source='ingest', target='main')"


def test_health_has_json_and_text_with_every_finding(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    table.upsert(rows("a", range(5)))
    health = table.maintenance.health()
    told = json.loads(json.dumps(health.to_dict()))
    assert told["partial_file_count"] == 1
    assert told["clean_file_share"] == 0.5
    assert health.findings
    assert all(finding.what in str(health) and finding.command in str(health) for finding in health.findings)


def test_large_metadata_suggests_expiry_after_one_day(tmp_path: Path) -> None:
    """MT-20: nothing is past the retention of the table."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    table.set_properties({"comment": "x" * 1_000_000})
    match = re.fullmatch(
        r'table\.maintenance\.expire_snapshots\(older_than="(.*)", retain_last=10\)', findings(table)["snapshots"]
    )
    assert match is not None
    age = datetime.now(UTC) - datetime.fromisoformat(match[1])
    assert timedelta(days=1) <= age < timedelta(days=1, hours=1)


def test_covered_files_are_distinguished_from_partially_deleted_files(tmp_path: Path) -> None:
    """MT-20, RD-10"""
    table = keyed_table(tmp_path)
    for id1 in "abc":
        table.append(rows(id1, range(10)))
    table.delete_prefix({"id1": "a", "id2": 5})
    for id1, told in (("b", ", 1 more is dead weight"), ("c", ", 2 more are dead weight")):
        table.delete_prefix({"id1": id1})
        (what,) = [each.what for each in table.maintenance.health().findings if each.name == "keyed-deletes"]
        assert f"each read compares keys of 1 data file{told}, and other engines" in what


def test_keyless_table_has_no_lookup_depth(tmp_path: Path) -> None:
    """MT-41"""
    table = keyed_table(tmp_path).catalog.create_table("db.keyless", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert table.maintenance.health().lookup_depth is None
