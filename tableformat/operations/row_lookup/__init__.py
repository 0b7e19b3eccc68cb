"""Finds the rows and files that an operation affects: by a filter, by keys, by spans, or by rows of the caller.

`key_condition` recognises filters that deletes can express without reading, `whole_files` the data files whose rows all
match, `covered_rows` the rows that a scan finds. `lookup`, `duplicates` and `kept_columns` find rows by keys, in the
portions of `key_rows`. `row_expressions` and `streamed_input` use DuckDB. The package imports `staging` and lower
packages.
"""
