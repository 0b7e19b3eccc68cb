package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** Takes the mode of a write from Spark: append, or overwrite all rows, matching rows, or whole partitions. */
final class LakeWriteBuilder implements WriteBuilder, SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final LakeTable table;
  private final LogicalWriteInfo info;
  private String mode = "append";
  private Predicate[] predicates = {};

  LakeWriteBuilder(LakeTable table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  @Override public WriteBuilder truncate() {
    return overwrite(new Predicate[0]);
  }

  @Override public boolean canOverwrite(Predicate[] predicates) {
    ObjectNode arguments = table.arguments().set("predicates", ExpressionJson.of(predicates));
    if (!table.catalog().call("can_overwrite", arguments).result().asBoolean()) {
      // Spark's own error message names a Java object and has no error condition.
      throw Errors.unsupported("rows of " + table.name() + " where " + Arrays.toString(predicates)
          + " cannot be overwritten: an overwrite supports only comparisons of columns with values that are not null. Delete "
          + "the rows first with DELETE FROM, or use MERGE.");
    }
    return true;
  }

  @Override public WriteBuilder overwrite(Predicate[] predicates) {
    this.mode = "overwrite";
    this.predicates = predicates;
    return this;
  }

  @Override public WriteBuilder overwriteDynamicPartitions() {
    this.mode = "overwrite-partitions";
    return this;
  }

  @Override public Write build() {
    return new LakeWrite(table, info, mode, predicates);
  }
}
