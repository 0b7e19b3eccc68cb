package tableformat.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.TableOutputResolver$;
import org.apache.spark.sql.catalyst.analysis.TableOutputResolver.DefaultValueFillMode$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/** Arranges rows as the columns of a table, by Spark's rules for writes by name. Missing columns get their default or null. */
final class TableOutput {
  private TableOutput() {}

  static LogicalPlan of(String table, List<? extends Attribute> columns, LogicalPlan rows) {
    return TableOutputResolver$.MODULE$.resolveOutputColumns(
        table, Scala.seq(List.copyOf(columns)), rows, true, SQLConf.get(), DefaultValueFillMode$.MODULE$.FILL());
  }
}
