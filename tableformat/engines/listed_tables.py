"""SHOW TABLES for an attached catalog, which is the default database of its connection."""

from __future__ import annotations

from typing import Final

from tableformat.engines.statement import StatementReader

LISTED_TABLES: Final = """
    SELECT schema_name || '.' || view_name AS name FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal ORDER BY name"""
"""The names of the attached tables. DuckDB's own SHOW TABLES lists the datasets behind the tables."""


def with_listed_tables(sql: str) -> str:
    """The statement, or for SHOW TABLES a query for the names of the attached tables."""
    return LISTED_TABLES if StatementReader(sql).took("SHOW", "TABLES") else sql
