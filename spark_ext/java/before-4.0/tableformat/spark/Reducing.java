package tableformat.spark;

import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;

/** What Spark can do since 4.0: join tables by transforms of which one follows from the other. */
interface Reducing<T> extends ScalarFunction<T> {}
