"""Treats tiny inputs as large: code that runs from a certain size on always runs.

Tables of random tests have a few rows, so most code with a size limit was never reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

import pytest

LIMITS: Final = {
    "changes.event_rows": {"_GROUP_ROWS": 0},
    "changes.snapshot_series": {"SERIES_SNAPSHOTS": 2},
    "deletes.codecs.deletion_vector": {"_WINDOW_POSITIONS": 2, "_LONG_RUN": 1},
    "deletes.matching.boundary_trie": {"_FEW_CODES": 0, "_MIN_BUCKET_BITS": 1},
    "deletes.matching.key_hashes": {"_SAMPLE_ROWS": 1},
    "deletes.matching.key_box": {"_PLACES_PER_ROW": 0, "_PLACES_MIN": 0},
    "deletes.matching.key_chunks": {"_CHUNK_ROWS_MIN": 1},
    "deletes.matching.key_table": {"_HASHED_AT_ONCE": 2, "_FLAG_BITS_MIN": 1},
    "deletes.matching.range_match": {"_BATCH_ROWS": 2},
    "deletes.spans.coverage": {"_FRAGMENTS_AT_ONCE": 1, "_SPANS_OF_FILES_MAX": 0},
    "deletes.spans.cut_ranks": {"_MAX_SORT_LEVELS": 0, "_WORD_BYTES": -1},
    "maintenance.compaction.alive_batches": {"_ROWS_MAX": 2},
    "maintenance.compaction.compaction_statistics": {"_COUNTED_AT_ONCE": 1},
    "maintenance.compaction.rewrite_group": {"FAN_IN_MAX": 4},
    "maintenance.conversion.conversion_steps": {"_TASKS_IN_SLICE": 1, "_TASK_FILES": 1},
    "merge_on_read.delete_index": {"SHARED_FROM": 1, "_GIVEN_BY_BOUNDS_MAX": 0},
    "merge_on_read.delete_loader": {"_SMALL_FILE_BYTES": -1, "_WHOLE_FILE_BYTES": -1},
    "merge_on_read.equality_positions": {"_ROWS_PER_SEARCHED_KEY": 0},
    "merge_on_read.span_positions": {"_ROWS_AT_ONCE": 1},
    "merge_on_read.small_files.batches": {"SMALL_FILE_BYTES": -1},
    "metadata.columns.arrow_records": {"LANES_MIN": 1, "_GROUP_BYTES": 1, "_COPIED_LENGTHS_MAX": 0},
    "metadata.columns.many_objects": {"_MANY": 0},
    "metadata.columns.read_columns": {"CHUNK_FILES": 1},
    "metadata.manifests.avro_container": {"RECORDS_PER_BLOCK": 1},
    "operations.staging.blind_deletes": {"_KEYS_MAX": 1},
    "operations.row_lookup.key_condition": {"_COMBINATIONS_MAX": 1},
    "operations.row_lookup.key_rows": {"PORTION_ROWS": 2},
    "operations.row_lookup.lookup": {"FEW_KEYS": 0, "_MANY_VALUES": 0},
    "parquet.parquet_file": {"_READ_AT_ONCE_BYTES": -1, "_DICTIONARY_BYTES_PER_ROW": 1 << 30},
    "range_partitions.rows": {"_COUNTED_MIN": 0},
    "scan.reader": {"_PARALLEL_FROM_ROWS": 0, "ROW_GROUP_RUN_BYTES": 1, "ROW_GROUP_RUN_ROWS": 1},
    "write.data_files.data_files": {"_PARALLEL_FROM_PARTITIONS": 1},
    "write.data_files.partition_writer": {"_ROWS_MIN": 1},
    "write.rows.distinct": {"_COMPACT_AT_LEAST_ROWS": 1},
    "write.rows.sorting": {"_PEEK_ROWS": 1, "_RANKED_FROM_ROWS": 0, "_LARGE_BATCH_ROWS": 0},
}
"""By module of `tableformat`: its limits, and values that every input is beyond."""


@contextmanager
def taken_for_large() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, limits in LIMITS.items():
            for name, value in limits.items():
                patch.setattr(import_module(f"tableformat.{module}"), name, value)
        yield
