package org.apache.iceberg.spark.source;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SessionConfigSupport;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import tableformat.spark.LakeSource;
import tableformat.suite.Lake;

/** In place of Iceberg's class of this name: `format("iceberg")` is our source. */
public class IcebergSource implements SupportsCatalogOptions, DataSourceRegister, SessionConfigSupport {
  private final LakeSource source = new LakeSource();

  /** A name without a catalog is one of the lake's: there is no session catalog of Iceberg's. */
  private static CaseInsensitiveStringMap inLake(CaseInsensitiveStringMap options) {
    SparkSession spark = SparkSession.active();
    String path = options.get("path");
    if (path == null || path.contains("/") || spark.sessionState().catalogManager().isCatalogRegistered(path.split("[.]")[0])) {
      return options;
    }
    Lake.current().register(spark, "lake", Map.of());
    Map<String, String> named = new HashMap<>(options.asCaseSensitiveMap());
    named.put("path", "lake." + (path.contains(".") ? path : "default." + path));
    return new CaseInsensitiveStringMap(named);
  }

  @Override public String shortName() {
    return "iceberg";
  }

  @Override public String keyPrefix() {
    return shortName();
  }

  @Override public String extractCatalog(CaseInsensitiveStringMap options) {
    return source.extractCatalog(inLake(options));
  }

  @Override public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return source.extractIdentifier(inLake(options));
  }

  @Override public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return source.extractTimeTravelVersion(inLake(options));
  }

  @Override public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return source.extractTimeTravelTimestamp(inLake(options));
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return source.inferSchema(inLake(options));
  }

  @Override public boolean supportsExternalMetadata() {
    return source.supportsExternalMetadata();
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return source.getTable(schema, partitioning, inLake(new CaseInsensitiveStringMap(properties)));
  }
}
