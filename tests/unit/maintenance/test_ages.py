"""Minimum ages for expiry."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import keyed_table, rows

from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.expiry.ages import older_than_ms

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("older_than", "moment"),
    [
        (timedelta(0), NOW_MS),
        (timedelta(days=7), NOW_MS - 7 * 86_400_000),
        (timedelta(microseconds=1), NOW_MS),
        (NOW_MS - 5, NOW_MS - 5),
        ("1970-01-02", 86_400_000),
        (datetime(1970, 1, 2), 86_400_000),
    ],
)
def test_expiry_accepts_a_timestamp_or_an_age(older_than: Any, moment: int) -> None:
    assert older_than_ms(older_than, NOW_MS) == moment


@pytest.mark.parametrize("older_than", ["7 days", timedelta(days=-1)])
def test_invalid_age_error_names_the_argument(tmp_path: Path, older_than: Any) -> None:
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    for job in (table.maintenance.expire_snapshots, table.maintenance.remove_orphan_files):
        with pytest.raises(InvalidArgumentError, match=r"^older_than "):
            job(older_than=older_than)


def test_snapshots_older_than_an_age_expire(tmp_path: Path) -> None:
    table = keyed_table(tmp_path)
    for number in range(3):
        table.append(rows("a", [number]))
    expire = table.maintenance.expire_snapshots
    assert expire(older_than=timedelta(days=1), dry_run=True).expired_snapshots_count == 0
    assert expire(older_than=timedelta(0), dry_run=True).expired_snapshots_count == 2
