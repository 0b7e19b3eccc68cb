package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table about a table, such as `db.t.snapshots`; its rows are made by Python when it is read. */
final class MetadataTable implements Table, SupportsRead {
  private final LakeCatalog catalog;
  private final Identifier identifier;
  private final JsonNode description;
  private final StructType schema;

  MetadataTable(LakeCatalog catalog, Identifier identifier, JsonNode description) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.description = description;
    this.schema = Json.struct(description.get("schema"));
  }

  @Override public String name() {
    return Names.quoted(catalog.name(), identifier);
  }

  @Override public StructType schema() {
    return schema;
  }

  @Override public Column[] columns() {
    return Schemas.columns(schema);
  }

  @Override public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return () -> {
      JsonNode pin = StateOptions.chosenPin(catalog, identifier, description.get("pin"), options);
      ReadOptions.check(catalog, pin, options);
      byte[][] parts = catalog.call("read_metadata_table", Json.table(identifier).set("pin", pin)).parts();
      return new ArrowRows.Rows(schema, ArrowRows.read(parts[0], schema));
    };
  }
}
