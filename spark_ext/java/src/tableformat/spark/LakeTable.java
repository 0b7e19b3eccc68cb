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

/** A table as Python described it when it was loaded. Reads use the snapshot of that time. */
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

  /** A copy of the table for one write of rows with these columns (SP-98) and these CHECK constraints. */
  LakeTable taking(StructType accepted, Map<String, String> checks) {
    ObjectNode described = description.deepCopy();
    described.set("checks", Json.object(checks));
    return new LakeTable(catalog, identifier, described, accepted);
  }

  /** Whether this is the copy for one write that replaces prefixes, with the columns of its rows. */
  boolean takesReplacement() {
    return takesReplacement;
  }

  LakeCatalog catalog() {
    return catalog;
  }

  Identifier identifier() {
    return identifier;
  }

  /** The metadata file and snapshot that this table was loaded with, in Python's form. Part of the arguments of every read. */
  JsonNode pin() {
    return description.get("pin");
  }

  /** Arguments of a call about this table in the state in which it was loaded. */
  ObjectNode arguments() {
    return Json.table(identifier).set("pin", pin());
  }

  /** The table in its current state. */
  LakeTable atPresent() {
    try {
      return (LakeTable) catalog.loadToWrite(identifier);
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }

  /** Records that the rows that match were read: a write of the same statement depends on them. */
  void noteRead(ArrayNode predicates) {
    if (catalog.statement() != null) {
      catalog.statement().noteRead(this, predicates);
    }
  }

  /** The predicates of each scan of this table in the statement; null if the statement is not known. */
  ArrayNode reads() {
    return catalog.statement() == null ? null : catalog.statement().readsOf(this);
  }

  StructType schemaWithIds() {
    return schemaWithIds;
  }

  /** The columns of row lineage; empty if the format version does not have row lineage. */
  StructType lineage() {
    return Json.struct(description.get("row_lineage"));
  }

  /** The columns that data files can have: those of the table and of row lineage. */
  StructType storedColumns() {
    return Schemas.both(schemaWithIds, lineage());
  }

  /** The struct of all partition fields in the history of the table. */
  StructType partitionType() {
    return Json.struct(description.get("partition_type"));
  }

  /** The fields of the default spec, with their names in the struct of all partition fields. */
  StructType groupingFields() {
    return Json.struct(description.get("grouping_fields"));
  }

  /** The names of the `groupingFields` that the spec with this id has. */
  List<String> defaultFieldsOf(int specId) {
    return List.of(Json.strings(description.get("fields_of_specs").get(Integer.toString(specId))));
  }

  /** Columns that can rule out files at run time: leading key columns and source columns of partition fields. */
  String[] pruningColumns() {
    return Json.strings(description.get("pruning_columns"));
  }

  @Override public String name() {
    return Names.quoted(catalog.name(), identifier);
  }

  /**
   * Called by Spark since 4.1. A table AS OF a version has its own id (ST-9), so that a statement that would read a different state of the
   * table is refused.
   */
  public String id() {
    return description.get("uuid").asText() + description.path("as_of").asText();
  }

  /** Called by Spark since 4.1. */
  public String version() {
    return description.get("snapshot_id").asText();
  }

  /** The columns of the rows. */
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
      // Statements name the key in this way if Spark's grammar does not have PRIMARY KEY.
      properties.put("tableformat.key", String.join(", ", key));
    }
    return properties;
  }

  @Override public JsonNode described() {
    return description;
  }

  /** The columns of the key, in order. */
  String[] key() {
    return Json.strings(description.get("key"));
  }

  /** RP-30: the retired ranges that are missing in the snapshot, each with its tag. */
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
    // If Spark passes statements to catalogs, `LakeCatalog.alterTable` raises an error when a statement adds columns to such a table.
    return hasFixedColumns() && catalog.statement() == null
        ? Capabilities.OF_TABLES_WITH_FIXED_COLUMNS : Capabilities.OF_TABLES;
  }

  /** Whether the owner allows only ALTER TABLE to change the columns. */
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

  /** Whether the rows can be deleted without a Spark job; Python decides. */
  @Override public boolean canDeleteWhere(Predicate[] predicates) {
    checkCurrent();
    ObjectNode arguments = SessionSettings.withDeleteMode(catalog, arguments());
    arguments.set("predicates", ExpressionJson.of(predicates));
    return catalog.call("can_delete_where", arguments).result().asBoolean();
  }

  @Override public void deleteWhere(Predicate[] predicates) {
    deleteWhere(predicates, CaseInsensitiveStringMap.empty());
  }

  /** Called by Spark since 4.3, which passes options to deletes. */
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

  /** CK-2: raises an error if the table has CHECK constraints and Spark does not check rows against them. */
  private void refuseUncheckedRows() {
    if (hasChecks() && !Capabilities.HOLD_CHECKS) {
      throw Errors.unsupported(
          "Spark checks CHECK constraints since version 4.1, but " + name() + " has CHECK constraints. Write to it with a newer "
              + "version of Spark, or from Python.");
    }
  }

  void checkCurrent() {
    if (isTimeTravel()) {
      throw Errors.unsupported(name() + " as of an earlier state cannot be written to.");
    }
  }
}
