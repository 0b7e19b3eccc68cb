"""Deterministic messages for the demo: two business identifiers and four calendar lists each, as JSON lines.

A message with lists of 3, 1, 0 and 5 dates becomes 5 rows. Shorter lists give nulls, and `num_cal` numbers the rows. A
later message with the same identifiers replaces all of them, independent of its own number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

CALENDARS: Final = ("open_on", "closed_on", "delivery_on", "holiday_on")
KEY: Final = ("id1", "id2", "num_cal")
PREFIX: Final = ("id1", "id2")

TABLE_SCHEMA: Final = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("num_cal", pa.int32(), nullable=False),
        *(pa.field(name, pa.date32()) for name in CALENDARS),
    ]
)

_FIRST_DAY: Final = np.datetime64("2026-01-01")
_SITES_PER_PARTNER: Final = 40


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """The amount of generated input."""

    batch_count: int = 8
    """Number of input files; the stream reads one in each micro-batch."""
    messages_per_batch: int = 5_000
    key_count: int = 16_000
    """Number of distinct business keys of the messages."""
    dates_per_list_max: int = 24
    seed: int = 20_261_121


def write_messages(directory: Path, plan: MessagePlan) -> int:
    """Write `batch-0000.json` and so on into the directory, and return the number of messages."""
    directory.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for batch in range(plan.batch_count):
            connection.register("messages", message_batch(plan, batch))
            path = directory / f"batch-{batch:04}.json"
            connection.execute(f"COPY messages TO '{path}' (FORMAT json)")
    return plan.batch_count * plan.messages_per_batch


def message_batch(plan: MessagePlan, batch: int) -> pa.Table:
    """The messages of one batch in order: `message_number`, `id1`, `id2` and the four lists of dates."""
    random = np.random.default_rng((plan.seed, batch))
    count = plan.messages_per_batch
    keys = random.integers(0, plan.key_count, count)
    columns: dict[str, pa.Array] = {
        "message_number": pa.array(np.arange(count) + batch * count),
        "id1": _partner_names(keys // _SITES_PER_PARTNER),
        "id2": pa.array(keys % _SITES_PER_PARTNER),
    }
    for name in CALENDARS:
        columns[name] = _date_lists(random, count, plan.dates_per_list_max)
    return pa.table(columns)


_LONGEST: Final = f"greatest(1, {', '.join(f'len({name})' for name in CALENDARS)})"


def explode_messages(messages: pa.Table) -> pa.Table:
    """The rows of all messages, without Spark: a row for each number, and one without a number for an empty message.
    `message_number` identifies the newest message."""
    dates = ", ".join(f"{name}[number] AS {name}" for name in CALENDARS)
    is_empty = " AND ".join(f"len({name}) = 0" for name in CALENDARS)
    numbered = f"SELECT *, unnest(range(1, {_LONGEST} + 1)) AS number FROM messages"
    query = (
        f"SELECT id1, id2, CASE WHEN {is_empty} THEN NULL ELSE number END::INTEGER AS num_cal, {dates}, message_number "
        f"FROM ({numbered})"
    )
    with duckdb.connect() as connection:
        connection.register("messages", messages)
        return connection.sql(query).to_arrow_table()


def _partner_names(numbers: np.ndarray) -> pa.Array:
    """Names such as `partner-0042`."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    names = pa.array([f"partner-{number:04}" for number in distinct])
    return names.take(pa.array(codes))


def _date_lists(random: np.random.Generator, count: int, longest: int) -> pa.ListArray:
    """Lists of 0 to `longest` days, ascending from a random day."""
    lengths = random.integers(0, longest + 1, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    first = random.integers(0, 365, count)
    days = _FIRST_DAY + np.repeat(first, lengths) + within
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(days.astype("datetime64[D]")))
