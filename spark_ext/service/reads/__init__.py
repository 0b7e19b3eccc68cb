"""Batch reads: which files, which of their rows are deleted, how columns are found in each, and what metadata answers.

`scans` plans, `file_list` is the answer that Java's `ScanFiles` decodes, `layouts` maps the columns of old files,
`aggregates` answers COUNT, MIN and MAX, `metadata_tables` serves `db.t.snapshots` and the like.
"""
