"""The change that verbs stage, from their first row to the snapshot.

A `Draft` collects the rows and deletes of one snapshot; `staging` makes one change of them; `run_verb` runs
a verb, commits, and stages again where another commit made the reading out of date; `CommitResult` is what the caller
gets. `replaced_files`, `carried_rows` and `covered_positions` find what a change takes away once the head of the
attempt is known. Imports `ranges`, `definition`, commit, write, scan and below.
"""
