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
 * SP-62: Spark 4.0 takes MERGE WITH SCHEMA EVOLUTION, changes no table for it, and leaves new columns out in silence. So
 * does 4.1 with a table whose owner wants its columns left alone.
 */
final class MergeEvolution {
  private static final String BETWEEN = "(?:\\s|--[^\n]*\n|/\\*.*?\\*/)+";
  private static final Pattern CLAUSE = Pattern.compile(
      String.join(BETWEEN, "MERGE", "WITH", "SCHEMA", "EVOLUTION\\b"), Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private MergeEvolution() {}

  static void check(SparkSessionExtensions extensions) {
    // Before the statement is resolved: 4.1 has rewritten it as a write when later rules look.
    extensions.injectHintResolutionRule(session -> new Check());
  }

  /**
   * In a session without the SQL extension the text of the statement is all there is to tell by, while its plan is made.
   * The plan itself has lost the clause, and a data frame's `withSchemaEvolution()` has no text.
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

  /** Nothing is wrong with what is no table: Spark says so itself. */
  private static void checkEvolves(LakeTable table) {
    if (table == null) {
      return;
    }
    if (table.hasFixedColumns()) {
      throw SchemaEvolution.fixedColumns(table);
    }
    if (!Capabilities.EVOLVE_IN_MERGE) {
      throw Errors.unsupported(
          "MERGE WITH SCHEMA EVOLUTION changes no table in Spark 4.0 (4.1 and newer do). Nothing was written. Add the "
              + "columns by ALTER TABLE, and leave WITH SCHEMA EVOLUTION out.");
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
