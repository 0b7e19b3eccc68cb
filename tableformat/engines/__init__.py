"""Integrations with other engines: DuckDB views over the tables of a catalog, pinned to one snapshot.

Columns and filters are pushed into the scan by the dataset of `scan`; here is only what attaches, refreshes and
detaches.
"""
