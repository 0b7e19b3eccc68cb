"""Writes data files and delete files of a table from rows, without a commit.

`rows` conforms Arrow data to the schema, `data_files` writes it by partition, sorted by the key; `delete_files` writes
the three kinds of delete files and deletion vectors. `WriteContext` is the input of a writer, as plain data that can be
sent to executors, and `StagedFiles` its output for the commit. The package imports merge_on_read, parquet and lower
layers.
"""
