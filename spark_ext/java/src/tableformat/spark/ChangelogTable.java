package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** `db.t.changes`: rows that snapshots inserted and deleted. Read options select the snapshots. */
final class ChangelogTable implements Table, SupportsRead, SupportsMetadataColumns {
  private final LakeTable table;
  private final Identifier identifier;
  private final StructType schema;

  ChangelogTable(LakeCatalog catalog, Identifier identifier, JsonNode description) {
    this.identifier = identifier;
    this.table = new LakeTable(catalog, identifier, description);
    StructType all = table.rowType();
    for (var column : Schemas.withoutIds(Json.struct(description.get("changelog_columns"))).fields()) {
      all = all.add(column);
    }
    this.schema = all;
  }

  @Override public String name() {
    return table.name();
  }

  @Override public StructType schema() {
    return schema;
  }

  @Override public Column[] columns() {
    return Schemas.columns(schema, table.schemaWithIds());
  }

  /** Metadata columns of the file that a change is read from. Only the table itself has the row ids. */
  @Override public MetadataColumn[] metadataColumns() {
    return MetadataColumns.of(table.partitionType(), new StructType());
  }

  @Override public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new ChangesScan.Builder(StateOptions.chosen(table, options), schema, null, options);
  }
}
