package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** SP-102: deletes the rows with the keys that a query returns, without reading them. Spark runs the query, Python commits. */
final class DeleteKeysCommand extends CommandPlan {
  private final LakeTable table;
  private final List<String> columns;
  private final LogicalPlan query;

  /** `columns` are columns of the table, one for each column of the query. */
  DeleteKeysCommand(LakeTable table, List<String> columns, LogicalPlan query, String condition) {
    super("DELETE FROM " + table.name() + " WHERE " + condition);
    this.table = table;
    this.columns = columns;
    this.query = query;
  }

  LakeTable table() {
    return table;
  }

  List<String> columns() {
    return columns;
  }

  /** The distinct keys. In SQL, a null does not equal anything, so a key that contains a null matches no row. */
  Dataset<Row> keys() {
    return Sessions.rows(query).toDF(Scala.seq(columns)).na().drop().distinct();
  }

  @Override public scala.collection.immutable.Seq<Attribute> output() {
    return Scala.seq();
  }

  @Override public scala.collection.immutable.Seq<Row> run(SparkSession session) {
    byte[] keys = SourceRows.serialized(keys());
    ObjectNode arguments = WriteAuditPublish.added(SessionSettings.added(table.arguments()));
    arguments.set("reads", table.reads());
    CommitCall.call(table.catalog(), "delete_keys", arguments, keys);
    TableNames.refreshCached(table.catalog(), table.identifier());
    return Scala.seq();
  }
}
