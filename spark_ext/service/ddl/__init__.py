"""Statements on tables and namespaces: create, alter, drop, rename, CTAS, constraints."""
