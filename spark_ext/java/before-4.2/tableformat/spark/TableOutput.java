package tableformat.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.TableOutputResolver$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/** Rows as a table's columns, by Spark's rules of a write by name; columns that rows lack by their defaults or null. */
final class TableOutput {
  private TableOutput() {}

  static LogicalPlan of(String table, List<? extends Attribute> columns, LogicalPlan rows) {
    return TableOutputResolver$.MODULE$.resolveOutputColumns(table, Scala.seq(List.copyOf(columns)), rows, true, SQLConf.get(), true);
  }
}
