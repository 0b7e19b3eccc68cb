"""Operations of users on a table: reads and writes of rows, transactions, refs, keys, metadata tables.

`verbs` has one module for each operation, `merging` the parts of a merge. An operation finds affected rows with
`finding` and stages its changes in a draft (`drafts`), which becomes one snapshot. `definition` changes the definition
of the table, `history` its branches and tags, `ranges` its range partitions. `transaction` combines several operations
in one snapshot, and `staged_write` commits files that other processes wrote. The package imports commit, write, scan
and lower packages.
"""
