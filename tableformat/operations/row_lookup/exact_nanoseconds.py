"""Timestamps with a zone in nanoseconds, which DuckDB before 2.0 silently rounds to microseconds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import UnsupportedFeatureError

_EXACT_SINCE: Final = 2
"""DuckDB 2.0 has the type TIMESTAMPTZ_NS."""
_NANOSECONDS: Final = 1000


def as_numbers(rows: pa.Table) -> pa.Table:
    """The rows with such columns as integers, only for comparisons with columns of the same type."""
    numbers = [each.with_type(pa.int64()) if _is_rounded(each.type) else each for each in rows.schema]
    return rows.cast(pa.schema(numbers)) if numbers != list(rows.schema) else rows


def refuse_rounding(rows: pa.Table | pa.RecordBatch, names: Collection[str] | None = None) -> None:
    """Raise UnsupportedFeatureError if this version of DuckDB would compute with rounded values.

    `names` are the columns that it computes with, ignoring case; all columns by default.
    """
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) >= _EXACT_SINCE:
        return
    chosen = None if names is None else {name.casefold() for name in names}
    for field in rows.schema:
        if not _is_rounded(field.type) or (chosen is not None and field.name.casefold() not in chosen):
            continue
        numbers = rows.column(field.name).cast(pa.int64())
        whole = pc.multiply(pc.divide(numbers, _NANOSECONDS), _NANOSECONDS)
        if pc.any(pc.not_equal(numbers, whole)).as_py():
            raise UnsupportedFeatureError(
                f"column {field.name!r} has nanoseconds, which DuckDB {duckdb.__version__} rounds to microseconds in "
                "timestamps with a zone. Install DuckDB 2.0 or newer, or leave the column out of conditions and "
                "expressions. Nothing was changed."
            )


def _is_rounded(of: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(of) and of.unit == "ns" and of.tz is not None)
