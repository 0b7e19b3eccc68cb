package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ExplainMode;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The statements of the SQL extension, recognized by their first words (docs/reference/spark-sql.md). */
final class SqlStatements {
  private static final Set<String> FIRST_WORDS = Set.of("ALTER", "CREATE", "REPLACE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "ANALYZE", "DROP", "CALL", "INSERT", "UPSERT");
  private static final Set<String> EXPLAIN_MODES = Set.of("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST");
  private static final StructType NO_ROWS = new StructType();

  private SqlStatements() {}

  /** Whether the first word is one of ours; the rest is not read. */
  static boolean mayBegin(String text) {
    return FIRST_WORDS.stream().anyMatch(new SqlCursor(text).peek()::isWord);
  }

  /** The plan of a statement; null if it is a statement of Spark or of another catalog. A syntax error is a ParseException. */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) throws ParseException {
    LogicalPlan view = ViewStatements.parse(in.text(), spark);
    if (view != null) {
      return view;
    }
    if (in.take("ALTER", "TABLE") && in.isAtName()) {
      return alterTable(in, spark);
    }
    if (in.take("SHOW", "RANGE", "PARTITIONS")) {
      return showRangePartitions(in);
    }
    if (in.take("CREATE", "TABLE") || in.take("CREATE", "OR", "REPLACE", "TABLE") || in.take("REPLACE", "TABLE")) {
      return newTable(in, spark);
    }
    if (in.take("ANALYZE", "TABLE")) {
      return analyze(in);
    }
    if (in.take("ANALYZE", "TABLES")) {
      return analyzeTables(in);
    }
    if (in.take("EXPLAIN")) {
      return explain(in, spark);
    }
    if (in.take("CALL")) {
      return SqlCalls.parse(in, spark);
    }
    if (in.take("INSERT", "INTO")) {
      return InsertReplace.parse(in, spark);
    }
    if (in.isAt("UPSERT") || in.isAt("INSERT")) {
      return Upserts.parse(in, spark);
    }
    if (in.take("DESCRIBE", "FUNCTION") || in.take("DESC", "FUNCTION")) {
      return describeFunction(in);
    }
    return null;
  }

  private static LogicalPlan alterTable(SqlCursor in, ParserInterface spark) {
    List<String> name = in.names("a part of the table's name");
    Function<SqlCursor, ObjectNode> clause = SqlRefs.isAt(in) ? SqlRefs::parse
        : SqlLayout.isAt(in) ? SqlLayout::parse
        : SqlRanges.isAt(in) ? found -> new SqlRanges(found, spark).change() : null;
    TableNames.Target table = clause == null ? null : TableNames.ours(name);
    return table == null ? null : command(in, table, clause.apply(in), NO_ROWS);
  }

  /** ANALYZE TABLE, which Spark executes only for tables of its session catalog (SQ-29). */
  private static LogicalPlan analyze(SqlCursor in) {
    TableNames.Target table = in.isAtName() ? TableNames.ours(in.names("a table")) : null;
    if (table == null) {
      return null;
    }
    if (in.isAt("PARTITION")) {
      throw Errors.unsupported(
          "ANALYZE TABLE: statistics cover a whole snapshot. Remove PARTITION.");
    }
    in.expect("COMPUTE", "STATISTICS");
    ObjectNode statement = Json.object().put("name", "analyze").put("noscan", in.take("NOSCAN")).putNull("columns");
    if (!in.take("FOR", "ALL", "COLUMNS") && in.take("FOR", "COLUMNS")) {
      ArrayNode columns = statement.putArray("columns");
      do {
        columns.add(in.name("a column"));
      } while (in.takeSign(","));
    }
    in.expectEnd("NOSCAN or FOR COLUMNS");
    return command(in, table, statement, NO_ROWS);
  }

  /** ANALYZE TABLES, which fails in Spark with an internal error for catalogs other than its session catalog. */
  private static LogicalPlan analyzeTables(SqlCursor in) {
    List<String> table = new ArrayList<>();
    if (in.take("IN") || in.take("FROM")) {
      table.addAll(in.names("a namespace"));
    }
    table.add("any");
    if (TableNames.ours(table) == null) {
      return null;
    }
    throw Errors.unsupported("ANALYZE TABLES is not supported. Analyze each table with ANALYZE TABLE ... COMPUTE STATISTICS.");
  }

  private static LogicalPlan showRangePartitions(SqlCursor in) {
    TableNames.Target table = in.isAtName() ? TableNames.ours(in.names("a table")) : null;
    if (table == null) {
      return null;
    }
    in.expectEnd("");
    StructType columns = texts("partition", "state").add("file_count", DataTypes.LongType)
        .add("record_count", DataTypes.LongType).add("total_bytes", DataTypes.LongType)
        .add("tag", DataTypes.StringType).add("retired_at", DataTypes.StringType);
    return command(in, table, Json.object().put("name", "show_range_partitions"), columns);
  }

