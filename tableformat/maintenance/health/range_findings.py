"""Health findings about range partitions (RP-18)."""

from __future__ import annotations

from collections.abc import Iterator

from tableformat.errors import UnsupportedFeatureError
from tableformat.maintenance.health.health import Finding
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.listing import partition_contents
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.window import has_clock, now_of, old_partitions, steps_ahead


def range_findings(view: SnapshotView) -> Iterator[Finding]:
    """RP-18: rows that no partition covers, files that straddle borders, and windows that have not moved."""
    try:
        defined = range_partitions_of(view.metadata.properties, view.metadata.schema())
    except UnsupportedFeatureError as error:
        yield Finding(name="unknown-range-partitions", what=str(error), command="table.range_partitions.list()")
        return
    if defined is None:
        return
    found = partition_contents(view, defined)
    if found.elsewhere.file_count and not defined.has_default:
        yield Finding(
            name="uncovered-rows",
            what=(
                f"{found.elsewhere.file_count:,} data files may hold rows that no range partition covers, written by "
                "engines without support for range partitions"
            ),
            command="table.range_partitions.list()",
        )
    if found.straddling_file_count:
        yield Finding(
            name="straddling-files",
            what=(
                f"{found.straddling_file_count:,} data files cross range boundaries: dropping such a range needs a "
                "delete file"
            ),
            command="table.maintenance.compact()",
        )
    yield from _about_window(defined)


def _about_window(defined: DefinedPartitions) -> Iterator[Finding]:
    """The finding about a window over columns that have a clock."""
    if not defined.window.is_set or not has_clock(defined):
        return
    now = now_of(defined, None)
    old, missing = old_partitions(defined, now), steps_ahead(defined, now)
    if old or missing:
        told = [f"{len(old):,} partitions are older than the table retains"] if old else []
        told += [f"{defined.text(missing[0])} is due and does not exist"] if missing else []
        yield Finding(name="overdue-window", what=" and ".join(told), command="table.range_partitions.advance()")
