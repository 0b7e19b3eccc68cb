"""Writes data files and delete files of a table from rows, without a commit.

`rows` makes any Arrow data fit the schema, `data_files` writes it by partition, sorted by the key; `delete_files`
writes the three kinds of delete files and deletion vectors. `WriteContext` is what a writer has to know, plain data
that travels to executors, and `StagedFiles` what it hands to the commit. Imports merge_on_read, parquet and below.
"""
