"""Merging: rows of a source meet the rows of a table, and clauses say what becomes of each pair, and of the others.

`builder` is what callers hold, `clauses` the statement that it makes. `sides` says what a text names in which of the
two, `pruning` which files can hold a matching row, `matching` finds the pairs with DuckDB's join, and `new_rows`
computes what is written. `tableformat/operations/verbs/merge.py` puts them together.
"""
