"""The process of one query: reads it from standard input, and writes its outcome to standard output.

A process can be ended at any time, and a query that uses up its memory ends its process only.
"""

from __future__ import annotations

import os
import pickle
import select
import sys

import duckdb  # noqa: F401  ahead of the query, like the next import

import tableformat.catalogs.open_catalog  # noqa: F401
from tableformat.server.page.query_limits import QueryLimits
from tableformat.server.page.read_only_sql import read_only_query


def main() -> None:
    """Run the query that arrives within the given seconds. Ends without one if the server has none."""
    limits, idle_seconds = QueryLimits(), float(sys.argv[1])
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Text that a library prints does not get into the outcome.
    _limit_memory(limits.process_bytes)
    if not _arrives(idle_seconds):
        return
    request = sys.stdin.buffer.read()
    if not request:
        return
    catalog, sql, limits = pickle.loads(request)
    outcome = read_only_query(catalog, sql, limits)
    output.write(outcome.to_bytes())
    output.flush()
    # Without the end of the interpreter: threads of libraries may still read ahead.
    os._exit(0)


def _limit_memory(byte_count: int) -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (byte_count, byte_count))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _arrives(seconds: float) -> bool:
    """Whether input or its end arrives in time."""
    return sys.platform == "win32" or bool(select.select([sys.stdin.buffer], [], [], seconds)[0])


if __name__ == "__main__":
    main()
