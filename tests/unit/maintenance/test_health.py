"""Health numbers of small tables that can be counted by hand, and the commands that health suggests."""

from __future__ import annotations

import json
import math
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import commit_deletes, keyed_table, rows, unnamed_position_delete

import tableformat as tf
from tableformat.maintenance.health.health import LookupDepth
from tableformat.testing.table_files import live_data_files
from tableformat.write.delete_files import range_deletes


def findings(table: tf.Table) -> dict[str, str]:
    return {finding.name: finding.command for finding in table.maintenance.health().findings}


def test_fresh_table_has_nothing_to_do(tmp_path: Path) -> None:
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


def test_empty_table(tmp_path: Path) -> None:
    """MT-20"""
    health = keyed_table(tmp_path).maintenance.health()
    assert (health.snapshot_id, health.read_amplification, health.lookup_depth) == (None, 1.0, None)
    assert (health.deleted_row_ratio, health.clean_file_share) == (0.0, 1.0)
    assert health.findings == ()
    assert str(health)


def test_how_files_read(tmp_path: Path) -> None:
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


def test_files_that_a_lookup_opens(tmp_path: Path) -> None:
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


def test_lookup_stays_in_the_partition_that_its_key_names(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path, partition_by=("bucket(2, id1)",))
    for _ in range(2):
        table.append(pa.concat_tables([rows(letter, [1]) for letter in "abcdefgh"]))
    depth = table.maintenance.health().lookup_depth
    assert depth is not None
    assert depth.largest == 2


def test_range_delete_files_whose_entries_carry_them_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-20, RD-13"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    for number in range(4):
        table.delete_prefix({"id1": "a", "id2": number})
    assert table.maintenance.health().read_amplification == pytest.approx(1)
    monkeypatch.setattr(range_deletes, "encode_spans", lambda *_: None)
    table.delete_prefix({"id1": "a", "id2": 7})
    assert table.maintenance.health().read_amplification == pytest.approx(2, rel=0.1)


def test_small_files_and_deleted_rows(tmp_path: Path) -> None:
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


def test_dead_deletes_and_many_range_files(tmp_path: Path) -> None:
    """MT-20, MT-10"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    for id2 in range(10):
        table.delete_prefix({"id1": "b", "id2": id2})
    assert table.maintenance.health().dead_delete_file_count == 10
    assert findings(table)["dead-deletes"] == "table.maintenance.drop_dead_deletes()"
    assert findings(table)["range-delete-files"] == "table.maintenance.merge_range_deletes()"


def test_snapshots_and_manifests(tmp_path: Path) -> None:
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


def test_branch_that_publishes_is_told_to_publish(tmp_path: Path) -> None:
    """MT-20, MT-30"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.create_branch("ingest")
    table.set_properties(**{"tableformat.publish-target.ingest": "main"})
    branch = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    branch.delete_prefix({"id1": "a", "id2": 1})
    assert findings(branch)["keyed-deletes"] == "table.maintenance.publish(source='ingest', target='main')"


def test_health_is_json_and_every_finding_is_in_the_text(tmp_path: Path) -> None:
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


def depth_of(table: tf.Table) -> LookupDepth:
    depth = table.maintenance.health().lookup_depth
    assert depth is not None
    return depth


