"""Converts filters from SQL text, PyIceberg, Arrow and Polars to one bound filter, and evaluates it on metadata.

`predicate` and `arrow_filter` parse. A `BoundFilter` has comparisons of one column with literals under AND and OR.
`pruning` evaluates it on `ColumnStatistics` of partition values, manifest entries or row groups. The result is the
residual filter for the rows; `row_filter` applies it to rows. The package imports metadata and lower layers, and opens
no file.
"""
