"""Commits to several tables in one request to a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, UnauthorizedError
from rest_service import TRANSACTIONS, RestService, serving

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.multi_table_commit import TableRequest
from tableformat.errors import (
    BatchPartlyAppliedError,
    CommitConflictError,
    CommitStateUnknownError,
    PartialCommitError,
    SeveralTablesError,
)

SCHEMA = pa.schema([pa.field("order", pa.int64(), nullable=False), pa.field("note", pa.string())])


NAMES = ("db.lines", "db.orders")


BATCH: dict[str, Any] = {"application_id": "loader", "batch_id": 1}


@dataclass
class Estate:
    service: RestService
    lake: tf.Catalog
    """The lake behind the server."""
    catalog: tf.Catalog
    """The client."""

    def change(self, **batch: Any) -> dict[str, tf.CommitResult]:
        with self.catalog.transaction(**batch) as tx:
            for name in NAMES:
                tx.table(name).append(pa.table({"order": [2], "note": ["new"]}))
        return tx.results

    def numbers(self) -> dict[str, list[int]]:
        return {name: sorted(self.lake.load_table(name).scan().to_arrow()["order"].to_pylist()) for name in NAMES}


BEFORE = {key: [1] for key in NAMES}


AFTER = {key: [1, 2] for key in NAMES}


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    backend = EmbeddedCatalog.at(tmp_path / "lake")
    lake = tf.Catalog(backend)
    lake.create_namespace("db")
    for name in NAMES:
        table = lake.create_table(name, SCHEMA, key=["order"], properties=FAST_RETRIES)
        table.append(pa.table({"order": [1], "note": ["old"]}))
    service = RestService(backend)
    with serving(service) as client:
        yield Estate(service, lake, tf.Catalog(client()))


def test_tables_are_committed_in_one_request(estate: Estate) -> None:
    """LK-37."""
    results = estate.change(**BATCH)
    assert estate.numbers() == AFTER
    (request,) = estate.service.requests
    assert [each["identifier"]["name"] for each in request["table-changes"]] == ["lines", "orders"]
    assert all(each["requirements"] and each["updates"] for each in request["table-changes"])
    for name, result in results.items():
        assert (result.snapshot_id, result.added_row_count) == (estate.lake.load_table(name).snapshot_id, 1)
    assert {each.already_applied for each in estate.change(**BATCH).values()} == {True}


def test_read_table_has_requirements_without_updates(estate: Estate) -> None:
    """CP-75, LK-37."""
    with estate.catalog.transaction() as tx:
        tx.table("db.lines").delete("note = 'nothing'", mode="scan")
        tx.table("db.orders").append(pa.table({"order": [2], "note": ["new"]}))
    (request,) = estate.service.requests
    (read,) = [each for each in request["table-changes"] if not each["updates"]]
    assert read["identifier"]["name"] == "lines"
    assert {each["type"] for each in read["requirements"]} == {"assert-table-uuid", "assert-ref-snapshot-id"}


def test_lost_race_is_retried(estate: Estate) -> None:
    """LK-37: answer 409."""

    def overtaken(requests: list[TableRequest]) -> None:
        estate.service.answer = estate.service.apply
        estate.lake.load_table("db.orders").append(pa.table({"order": [9], "note": ["other"]}))
        estate.service.apply(requests)

    estate.service.answer = overtaken
    assert {each.attempts for each in estate.change().values()} == {2}
    assert estate.numbers() == {"db.lines": [1, 2], "db.orders": [1, 2, 9]}


@pytest.mark.parametrize("is_refreshed", [True, False])
def test_expired_token_is_renewed_once(estate: Estate, monkeypatch: pytest.MonkeyPatch, is_refreshed: bool) -> None:
    """LK-37: a request that is refused after that changes nothing."""

    def refuse(_requests: list[TableRequest]) -> None:
        raise UnauthorizedError("expired")

    def refresh(_catalog: RestCatalog) -> None:
        if is_refreshed:
            estate.service.answer = estate.service.apply

    monkeypatch.setattr(RestCatalog, "_refresh_token", refresh)
    estate.service.answer = refuse
    if is_refreshed:
        estate.change()
    else:
        with pytest.raises(tf.TableFormatError, match=r"refused the commit to db\.lines.*expired"):
            estate.change()
    assert estate.numbers() == (AFTER if is_refreshed else BEFORE)
    assert len(estate.service.requests) == 2


def test_server_that_always_rejects_is_a_conflict(estate: Estate) -> None:
    def refuse(_requests: list[TableRequest]) -> None:
        raise CommitFailedException("busy")

    estate.service.answer = refuse
    with pytest.raises(CommitConflictError):
        estate.change()
    assert estate.numbers() == BEFORE


def test_lost_response_is_resolved_as_committed(estate: Estate) -> None:
    """CP-77."""

    def lose(requests: list[TableRequest]) -> None:
        estate.service.apply(requests)
        raise OSError("lost")

    estate.service.answer = lose
    assert {each.added_row_count for each in estate.change().values()} == {1}
    assert estate.numbers() == AFTER


def test_request_applied_between_status_checks_is_detected(estate: Estate) -> None:
    """CP-77: the first table was loaded before the server applied it, and the second one afterwards."""

    def lose(requests: list[TableRequest]) -> None:
        estate.service.after_load.append(lambda: estate.service.apply(requests))
        raise OSError("late")

    estate.service.answer = lose
    assert {each.snapshot_id for each in estate.change().values()} == {
        estate.lake.load_table(name).snapshot_id for name in NAMES
    }
    assert estate.numbers() == AFTER


def test_request_without_response_keeps_its_files(estate: Estate, tmp_path: Path) -> None:
    """CP-77: the server may apply it yet, and then both tables have their files."""
    sent: list[TableRequest] = []

    def swallow(requests: list[TableRequest]) -> None:
        sent.extend(requests)
        raise OSError("no answer")

    estate.service.answer = swallow
    with pytest.raises(CommitStateUnknownError):
        estate.change()
    assert estate.numbers() == BEFORE
    estate.service.apply(sent)
    assert estate.numbers() == AFTER
    assert all(estate.lake.load_table(name).verify(deep=True).is_clean for name in NAMES)


def test_partially_applied_request_error_names_the_tables(estate: Estate) -> None:
    """CP-77, CP-78: as a server without transactions may do."""

    def half(requests: list[TableRequest]) -> None:
        estate.lake.iceberg.commit_table(requests[0].table, requests[0].requirements, requests[0].updates)
        raise OSError("died")

    estate.service.answer = half
    with pytest.raises(PartialCommitError) as partial:
        estate.change(**BATCH)
    assert partial.value.lacking == ("db.orders (branch main)",)
    assert estate.numbers() == {"db.lines": [1, 2], "db.orders": [1]}
    assert estate.lake.load_table("db.lines").verify(deep=True).is_clean
    estate.service.answer = estate.service.apply
    with pytest.raises(BatchPartlyAppliedError):
        estate.change(**BATCH)
    lines = estate.lake.load_table("db.lines")
    lines.rollback(snapshot_id=lines.history()["snapshot_id"][0].as_py(), replay=True)
    estate.change(**BATCH)
    assert estate.numbers() == AFTER


@pytest.mark.parametrize("is_gone", [True, False])
def test_partially_applied_rejected_request_keeps_files(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """LK-37: the first table has its snapshot, and the answer is 409. The server may be away afterwards."""

    def gone(_path: list[str]) -> None:
        raise OSError("away")

    def half(requests: list[TableRequest]) -> None:
        estate.lake.iceberg.commit_table(requests[0].table, requests[0].requirements, requests[0].updates)
        if is_gone:
            monkeypatch.setattr(estate.service, "get", gone)
        raise CommitFailedException("the second table was changed")

    estate.service.answer = half
    with pytest.raises(CommitStateUnknownError if is_gone else PartialCommitError):
        estate.change()
    assert estate.numbers() == {"db.lines": [1, 2], "db.orders": [1]}
    assert estate.lake.load_table("db.lines").verify(deep=True).is_clean


def test_multi_table_commit_requires_server_support(estate: Estate) -> None:
    """LK-36: the requests of one table are as ever."""
    estate.service.endpoints.remove(TRANSACTIONS)
    with serving(estate.service) as client:
        estate.catalog = tf.Catalog(client())
        with pytest.raises(SeveralTablesError):
            estate.change()
        with estate.catalog.transaction() as tx:
            tx.table("db.orders").append(pa.table({"order": [2], "note": ["new"]}))
    assert (estate.numbers(), estate.service.requests) == ({"db.lines": [1], "db.orders": [1, 2]}, [])
