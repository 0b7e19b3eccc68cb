"""The operations that the report requests from a system."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

KEY = ("id1", "id2", "num_cal")
PREFIX = ("id1", "id2")


class Adapter(Protocol):
    """A table with the key `KEY`, in its own directory."""

    lacks: dict[str, str]
    """Operations that the project does not have, with the reason in its documentation."""

    def versions(self) -> dict[str, str]: ...

    def load(self, rows: pa.Table, amount: str) -> None:
        """A new table with the rows; `amount` is the column that `total` adds up."""

    def open(self, amount: str) -> None:
        """The table that another process has loaded."""

    def replace(self, rows: pa.Table) -> None:
        """Replace the rows of every prefix that occurs in `rows` by these rows."""

    def upsert(self, rows: pa.Table) -> None: ...

    def delete_prefix(self, values: dict[str, Any]) -> None: ...

    def delete_rows(self, keys: pa.Table) -> None:
        """The rows with these whole keys."""

    def delete_where(self, column: str, below: float) -> None:
        """By a column that no key has."""

    def scan(self) -> pa.Table:
        """All rows, by a handle that has read nothing."""

    def scan_again(self) -> pa.Table:
        """All rows, by the handle of the scan before."""

    def total(self) -> dict[str, Any]:
        """Rows, and the sum of the amounts, as the system's own engine or DuckDB adds them up."""

    def get(self, key: list[Any]) -> pa.Table:
        """The row with that key."""

    def convert(self) -> None: ...

    def compact(self) -> None: ...


class CommitLostError(Exception):
    """Another writer was first; the same again may succeed."""
