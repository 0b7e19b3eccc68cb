"""Rows that fit a table: schema, types, constraints, order.

`rows` reads any carrier of Arrow data as a stream. `conform` casts its columns exactly and gives a reason for every row
that does not fit. `checks` are CHECK constraints. `last_per_key` and `distinct` reduce rows, and `sorting` orders them
by the key (RD-4). Imports filters and below.
"""
