"""What a client reads while equality and range deletes are pending."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from served_lakes import client_of, orders, own_rows, replace_message, rows, seen_by, sorted_rows

import tableformat as tf
from tableformat.commit.table_diff import manifests_of_snapshot
from tableformat.maintenance.conversion import staged_conversion
from tableformat.maintenance.conversion.staged_conversion import StagedConversion, stage_conversion
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.staged_conversions import source_of, staged_conversions
from tableformat.server import served_tables
from tableformat.server.served_tables import ServedTables

BOTH_VERSIONS = pytest.mark.parametrize("version", [2, 3])


@BOTH_VERSIONS
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("encoding", ["range", "equality"])
def test_client_reads_the_rows_of_the_head(tmp_path: Path, version: int, partitioned: bool, encoding: str) -> None:
    table = orders(tmp_path, version, partitioned=partitioned, **{"write.delete.prefix-encoding": encoding})
    with client_of(table) as client:
        assert seen_by(client) == own_rows(table)
        for number in (1, 11, 2, 99):
            replace_message(table, number)
            assert seen_by(client) == own_rows(table)
        table.delete_prefix({"customer": "B"})
        assert seen_by(client) == own_rows(table)
        assert seen_by(client, row_filter="order > 10") == own_rows(table, where='"order" > 10')


def test_table_without_pending_deletes_is_served_unchanged(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        assert client.load_table("db.orders").metadata_location == table.iceberg.metadata_location
    assert staged_conversions(table.refresh().iceberg.metadata) == {}


@BOTH_VERSIONS
def test_only_data_files_with_newer_deletes_are_searched_again(tmp_path: Path, version: int) -> None:
    table = orders(tmp_path, version)
    table.append(rows(("X", 1, "old"), ("X", 2, "old")))
    with client_of(table) as client:
        paths = []
        for prefix in ({"customer": "A", "order": 1}, {"customer": "X", "order": 1}):
            table.delete_prefix(prefix)
            client.load_table("db.orders")
            metadata = table.refresh().iceberg.metadata
            staged = staged_conversions(metadata)[metadata.current_snapshot_id or 0]
            scan = table.scan(snapshot_id=staged.snapshot_id)
            paths.append({delete.file_path for task in scan.plan().tasks for delete in task.delete_files})
    assert len(paths[0]) == 1
    assert len(paths[1]) == 2
    assert paths[0] < paths[1]


def test_restarted_server_serves_the_same_conversion(tmp_path: Path) -> None:
    table = orders(tmp_path)
    replace_message(table, 1)
    heads = []
    for _ in range(2):
        with client_of(table) as client:
            heads.append(client.load_table("db.orders").metadata.current_snapshot_id)
    assert heads[0] == heads[1]
    assert source_of(table.refresh().iceberg.metadata.snapshot_by_id(heads[0])) == table.snapshot_id


def test_conversion_and_its_log_entry_have_the_time_of_the_source(tmp_path: Path) -> None:
    """SV-3: DuckDB chooses the newest snapshot that is not later than its transaction."""
    table = orders(tmp_path)
    replace_message(table, 1)
    source = table.refresh().iceberg.metadata.current_snapshot()
    assert source is not None
    with client_of(table) as client:
        metadata = client.load_table("db.orders").metadata
    head = metadata.current_snapshot()
    assert head is not None
    assert head.snapshot_id != source.snapshot_id
    assert head.timestamp_ms == metadata.snapshot_log[-1].timestamp_ms == source.timestamp_ms
    assert metadata.snapshot_log[-1].snapshot_id == head.snapshot_id


def test_metadata_location_changes_with_the_served_head(tmp_path: Path) -> None:
    """SV-6: clients compare it, and they keep the catalog's own file because the metadata log names it."""
    table = orders(tmp_path)
    with client_of(table) as client:
        seen = [client.load_table("db.orders").metadata_location]
        for number in (1, 2):
            replace_message(table, number)
            loaded = client.load_table("db.orders")
            seen.append(loaded.metadata_location)
    assert len(set(seen)) == 3
    assert table.refresh().iceberg.metadata_location not in seen
    logged = {entry.metadata_file for entry in loaded.metadata.metadata_log}
    assert any(location.endswith(".metadata.json") for location in logged)


