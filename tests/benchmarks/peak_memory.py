"""`python peak_memory.py <catalog directory>`: stream the table with to_batches and print the peak memory in bytes."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import pyarrow as pa

import tableformat as tf


def peak_resident_bytes() -> int:
    """Most memory that the process has held. Linux lets `ru_maxrss` begin with the peak of the parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].removesuffix(" kB")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    table = tf.open_catalog(f"{sys.argv[1]}/").load_table("bench.calendars")
    start = peak_resident_bytes()
    rows = all_rows = 0
    for batch in table.scan().to_batches():
        rows += batch.num_rows
        all_rows += batch.nbytes
    peaks = {
        "rows": rows,
        "all_rows": all_rows,
        "arrow": pa.default_memory_pool().max_memory(),
        "process_growth": peak_resident_bytes() - start,
    }
    json.dump(peaks, sys.stdout)


if __name__ == "__main__":
    main()
