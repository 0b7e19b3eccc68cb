"""Merge-on-read: which deletes reach a data file, and which of its rows they delete.

A `FileScanTask` is a data file with everything that decides which of its rows are alive. `delete_index` matches
delete files with data files by the rules, `range_coverage` decides whole files by bounds, `DeleteLoader` reads each
delete file once, and `deleted_positions(task, context)` is the one function that scans, conversion, compaction and
the change feed ask. `MergeContext` is the table and its caches. Imports deletes, parquet, filters and below.
"""
