"""Operations that write, one module for each: the order in which they stage changes, and the input that they refuse.

`append`, `replace`, `upsert`, `apply_changes` and `overwrite` add rows, and `update` changes some. `delete_prefix`,
`delete_range`, `delete_rows` and `delete` remove rows, with a blind delete if it is exact.
"""