  /** Spark's CREATE TABLE, with PARTITION BY converted to properties and buckets (SQ-10, SQ-40). */
  private static LogicalPlan newTable(SqlCursor in, ParserInterface spark) throws ParseException {
    boolean ifNotExists = in.take("IF", "NOT", "EXISTS");
    TableNames.Target target = in.isAtName() ? TableNames.ours(in.names("a table")) : null;
    if (target == null) {
      return null;
    }
    if (in.take("LIKE")) {
      return like(in, target, ifNotExists, spark);
    }
    String rewritten = new SqlPartitionBy(in, spark).rewritten();
    return rewritten == null ? null : spark.parsePlan(rewritten);
  }

  /** Null if the source table is in another catalog, whose tables do not have the features of ours (SQ-11). */
  private static LogicalPlan like(SqlCursor in, TableNames.Target target, boolean ifNotExists, ParserInterface spark) {
    TableNames.Target source = TableNames.ours(in.names("a table"));
    if (source == null || !source.catalog().name().equals(target.catalog().name())) {
      return null;
    }
    ObjectNode arguments = Json.table(source.identifier()).put("if_not_exists", ifNotExists).putNull("location");
    arguments.set("target", Json.identifier(target.identifier()));
    ObjectNode properties = arguments.putObject("properties");
    if (in.take("LOCATION")) {
      arguments.put("location", in.text("a location", spark));
    }
    if (in.take("TBLPROPERTIES")) {
      in.expectSign("(");
      do {
        String name = in.isAtName() ? String.join(".", in.names("a property")) : in.text("a property", spark);
        in.takeSign("=");
        properties.put(name, in.text("the property's value as a text", spark));
      } while (in.takeSign(","));
      in.expectSign(")");
    }
    in.expectEnd(properties.isEmpty() ? "TBLPROPERTIES" : "");
    return new LakeCommand(in.text(), NO_ROWS, () -> {
      try {
        target.catalog().createLike(source.identifier(), target.identifier(), arguments);
        return Json.array();
      } catch (NoSuchTableException | TableAlreadyExistsException | NoSuchNamespaceException e) {
        throw Errors.unchecked(e);
      }
    });
  }

  private static LogicalPlan explain(SqlCursor in, ParserInterface spark) throws ParseException {
    String mode = EXPLAIN_MODES.stream().filter(in::take).findFirst().orElse("SIMPLE");
    if (in.take("CALL")) {
      LogicalPlan call = SqlCalls.parse(in, spark);
      return call == null ? null : new ExplainCommand(call, ExplainMode.fromString(mode));
    }
    if (in.take("INSERT", "INTO")) {
      return InsertReplace.parse(in, spark);
    }
    if (in.isAt("UPSERT") || in.isAt("INSERT")) {
      return Upserts.parse(in, spark);
    }
    if (!in.take("DELETE", "FROM") || !in.isAtName() || TableNames.ours(in.names("a table")) == null) {
      return null;
    }
    LogicalPlan plan = spark.parsePlan(in.text());
    return plan instanceof ExplainCommand explained
        ? new LakeCommand(in.text(), texts("plan"), () -> ExplainDelete.run(explained)) : plan;
  }

  /** DESCRIBE FUNCTION, which Spark executes only for functions of its session catalog. */
  private static LogicalPlan describeFunction(SqlCursor in) {
    in.take("EXTENDED");
    if (!in.isAtName()) {
      return null;
    }
    TableNames.Target function = TableNames.ours(in.names("a function"));
    if (function == null || !LakeCatalog.isSystem(function.identifier().namespace())) {
      return null;
    }
    in.expectEnd("");
    return new LakeCommand(in.text(), texts("function_desc"), () -> {
      try {
        var found = function.catalog().loadFunction(function.identifier());
        return Json.array()
            .add(Json.array("Function: " + Names.quoted(function.catalog().name(), function.identifier())))
            .add(Json.array("Usage: " + found.description() + "."));
      } catch (NoSuchFunctionException e) {
        throw Errors.unchecked(e);
      }
    });
  }

  /** A statement on a table that Python executes. */
  private static LogicalPlan command(
      SqlCursor in, TableNames.Target table, ObjectNode statement, StructType columns) {
    return new LakeCommand(in.text(), columns, inPython(table, statement));
  }

  private static Supplier<JsonNode> inPython(TableNames.Target table, ObjectNode statement) {
    return () -> {
      ObjectNode arguments = Json.table(table.identifier()).set("statement", statement);
      arguments.put("case_sensitive", Sessions.active().sessionState().conf().caseSensitiveAnalysis());
      try {
        return table.catalog().runStatement(table.identifier(), arguments);
      } catch (NoSuchTableException e) {
        throw Errors.unchecked(e);
      } finally {
        TableNames.refreshCached(table.catalog(), table.identifier());
      }
    };
  }

  private static StructType texts(String... names) {
    StructType columns = new StructType();
    for (String name : names) {
      columns = columns.add(name, DataTypes.StringType);
    }
    return columns;
  }
}
