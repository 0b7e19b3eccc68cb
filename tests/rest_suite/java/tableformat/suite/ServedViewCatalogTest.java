package tableformat.suite;

import java.util.Map;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.view.ViewCatalogTests;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Iceberg's tests of catalogs with views on the server. */
public class ServedViewCatalogTest extends ViewCatalogTests<RESTCatalog> {
  private RESTCatalog catalog;

  @BeforeEach
  void connect() {
    catalog = ServedCatalog.connect("served", Map.of());
    ServedCatalog.empty(catalog);
  }

  @AfterEach
  void close() throws Exception {
    catalog.close();
  }

  @Override protected RESTCatalog catalog() {
    return catalog;
  }

  @Override protected Catalog tableCatalog() {
    return catalog;
  }

  @Override protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override protected boolean supportsServerSideRetry() {
    return true;
  }
}
