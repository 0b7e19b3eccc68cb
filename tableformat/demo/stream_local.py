"""Writes the demo's messages without Spark: one file after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb

from tableformat.demo.messages import CALENDARS, PREFIX, explode_messages, messages_without_dates
from tableformat.operations.drafts.result import CommitResult
from tableformat.table import Table

APPLICATION_ID: Final = "demo-stream"


def run_stream(table: Table, messages_directory: Path, on_batch: Callable[[int, CommitResult], None]) -> None:
    """Replace the rows of every message, one input file a snapshot."""
    columns = {"message_number": "BIGINT", "id1": "VARCHAR", "id2": "BIGINT"} | dict.fromkeys(CALENDARS, "DATE[]")
    write = table.new_write(kind="replace", prefix=PREFIX)
    for batch_id, path in enumerate(sorted(messages_directory.glob("*.json"))):
        with duckdb.connect() as connection:
            messages = connection.read_json(str(path), columns=columns).to_arrow_table()
        staged = [write.write(explode_messages(messages)), write.cover(messages_without_dates(messages))]
        on_batch(batch_id, table.commit(write, staged, application_id=APPLICATION_ID, batch_id=batch_id))
