"""Key columns, and the order of their values.

`table_key` reads the key columns of a table. `KeyColumns` are the ordered columns of a delete. Values have one order
(RD-4) in two forms: `encoding` makes bytes from few values, `sort_words` makes integers from whole columns.
`sort_marker` states in a Parquet footer that a file is sorted by a key (RD-11), `rising_rows` checks the order of rows.
The package imports only errors and properties.
"""