def test_equality_deletes_alone_are_keyed_deletes(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    table.delete_rows(rows("a", [3]).select(["id1", "id2"]))
    health = table.maintenance.health()
    (deletes,) = health.delete_files
    assert (deletes.kind, deletes.file_count, deletes.deleted_count) == ("equality", 1, 1)
    assert deletes.oldest_age_seconds is not None
    assert (health.snapshot_id, health.partial_file_count) == (table.snapshot_id, 1)
    assert findings(table) == {"keyed-deletes": "table.maintenance.convert_deletes()"}


def test_range_deletes_that_are_too_many_to_load_make_files_partial(tmp_path: Path) -> None:
    """MT-20: planning knows their files alone."""
    table = keyed_table(tmp_path, properties={"tableformat.scan.range-span-budget": "1"})
    table.append(rows("a", range(10)))
    for number in (2, 7):
        table.delete_prefix({"id1": "a", "id2": number})
    health = table.maintenance.health()
    assert (health.partial_file_count, health.position_deleted_file_count, health.clean_file_count) == (1, 0, 0)


@pytest.mark.parametrize(("deleted", "is_told"), [(2, False), (3, True)])
def test_deleted_rows_are_told_of_from_three_tenths(tmp_path: Path, deleted: int, is_told: bool) -> None:
    """MT-20: the threshold of compaction itself counts."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    table.delete(where=f"id2 < {deleted}", mode="scan")
    assert ("deleted-rows" in findings(table)) is is_told


def test_two_files_of_a_partition_are_small_and_one_is_not(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for name in "aab":
        table.append(rows(name, [1]))
    assert table.maintenance.health().small_file_count == 2


def test_rows_that_are_named_twice_are_no_more_than_all(tmp_path: Path) -> None:
    """MT-20: by deletes whose entries do not name a data file."""
    table = keyed_table(tmp_path, properties={"read.split.open-file-cost": "1"})
    table.append(rows("a", range(3)))
    (file,) = live_data_files(table)
    for _ in range(2):
        commit_deletes(table, unnamed_position_delete(table, [(file, position) for position in range(3)]))
    health = table.maintenance.health()
    assert health.deleted_row_ratio == 1.0
    (deletes,) = health.delete_files
    assert (deletes.file_count, deletes.deleted_count) == (2, 6)
    assert health.read_amplification == pytest.approx(health.data_bytes + deletes.total_bytes + 3)


def test_read_amplification_of_bytes_and_files(tmp_path: Path) -> None:
    """MT-20, RD-13: positions in a covered file are not counted in addition to its rows. They count as weight that
    compaction removes, as do rows that are deleted by position."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(20)))
    (kept,) = live_data_files(table)
    table.append(rows("b", range(20)))
    table.delete(where="id2 < 5", mode="scan")
    table.delete_prefix({"id1": "b"})
    cost, target = 100, 300
    table.set_properties({"read.split.open-file-cost": str(cost), "write.target-file-size-bytes": str(target)})
    health = table.maintenance.health()
    assert (health.covered_file_count, health.deleted_row_ratio) == (1, 25 / 40)
    positions = next(each for each in health.delete_files if each.kind == "position")
    alive = round(health.data_bytes * 15 / 40)
    assert alive > target
    assert alive % target
    now = kept.file_size_bytes + positions.total_bytes + cost * (1 + positions.file_count)
    assert health.read_amplification == pytest.approx(now / (alive + cost * math.ceil(alive / target)))


def test_overlap_is_told_of_from_one_file_and_a_half(tmp_path: Path) -> None:
    """MT-20, MT-41: three rows lie in 0 to 6, and three in 6 to 8, two of these in the second file."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [0, 1, 2, 8]))
    table.append(rows("a", [6, 8]))
    assert (depth_of(table).average, depth_of(table).largest) == (1.5, 2)
    assert findings(table) == {"overlap": "table.maintenance.compact()"}


def test_the_lookup_depth_is_that_of_all_partitions(tmp_path: Path) -> None:
    """MT-20, MT-41: 1.5 files for six rows, 2 for eight, and a file of one key has no width."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for name, ids in (("a", [0, 1, 2, 8]), ("a", [6, 8]), ("b", range(4)), ("b", range(4)), ("c", [5])):
        table.append(rows(name, list(ids)))
    assert depth_of(table).average == pytest.approx((9 + 16) / (6 + 8))


def test_a_file_of_one_row_is_all_that_a_lookup_opens(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path)
    table.append(rows("a", [5]))
    assert depth_of(table) == LookupDepth(average=1.0, largest=1)


@pytest.mark.parametrize(("partition_by", "largest"), [(("id1", "bucket(4, id2)"), 1), (("payload",), 2)])
def test_partitions_that_the_key_decides_are_looked_up_apart(
    tmp_path: Path, partition_by: tuple[str, ...], largest: int
) -> None:
    """MT-20: also for partitions by all columns of the key. For partitions by another column, every partition is
    searched."""
    table = keyed_table(tmp_path, partition_by=partition_by)
    table.append(pa.concat_tables([rows("a", range(0, 20, 2), "x"), rows("a", range(1, 21, 2), "y")]))
    assert table.maintenance.health().data_file_count > 1
    assert depth_of(table).largest == largest


def test_the_worst_key_may_lie_behind_others(tmp_path: Path) -> None:
    """MT-20"""
    table = keyed_table(tmp_path)
    for ids in (range(3), range(5, 9), range(5, 9)):
        table.append(rows("a", ids))
    assert depth_of(table).largest == 2


@pytest.mark.parametrize(("share", "is_told"), [(0.5, False), (0.9, True)])
def test_manifests_are_told_of_while_they_are_half_full(tmp_path: Path, share: float, is_told: bool) -> None:
    """MT-20: three manifests; their target size is a share of their total bytes."""
    table = keyed_table(
        tmp_path, properties={"commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "3"}
    )
    for id2 in range(3):
        table.append(rows("a", [id2]))
    health = table.maintenance.health()
    assert health.manifest_count == 3
    table.set_properties({"commit.manifest.target-size-bytes": str(int(health.manifest_bytes * share))})
    told = [each.what for each in table.maintenance.health().findings if each.name == "manifests"]
    assert [what.partition(" bytes on ")[0] for what in told] == (
        [f"3 manifests of {health.manifest_bytes // 3:,}"] if is_told else []
    )


def test_large_metadata_lets_go_what_is_a_day_old(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(("later_ms", "age"), [(7_200_000, 7_200.0), (1, 0.001), (0, 0.0), (-5, 0.0)])
def test_age_of_the_oldest_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later_ms: int, age: float) -> None:
    """MT-20: clocks of writers may be ahead."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(10)))
    table.delete_prefix({"id1": "a", "id2": 5})
    oldest = table.metadata.current_snapshot()
    assert oldest is not None
    table.delete_prefix({"id1": "a", "id2": 7})
    monkeypatch.setattr(time, "time_ns", lambda: (oldest.timestamp_ms + later_ms) * 1_000_000 + 999_999)
    (deletes,) = table.maintenance.health().delete_files
    assert (deletes.file_count, deletes.oldest_age_seconds) == (2, age)


def test_depth_of_files_that_all_have_one_key(tmp_path: Path) -> None:
    """MT-41: a file of one key has no width, so it counts for the worst key alone."""
    table = keyed_table(tmp_path)
    for _ in range(3):
        table.append(rows("a", [1]))
    assert table.maintenance.health().lookup_depth == LookupDepth(average=1.0, largest=3)


def test_files_that_are_covered_are_told_apart_from_those_that_are_compared(tmp_path: Path) -> None:
    """MT-20, RD-10"""
    table = keyed_table(tmp_path)
    for id1 in "abc":
        table.append(rows(id1, range(10)))
    table.delete_prefix({"id1": "a", "id2": 5})
    for id1, told in (("b", ", 1 more is dead weight"), ("c", ", 2 more are dead weight")):
        table.delete_prefix({"id1": id1})
        (what,) = [each.what for each in table.maintenance.health().findings if each.name == "keyed-deletes"]
        assert f"each read compares keys of 1 data file{told}, and other engines" in what


def test_a_table_without_a_key_has_no_lookups(tmp_path: Path) -> None:
    """MT-41"""
    table = keyed_table(tmp_path).catalog.create_table("db.keyless", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    assert table.maintenance.health().lookup_depth is None
