package org.apache.iceberg.spark.extensions;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import tableformat.spark.SqlExtensions;

/** In place of Iceberg's class of this name: our statements. */
public class IcebergSparkSessionExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override public BoxedUnit apply(SparkSessionExtensions extensions) {
    return new SqlExtensions().apply(extensions);
  }
}
