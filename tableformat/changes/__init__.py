"""The change feed: which rows each snapshot of a range deleted and added (`specs/change-feed.md`).

`range` chooses the snapshots, `plan` makes tasks of them, `Changes` has the rows in the forms of a scan. Reads data
and delete files only; maintenance gives no events. Imports commit (for the difference of two snapshots), scan and
below.
"""
