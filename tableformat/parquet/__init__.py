"""Parquet files as columns of a table: footers, field ids, row groups.

`parquet_file` opens a file for chosen columns, `KeyReader` reads key columns of chosen row groups,
`row_group_statistics` evaluates filters on the footer, `projection` and `column_conversion` convert the columns of an
old file to the current schema. `ParquetOutput` writes one file, and `parquet_metrics` makes the metrics of its manifest
entry. The package imports filters and lower layers; it does not know deletes.
"""
