package tableformat.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableSummary;

/** LK-2: SHOW TABLES does not load any table, so a table that cannot be read does not hide the others. Spark's default loads each table. */
interface TableSummaries extends TableCatalog {
  @Override default TableSummary[] listTableSummaries(String[] namespace) throws NoSuchNamespaceException {
    return Arrays.stream(listTables(namespace))
        .map(table -> TableSummary.of(table, TableSummary.FOREIGN_TABLE_TYPE))
        .toArray(TableSummary[]::new);
  }
}
