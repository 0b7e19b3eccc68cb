"""What a table is, changed by commits of metadata that write no snapshot.

`evolution` changes columns and partition fields, `key` names the key, `check_constraints` what rows must satisfy,
`write_order` how files are sorted, `global_spec` the spec that deletes of every partition need; `adopt` does all that a
table of another writer lacks. Imports `history`, commit and below.
"""
