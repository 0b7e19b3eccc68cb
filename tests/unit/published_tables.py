"""A table with a branch that is published to `main`, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maintenance_tables import keyed_table, rows

import tableformat as tf

TARGET = {"tableformat.publish-target.ingest": "main"}
TEN_ROWS = [("a", number, "x") for number in range(10)]
"""The rows of `branched`."""


def opened(tmp_path: Path, branch: str = "main") -> tf.Table:
    return tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch=branch)


def branched(tmp_path: Path, **options: Any) -> tuple[tf.Table, tf.Table]:
    """`main` with ten rows, and `ingest` that starts there and publishes to it."""
    main = keyed_table(tmp_path, **options)
    main.append(rows("a", range(10)))
    main.create_branch("ingest")
    main.set_properties(**TARGET)
    return main, opened(tmp_path, "ingest")


def heads(table: tf.Table) -> tuple[int, int]:
    refs = table.refresh().metadata.refs
    return refs["main"].snapshot_id, refs["ingest"].snapshot_id
