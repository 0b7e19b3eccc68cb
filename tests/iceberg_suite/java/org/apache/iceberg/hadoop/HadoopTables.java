package org.apache.iceberg.hadoop;

import java.util.Map;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.Tables;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.spark.sql.SparkSession;
import tableformat.suite.Lake;

/** In place of Iceberg's class of this name, tables without a catalog: tables of the lake that lie where they are asked for. */
public class HadoopTables implements Tables, Configurable {
  private static final Namespace NAMESPACE = Namespace.of("by_location");

  private Configuration configuration;
  private HiveCatalog catalog;

  public HadoopTables() {
    this(new Configuration());
  }

  public HadoopTables(Configuration configuration) {
    this.configuration = configuration;
  }

  @Override public Table create(Schema schema, PartitionSpec spec, SortOrder order, Map<String, String> properties, String location) {
    return catalog().buildTable(identifier(location), schema)
        .withPartitionSpec(spec == null ? PartitionSpec.unpartitioned() : spec)
        .withSortOrder(order == null ? SortOrder.unsorted() : order)
        .withProperties(properties == null ? Map.of() : properties)
        .withLocation(located(location))
        .create();
  }

  @Override public Table load(String location) {
    return catalog().loadTable(identifier(location));
  }

  @Override public boolean exists(String location) {
    return catalog().tableExists(identifier(location));
  }

  public boolean dropTable(String location) {
    return dropTable(location, true);
  }

  public boolean dropTable(String location, boolean purge) {
    return catalog().dropTable(identifier(location), purge);
  }

  public Catalog.TableBuilder buildTable(String location, Schema schema) {
    return catalog().buildTable(identifier(location), schema).withLocation(located(location));
  }

  private Catalog catalog() {
    if (catalog == null) {
      if (Lake.current() == null) {
        Lake.begin();
      }
      catalog = new HiveCatalog();
      catalog.setConf(configuration);
      catalog.initialize("", Map.of());
      if (!catalog.namespaceExists(NAMESPACE)) {
        catalog.createNamespace(NAMESPACE);
      }
      Lake.current().register(SparkSession.active(), "lake", Map.of());
    }
    return catalog;
  }

  private static TableIdentifier identifier(String location) {
    return TableIdentifier.of(NAMESPACE, "t" + Integer.toHexString(located(location).hashCode()));
  }

  private static String located(String location) {
    String path = location.replaceFirst("^file:/*", "/").replaceFirst("/$", "");
    return "file://" + path;
  }

  @Override public void setConf(Configuration configuration) {
    this.configuration = configuration;
  }

  @Override public Configuration getConf() {
    return configuration;
  }
}
