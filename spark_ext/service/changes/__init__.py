"""The change feed in Spark SQL: `CHANGES FROM VERSION 3 TO VERSION 7`, as files with the columns of the feed."""
