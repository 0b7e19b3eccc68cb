"""Commits of clients on top of a staged conversion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from served_lakes import client_of, orders, own_rows, replace_message, rows, seen_by

from tableformat.commit.metadata_commit import assert_ref
from tableformat.metadata.staged_conversions import staged_conversions
from tableformat.server.client_commits import catalog_commit
from tableformat.server.served_tables import ServedTables

NEW = ("Z", 1, "by the client")


def test_append_on_a_conversion_makes_it_the_parent(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        expected = sorted([*own_rows(table), NEW])
        client.load_table("db.orders").append(rows(NEW))
        assert own_rows(table) == seen_by(client) == expected
        replace_message(table, 2)
        assert seen_by(client) == own_rows(table)
    assert table.maintenance.verify(deep=True).findings == ()


def test_stale_client_append_is_retried_on_the_newest_head(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        stale = client.load_table("db.orders")
        replace_message(table, 2)
        expected = sorted([*own_rows(table), NEW])
        stale.append(rows(NEW))
        assert own_rows(table) == seen_by(client) == expected


def test_delete_and_overwrite_of_a_client(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        client.load_table("db.orders").delete("order = 11")
        assert seen_by(client) == own_rows(table)
        assert all(row[1] != 11 for row in own_rows(table))
        replace_message(table, 2)
        client.load_table("db.orders").overwrite(rows(NEW))
        assert own_rows(table) == seen_by(client) == [NEW]


def test_change_feed_of_a_client_commit_has_only_its_rows(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        before = table.refresh().snapshot_id
        client.load_table("db.orders").append(rows(NEW))
    changed = table.refresh().changes(from_snapshot_id=before).to_arrow().to_pylist()
    assert [(row["customer"], row["_change_type"]) for row in changed] == [("Z", "insert")]


def test_expiry_by_a_client_keeps_the_rows(tmp_path: Path) -> None:
    """The client takes the conversion for the head, and so removes the head of the catalog."""
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        replace_message(table, 2)
        expected = own_rows(table)
        served = client.load_table("db.orders")
        head_id = served.metadata.current_snapshot_id
        old = [each.snapshot_id for each in served.metadata.snapshots if each.snapshot_id != head_id]
        served.maintenance.expire_snapshots().by_ids(old).commit()
        assert own_rows(table) == seen_by(client) == expected
        assert len(table.iceberg.metadata.snapshots) == 1
        served.append(rows(NEW))
        assert own_rows(table) == sorted([*expected, NEW])


def test_tags_and_branches_of_a_client_stay_readable(tmp_path: Path) -> None:
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "0"})
    with client_of(table) as client:
        replace_message(table, 1)
        expected = own_rows(table)
        served = client.load_table("db.orders")
        head = served.current_snapshot()
        assert head is not None
        served.manage_snapshots().create_tag(head.snapshot_id, "monday").commit()
        replace_message(table, 2)
        table.refresh().maintenance.expire_snapshots(retain_last=1, older_than=2**60)
        assert own_rows(table, tag="monday") == expected
        assert seen_by(client, snapshot_id=head.snapshot_id) == expected


@pytest.mark.parametrize("change", ["properties", "schema"])
def test_metadata_change_does_not_move_main(tmp_path: Path, change: str) -> None:
    table = orders(tmp_path)
    with client_of(table) as client:
        replace_message(table, 1)
        head = table.refresh().snapshot_id
        served = client.load_table("db.orders")
        if change == "properties":
            served.transaction().set_properties({"owner": "sales"}).commit_transaction()
        else:
            with served.update_schema() as update:
                update.update_column("note", doc="free text")
        assert table.refresh().snapshot_id == head
        assert seen_by(client) == own_rows(table)


def test_commit_on_conversion_of_older_head_conflicts(tmp_path: Path) -> None:
    table = orders(tmp_path)
    tables = ServedTables(table.iceberg.catalog, 0)
    replace_message(table, 1)
    served = tables.load(("db", "orders")).metadata.current_snapshot_id
    assert served is not None
    required = [assert_ref("main", served)]

    def commit() -> Any:
        return catalog_commit(table.refresh().iceberg.metadata, required, [])

    requirements, (update,) = commit()
    assert requirements == (assert_ref("main", table.snapshot_id),)
    assert update.snapshot_id == served
    replace_message(table, 2)
    with pytest.raises(CommitFailedException):
        commit()
    tables.load(("db", "orders"))
    with pytest.raises(CommitFailedException):
        commit()


def test_head_of_main_cannot_be_removed(tmp_path: Path) -> None:
    table = orders(tmp_path)
    from pyiceberg.table.update import RemoveSnapshotsUpdate

    remove = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [table.snapshot_id]})
    with pytest.raises(CommitFailedException):
        catalog_commit(table.iceberg.metadata, [], [remove])


def test_expired_conversion_files_are_not_reused(tmp_path: Path) -> None:
    """SV-4: the next conversion would name a file that the expiry has removed."""
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "0"})
    tables = ServedTables(table.iceberg.catalog, 0)
    replace_message(table, 1)
    tables.load(("db", "orders"))
    replace_message(table, 11)
    table.refresh().maintenance.expire_snapshots(retain_last=100, older_than=0)
    assert staged_conversions(table.refresh().iceberg.metadata) == {}
    tables.load(("db", "orders"))
    with client_of(table) as client:
        assert seen_by(client) == own_rows(table)
    assert table.maintenance.verify(deep=True).findings == ()


def test_property_change_is_retried_by_the_server(tmp_path: Path) -> None:
    """SV-9: its requirements hold on every head, so no lost race reaches the client."""
    table = orders(tmp_path)

    def write() -> None:
        for number in range(100, 130):
            replace_message(table, number)

    with client_of(table) as client, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for number in range(10):
            client.load_table("db.orders").transaction().set_properties(
                {f"owner-{number}": "sales"}
            ).commit_transaction()
        writing.result()
    properties = table.refresh().properties
    assert [name for name in properties if name.startswith("owner-")] == [f"owner-{number}" for number in range(10)]
