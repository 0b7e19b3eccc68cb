"""Options of a stream: `spark.readStream.option("streaming-max-files-per-micro-batch", 10).table("lake.db.t")`.

The names match Iceberg's Spark source. `snapshot-id` and `start-snapshot-id` have the same meaning as in its
batch reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation

from spark_ext.service.states.change_bounds import RANGE_OPTIONS
from spark_ext.service.states.option_values import (
    BRANCH,
    CONSUMER,
    SNAPSHOT_ID,
    check_options,
    is_true,
    moment_of,
    number_of,
    warn_of_idle_options,
)
from tableformat.errors import InvalidArgumentError

START_SNAPSHOT_ID: Final = "start-snapshot-id"
FROM_TIMESTAMP: Final = "stream-from-timestamp"
SKIP_OPTIONS: Final = {
    Operation.DELETE: "streaming-skip-delete-snapshots",
    Operation.OVERWRITE: "streaming-skip-overwrite-snapshots",
}
MAX_FILES: Final = "streaming-max-files-per-micro-batch"
MAX_ROWS: Final = "streaming-max-rows-per-micro-batch"
_PATH: Final = "path"
"""The option that names the table with `format("tableformat")`."""
_IDLE: Final = (
    "async-micro-batch-planning-enabled",
    "async-queue-preload-file-limit",
    "async-queue-preload-row-limit",
    "batch-size",
    "executor-cache-locality-enabled",
    "file-open-cost",
    "locality",
    "lookback",
    "split-size",
    "streaming-snapshot-polling-interval-ms",
    "vectorization-enabled",
)
"""Options of Iceberg's source that have no effect on streams here and affect no rows (SP-27)."""
_OF_ALL: Final = (BRANCH, CONSUMER, MAX_FILES, MAX_ROWS, *_IDLE)
_OF_CHANGES: Final = (*_OF_ALL, *RANGE_OPTIONS)
_OF_APPENDS: Final = (*_OF_ALL, SNAPSHOT_ID, START_SNAPSHOT_ID, FROM_TIMESTAMP, *SKIP_OPTIONS.values())


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """At most one of the first three options is set. Without any of them, the stream begins with the current rows of
    the table."""

    snapshot_id: int | None
    """Read the table as of this snapshot, then later appends."""
    start_snapshot_id: int | None
    """Read only rows that are appended after this snapshot."""
    from_timestamp_ms: int | None
    """Read only rows that are committed at this time or later."""
    skipped: frozenset[Operation]
    """Operations whose snapshots are skipped. Otherwise they stop the stream."""
    max_files: int | None
    """Maximum number of data files in a micro-batch."""
    max_rows: int | None
    """Maximum number of rows in the data files of a micro-batch. At least one file is always read."""
    branch: str
    consumer: str | None
    """SS-15: the consumer whose position follows the stream."""

    @classmethod
    def parse(
        cls,
        options: Mapping[str, str],
        *,
        table: str,
        default_branch: str = MAIN_BRANCH,
        has_changes: bool = False,
    ) -> StreamOptions:
        """SS-1: parse the options. Names are case-insensitive. Raises UnknownOptionError for an unknown option.

        With `has_changes`, the options of a stream of changes, whose start comes from Spark's own options.
        """
        given = {name.casefold(): value for name, value in options.items()}
        read = [name for name in options if name.casefold() != _PATH]
        where = f"a stream from {table}"
        check_options(read, _OF_CHANGES if has_changes else _OF_APPENDS, where=where)
        warn_of_idle_options(given, _IDLE, where=where)
        starts = [name for name in (SNAPSHOT_ID, START_SNAPSHOT_ID, FROM_TIMESTAMP) if name in given]
        if len(starts) > 1:
            raise InvalidArgumentError(
                f"a stream from {table}: {' and '.join(starts)} both define the start; pass only one of them."
            )
        return cls(
            snapshot_id=number_of(given, SNAPSHOT_ID),
            start_snapshot_id=number_of(given, START_SNAPSHOT_ID),
            from_timestamp_ms=moment_of(given, FROM_TIMESTAMP),
            skipped=frozenset(operation for operation, name in SKIP_OPTIONS.items() if is_true(given, name)),
            max_files=_limit(given, MAX_FILES),
            max_rows=_limit(given, MAX_ROWS),
            branch=given.get(BRANCH, default_branch),
            consumer=given.get(CONSUMER),
        )


def _limit(given: Mapping[str, str], name: str) -> int | None:
    number = number_of(given, name)
    if number is not None and number < 1:
        raise InvalidArgumentError(f"option {name} must be at least 1, not {number}.")
    return number
