"""The table that the benchmarks share: nine million rows in the demo's schema, and copies of it that copy no data.

id1              id2      num_cal   four dates
heavy-10k        0..666   1..15     10,000 rows     heavy partners: this many rows with one prefix of the key
heavy-100k       ...                100,000 rows
heavy-1m         ...                1,000,000 rows
partner-00000    0..39    1..15     600 rows        the others
...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import tableformat as tf
from tableformat.demo.messages import CALENDARS, KEY, TABLE_SCHEMA
from tableformat.metadata.content_file import DataFile
from tableformat.scan.planner import plan_scan

HEAVY_PARTNERS: Final = {"heavy-10k": 10_000, "heavy-100k": 100_000, "heavy-1m": 1_000_000}
"""Partners by name, and how many rows begin with them."""
KEY_FIELD_IDS: Final = (1, 2, 3)
ROWS_PER_MESSAGE: Final = 15
SITES_PER_PARTNER: Final = 40
PARTNER_COUNT: Final = 13_150
ROW_COUNT: Final = sum(HEAVY_PARTNERS.values()) + PARTNER_COUNT * SITES_PER_PARTNER * ROWS_PER_MESSAGE

_LAYOUT: Final = 1
"""Raise it when what is generated changes: a cached table of another layout is not used."""
_PARTNERS_PER_BATCH: Final = 500
_TARGET_FILE_BYTES: Final = 2 * 1024 * 1024
_FIRST_DAY: Final = np.datetime64("2026-01-01")


@dataclass(frozen=True)
class NineMillionRows:
    """The table, written once; nothing changes it."""

    table: tf.Table

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        """Its data files in key order, as the commit that added them knew them."""
        return _data_files(self.table)

    @property
    def paths(self) -> list[str]:
        return [local_path(data) for data in self.data_files]

    def copy(self, directory: Path, *, files: Sequence[DataFile] | None = None, **properties: str) -> tf.Table:
        """Another table over the same data files, or over some of them, in its own catalog."""
        copied = new_table(directory, **properties)
        adopt(copied, self.data_files if files is None else files)
        return copied


def nine_million_rows(directory: Path) -> NineMillionRows:
    """The table in `directory`; it is written if it does not exist."""
    home = directory / f"nine-million-rows-{_LAYOUT}"
    with tf.open_catalog(f"{home}/") as catalog:
        if catalog.table_exists("bench.calendars"):
            table = catalog.load_table("bench.calendars")
            if table.snapshot_id is not None:
                return NineMillionRows(table)
            catalog.drop_table("bench.calendars")
    table = new_table(home, **{"write.target-file-size-bytes": str(_TARGET_FILE_BYTES)})
    table.append(pa.RecordBatchReader.from_batches(TABLE_SCHEMA, _batches()))
    return NineMillionRows(table)


def new_table(directory: Path, **properties: str) -> tf.Table:
    """An empty table in the demo's schema, in a new catalog."""
    catalog = tf.open_catalog(f"{directory}/")
    catalog.create_namespace("bench", exist_ok=True)
    return catalog.create_table("bench.calendars", TABLE_SCHEMA, key=KEY, properties=properties)


def loaded(directory: Path) -> tf.Table:
    """The table of a directory by a handle that has read nothing yet."""
    return tf.open_catalog(f"{directory}/").load_table("bench.calendars")


def adopt(table: tf.Table, data_files: Sequence[DataFile]) -> tf.CommitResult:
    """Commit data files that exist, without a copy of them."""
    row_count = sum(data.record_count for data in data_files)
    return table.commit(table.new_write(), [tf.StagedFiles(data_files=tuple(data_files), row_count=row_count)])


def local_path(data: DataFile) -> str:
    return data.file_path.removeprefix("file://")


def some_messages(count: int, seed: int) -> pa.Table:
    """The keys (id1, id2) of distinct messages of ordinary partners, in no order."""
    random = np.random.default_rng(seed)
    numbers = random.choice(PARTNER_COUNT * SITES_PER_PARTNER, count, replace=False)
    names = [f"partner-{number:05}" for number in numbers // SITES_PER_PARTNER]
    return pa.table({"id1": names, "id2": pa.array(numbers % SITES_PER_PARTNER)})


def rows_of_messages(messages: pa.Table, seed: int) -> pa.Table:
    """New rows for each message: what replaces the old ones."""
    random = np.random.default_rng(seed)
    repeated = np.repeat(np.arange(len(messages)), ROWS_PER_MESSAGE)
    keys = messages.take(pa.array(repeated))
    return _rows(keys["id1"].combine_chunks(), keys["id2"].to_numpy(), len(messages), random)


def _batches() -> Iterator[pa.RecordBatch]:
    """All rows in key order, so that the files follow one another."""
    for name, row_count in sorted(HEAVY_PARTNERS.items()):
        message_count = -(-row_count // ROWS_PER_MESSAGE)
        yield _partner_rows([name], message_count, row_count)
    for first in range(0, PARTNER_COUNT, _PARTNERS_PER_BATCH):
        last = min(first + _PARTNERS_PER_BATCH, PARTNER_COUNT)
        names = [f"partner-{number:05}" for number in range(first, last)]
        yield _partner_rows(names, SITES_PER_PARTNER, None)


def _partner_rows(names: list[str], messages_per_partner: int, row_count: int | None) -> pa.RecordBatch:
    """The rows of partners with equally many messages; the first `row_count` of them."""
    random = np.random.default_rng(_seed_of(names[0]))
    message_count = len(names) * messages_per_partner
    partners = np.repeat(np.arange(len(names)), messages_per_partner * ROWS_PER_MESSAGE)
    sites = np.tile(np.repeat(np.arange(messages_per_partner), ROWS_PER_MESSAGE), len(names))
    rows = _rows(pa.array(names).take(pa.array(partners)), sites, message_count, random)
    return rows.slice(0, row_count).combine_chunks().to_batches()[0]


def _rows(id1: pa.Array, id2: np.ndarray, message_count: int, random: np.random.Generator) -> pa.Table:
    number = np.tile(np.arange(1, ROWS_PER_MESSAGE + 1), message_count)
    columns: dict[str, pa.Array] = {
        "id1": id1,
        "id2": pa.array(id2, pa.int64()),
        "num_cal": pa.array(number.astype(np.int32)),
    }
    for name in CALENDARS:
        columns[name] = _dates(number, message_count, random)
    return pa.table(columns, schema=TABLE_SCHEMA)


def _dates(number: np.ndarray, message_count: int, random: np.random.Generator) -> pa.Array:
    """Ascending days from a random one; lists shorter than the longest end in nulls."""
    first = np.repeat(random.integers(0, 365, message_count), ROWS_PER_MESSAGE)
    length = np.repeat(random.integers(0, ROWS_PER_MESSAGE + 1, message_count), ROWS_PER_MESSAGE)
    days = _FIRST_DAY + first + number
    return pa.array(days.astype("datetime64[D]"), mask=number > length)


def _seed_of(name: str) -> int:
    """A seed that is the same in every process."""
    return int.from_bytes(name.encode())


def _data_files(table: tf.Table) -> tuple[DataFile, ...]:
    planned = (task.data_file for task in plan_scan(table.view).tasks)
    return tuple(replace(data, sequence_number=None, file_sequence_number=None) for data in planned)


def benchmark_directory(fallback: Path) -> Path:
    """The directory of the table; the variable TABLEFORMAT_BENCH_DIR keeps it from one run to the next."""
    stated = os.environ.get("TABLEFORMAT_BENCH_DIR")
    return Path(stated) if stated else fallback
