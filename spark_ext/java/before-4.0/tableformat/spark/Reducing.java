package tableformat.spark;

import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;

/** Spark supports reducible functions since 4.0: it joins tables by two transforms if one can be derived from the other. */
interface Reducing<T> extends ScalarFunction<T> {}
