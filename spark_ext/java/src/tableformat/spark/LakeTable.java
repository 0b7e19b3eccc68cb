package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as Python described it when it was loaded; reads stay at that snapshot. */
final class LakeTable
    implements Constrained, Partitions, SupportsRead, SupportsMetadataColumns, SupportsWrite, SupportsDeleteV2,
        SupportsRowLevelOperations {
  private final LakeCatalog catalog;
  private final Identifier identifier;
  private final JsonNode description;
  private final StructType schemaWithIds;
  private final StructType schema;
  private final boolean takesReplacement;

  LakeTable(LakeCatalog catalog, Identifier identifier, JsonNode description) {
    this(catalog, identifier, description, null);
  }

  private LakeTable(LakeCatalog catalog, Identifier identifier, JsonNode description, StructType accepted) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.description = description;
    this.schemaWithIds = Json.struct(description.get("schema"));
    this.schema = accepted == null ? Schemas.withoutIds(schemaWithIds) : accepted;
    this.takesReplacement = accepted != null;
  }

  /** The CHECK constraints by name. */
  Map<String, String> checks() {
    return Json.map(description.get("checks"));
  }

  /** The same table for one write, of rows with these columns (SP-98) and these CHECK constraints. */
  LakeTable taking(StructType accepted, Map<String, String> checks) {
    ObjectNode described = description.deepCopy();
    described.set("checks", Json.object(checks));
    return new LakeTable(catalog, identifier, described, accepted);
  }

  /** Whether it is of one write that replaces prefixes, with the columns of its rows. */
  boolean takesReplacement() {
    return takesReplacement;
  }

  LakeCatalog catalog() {
    return catalog;
  }

  Identifier identifier() {
    return identifier;
  }

  /** The metadata file and snapshot that this table was loaded with, as Python spells it: arguments of every read. */
  JsonNode pin() {
    return description.get("pin");
  }

  /** Arguments of a call about this table as it was loaded. */
  ObjectNode arguments() {
    return Json.table(identifier).set("pin", pin());
  }

  /** The table as it is now. */
  LakeTable atPresent() {
    try {
      return (LakeTable) catalog.loadToWrite(identifier);
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }

  /** The rows that match were read: a write of the same statement depends on them. */
  void noteRead(ArrayNode predicates) {
    if (catalog.statement() != null) {
      catalog.statement().noteRead(this, predicates);
    }
  }

  /** The predicates of each scan of this table in the statement; null when the statement is not known. */
  ArrayNode reads() {
    return catalog.statement() == null ? null : catalog.statement().readsOf(this);
  }

  StructType schemaWithIds() {
    return schemaWithIds;
  }

  /** The columns of row lineage; none where the format version has no row lineage. */
  StructType lineage() {
    return Json.struct(description.get("row_lineage"));
  }

  /** The columns that data files can have: the table's and those of row lineage. */
  StructType storedColumns() {
    return Schemas.both(schemaWithIds, lineage());
  }

  /** The struct of all partition fields that the table has had. */
  StructType partitionType() {
    return Json.struct(description.get("partition_type"));
  }

  /** The default spec's fields, under the names that they have in the struct of all. */
  StructType groupingFields() {
    return Json.struct(description.get("grouping_fields"));
  }

  /** Those of `groupingFields` that the spec of this id has. */
  List<String> defaultFieldsOf(int specId) {
    return List.of(Json.strings(description.get("fields_of_specs").get(Integer.toString(specId))));
  }

  /** Columns by which files can be ruled out at run time: leading key columns and partition sources. */
  String[] pruningColumns() {
    return Json.strings(description.get("pruning_columns"));
  }

  @Override public String name() {
    return Names.quoted(catalog.name(), identifier);
  }

  /**
   * Spark asks for it since 4.1. A table AS OF a version has an id of its own (ST-9): a statement that would read another state of the
   * table instead is refused.
   */
  public String id() {
    return description.get("uuid").asText() + description.path("as_of").asText();
  }

  /** Spark asks for it since 4.1. */
  public String version() {
    return description.get("snapshot_id").asText();
  }

  /** The columns as rows have them. */
  StructType rowType() {
    return schema;
  }

  @Override public StructType schema() {
    return schema;
  }

  @Override public Column[] columns() {
    return Schemas.columns(schema, schemaWithIds);
  }

  @Override public Transform[] partitioning() {
    return TransformJson.parse(description.get("partitioning"));
  }

  @Override public Map<String, String> properties() {
    Map<String, String> properties = Json.map(description.get("properties"));
    String[] key = key();
    if (!Capabilities.HOLD_CHECKS && key.length > 0) {
      // Without PRIMARY KEY in Spark's grammar this is how a statement names it.
      properties.put("tableformat.key", String.join(", ", key));
    }
    return properties;
  }

  @Override public JsonNode described() {
    return description;
  }

  /** The columns of the key, in its order. */
  String[] key() {
    return Json.strings(description.get("key"));
  }

  /** RP-30: the retired ranges that the snapshot lacks, each with its tag. */
  String[] retired() {
    return Json.strings(description.get("retired"));
  }

  boolean hasChecks() {
    return !description.get("checks").isEmpty();
  }

  @Override public Set<TableCapability> capabilities() {
    if (isTimeTravel()) {
      return Capabilities.OF_PAST_STATES;
    }
    // Where Spark tells of statements, one that adds columns to such a table gets an error (`LakeCatalog.alterTable`).
    return hasFixedColumns() && catalog.statement() == null
        ? Capabilities.OF_TABLES_WITH_FIXED_COLUMNS : Capabilities.OF_TABLES;
  }

  /** Whether the owner wants no statement but ALTER TABLE to change the columns. */
  boolean hasFixedColumns() {
    return "false".equalsIgnoreCase(properties().get("write.spark.auto-schema-evolution.enabled"));
  }

  private boolean isTimeTravel() {
    return description.get("is_time_travel").asBoolean();
  }

  @Override public MetadataColumn[] metadataColumns() {
    return MetadataColumns.of(partitionType(), lineage());
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeScanBuilder(StateOptions.chosen(this, options), options);
  }

  // -- writing

  @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    checkCurrent();
    refuseUncheckedRows();
    return new LakeWriteBuilder(this, info);
  }

  @Override public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    checkCurrent();
    if (info.command() != RowLevelOperation.Command.DELETE) {
      refuseUncheckedRows();
    }
    MetadataColumns.checkRowsCanBeFound(this);
    if (info.command() == RowLevelOperation.Command.MERGE) {
      MergeEvolution.checkStatement(this);
    }
    return () -> new RowLevelDelta(this, info);
  }

  /** Whether the rows go without a Spark job; Python decides. */
  @Override public boolean canDeleteWhere(Predicate[] predicates) {
    checkCurrent();
    ObjectNode arguments = SessionSettings.withDeleteMode(catalog, arguments());
    arguments.set("predicates", ExpressionJson.of(predicates));
    return catalog.call("can_delete_where", arguments).result().asBoolean();
  }

  @Override public void deleteWhere(Predicate[] predicates) {
    deleteWhere(predicates, CaseInsensitiveStringMap.empty());
  }

  /** Spark hands options to deletes since 4.3. */
  public void deleteWhere(Predicate[] predicates, CaseInsensitiveStringMap options) {
    checkCurrent();
    ObjectNode arguments = arguments();
    arguments.set("predicates", ExpressionJson.of(predicates));
    arguments.set("options", Json.object(options.asCaseSensitiveMap()));
    CommitCall.call(catalog, "delete_where", WriteAuditPublish.added(SessionSettings.added(arguments)));
  }

  @Override public boolean truncateTable() {
    deleteWhere(new Predicate[0]);
    return true;
  }

  /** CK-2. */
  private void refuseUncheckedRows() {
    if (hasChecks() && !Capabilities.HOLD_CHECKS) {
      throw Errors.unsupported(
          "Spark holds rows against CHECK constraints since version 4.1, and " + name() + " has some. Write to it with "
              + "that, or from Python.");
    }
  }

  void checkCurrent() {
    if (isTimeTravel()) {
      throw Errors.unsupported(name() + " as of an earlier state cannot be written to.");
    }
  }
}
