"""Which rows and files a verb reaches: by a filter, by keys, by spans, by the rows that the caller brought.

`key_condition` is a filter that deletes can express without reading, `whole_files` the data files of which all rows
match, `covered_rows` the rows that a scan finds; `lookup`, `duplicates` and `kept_columns` find rows by keys, in
portions of `key_rows`; `row_expressions` and `streamed_input` are DuckDB's part in it. Imports `drafts` and below.
"""
