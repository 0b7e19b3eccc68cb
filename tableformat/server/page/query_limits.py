"""The limits of a query on the page, and its outcome as it passes from the query's process to the server."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

_ABOUT = b"tableformat.outcome"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of a query."""

    row_count: int = 1_000
    """Rows of the result. A longer result is cut."""
    seconds: float = 30.0
    duckdb_bytes: int = 512 * 1024 * 1024
    """Memory of DuckDB's operators."""
    process_bytes: int = 3 * 1024 * 1024 * 1024
    """Memory of the query's process, on Linux."""
    result_bytes: int = 16 * 1024 * 1024
    """Size of the result in memory. A larger result is cut."""
    thread_count: int = 2


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """The result of a query, or the reason for its absence."""

    rows: pa.Table
    """Without columns if the query failed."""
    types: tuple[str, ...] = ()
    """DuckDB's types of the columns."""
    is_cut: bool = False
    """Whether the result has more rows."""
    seconds: float = 0.0
    problem: str = ""
    """Why the query has no result, with DuckDB's pointer into the text."""

    def to_bytes(self) -> bytes:
        """An Arrow stream whose schema carries the other fields."""
        about = {"types": self.types, "is_cut": self.is_cut, "seconds": self.seconds, "problem": self.problem}
        rows = self.rows.replace_schema_metadata({_ABOUT: json.dumps(about)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes) -> QueryOutcome:
        """The outcome that `to_bytes` wrote. Raises pyarrow.ArrowInvalid for other bytes."""
        rows = pa.ipc.open_stream(data).read_all()
        about = json.loads((rows.schema.metadata or {})[_ABOUT])
        return cls(rows, tuple(about["types"]), about["is_cut"], about["seconds"], about["problem"])


def without_result(problem: str) -> QueryOutcome:
    """The outcome of a query that was refused or failed."""
    return QueryOutcome(pa.table({}), problem=problem)
