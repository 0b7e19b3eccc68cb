"""Errors as answers: status and type are those that Iceberg's clients understand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests

import tableformat as tf
from tableformat.server.running import Server

COLUMNS = pa.schema([pa.field("id", pa.int64())])


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tf.Catalog]:
    with tf.open_catalog(str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", COLUMNS).append([{"id": 1}])
        yield lake


def answer(server: Server, method: str, path: str, body: Any = None) -> tuple[int, str | None]:
    """Status and type of the error."""
    content = None if body is None else json.dumps(body)
    got = requests.request(method, f"{server.url}/v1/{path}", data=content, timeout=60)
    return got.status_code, got.json()["error"]["type"] if got.content and got.status_code >= 400 else None


def commit(*updates: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": [], "updates": list(updates)}


TABLE = "namespaces/db/tables/t"
DEFAULT = {"id": 1, "name": "a", "type": "long", "required": False, "initial-default": 5}
CASES: dict[str, tuple[str, str, Any, tuple[int, str | None]]] = {
    "no table": ("GET", "namespaces/db/tables/no", None, (404, "NoSuchTableException")),
    "no table to ask for": ("HEAD", "namespaces/db/tables/no", None, (404, None)),
    "no namespace": ("GET", "namespaces/no/tables", None, (404, "NoSuchNamespaceException")),
    "no view": ("GET", "namespaces/db/views/no", None, (404, "NoSuchViewException")),
    "namespace exists": ("POST", "namespaces", {"namespace": ["db"]}, (409, "AlreadyExistsException")),
    "namespace with a dot": ("POST", "namespaces", {"namespace": ["a.b"]}, (400, "IllegalArgumentException")),
    "namespace is not empty": ("DELETE", "namespaces/db", None, (409, "NamespaceNotEmptyException")),
    "both set and removed": (
        "POST",
        "namespaces/db/properties",
        {"removals": ["a"], "updates": {"a": "1"}},
        (422, "UnprocessableEntityException"),
    ),
    "no JSON object": ("POST", TABLE, [], (400, "IllegalArgumentException")),
    "field is missing": ("POST", "namespaces/db/tables", {"name": "x"}, (400, "BadRequestException")),
    "default value in version 2": (
        "POST",
        "namespaces/db/tables",
        {"name": "x", "schema": {"type": "struct", "fields": [DEFAULT]}},
        (400, "IllegalArgumentException"),
    ),
    "unknown update": ("POST", TABLE, commit({"action": "paint"}), (400, "BadRequestException")),
    "unknown snapshot": (
        "POST",
        TABLE,
        commit({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 7}),
        (400, "IllegalArgumentException"),
    ),
    "older version": (
        "POST",
        TABLE,
        commit({"action": "upgrade-format-version", "format-version": 1}),
        (400, "IllegalArgumentException"),
    ),
    "unmet requirement": (
        "POST",
        TABLE,
        {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 9}], "updates": []},
        (409, "CommitFailedException"),
    ),
    "snapshot to plan": ("POST", f"{TABLE}/plan", {"snapshot-id": 7}, (400, "IllegalArgumentException")),
    "other place of a view's metadata": (
        "POST",
        "namespaces/db/views",
        {
            "name": "v",
            "schema": {"type": "struct", "fields": []},
            "view-version": {},
            "properties": {"write.metadata.path": "/tmp"},
        },
        (406, "UnsupportedOperationException"),
    ),
    "unknown path": ("GET", "nothing", None, (404, "NotFoundException")),
}


@pytest.mark.parametrize("case", list(CASES))
def test_errors_have_iceberg_status_and_type(lake: tf.Catalog, case: str) -> None:
    method, path, body, expected = CASES[case]
    with tf.serve(lake) as server:
        assert answer(server, method, path, body) == expected


def test_missing_metadata_file_is_not_reported_as_missing_table(lake: tf.Catalog, tmp_path: Path) -> None:
    file = Path(lake.load_table("db.t").iceberg.metadata_location.removeprefix("file://"))
    content = file.read_bytes()
    file.unlink()
    with tf.open_catalog(str(tmp_path / "lake")) as restarted, tf.serve(restarted) as server:
        assert answer(server, "GET", TABLE) == (404, "NotFoundException")
        file.write_bytes(b"{")
        assert answer(server, "GET", TABLE) == (500, "CorruptFileException")
        file.write_bytes(content)
        assert answer(server, "GET", TABLE) == (200, None)


def test_first_snapshot_may_be_on_a_branch(lake: tf.Catalog) -> None:
    """Spark creates a branch of an empty table so. A second writer does not get the same name."""
    donor = lake.load_table("db.t").metadata.snapshots[0]
    lake.create_table("db.empty", COLUMNS)
    snapshot = json.loads(donor.model_copy(update={"parent_snapshot_id": None}).model_dump_json(exclude_none=True))
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "aside", "snapshot-id": None}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": "aside",
                "type": "branch",
                "snapshot-id": donor.snapshot_id,
            },
        ],
    }
    with tf.serve(lake) as server:
        assert answer(server, "POST", "namespaces/db/tables/empty", body) == (200, None)
        assert answer(server, "POST", "namespaces/db/tables/empty", body) == (409, "CommitFailedException")
    refs = lake.load_table("db.empty").metadata.refs
    assert {name: ref.snapshot_id for name, ref in refs.items()} == {"aside": donor.snapshot_id}


UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "create": ({"type": "assert-create"}, "table already exists"),
    "uuid": (
        {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
        "UUID does not match: expected",
    ),
    "no branch": (
        {"type": "assert-ref-snapshot-id", "ref": "aside", "snapshot-id": 7},
        "branch or tag aside is missing, expected 7",
    ),
    "new branch": (
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        "branch main was created concurrently",
    ),
    "branch": ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}, "branch main has changed"),
    "field": (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        "last assigned field id changed: expected id 9 != 1",
    ),
    "partition": (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
        "last assigned partition id changed: expected id 9 != 999",
    ),
    "spec": (
        {"type": "assert-default-spec-id", "default-spec-id": 9},
        "default partition spec changed: expected id 9 != 0",
    ),
    "order": (
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 9},
        "default sort order changed: expected id 9 != 0",
    ),
}


@pytest.mark.parametrize("case", list(UNMET))
def test_requirement_messages_match_iceberg(lake: tf.Catalog, case: str) -> None:
    """These are the words of Iceberg's Java library, because its tests and some clients search for them."""
    requirement, message = UNMET[case]
    with tf.serve(lake) as server:
        body = {"requirements": [requirement], "updates": []}
        got = requests.post(f"{server.url}/v1/{TABLE}", json=body, timeout=60)
    assert got.status_code == 409
    assert got.json()["error"]["message"].startswith(f"Requirement failed: {message}")
