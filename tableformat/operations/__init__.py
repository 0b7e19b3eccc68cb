"""What users do to a table: verbs, transactions, refs, keys, metadata tables.

`verbs` has one module a verb, `merging` the parts of a merge. A verb finds what it reaches with `finding` and stages
it in a draft (`drafts`), of which one snapshot is made. `definition` changes what the table is, `history` where
branches and tags point, `ranges` which ranges of keys exist. `transaction` is several verbs in one snapshot,
`staged_write` one whose files other processes wrote. Imports commit, write, scan and below.
"""
