package org.apache.iceberg.hive;

import java.util.Map;
import org.apache.iceberg.jdbc.JdbcCatalog;
import tableformat.suite.Lake;

/** In place of Iceberg's class of this name, with which tests look at tables: Iceberg's JDBC catalog on the lake's file. */
public class HiveCatalog extends JdbcCatalog {
  @Override public void initialize(String name, Map<String, String> properties) {
    super.initialize(Lake.STORED_NAME, Lake.current().validationProperties());
  }
}
