package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * SP-82: the option `mergeSchema` of a data frame write. It is equivalent to `withSchemaEvolution()`, which PySpark's writers lack.
 *
 * <p>Spark compares the columns of a write with those of the table in the batch of rules after the hint rules.
 */
final class SchemaMerging {
  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new Heed((SparkSession) session));
  }

  private static final class Heed extends Rule<LogicalPlan> {
    private final SparkSession session;

    Heed(SparkSession session) {
      this.session = session;
    }

    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (plan instanceof AppendData write && isAsked(write, write.writeOptions())) {
        return write.copy(
            without(write.table()), widened(write), without(write.writeOptions()), write.isByName(), true, write.write(),
            write.analyzedQuery());
      }
      if (plan instanceof OverwriteByExpression write && isAsked(write, write.writeOptions())) {
        return write.copy(
            without(write.table()), write.deleteExpr(), widened(write), without(write.writeOptions()), write.isByName(), true,
            write.write(), write.analyzedQuery());
      }
      if (plan instanceof OverwritePartitionsDynamic write && isAsked(write, write.writeOptions())) {
        return write.copy(
            without(write.table()), widened(write), without(write.writeOptions()), write.isByName(), true, write.write());
      }
      return plan;
    }

    /**
     * Casts columns whose type is narrower than in the table. Otherwise Spark would try to narrow the column of the table, which is not
     * supported; Iceberg keeps the type of the table.
     */
    private LogicalPlan widened(V2WriteCommand write) {
      LakeTable table = MergeSchemaOption.table(write.table());
      if (table == null) {
        return write.query();
      }
      StructType given = session.sessionState().executePlan(write.query(), CommandExecutionMode.SKIP()).analyzed().schema();
      boolean isAnyNarrower = false;
      List<NamedExpression> columns = new ArrayList<>();
      for (StructField field : given.fields()) {
        NamedExpression column = UnresolvedAttribute.quoted(field.name());
        int at = SchemaEvolution.indexOf(table.schema(), field.name());
        DataType type =
            at < 0 ? field.dataType() : SchemaEvolution.widened(field.dataType(), table.schema().apply(at).dataType());
        if (!type.equals(field.dataType())) {
          isAnyNarrower = true;
          column = named(field.name(), new Cast((Expression) column, type, Option.empty()));
        }
        columns.add(column);
      }
      return isAnyNarrower ? new Project(Scala.seq(columns), write.query()) : write.query();
    }

    private static NamedExpression named(String name, Expression value) {
      return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), Scala.seq(), Option.empty(), Scala.seq());
    }

    /** Whether the option still has to be applied; not if the write already evolves the table. */
    private static boolean isAsked(V2WriteCommand write, scala.collection.immutable.Map<String, String> options) {
      boolean isMerged = write.withSchemaEvolution()
          || ((LogicalPlan) write.table()).resolved() && write.query().resolved() && write.outputResolved();
      return MergeSchemaOption.asks(write.table(), Scala.entries(options), isMerged);
    }

    private static scala.collection.immutable.Map<String, String> without(
        scala.collection.immutable.Map<String, String> options) {
      return MergeSchemaOption.without(options);
    }

    /** The relation has a copy of the options, and Spark requires both to be equal. */
    private static NamedRelation without(NamedRelation table) {
      LogicalPlan relation = (LogicalPlan) table;
      Object[] parts = new Object[relation.productArity()];
      for (int i = 0; i < parts.length; i++) {
        Object part = relation.productElement(i);
        parts[i] = part instanceof CaseInsensitiveStringMap options ? MergeSchemaOption.without(options) : part;
      }
      return (NamedRelation) relation.makeCopy(parts);
    }
  }
}
