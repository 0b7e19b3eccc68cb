package tableformat.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.read.Scan;

/**
 * A statement as a Spark transaction. A statement has one write, which commits and cleans up by itself. Therefore `commit` and `abort` do
 * nothing.
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
