package tableformat.spark;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SessionConfigSupport;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * `format("tableformat")`, for jobs that name a table by `load`, `save` or `start`, either by name or by location (SP-25). The catalog does
 * everything else.
 */
public final class LakeSource implements SupportsCatalogOptions, DataSourceRegister, SessionConfigSupport {
  @Override public String shortName() {
    return "tableformat";
  }

  /** Settings `spark.datasource.tableformat.NAME` are defaults for the options of that name (SP-56). */
  @Override public String keyPrefix() {
    return shortName();
  }

  @Override public String extractCatalog(CaseInsensitiveStringMap options) {
    return SourceTable.of(options).catalog().name();
  }

  @Override public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return SourceTable.of(options).identifier();
  }

  /** Spark handles these options itself only if a table is read by `table`, not by `load`. */
  @Override public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  @Override public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  /** Called for streams, which request the table from the source itself. */
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return table(options).schema();
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return table(new CaseInsensitiveStringMap(properties));
  }

  private static Table table(CaseInsensitiveStringMap options) {
    SourceTable source = SourceTable.of(options);
    try {
      return ((TableCatalog) source.catalog()).loadTable(source.identifier());
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }
}
