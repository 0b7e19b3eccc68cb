"""Rows of a table in the form used by tests: plain Python, in an order that does not depend on files or readers.

    table.append([{"id": 2, "name": "b"}, {"id": 1, "name": None}])
    live_rows(table)                                 [{"id": 1, "name": None}, {"id": 2, "name": "b"}]
    live_tuples(table)                               [(1, None), (2, "b")]
    live_values(table, "id", where="name = 'b'")     [2]

All arguments of `scan` are accepted. No function moves the handle: `live_rows(table.refresh())` reads the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from tableformat.testing.key_order import sort_key


class Scannable(Protocol):
    """A table, of this library or of PyIceberg."""

    def scan(self, *args: Any, **options: Any) -> Any:
        """Returns an object with `to_arrow`."""
        ...


def live_rows(table: Scannable, *args: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of a scan, ordered by their values from the first column to the last: null first, NaN last (RD-4)."""
    return sorted_rows(table.scan(*args, **options).to_arrow())


def live_tuples(table: Scannable, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    """The same rows, each as the tuple of its values in the order of the columns."""
    return [tuple(row.values()) for row in live_rows(table, *args, **options)]


def live_values(table: Scannable, column: str, *args: Any, **options: Any) -> list[Any]:
    """The values of one column, in its own order. All columns are read unless `columns` is given."""
    return sorted(table.scan(*args, **options).to_arrow()[column].to_pylist(), key=_sort_key)


def sorted_rows(found: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table in that order."""
    rows: list[dict[str, Any]] = found.to_pylist()
    return sorted(rows, key=_sort_key)


def _sort_key(value: Any) -> tuple[Any, ...]:
    """The order of single values, applied recursively to structs, lists and maps."""
    if isinstance(value, Mapping):
        return sort_key(_sort_keys(value.values()))
    return sort_key(_sort_keys(value) if isinstance(value, list | tuple) else value)


def _sort_keys(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(_sort_key(value) for value in values)
