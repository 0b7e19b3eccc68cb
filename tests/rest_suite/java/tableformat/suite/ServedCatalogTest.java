package tableformat.suite;

import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Iceberg's tests of catalogs on the server. */
public class ServedCatalogTest extends CatalogTests<RESTCatalog> {
  private RESTCatalog catalog;

  /** Properties of the client, for subclasses. */
  protected Map<String, String> clientProperties() {
    return Map.of();
  }

  @BeforeEach
  void connect() {
    catalog = initCatalog("served", Map.of());
    ServedCatalog.empty(catalog);
  }

  @AfterEach
  void close() throws Exception {
    catalog.close();
  }

  @Override protected RESTCatalog catalog() {
    return catalog;
  }

  @Override protected RESTCatalog initCatalog(String name, Map<String, String> additional) {
    Map<String, String> properties = new HashMap<>(clientProperties());
    properties.putAll(additional);
    return ServedCatalog.connect(name, properties);
  }

  @Override protected String baseTableLocation(TableIdentifier identifier) {
    return System.getProperty("suite.tables") + "/" + identifier.namespace() + "/" + identifier.name();
  }

  @Override protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override protected boolean supportsServerSideRetry() {
    return true;
  }
}
