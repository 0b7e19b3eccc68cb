package tableformat.spark;

import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;

/**
 * SP-62: Spark 4.0 accepts MERGE WITH SCHEMA EVOLUTION, but does not change the table and silently drops new columns. Spark 4.1 does the
 * same if the owner of the table does not let statements change its columns.
 */
final class MergeEvolution {
  private static final String BETWEEN = "(?:\\s|--[^\n]*\n|/\\*.*?\\*/)+";
  private static final Pattern CLAUSE = Pattern.compile(
      String.join(BETWEEN, "MERGE", "WITH", "SCHEMA", "EVOLUTION\\b"), Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {
    // The rule must run before the statement is resolved: in 4.1, later rules only see the write that it was rewritten to.
    extensions.injectHintResolutionRule(session -> new Check());
  }

  /**
   * In a session without the SQL extension, only the text of the statement shows the clause while its plan is built. The plan itself no
   * longer has it. A data frame's `withSchemaEvolution()` has no text and is not detected.
   */
  static void checkStatement(LakeTable table) {
    Origin origin = CurrentOrigin.get();
    if (origin.sqlText().isEmpty() || origin.startIndex().isEmpty()) {
      return;
    }
    String statement = origin.sqlText().get().substring((int) origin.startIndex().get());
    if (CLAUSE.matcher(statement).lookingAt()) {
      checkEvolves(table);
    }
  }

  /** Does nothing if the table does not exist: Spark raises the error. */
  private static void checkEvolves(LakeTable table) {
    if (table == null) {
      return;
    }
    if (table.hasFixedColumns()) {
      throw SchemaEvolution.fixedColumns(table);
    }
    if (!Capabilities.EVOLVE_IN_MERGE) {
      throw Errors.unsupported(
          "MERGE WITH SCHEMA EVOLUTION needs Spark 4.1 or newer. Nothing was written. Add the "
              + "columns with ALTER TABLE, and remove WITH SCHEMA EVOLUTION.");
    }
  }

  private static final class Check extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      plan.foreach(node -> {
        if (node instanceof MergeIntoTable merge && merge.withSchemaEvolution()) {
          merge.targetTable().foreach(target -> {
            if (target instanceof NamedRelation relation && MergeSchemaOption.isOurs(relation)) {
              checkEvolves(MergeSchemaOption.table(relation));
            }
            return null;
          });
        }
        return null;
      });
      return plan;
    }
  }
}
