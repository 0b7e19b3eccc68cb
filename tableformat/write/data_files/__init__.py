"""Data files: rows by partition, sorted by the key, in bounded memory.

`data_files` reads the stream, `partitions` computes the partition of each row, `PartitionWriter` fills files of the
target size, and `data_file_entry` makes the manifest entry with exact metrics.
"""
