"""The change that operations stage, from their first row to the snapshot.

A `Draft` collects the rows and deletes of one snapshot, and `staged_change` turns them into one change. `run_verb` runs
an operation, commits, and stages it again if another commit invalidated what it read. The caller gets a `CommitResult`.
`replaced_files`, `carried_rows` and `covered_positions` find the rows and files that a change removes once the head of
the attempt is known. The package imports `ranges`, `evolution`, commit, write, scan and lower packages.
"""
