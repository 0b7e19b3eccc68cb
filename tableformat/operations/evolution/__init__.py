"""Changes the definition of a table with commits of metadata, without a snapshot.

`schema_updates` changes columns and partition fields, `key` sets the key, `check_constraints` the conditions that rows
must meet, `write_order` the sort order of files, `global_spec` the partition spec for deletes of all partitions.
`adopt` prepares a table of another writer completely. The package imports `history`, commit and lower packages.
"""
