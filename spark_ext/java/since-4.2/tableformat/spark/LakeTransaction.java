package tableformat.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.read.Scan;

/**
 * A statement as Spark's transaction of it. A statement has one write, and that write commits and cleans up by itself, so
 * here `commit` and `abort` find nothing left to do.
 */
record LakeTransaction(Statement statement) implements Transaction {
  @Override public CatalogPlugin catalog() {
    return statement.catalog();
  }

  @Override public boolean registerScans(Scan[] scans) {
    return statement.mayStandForScans(scans);
  }

  @Override public void commit() {}

  @Override public void abort() {}

  @Override public void close() {}
}
