package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A table that a statement is creating or replacing. It can be written to like any table, but is not visible before its commit. */
final class StagedLakeTable implements StagedTable, Constrained, SupportsWrite {
  private final LakeTable table;

  StagedLakeTable(LakeTable table) {
    this.table = table;
  }

  @Override public void commitStagedChanges() {
    table.catalog().callOnce("commit_staged_table", arguments());
  }

  @Override public void abortStagedChanges() {
    table.catalog().call("abort_staged_table", arguments());
  }

  private ObjectNode arguments() {
    return table.arguments();
  }

  @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return table.newWriteBuilder(info);
  }

  @Override public String name() {
    return table.name();
  }

  @Override public StructType schema() {
    return table.schema();
  }

  @Override public Column[] columns() {
    return table.columns();
  }

  @Override public Transform[] partitioning() {
    return table.partitioning();
  }

  @Override public Map<String, String> properties() {
    return table.properties();
  }

  @Override public JsonNode described() {
    return table.described();
  }

  @Override public Set<TableCapability> capabilities() {
    return table.capabilities();
  }
}
