"""How long one small append takes, from the call to the snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from measuring import Contender, heading, race, show_all
from nine_million_rows import new_table, rows_of_messages, some_messages

import tableformat as tf

_ROUNDS = 50


def test_append_of_one_message(benchmark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    rows = rows_of_messages(some_messages(1, seed=5), seed=5)
    timings = race(benchmark, {"append of 15 rows": Contender(lambda _: table.append(rows))}, rounds=_ROUNDS)
    heading(f"append of one message, {_ROUNDS} commits in a row")
    show_all(timings)
    assert table.scan().count() == _ROUNDS * len(rows)


def test_delete_beside_retained_snapshots(benchmark: Any, tmp_path: Path) -> None:
    """The metadata file of each commit has all snapshots, and the log of them. Those of the long histories are the
    first one, over again."""
    counts = (10, 1_000, 10_000)
    contenders = {f"{count:,} snapshots": Contender(_deletes(tmp_path / str(count), count)) for count in counts}
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"delete_prefix beside retained snapshots, {_ROUNDS} commits in a row")
    show_all(timings)


def _deletes(directory: Path, count: int) -> Any:
    with tf.open_catalog(str(directory)) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), key=["id"])
        for number in range(10):
            table.append([{"id": number}])
        stored = Path(table.iceberg.metadata_location.removeprefix("file://"))
        metadata = json.loads(stored.read_text())
        first, *others = metadata["snapshots"]
        repeated = [{**first, "snapshot-id": number} for number in range(1, count - len(others))]
        log = metadata["snapshot-log"]
        snapshots, entries = [first, *repeated, *others], [*[log[0]] * len(repeated), *log]
        stored.write_text(json.dumps({**metadata, "snapshots": snapshots, "snapshot-log": entries}))
    table = tf.open_catalog(str(directory)).load_table("db.t")
    assert len(table.metadata.snapshots) == count
    return lambda _: table.delete_prefix({"id": 3})
