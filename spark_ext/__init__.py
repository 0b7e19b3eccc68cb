"""Spark SQL on the tables of `tableformat`: a catalog for Spark 3.5 to 4.3.

from spark_ext import configure
spark = configure(SparkSession.builder, catalog="lake", warehouse="lake/").getOrCreate()
spark.sql("SELECT * FROM lake.db.t")
"""

from spark_ext.configure import attach, configure

__all__ = ["attach", "configure"]
