"""Iceberg's views: a query in a catalog, with its own columns, which engines read like a table.

A catalog keeps its views in a `ViewStore`: rows and metadata files for SQLite and PostgreSQL (`sql_views`), the service
for REST (`rest_views`), nothing for other catalogs (`no_views`). `view_metadata` is the document of the view
specification. Imports the catalog's names, metadata and storage; does not depend on SQL.
"""
