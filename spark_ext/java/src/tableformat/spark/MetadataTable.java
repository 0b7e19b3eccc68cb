package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A metadata table, such as `db.t.snapshots`. Python computes its rows when it is read. */
final class MetadataTable implements Table, SupportsRead, SupportsMetadataColumns {
  private final LakeCatalog catalog;
  private final Identifier identifier;
  private final JsonNode description;
  private final StructType schema;

  /** Columns that are only returned if a statement names them. Iceberg's metadata table of the same name does not have them. */
  private final StructType hidden;

  MetadataTable(LakeCatalog catalog, Identifier identifier, JsonNode description) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.description = description;
    this.schema = Json.struct(description.get("schema"));
    this.hidden = Json.struct(description.get("hidden"));
  }

  @Override public String name() {
    return Names.quoted(catalog.name(), identifier);
  }

  /** Called by Spark since 4.1, as in `LakeTable`. */
  public String id() {
    return name() + description.path("as_of").asText();
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

  @Override public MetadataColumn[] metadataColumns() {
    return MetadataColumns.of(hidden);
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(options);
  }

  /** Requests only the columns that are read from Python: some of them take one step for each column of each file. */
  private final class Builder implements ScanBuilder, SupportsPushDownRequiredColumns {
    private final CaseInsensitiveStringMap options;
    private StructType required = schema;

    Builder(CaseInsensitiveStringMap options) {
      this.options = options;
    }

    /** Whole columns, at least one. Spark extracts parts of a struct itself, and counts rows by any column. */
    @Override public void pruneColumns(StructType required) {
      StructType whole = new StructType();
      for (String name : required.fieldNames()) {
        whole = whole.add(List.of(schema.fieldNames()).contains(name) ? schema.apply(name) : hidden.apply(name));
      }
      this.required = whole.isEmpty() ? whole.add(schema.apply(0)) : whole;
    }

    @Override public Scan build() {
      JsonNode pin = StateOptions.chosenPin(catalog, identifier, description.get("pin"), options);
      ReadOptions.check(catalog, pin, options);
      ObjectNode arguments = Json.table(identifier).set("pin", pin);
      arguments.set("columns", Json.array(required.fieldNames()));
      byte[][] parts = catalog.call("read_metadata_table", arguments).parts();
      return new ArrowRows.Rows(required, ArrowRows.read(parts[0], required));
    }
  }
}
