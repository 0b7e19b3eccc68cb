"""Files that nothing needs any more: old snapshots, what only they name, and orphans.

`snapshot_retention` decides by the table's own properties, `expire_snapshots` and `remove_orphan_files` are the jobs.
What is reachable from a retained snapshot stays, whoever wrote it.
"""
