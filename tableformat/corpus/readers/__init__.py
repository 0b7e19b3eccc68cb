"""Readers for the corpus: scripts that run in separate environments and import nothing of this library.

`read_tables` has the Python readers. ReadTables.java is Iceberg's Java library, and pom.xml lists its dependencies.
"""
