"""Data manifests as Arrow columns, for plans of many files.

`avro_lanes` decodes many records concurrently, `record_starts` finds and proves where they begin, `arrow_records` makes
Arrow arrays, and `raw_manifest` makes one batch from a manifest. `live_files` inherits numbers and removes deleted
entries; the result is `DataColumns`. `data_file_rows` makes an object from a row. `read_columns` is the entry point,
with caches. The package imports manifests, storage and errors.
"""
