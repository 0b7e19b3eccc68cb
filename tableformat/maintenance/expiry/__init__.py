"""Expiry: removes old snapshots, the files that only they name, and orphan files.

`snapshot_retention` decides by the table's own properties, `expire_snapshots` and `remove_orphan_files` are the jobs.
What is reachable from a retained snapshot stays, whoever wrote it.
"""
