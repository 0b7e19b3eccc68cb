"""Keys: which columns they are, and how their values compare.

`table_key` reads which columns are a table's key; `KeyColumns` are the ordered columns that deletes are made of. Values
compare in one order (RD-4) in two forms: `encoding` makes bytes of few values, `sort_words` makes integers of whole
columns. `sort_marker` states in a Parquet footer that a file is sorted by a key (RD-11), `rising_rows` whether rows
are. Imports errors and properties.
"""
