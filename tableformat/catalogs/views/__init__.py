"""Iceberg's views: a query in a catalog, with columns of its own, which engines read like a table."""
