"""Merge-on-read: finds the deletes that reach a data file, and the rows that they delete.

A `FileScanTask` is a data file with everything that decides which of its rows are alive. `delete_index` assigns delete
files to data files by the rules, `range_coverage` decides whole files by bounds, and `DeleteLoader` reads each delete
file once. `deleted_positions(task, context)` is the single function used by scans, conversion, compaction and the
change feed. `MergeContext` is the table with its caches. The package imports deletes, parquet, filters and lower
layers.
"""
