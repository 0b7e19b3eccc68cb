"""Filters from SQL text, PyIceberg and Arrow to one bound filter, and what metadata can say about it.

`predicate` and `arrow_filter` parse, `BoundFilter` is comparisons of one column with literals under AND and OR.
`pruning` asks it of `ColumnStatistics`, which come from partition values, manifest entries or row groups, and gives
the residual that rows still have to be asked; `row_filter` asks rows. Imports metadata and below, opens no file.
"""
