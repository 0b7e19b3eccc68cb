"""Statements of the SQL extension, parsed by the Java side: one function for each statement (docs/reference/spark-sql.md)."""
