"""The bytes of delete files.

`range_file` stores spans as a flat Parquet table and `inline_spans` carries few of them in the manifest entry
(RD-13); `deletion_vector` is the Puffin blob of version 3, `position_rows` groups the rows of a position delete file
by data file (DA-10). Writing files and finding them is the business of `write` and `merge_on_read`.
"""
