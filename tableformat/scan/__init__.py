"""Scans: from a snapshot and a filter to rows.

`planner` reads manifests once and makes a `ScanPlan` of tasks, `explain` says why each file is read or not, `reader`
opens files in threads, takes deleted rows out, filters and projects, and `measures` adds up what these steps take, if
somebody asks. `ArrowRows` are the forms in which to have rows, `LakeDataset` the door for engines. Imports
merge_on_read and below, nothing that writes.
"""
