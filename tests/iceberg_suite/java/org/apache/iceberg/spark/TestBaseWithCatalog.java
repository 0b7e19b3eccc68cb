package org.apache.iceberg.spark;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.Parameter;
import org.apache.iceberg.ParameterizedTestExtension;
import org.apache.iceberg.Parameters;
import org.apache.iceberg.PlanningMode;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.rest.RESTServerExtension;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import tableformat.suite.Lake;

/** In place of Iceberg's class of this name: whatever catalog a class asks for is ours, and Iceberg's JDBC catalog looks at it. */
@ExtendWith(ParameterizedTestExtension.class)
public abstract class TestBaseWithCatalog extends TestBase {
  protected static File warehouse;
  protected static RESTCatalog restCatalog;

  @TempDir protected Path temp;

  @Parameter(index = 0)
  protected String catalogName;

  @Parameter(index = 1)
  protected String implementation;

  @Parameter(index = 2)
  protected Map<String, String> catalogConfig;

  protected Catalog validationCatalog;
  protected SupportsNamespaces validationNamespaceCatalog;
  protected TableIdentifier tableIdent = TableIdentifier.of("default", "table");
  protected String tableName;

  @Parameters
  protected static Object[][] parameters() {
    SparkCatalogConfig hadoop = SparkCatalogConfig.HADOOP;
    return new Object[][] {{hadoop.catalogName(), hadoop.implementation(), hadoop.properties()}};
  }

  @BeforeAll
  public static void setUpAll() throws IOException {
    warehouse = Lake.current().directory().toFile();
    restCatalog = new RESTServerExtension(Map.of()).client();
  }

  @BeforeEach
  public void before() {
    validationCatalog = catalog;
    validationNamespaceCatalog = catalog;
    Lake.current().register(spark, catalogName, catalogConfig);
    Lake.current().ensureNamespace(spark, catalogName, Namespace.of("default"));
    sql("CREATE NAMESPACE IF NOT EXISTS default");
    tableName = tableName("table");
  }

  protected String tableName(String name) {
    return catalogName + ".default." + name;
  }

  protected String commitTarget() {
    return tableName;
  }

  protected String selectTarget() {
    return tableName;
  }

  /** Each statement loads its tables. */
  protected boolean cachingCatalogEnabled() {
    return false;
  }

  protected void configurePlanningMode(PlanningMode mode) {
    configurePlanningMode(tableName, mode);
  }

  /** Who plans changes no result. */
  protected void configurePlanningMode(String table, PlanningMode mode) {}
}
