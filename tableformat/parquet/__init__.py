"""A Parquet file as columns of a table: footers, field ids, row groups.

`parquet_file` opens one for chosen columns, `KeyReader` reads key columns of chosen row groups,
`row_group_statistics` serves filters from the footer, `projection` and `column_conversion` turn the columns of an old
file into those of the schema of now. `ParquetOutput` writes one file and `parquet_metrics` makes the metrics of its
manifest entry. Imports filters and below; deletes are not known here.
"""
