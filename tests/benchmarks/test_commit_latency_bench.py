"""The time of one small append, from the call to the snapshot."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from measuring import Contender, against_target, heading, race, show_all
from nine_million_rows import new_table, rows_of_messages, some_messages

import tableformat as tf

_ROUNDS = 50


def test_append_of_one_message_latency(benchmark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    rows = rows_of_messages(some_messages(1, seed=5), seed=5)
    timings = race(benchmark, {"append of 15 rows": Contender(lambda _: table.append(rows))}, rounds=_ROUNDS)
    heading(f"append of one message, {_ROUNDS} commits in a row")
    show_all(timings)
    assert table.scan().count() == _ROUNDS * len(rows)


def test_delete_latency_with_many_retained_snapshots(benchmark: Any, tmp_path: Path) -> None:
    """The metadata file of each commit has all snapshots, and the log of them. Those of the long histories are the
    first one, over again."""
    contenders = {
        f"{count:,} snapshots, metadata {codec}": Contender(_deletes(tmp_path / f"{count}-{codec}", count, codec))
        for count in (10, 1_000, 10_000)
        for codec in ("none", "gzip")
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"delete_prefix beside retained snapshots, {_ROUNDS} commits in a row")
    show_all(timings)
    for codec in ("none", "gzip"):
        few, many = (timings[f"{count:,} snapshots, metadata {codec}"].cpu for count in (10, 10_000))
        against_target(f"10,000 snapshots against 10, metadata {codec}, CPU", many / few, 1.3)


def _deletes(directory: Path, count: int, codec: str) -> Any:
    with tf.open_catalog(str(directory)) as catalog:
        catalog.create_namespace("db")
        properties = {"write.metadata.compression-codec": codec}
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), key=["id"], properties=properties)
        for number in range(10):
            table.append([{"id": number}])
        stored = Path(table.iceberg.metadata_location.removeprefix("file://"))
        open_text = gzip.open if codec == "gzip" else open
        with open_text(stored, "rt") as file:
            metadata = json.load(file)
        first, *others = metadata["snapshots"]
        repeated = [{**first, "snapshot-id": number} for number in range(1, count - len(others))]
        log = metadata["snapshot-log"]
        snapshots, entries = [first, *repeated, *others], [*[log[0]] * len(repeated), *log]
        with open_text(stored, "wt") as file:
            json.dump({**metadata, "snapshots": snapshots, "snapshot-log": entries}, file)
    table = tf.open_catalog(str(directory)).load_table("db.t")
    assert len(table.metadata.snapshots) == count
    return lambda _: table.delete_prefix({"id": 3})
