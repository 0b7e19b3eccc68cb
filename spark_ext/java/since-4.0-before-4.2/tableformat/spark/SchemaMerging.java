package tableformat.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;

/**
 * SP-82: the option `mergeSchema` of a data frame write, for Spark versions whose writes do not have WITH SCHEMA EVOLUTION. The table is
 * changed, and the rows are arranged as its columns, before Spark compares the two.
 */
final class SchemaMerging {
  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new Heed(session));
  }

  private static final class Heed extends Rule<LogicalPlan> {
    private final SparkSession session;

    Heed(SparkSession session) {
      this.session = session;
    }

    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (plan instanceof AppendData write && merges(write, write.writeOptions())) {
        Merged merged = merged(write, write.writeOptions());
        return write.copy(
            merged.table, merged.rows, merged.options, write.isByName(), write.write(), write.analyzedQuery());
      }
      if (plan instanceof OverwriteByExpression write && merges(write, write.writeOptions())) {
        Merged merged = merged(write, write.writeOptions());
        return write.copy(
            merged.table, write.deleteExpr(), merged.rows, merged.options, write.isByName(), write.write(),
            write.analyzedQuery());
      }
      if (plan instanceof OverwritePartitionsDynamic write && merges(write, write.writeOptions())) {
        Merged merged = merged(write, write.writeOptions());
        return write.copy(merged.table, merged.rows, merged.options, write.isByName(), write.write());
      }
      return plan;
    }

    /**
     * Spark repeats hint rules until they change nothing. A merged write no longer has the option, and its rows have the columns of the
     * table.
     */
    private static boolean merges(V2WriteCommand write, scala.collection.immutable.Map<String, String> options) {
      boolean isMerged =
          ((LogicalPlan) write.table()).resolved() && write.query().resolved() && write.outputResolved();
      return write.isByName() && MergeSchemaOption.asks(write.table(), Scala.entries(options), isMerged);
    }

    private Merged merged(V2WriteCommand write, scala.collection.immutable.Map<String, String> options) {
      LakeTable table = MergeSchemaOption.table(write.table());
      if (table == null) {
        return new Merged(write.table(), write.query(), MergeSchemaOption.without(options));
      }
      table.checkCurrent();
      LogicalPlan rows =
          session.sessionState().executePlan(write.query(), CommandExecutionMode.SKIP()).analyzed();
      LakeTable evolved = SchemaEvolution.evolve(table, rows);
      DataSourceV2Relation relation =
          DataSourceV2Relation.create(evolved, Option.apply(table.catalog()), Option.apply(table.identifier()));
      LogicalPlan output = TableOutput.of(table.name(), Scala.list(relation.output()), rows);
      return new Merged(relation, output, MergeSchemaOption.without(options));
    }
  }

  private record Merged(
      NamedRelation table, LogicalPlan rows, scala.collection.immutable.Map<String, String> options) {}
}
