"""Data manifests as Arrow columns: what a plan of many files reads.

`avro_lanes` decodes many records side by side, `record_starts` finds where they begin and proves it, `arrow_records`
makes Arrow arrays of them and `raw_manifest` one batch of a manifest. `live_files` inherits numbers and leaves deleted
entries out, which gives `DataColumns`; `data_file_rows` makes an object of a row, `read_columns` is the door, with
caches. Imports manifests, storage and errors.
"""
