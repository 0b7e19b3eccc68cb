"""Scans: from a snapshot and a filter to rows.

`planner` reads manifests once and makes a `ScanPlan` of tasks, and `explain` gives the reason for reading or skipping
each file. `reader` opens files in threads, drops deleted rows, filters and projects. `measures` adds up the time and
size of these steps, on request. `ArrowRows` has the output formats, and `LakeDataset` is the entry point for engines.
Imports merge_on_read and below, nothing that writes.
"""
