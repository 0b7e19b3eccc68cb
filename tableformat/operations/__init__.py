"""What users do to a table: verbs, transactions, refs, keys, metadata tables.

`verbs` has one module a verb. A `Draft` collects what verbs stage and `run_verb` makes one snapshot of it, staged
again where another commit made the reading out of date; `staging` turns the files into one change. `references` moves
tags, branches and properties, which writes no snapshot. Imports commit, write, scan and below.
"""
