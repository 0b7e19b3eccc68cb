"""Spark SQL on the tables of `tableformat`: a catalog for Spark 4.

from spark_ext import configure
spark = configure(SparkSession.builder, catalog="lake", warehouse="lake/").getOrCreate()
spark.sql("SELECT * FROM lake.db.t")
"""

from spark_ext.configure import attach, configure

__all__ = ["attach", "configure"]
