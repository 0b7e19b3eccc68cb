package tableformat.suite;

import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCatalog;

/** Clients of the server. */
final class ServedCatalog {
  /** The defaults and overrides that Iceberg's tests expect of a catalog. */
  private static final Map<String, String> EXPECTED =
      Map.ofEntries(
          Map.entry("table-default.default-key1", "catalog-default-key1"),
          Map.entry("table-default.default-key2", "catalog-default-key2"),
          Map.entry("table-default.override-key3", "catalog-default-key3"),
          Map.entry("table-override.override-key3", "catalog-override-key3"),
          Map.entry("table-override.override-key4", "catalog-override-key4"),
          Map.entry("view-default.key1", "catalog-default-key1"),
          Map.entry("view-default.key2", "catalog-default-key2"),
          Map.entry("view-default.key3", "catalog-default-key3"),
          Map.entry("view-override.key3", "catalog-override-key3"),
          Map.entry("view-override.key4", "catalog-override-key4"));

  private ServedCatalog() {}

  static RESTCatalog connect(String name, Map<String, String> properties) {
    Map<String, String> all = new HashMap<>(EXPECTED);
    all.put("uri", System.getProperty("suite.server"));
    all.putAll(properties);
    RESTCatalog catalog = new RESTCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize(name, all);
    return catalog;
  }

  /** Drops everything in a catalog. */
  static void empty(RESTCatalog catalog) {
    catalog.listNamespaces().forEach(each -> drop(catalog, each));
  }

  private static void drop(RESTCatalog catalog, Namespace namespace) {
    catalog.listNamespaces(namespace).forEach(each -> drop(catalog, each));
    catalog.listTables(namespace).forEach(each -> catalog.dropTable(each, false));
    catalog.listViews(namespace).forEach(catalog::dropView);
    catalog.dropNamespace(namespace);
  }
}
