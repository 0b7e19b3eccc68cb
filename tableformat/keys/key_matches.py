"""Finds the rows of two tables that have the same key."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LEFT: Final = "left"
_RIGHT: Final = "right"

Rows: TypeAlias = npt.NDArray[np.int64]


def key_matches(left: pa.Table, right: pa.Table) -> tuple[Rows, Rows]:
    """Row numbers of `left` and `right`: one pair for each two rows that are equal in all columns, ordered by `left`,
    then by `right`.

    The tables have the same columns, in types of the same Iceberg type. A null equals nothing. Floating point is not
    supported.
    """
    names = [f"c{position}" for position in range(left.num_columns)]
    pairs = _comparable(left, names, _LEFT).join(
        _comparable(right, names, _RIGHT), keys=names, join_type="inner", use_threads=False
    )
    pairs = pairs.select([_LEFT, _RIGHT]).sort_by([(_LEFT, "ascending"), (_RIGHT, "ascending")])
    return pairs.column(_LEFT).to_numpy(), pairs.column(_RIGHT).to_numpy()


def _comparable(table: pa.Table, names: list[str], ordinal: str) -> pa.Table:
    columns: list[Any] = [_plain(column) for column in table.columns]
    return pa.table([*columns, pa.array(np.arange(len(table)))], names=[*names, ordinal])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings with one offset width, and the storage of extension types."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_string(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary(column.type) else column
