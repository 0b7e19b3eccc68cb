"""Commits to several tables of a PostgreSQL lake: writers in opposite orders, lost races, lost answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from postgres_server import postgres_uri

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

NAMES = ("shop.orders", "shop.lines")
SCHEMA = pa.schema([pa.field("batch", pa.int64(), nullable=False)])


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    with postgres_uri() as made:
        yield made


@pytest.fixture
def lake(uri: str, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The arguments of `open_catalog`."""
    with tf.open_catalog(str(tmp_path / "lake"), uri=uri) as catalog:
        catalog.create_namespace("shop", exist_ok=True)
        for name in NAMES:
            catalog.create_table(name, SCHEMA, key=["batch"])
        yield str(tmp_path / "lake"), uri
        for name in NAMES:
            catalog.drop_table(name)


def append(catalog: tf.Catalog, names: tuple[str, ...], *batches: int, **batch: Any) -> dict[str, tf.CommitResult]:
    with catalog.transaction(**batch) as tx:
        for name in names:
            tx.table(name).append(pa.table({"batch": list(batches)}, schema=SCHEMA))
    return tx.results


def batches(catalog: tf.Catalog) -> list[list[int]]:
    return [sorted(catalog.load_table(name).scan().to_arrow()["batch"].to_pylist()) for name in NAMES]


def test_writers_in_opposite_orders_commit_all_batches(lake: tuple[str, str]) -> None:
    """CP-79, LK-36: neither the queues nor the rows of the database are waited for in a circle."""
    directory, uri = lake

    def write(number: int) -> None:
        with tf.open_catalog(directory, uri=uri) as own:
            for each in range(5):
                append(own, NAMES[:: 1 if number % 2 else -1], 10 * number + each)

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(4)))
    with tf.open_catalog(directory, uri=uri) as catalog:
        expected = [10 * number + each for number in range(4) for each in range(5)]
        assert batches(catalog) == [expected, expected]


def test_concurrent_row_change_rolls_back_all_tables(lake: tuple[str, str]) -> None:
    """LK-36: the row of one table may be set before the row of the other is found changed."""
    directory, uri = lake
    with tf.open_catalog(directory, uri=uri) as catalog, tf.open_catalog(directory, uri=uri) as other:
        point_to, waiting = EmbeddedCatalog.point_to, [7]

        def late(self: EmbeddedCatalog, swaps: Any, **options: Any) -> None:
            if waiting and len(swaps) > 1:
                other.load_table("shop.orders").append(pa.table({"batch": [waiting.pop()]}, schema=SCHEMA))
            point_to(self, swaps, **options)

        with mock.patch.object(EmbeddedCatalog, "point_to", late):
            results = append(catalog, NAMES, 1, application_id="loader", batch_id=1)
        assert {each.attempts for each in results.values()} == {2}
        assert batches(catalog) == [[1, 7], [1]]
        assert {
            each.already_applied for each in append(other, NAMES, 1, application_id="loader", batch_id=1).values()
        } == {True}


def test_lost_response_is_resolved_as_committed(lake: tuple[str, str]) -> None:
    """CP-77."""
    directory, uri = lake
    with tf.open_catalog(directory, uri=uri) as catalog:
        point_to = EmbeddedCatalog.point_to

        def lost(self: EmbeddedCatalog, swaps: Any, **options: Any) -> None:
            point_to(self, swaps, **options)
            raise OSError("connection lost")

        with mock.patch.object(EmbeddedCatalog, "point_to", lost):
            append(catalog, NAMES, 1)
        assert batches(catalog) == [[1], [1]]


def test_erasure_of_two_tables_is_atomic(lake: tuple[str, str]) -> None:
    """MT-111, LK-38: a compare-and-set of both rows; a table that changed in the meantime makes it plan again."""
    directory, uri = lake
    with tf.open_catalog(directory, uri=uri) as catalog:
        append(catalog, NAMES, 1, 2)
        replace = EmbeddedCatalog.replace_histories
        calls: list[int] = []

        def racing(self: EmbeddedCatalog, changes: Any) -> Any:
            calls.append(len(changes))
            if len(calls) == 1:
                append(catalog, NAMES[1:], 3)
            return replace(self, changes)

        with mock.patch.object(EmbeddedCatalog, "replace_histories", racing):
            certificate = catalog.erase({name: {"batch": 2} for name in NAMES})
        assert calls == [2, 2]
        assert certificate.is_complete
        assert batches(catalog) == [[1], [1, 3]]
        for name in NAMES:
            first = catalog.load_table(name).metadata.snapshots[0].snapshot_id
            assert catalog.load_table(name).scan(snapshot_id=first).to_arrow()["batch"].to_pylist() == [1]
