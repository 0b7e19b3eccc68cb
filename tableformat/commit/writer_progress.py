"""The progress that streaming writers store in snapshot summaries, and that our snapshots repeat (LK-12).

When such a writer restarts, it searches the snapshots from the head of the branch back for its own keys. If the
snapshot with the keys has expired, it starts from an older position, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class ProgressKeys:
    """The summary keys of one kind of writer."""

    writer: str
    """The program, and the code that searches for the keys."""
    names: frozenset[str] = frozenset()
    """Keys that belong together: a summary that sets one of them states the whole progress of this writer."""
    prefix: str | None = None
    """Prefix of keys that are independent of each other."""

    def repeated(self, known: Mapping[str, str], stated: Mapping[str, str]) -> dict[str, str]:
        """The keys of the parent summary `known` that are still valid in a snapshot whose commit states `stated`."""
        names = self.names if stated.keys().isdisjoint(self.names) else frozenset()
        return {
            name: value
            for name, value in known.items()
            if name in names or (self.prefix is not None and name.startswith(self.prefix) and name not in stated)
        }


FLINK: Final = ProgressKeys(
    "Flink: IcebergFilesCommitter and IcebergCommitter of Iceberg's sink",
    names=frozenset({"flink.job-id", "flink.operator-id", "flink.max-committed-checkpoint-id"}),
)
PROGRESS_KEYS: Final = (
    FLINK,
    ProgressKeys(
        "Kafka Connect: Coordinator.lastCommittedOffsets in Iceberg's sink. A key has the control topic and the "
        "consumer group in its name, and several connectors may write to a table",
        prefix="kafka.connect.",
    ),
    ProgressKeys(
        "Spark's streaming writes: SparkWrite.BaseStreamingWrite in Iceberg's runtime",
        names=frozenset({"spark.sql.streaming.queryId", "spark.sql.streaming.epochId"}),
    ),
    ProgressKeys(
        "Redpanda's Iceberg topics: get_iceberg_committed_offset in iceberg_file_committer.cc",
        names=frozenset({"redpanda.commit-metadata"}),
    ),
    ProgressKeys(
        "Materialize's Iceberg sink: retrieve_upper_from_snapshots. A snapshot without the keys is an error to it, "
        "unless its operation is replace",
        names=frozenset({"mz-sink-id", "mz-frontier", "mz-sink-version"}),
    ),
    ProgressKeys(
        "AutoMQ's table topics: TableCoordinator, which requests only the current snapshot",
        names=frozenset({"automq.commit.id", "automq.watermark"}),
    ),
)
"""The writers whose progress is known to be in snapshot summaries."""


def with_writer_progress(properties: Mapping[str, str], parent: Snapshot | None) -> dict[str, str]:
    """LK-12, LK-33: the properties of a new snapshot, with the writer progress of its parent and no other properties of
    the parent."""
    if parent is None or parent.summary is None:
        return dict(properties)
    known = parent.summary.additional_properties
    repeated = {name: value for keys in PROGRESS_KEYS for name, value in keys.repeated(known, properties).items()}
    return {**repeated, **properties}
