"""Integrations with other engines: DuckDB views over the tables of a catalog, pinned to one snapshot.

The dataset in `scan` pushes columns and filters into the scan; this package only attaches, refreshes and detaches.
"""
