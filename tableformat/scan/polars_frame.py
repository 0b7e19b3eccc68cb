"""A Polars lazy frame over rows: Polars pushes columns, filters and limits of a query into the scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tableformat.errors import InvalidPredicateError
from tableformat.scan.dataset import FilterableRows

if TYPE_CHECKING:
    import polars


def lazy_frame(rows: FilterableRows) -> polars.LazyFrame:
    """The rows as a lazy frame. A filter that the library can translate chooses files and rows. Polars then applies
    every filter again, so that a query has the result of the same query over a DataFrame.

    `scan_pyarrow_dataset` is not used, because pyarrow compares NaN and null differently: `f > 1` has no NaN there, and
    `~is_in` has nulls.
    """
    from polars import DataFrame
    from polars.io.plugins import register_io_source

    def source(
        columns: list[str] | None, predicate: polars.Expr | None, row_count: int | None, _batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        wanted = rows.schema.names if columns is None else columns
        read = list(dict.fromkeys([*wanted, *([] if predicate is None else predicate.meta.root_names())]))
        # A frame without columns has no rows, so at least one column is read.
        chosen = _filtered(rows, predicate).select(rows.columns_of(read or rows.schema.names[:1]))
        left = row_count
        for batch in chosen.to_batches():
            frame = DataFrame(batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame.select(wanted) if wanted else frame
            if left == 0:
                return

    # `Schema.empty_table` does not support nested types that contain a UUID.
    schema = DataFrame(pa.Table.from_batches([], rows.schema)).schema
    return register_io_source(source, schema=schema, is_pure=True)


def _filtered(rows: FilterableRows, predicate: polars.Expr | None) -> FilterableRows:
    """The rows that match a predicate, or all of them if it cannot be translated."""
    if predicate is None:
        return rows
    try:
        return rows.filter(predicate)
    except InvalidPredicateError:
        return rows
