"""Files in which Spark wrote dates in the Julian calendar before 1582, as Spark 2 did and later versions do on request.

In such a file, 1500-02-03 has the number of another day of the proleptic Gregorian calendar, which tables use. Dates
after the switch have the same number in both calendars. The keys in the footer are Spark's.
"""

from __future__ import annotations

import json
from typing import Final

import pyarrow.parquet as pq

_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_VERSION: Final = b"org.apache.spark.version"
_FIRST_DAY: Final = -141_427
"""1582-10-15, from which days are equal in both calendars."""
_FIRST_SECOND: Final = -2_208_988_800
"""1900-01-01, from which Spark treats times as equal in both calendars."""
_UNITS_IN_SECOND: Final = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}


def has_julian_dates(footer: pq.FileMetaData) -> bool:
    """Whether a file states that its dates are in the older calendar, and has or may have dates that differ."""
    known = footer.metadata or {}
    if _LEGACY not in known and not known.get(_VERSION, b"").startswith((b"1.", b"2.")):
        return False
    firsts = {place: first for place in range(footer.num_columns) if (first := _first_alike(footer, place)) is not None}
    return any(
        _may_be_before(footer.row_group(number).column(place), first)
        for place, first in firsts.items()
        for number in range(footer.num_row_groups)
    )


def _first_alike(footer: pq.FileMetaData, place: int) -> int | None:
    """In the stored form; None for a column without a calendar, such as local times, which Spark does not change."""
    logical = footer.schema.column(place).logical_type
    if logical.type == "DATE":
        return _FIRST_DAY
    if logical.type != "TIMESTAMP":
        return None
    stated = json.loads(logical.to_json())
    return _FIRST_SECOND * _UNITS_IN_SECOND[stated["timeUnit"]] if stated["isAdjustedToUTC"] else None


def _may_be_before(column: pq.ColumnChunkMetaData, first: int) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return statistics is None or not statistics.has_null_count or statistics.null_count < column.num_values
    return bool(statistics.min_raw < first)
