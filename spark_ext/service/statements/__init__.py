"""Statements of the SQL extension (docs/reference/spark-sql.md), parsed by the Java side: one function for each."""
