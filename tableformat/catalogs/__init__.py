"""Catalogs: find, create, rename and drop tables.

`Catalog` is the class for users. `backends` turns a path or a configured name into a PyIceberg catalog, and
`EmbeddedCatalog` is SQLite in the lake's own directory. `new_table` builds the initial parts of a table, `static_table`
reads a metadata file without a catalog, and `unreachable` gives outages of services one type. Imports table and below.
"""
