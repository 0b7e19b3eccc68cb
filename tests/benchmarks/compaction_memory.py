"""`python compaction_memory.py <catalog directory> <bytes>`: compact the table within the bytes; print peak memory."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
from peak_memory import peak_resident_bytes

import tableformat as tf


def main() -> None:
    table = tf.open_catalog(f"{sys.argv[1]}/").load_table("bench.calendars")
    table.set_properties(**{"tableformat.write.memory-bytes": sys.argv[2]})
    all_rows = sum(batch.nbytes for batch in table.scan().to_batches())
    pool = pa.system_memory_pool()
    pa.set_memory_pool(pool)
    start = peak_resident_bytes()
    table.maintenance.compact(rewrite_all=True, dry_run=False)
    peaks = {"all_rows": all_rows, "arrow": pool.max_memory(), "process_growth": peak_resident_bytes() - start}
    json.dump(peaks, sys.stdout)


if __name__ == "__main__":
    main()
