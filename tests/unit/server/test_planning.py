"""Plans of the server (SV-11)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import requests
from pyiceberg.catalog import load_catalog
from served_lakes import orders, own_rows, replace_message, rows, sorted_rows

import tableformat as tf
from tableformat.metadata.staged_conversions import source_of, staged_conversions
from tableformat.server import planning
from tableformat.server.planning import PlanPosition
from tableformat.server.served_tables import ServedTables

BOTH_VERSIONS = pytest.mark.parametrize("version", [2, 3])
BY_A = {"type": "eq", "term": "customer", "value": "A"}


def ask(url: str, route: str, **body: Any) -> requests.Response:
    return requests.post(f"{url}/v1/namespaces/db/tables/orders/{route}", json=body, timeout=30)


def paths(answer: dict[str, Any]) -> list[str]:
    return [task["data-file"]["file-path"] for task in answer["file-scan-tasks"]]


@BOTH_VERSIONS
def test_plans_of_the_server_cover_every_snapshot_branch_and_tag(tmp_path: Path, version: int) -> None:
    table = orders(tmp_path, version, partitioned=True)
    replace_message(table, 1)
    table.create_tag("monday")
    branch = table.create_branch("aside")
    replace_message(table, 11)
    branch.delete_prefix({"customer": "B"})
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    with tf.serve(catalog, freshness_seconds=0) as server:
        client = load_catalog("served", type="rest", uri=server.url, **{"scan-planning-mode": "server"})
        served = client.load_table("db.orders")
        for snapshot in table.refresh().iceberg.metadata.snapshots:
            expected = own_rows(table, snapshot_id=snapshot.snapshot_id)
            assert sorted_rows(served.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == expected
        filtered = served.scan("customer = 'B' and order > 3").to_arrow()
        assert sorted_rows(filtered) == own_rows(table, where="customer = 'B' AND \"order\" > 3")


@pytest.mark.parametrize(("page_tasks", "chunk_files"), [(2, 20_000), (2, 1), (3, 2), (1, 3), (100, 1)])
def test_pages_have_every_file_once_and_any_server_continues_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_tasks: int, chunk_files: int
) -> None:
    monkeypatch.setattr(planning, "_PAGE_TASKS", page_tasks)
    monkeypatch.setattr(planning, "_CHUNK_FILES", chunk_files)
    table = orders(tmp_path, partitioned=True)
    replace_message(table, 1)
    expected = sorted(task.data_file.file_path for task in table.scan(where="customer = 'A'").plan().tasks)
    with tf.serve(table.catalog, freshness_seconds=0) as first, tf.serve(table.catalog) as second:
        answer = ask(first.url, "plan", filter=BY_A).json()
        found = paths(answer)
        while waiting := answer.get("plan-tasks"):
            assert len(answer["file-scan-tasks"]) == page_tasks
            answer = ask(second.url, "tasks", **{"plan-task": waiting[0]}).json()
            found += paths(answer)
    assert sorted(found) == expected


def test_token_of_no_plan_and_one_of_an_expired_snapshot_are_404(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with tf.serve(table.catalog) as server:
        gone = PlanPosition(snapshot_id=1, filter=None).token()
        for token in ("", "x", "bnVsbA==", "W1tb" * 20_000, PlanPosition(1, None, True, -1).token(), gone):
            answer = ask(server.url, "tasks", **{"plan-task": token})
            assert answer.status_code == 404
            assert answer.json()["error"]["type"] == "NoSuchPlanTaskException"


def test_conversions_staged_by_plans_are_cleaned_up(tmp_path: Path) -> None:
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "0"})
    tables = ServedTables(table.iceberg.catalog, 0)
    replace_message(table, 1)
    handle = table.refresh().iceberg
    source = handle.metadata.current_snapshot()
    assert source is not None
    staged = tables.conversion_of(handle, source)
    assert source_of(staged) == source.snapshot_id
    table.append(rows(("C", 1, "new")))
    time.sleep(0.01)
    tables.clean_up()
    assert staged_conversions(table.refresh().iceberg.metadata) == {}
