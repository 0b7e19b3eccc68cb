package tableformat.spark;

import org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.catalog.transactions.TransactionInfo;

/** Since 4.2, Spark informs the catalog of each statement that writes. */
interface Transactions extends TransactionalCatalogPlugin {
  boolean ARE_KNOWN = true;

  @Override default Transaction beginTransaction(TransactionInfo info) {
    return new LakeTransaction(new Statement((LakeCatalog) this));
  }
}
