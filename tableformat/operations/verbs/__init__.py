"""The verbs that write, one module each: what it stages, in which order, and what it refuses.

`append`, `replace`, `upsert`, `apply_changes` and `overwrite` add rows; `update` changes some; `delete_prefix`,
`delete_range`, `delete_rows` and `delete` take them away, blind where a blind delete is exact.
"""
