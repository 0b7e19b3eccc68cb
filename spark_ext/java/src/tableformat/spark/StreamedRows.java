package tableformat.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;

/**
 * SP-58: the rows of a stream as the table's. Spark holds the columns of batches against the table's and arranges them;
 * those of a stream it hands over as they are.
 *
 * @param columns the table's columns over those of the rows; null where these are the same
 */
record StreamedRows(LakeTable table, CaseInsensitiveStringMap options, List<Attribute> given, List<Expression> columns) {

  static StreamedRows of(LakeTable table, LogicalWriteInfo info) {
    List<Attribute> given = List.copyOf(Scala.list(DataTypeUtils.toAttributes(info.schema())));
    LogicalPlan rows = LocalRelation$.MODULE$.apply(Scala.seq(given));
    LakeTable target = table;
    CaseInsensitiveStringMap options = info.options();
    if (MergeSchemaOption.asks(table, options)) {
      target = SchemaEvolution.evolve(table.atPresent(), rows);
      options = MergeSchemaOption.without(options);
    }
    Replacement replacement = Replacement.of(options, target);
    if (replacement != null) {
      target = replacement.target(target, info.schema(), true);
    }
    DataSourceV2Relation relation =
        DataSourceV2Relation.create(target, Option.apply(table.catalog()), Option.apply(table.identifier()));
    LogicalPlan output = TableOutput.of(target.name(), Scala.list(relation.output()), rows);
    List<Expression> columns =
        output instanceof Project ? List.copyOf(Scala.list(output.expressions())) : List.copyOf(given);
    return new StreamedRows(target, options, given, isAsGiven(given, columns) ? null : columns);
  }

  private static boolean isAsGiven(List<Attribute> given, List<Expression> columns) {
    return columns.stream().map(each -> each instanceof Alias alias ? alias.child() : each).toList().equals(given);
  }

  /**
   * Spark sorts and spreads the rows before they are arranged, by names of the table. So the columns that the order of
   * files depends on have to be there, with values that compare as the table's.
   */
  void checkArrangedBy(SortOrder[] order) {
    if (columns == null) {
      return;
    }
    for (SortOrder each : order) {
      for (NamedReference reference : each.expression().references()) {
        check(reference.fieldNames()[0]);
      }
    }
  }

  private void check(String column) {
    DataType stored = table.schema().apply(column).dataType();
    Attribute found = given.stream().filter(each -> (boolean) SQLConf.get().resolver().apply(each.name(), column)).findFirst()
        .orElseThrow(() -> Errors.invalid(
            "the rows of the stream lack the column " + column + ", by which " + table.name() + " is partitioned or "
                + "sorted. Nothing was written. Add it to the query, even if it is null."));
    if (!DataType.equalsIgnoreNullability(found.dataType(), stored)
        && !SchemaEvolution.isWider(stored, found.dataType())) {
      throw Errors.invalid(
          "the column " + column + " of the stream is " + found.dataType().sql() + ", but in " + table.name() + ", which is "
              + "partitioned or sorted by it, it is " + stored.sql() + ". Nothing was written. Cast it in the query.");
    }
  }

  StreamingDataWriterFactory writers(TaskWriters writers) {
    return columns == null ? writers : new ArrangedWriters(writers, columns, given);
  }
}
