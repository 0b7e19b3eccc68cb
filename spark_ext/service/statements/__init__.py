"""Statements of the SQL extension, parsed by the Java side: one function a statement (specs/spark-sql.md)."""
