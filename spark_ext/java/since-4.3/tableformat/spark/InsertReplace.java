package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.InsertReplaceCriteria;
import org.apache.spark.sql.catalyst.plans.logical.InsertReplaceOn;
import org.apache.spark.sql.catalyst.plans.logical.InsertReplaceUsing;
import org.apache.spark.sql.catalyst.plans.logical.InsertReplaceWhere;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * INSERT INTO ... REPLACE USING and REPLACE ON as an append with an option of the write (SQ-31, SQ-34).
 *
 * <p>Spark parses these statements, but one of its first resolution rules refuses them for every table of a catalog. Rules of extensions
 * run at the end of the same batch. Therefore this rule sees the resolved table and rows one pass before that rule does.
 */
final class InsertReplace {
  private InsertReplace() {}

  static void heed(SparkSessionExtensions extensions) {
    extensions.injectResolutionRule(session -> new AsReplacedPrefix());
  }

  /** Null, because Spark's own grammar has the statement. */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) {
    return null;
  }

  /** Whether the statement states which rows it replaces. */
  static boolean isReplacement(InsertIntoStatement insert) {
    return insert.replaceCriteriaOpt().isDefined();
  }

  private static final class AsReplacedPrefix extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      return plan instanceof InsertIntoStatement insert && isReplaced(insert) && insert.query().resolved()
          && insert.table() instanceof DataSourceV2Relation relation && relation.table() instanceof LakeTable table
          ? rewritten(insert, relation, table) : plan;
    }

    /** REPLACE WHERE is excluded: Spark itself converts it to an overwrite. */
    private static boolean isReplaced(InsertIntoStatement insert) {
      return insert.replaceCriteriaOpt().isDefined() && !(insert.replaceCriteriaOpt().get() instanceof InsertReplaceWhere);
    }
  }

  private static LogicalPlan rewritten(InsertIntoStatement insert, DataSourceV2Relation relation, LakeTable table) {
    InsertReplaceCriteria criteria = insert.replaceCriteriaOpt().get();
    List<String> columns = criteria instanceof InsertReplaceUsing using
        ? Scala.list(using.cols()) : new Condition(insert, table, (InsertReplaceOn) criteria).columns();
    DataSourceV2Relation replacing = relation.copy(
        relation.table(), relation.output(), relation.catalog(), relation.identifier(),
        ReplacedPrefix.added(relation.options(), table, columns), relation.timeTravelSpec());
    return insert.copy(
        replacing, insert.partitionSpec(), insert.userSpecifiedCols(), insert.query(), false, insert.ifPartitionNotExists(),
        insert.byName(), Option.empty(), insert.withSchemaEvolution());
  }

  /** A condition that equates columns of the table with the columns of the rows that are written to them. */
  private record Condition(InsertIntoStatement insert, LakeTable table, InsertReplaceOn on) {
    List<String> columns() {
      List<String> columns = new ArrayList<>();
      collect(on.cond(), columns);
      return columns;
    }

    private void collect(Expression part, List<String> columns) {
      if (part instanceof And and) {
        collect(and.left(), columns);
        collect(and.right(), columns);
        return;
      }
      String column = part instanceof EqualTo equal ? equated(equal.left(), equal.right()) : null;
      if (column == null && part instanceof EqualTo equal) {
        column = equated(equal.right(), equal.left());
      }
      if (column == null) {
        throw Errors.unsupported(
            "INSERT INTO " + table.name() + " REPLACE ON " + on.cond().sql() + ": " + part.sql() + " does not equate a column of the table "
                + "with the column of the rows that is written to it, as in t.id = s.id. For a condition on the table only, use REPLACE WHERE; "
                + "for other conditions, use MERGE INTO.");
      }
      columns.add(column);
    }

    /** The column of the table, if `ofRows` is the column of the rows that is written to it; else null. */
    private String equated(Expression ofTable, Expression ofRows) {
      int place = placeInRows(ofRows);
      if (place < 0 || !(ofTable instanceof UnresolvedAttribute name) || !isQualified(name)) {
        return null;
      }
      String column = name.nameParts().last();
      return SQLConf.get().resolver().apply(column, written(place)).equals(Boolean.TRUE) ? column : null;
    }

    private boolean isQualified(UnresolvedAttribute attribute) {
      List<String> parts = Scala.list(attribute.nameParts());
      if (parts.size() < 2) {
        return false;
      }
      String qualifier = parts.get(parts.size() - 2);
      String known = on.tableAliasOpt().isDefined() ? on.tableAliasOpt().get() : table.identifier().name();
      return SQLConf.get().resolver().apply(qualifier, known).equals(Boolean.TRUE);
    }

    private int placeInRows(Expression expression) {
      List<Attribute> rows = Scala.list(insert.query().output());
      Expression found = expression;
      if (expression instanceof UnresolvedAttribute name && !isQualified(name)) {
        var resolved = insert.query().resolve(name.nameParts(), SQLConf.get().resolver());
        found = resolved.isDefined() ? (Expression) resolved.get() : expression;
      }
      for (int i = 0; i < rows.size(); i++) {
        if (found instanceof Attribute attribute && !(found instanceof UnresolvedAttribute)
            && attribute.exprId().equals(rows.get(i).exprId())) {
          return i;
        }
      }
      return -1;
    }

    /** The column of the table to which the rows' column at position `place` is written. */
    private String written(int place) {
      if (insert.byName()) {
        return insert.query().output().apply(place).name();
      }
      List<String> named = Scala.list(insert.userSpecifiedCols());
      List<String> columns = named.isEmpty() ? List.of(table.schema().fieldNames()) : named;
      return place < columns.size() ? columns.get(place) : "";
    }
  }
}
