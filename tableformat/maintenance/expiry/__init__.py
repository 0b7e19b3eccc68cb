"""Expiry: removes old snapshots, the files that only these snapshots need, and orphan files.

`snapshot_retention` decides by the table's own properties. `expire_snapshots` and `remove_orphan_files` are the jobs.
Files that are reachable from a retained snapshot stay, regardless of their writer.
"""
