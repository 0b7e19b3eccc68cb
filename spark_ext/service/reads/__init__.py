"""Batch reads: the files to read, their deleted rows, how columns are found in each file, and answers from metadata.

`scans` plans, `file_list` builds the answer that Java's `ScanFiles` decodes, `layouts` maps the columns of old files,
`aggregates` answers COUNT, MIN and MAX, `metadata_tables` provides `db.t.snapshots` and similar tables.
"""
