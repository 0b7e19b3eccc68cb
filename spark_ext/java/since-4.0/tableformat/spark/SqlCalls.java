package tableformat.spark;

import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** CALL is part of Spark's own grammar in this version. */
final class SqlCalls {
  private SqlCalls() {}

  static LogicalPlan parse(SqlCursor in, ParserInterface spark) {
    return null;
  }
}
