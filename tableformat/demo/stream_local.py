"""Writes the demo's messages without Spark: file by file, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb

from tableformat.demo.messages import CALENDARS, PREFIX, explode_messages
from tableformat.demo.report import BatchFigures
from tableformat.table import Table

APPLICATION_ID: Final = "demo-stream"


def run_stream(table: Table, messages_directory: Path, on_batch: Callable[[BatchFigures], None]) -> None:
    """Replace the rows of every message, in one snapshot for each input file."""
    columns = {"message_number": "BIGINT", "id1": "VARCHAR", "id2": "BIGINT"} | dict.fromkeys(CALENDARS, "DATE[]")
    for batch_id, path in enumerate(sorted(messages_directory.glob("*.json"))):
        with duckdb.connect() as connection:
            messages = connection.read_json(str(path), columns=columns).to_arrow_table()
        result = table.replace(
            explode_messages(messages),
            prefix=PREFIX,
            order_by="message_number",
            application_id=APPLICATION_ID,
            batch_id=batch_id,
        )
        on_batch(
            BatchFigures(
                added_row_count=result.added_row_count,
                added_data_files_count=result.added_data_files_count,
                added_delete_files_count=result.added_delete_files_count,
                written_bytes=result.written_bytes,
                already_applied=result.already_applied,
            )
        )
