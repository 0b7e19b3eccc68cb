"""Merging: matches rows of a source with rows of a table; clauses decide what happens to each pair and to the other
rows.

`builder` is the object that callers use, `clauses` the statement that it builds. `sides` resolves the columns that SQL
text names on either side, `pruning` selects the files that can hold a matching row, `matching` finds the pairs with
DuckDB's join, and `new_rows` computes the rows to write. `tableformat/operations/verbs/merge.py` combines them.
"""
