"""Retries of a commit that lost a race: how many, and after which waits (`commit.retry.*`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.exceptions import CommitFailedException

import tableformat as tf
from tableformat.commit.retry import retry_lost_races


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were slept between attempts; other threads sleep as ever."""
    slept: list[float] = []
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=slept.append))
    return slept


def always_lost(properties: Mapping[str, str]) -> int:
    """Attempts of a commit that loses every race, in a catalog without a queue."""
    catalog = tf.Catalog(InMemoryCatalog("other"))
    catalog.create_namespace("db")
    options = {f"commit.retry.{name}": value for name, value in properties.items()}
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=options)
    attempts = 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise CommitFailedException(f"lost {attempts}")

    with pytest.raises(CommitFailedException) as lost:
        retry_lost_races(attempt, table.iceberg)
    assert str(lost.value) == f"lost {attempts}", "the last one is told"
    return attempts


def test_retries_stop_at_the_total_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("tenacity.time", SimpleNamespace(monotonic=lambda: now))
    most = {"num-retries": "1000", "min-wait-ms": "100", "max-wait-ms": "100", "total-timeout-ms": "2000"}
    assert 20 < always_lost(most) < 100
    assert 1.9 < now < 2.1
