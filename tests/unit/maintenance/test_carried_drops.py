"""A publish, and ranges that the branch dropped meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from maintenance_tables import keyed_table, rows

import tableformat as tf
from tableformat.testing.table_rows import live_tuples


@pytest.mark.parametrize("splits", [[5], []], ids=["files inside", "files that straddle"])
def test_rows_of_a_dropped_range_are_carried_without_it(tmp_path: Path, splits: list[int]) -> None:
    """RP-26: what the target got before the drop goes, what the branch wrote after it stays; so does the rest."""
    main = keyed_table(tmp_path)
    whole = tf.RangePartitions(on=["id2"], bounds=[(0, 10)], splits=splits)
    main.range_partitions.define(whole)
    main.append(rows("a", [1]))
    main.create_branch("ingest")
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    main.append(rows("b", [2, 7]))
    if not splits:
        ingest.range_partitions.split(5)
    ingest.refresh().range_partitions.drop(5, 10)
    ingest.range_partitions.add(5, 10)
    ingest.append(rows("c", [8]))
    main.maintenance.publish()
    expected = [("a", 1, "x"), ("b", 2, "x"), ("c", 8, "x")]
    assert live_tuples(main.refresh()) == live_tuples(ingest.refresh()) == expected
    assert main.range_partitions.list()["partition"].to_pylist() == ["[0, 5)", "[5, 10)"]
