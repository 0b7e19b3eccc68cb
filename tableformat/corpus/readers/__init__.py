"""Readers for the corpus: scripts that run in environments of their own, and import nothing of this library.

`read_tables` has those of Python, ReadTables.java is Iceberg's Java library; pom.xml names what that needs.
"""
