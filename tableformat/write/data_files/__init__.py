"""Data files: rows by partition, sorted by the key, in bounded memory.

`data_files` takes the stream, `partitions` says which partition a row belongs to, `PartitionWriter` fills files of
the target size, `data_file_entry` makes the manifest entry with exact metrics.
"""
