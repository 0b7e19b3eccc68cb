"""Rows that fit a table: schema, types, constraints, order.

`rows` takes whatever carries Arrow data as a stream; `conform` casts its columns exactly and names a reason for every
row that does not fit; `checks` are CHECK constraints; `last_per_key` and `distinct` reduce, `sorting` orders by the
key (RD-4). Imports filters and below.
"""
