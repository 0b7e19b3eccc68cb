"""Iceberg's views: a query in a catalog, with columns of its own, which engines read like a table.

`ViewStore` is what a catalog keeps its views in: rows and metadata files for SQLite and PostgreSQL (`sql_views`), the
service for REST (`rest_views`), nothing elsewhere (`no_views`). `view_metadata` is the document of the view
specification. Imports the catalog's names, metadata and storage; knows no SQL.
"""
