"""Catalogs: where tables are found, created, renamed and dropped.

`Catalog` is what users hold, `backends` goes from a path or configured name to a PyIceberg catalog, `EmbeddedCatalog`
is SQLite in the lake's own directory, `new_table` says what a table begins with, `static_table` reads a metadata
file without any, `unreachable` types the outages of services. Imports table and below.
"""
