"""The bytes of delete files.

`range_file` stores spans as a flat Parquet table. `inline_spans` stores a few spans in the manifest entry, and
`packed_spans` stores more than a few (RD-13). `deletion_vector` is the Puffin blob of version 3. `position_rows` groups
the rows of a position delete file by data file (DA-10). Writing and finding files is the responsibility of `write` and
`merge_on_read`.
"""
