package tableformat.spark;

import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.AppendData$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** The unresolved plan of a write that appends rows. */
final class NewAppend {
  private NewAppend() {}

  static AppendData of(
      NamedRelation table, LogicalPlan rows, scala.collection.immutable.Map<String, String> options, boolean isByName) {
    return isByName
        ? AppendData$.MODULE$.byName(table, rows, options)
        : AppendData$.MODULE$.byPosition(table, rows, options);
  }
}