def test_load_after_a_staging_is_answered_as_unchanged(tmp_path: Path) -> None:
    table = orders(tmp_path)
    replace_message(table, 1)
    with tf.serve(table.catalog) as server:
        address = f"{server.url}/v1/namespaces/db/tables/orders"
        first = requests.get(address, timeout=30)
        assert first.status_code == 200
        again = requests.get(address, headers={"If-None-Match": first.headers["ETag"]}, timeout=30)
        assert again.status_code == 304


def test_staging_serves_the_loaded_head_if_a_commit_moved_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SV-5: no snapshot of `main` in the answer is newer than its head."""
    table = orders(tmp_path)
    replace_message(table, 1)
    head = table.refresh().snapshot_id

    def stage_beside_a_commit(*arguments: Any) -> StagedConversion:
        replace_message(table, 2)
        return stage_conversion(*arguments)

    monkeypatch.setattr(served_tables, "stage_conversion", stage_beside_a_commit)
    metadata = ServedTables(table.iceberg.catalog, 0).load(("db", "orders")).metadata
    served = metadata.current_snapshot()
    assert served is not None
    assert source_of(served) == head
    assert served.timestamp_ms == max(snapshot.timestamp_ms for snapshot in metadata.snapshots)


def test_no_time_in_the_answer_to_a_staging_is_later_than_the_request(tmp_path: Path) -> None:
    """DuckDB reads the state of the start of its transaction."""
    table = orders(tmp_path)
    replace_message(table, 1)
    time.sleep(0.01)
    requested_ms = time.time_ns() // 1_000_000
    metadata = ServedTables(table.iceberg.catalog, 0).load(("db", "orders")).metadata
    logs = [*metadata.snapshot_log, *metadata.metadata_log]
    assert max(metadata.last_updated_ms, *(entry.timestamp_ms for entry in logs)) < requested_ms
    assert table.refresh().iceberg.metadata_location in {entry.metadata_file for entry in metadata.metadata_log}


@BOTH_VERSIONS
def test_reads_during_concurrent_writes_return_real_heads(tmp_path: Path, version: int) -> None:
    """Each read returns the rows of a head between its start and its end."""
    table = orders(tmp_path, version)
    states = [own_rows(table)]

    def write() -> None:
        for number in range(100, 120):
            replace_message(table, number)
            states.append(own_rows(table))

    with client_of(table) as client, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            before = len(states) - 1
            seen = seen_by(client)
            # The writer may have committed a state that it has not listed yet.
            assert seen in states[before:] or seen in (own_rows(table), *states[before:])
        writing.result()
        assert seen_by(client) == own_rows(table)


def test_served_state_is_at_most_as_old_as_the_freshness(tmp_path: Path) -> None:
    table = orders(tmp_path)
    replace_message(table, 1)
    with client_of(table, freshness_seconds=3600) as client:
        before = seen_by(client)
        replace_message(table, 2)
        assert seen_by(client) == before
        client.load_table("db.orders").transaction().set_properties({"owner": "sales"}).commit_transaction()
        assert seen_by(client) == own_rows(table)


def test_unused_conversions_are_removed(tmp_path: Path) -> None:
    """SV-8: never the conversion of a head."""
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "0"})
    with client_of(table) as client:
        for number in (1, 2, 11):
            replace_message(table, number)
            client.load_table("db.orders")
        expired = table.refresh().maintenance.expire_snapshots(retain_last=100, older_than=0)
        assert expired.expired_snapshots_count >= 1
        (kept,) = staged_conversions(table.refresh().iceberg.metadata)
        assert kept == table.snapshot_id
        assert seen_by(client) == own_rows(table)
    assert table.maintenance.verify(deep=True).findings == ()


def test_server_removes_unused_conversions(tmp_path: Path) -> None:
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "0"})
    tables = ServedTables(table.iceberg.catalog, 0)
    for number in (1, 2, 11):
        replace_message(table, number)
        tables.load(("db", "orders"))
    time.sleep(0.01)
    tables.clean_up()
    assert list(staged_conversions(table.refresh().iceberg.metadata)) == [table.snapshot_id]
    table.catalog.drop_table("db.orders")
    tables.clean_up()


def test_conversions_in_use_survive_every_expiry(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        for number in (1, 2):
            replace_message(table, number)
            client.load_table("db.orders")
        table.refresh().maintenance.expire_snapshots(retain_last=1, older_than=2**60)
        assert len(staged_conversions(table.refresh().iceberg.metadata)) == 2
        assert seen_by(client) == own_rows(table)


def test_client_reports_are_sent_to_the_catalog_reporter(tmp_path: Path) -> None:
    table = orders(tmp_path)
    table.append(rows(("C", 1, "new")))
    reports: list[Any] = []
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    with tf.serve(catalog) as server:
        catalog.report_to(reports.append)
        table.catalog.report_to(reports.append)
        table.scan(where="customer = 'C'").to_arrow()
        (own,) = reports
        answer = requests.post(f"{server.url}/v1/namespaces/db/tables/orders/metrics", json=own.to_dict(), timeout=10)
        assert answer.status_code == 204
        assert reports[1].to_dict() == own.to_dict()
        answer = requests.post(f"{server.url}/v1/namespaces/db/tables/orders/metrics", json={"a": 1}, timeout=10)
        assert answer.status_code == 400
    assert len(reports) == 2


@BOTH_VERSIONS
@pytest.mark.parametrize("partitioned", [False, True])
def test_delete_manifests_whose_entries_stay_are_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, partitioned: bool
) -> None:
    """SV-4: also after the conversion that wrote them was removed."""
    monkeypatch.setattr(staged_conversion, "_MANIFEST_ENTRIES", 2)
    table = orders(tmp_path, version, partitioned=partitioned, **{"tableformat.serve.staged-max-age-ms": "0"})
    for number in range(3, 12):
        table.append(rows(("A", number * 10 + 1, "old"), ("A", number * 10 + 2, "old")))
    with table.transaction() as transaction:
        for number in range(12):
            transaction.delete_prefix({"customer": "A", "order": number * 10 + 1})
    tables = ServedTables(table.iceberg.catalog, 0)
    before = delete_manifests(table, tables)
    assert len(before) > 2
    for number in (12, 12, 2, 112):
        replace_message(table, number)
        after = delete_manifests(table, tables)
        assert before & after
        before = after
        time.sleep(0.01)
        tables.clean_up()
        assert len(staged_conversions(table.refresh().iceberg.metadata)) == 1
        staged = staged_conversions(table.iceberg.metadata)[table.snapshot_id or 0]
        assert sorted_rows(table.scan(snapshot_id=staged.snapshot_id).to_arrow()) == own_rows(table)
    assert table.maintenance.verify(deep=True).findings == ()
    with client_of(table) as client:
        client.load_table("db.orders").transaction().set_properties({"owner": "sales"}).commit_transaction()
        if version == 2:  # PyIceberg writes no version 3.
            client.load_table("db.orders").append(rows(("C", 1, "new")))
        assert seen_by(client) == own_rows(table)
    table.refresh().maintenance.expire_snapshots(retain_last=1, older_than=2**60)
    assert table.refresh().maintenance.verify(deep=True).findings == ()


def delete_manifests(table: tf.Table, tables: ServedTables) -> set[str]:
    """The delete manifests of the served head."""
    head = tables.load(("db", "orders")).metadata.current_snapshot()
    assert head is not None
    listed = manifests_of_snapshot(table.iceberg.io, head)
    return {manifest.manifest_path for manifest in listed if manifest.content is ManifestContent.DELETES}
