"""The change feed: which rows each snapshot of a range deleted and added (`specs/change-feed.md`).

`range` selects the snapshots, `plan` converts them to tasks, and `Changes` returns the rows in the forms of a scan.
Only data and delete files are read. Maintenance causes no events. Imports commit (for the difference of two snapshots),
scan and lower layers.
"""
