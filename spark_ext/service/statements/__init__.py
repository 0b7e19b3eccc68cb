"""Statements of the SQL extension, parsed by the Java side: one function for each statement (specs/spark-sql.md)."""
