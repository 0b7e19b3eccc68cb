package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.FunctionSignature;
import org.apache.spark.sql.catalyst.plans.logical.InputParameter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NamedParametersSupport$;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * <pre>
 * CALL catalog.system.procedure([name =>] argument, ...)
 * </pre>
 *
 * An argument is an expression without columns.
 */
final class SqlCalls {
  /** `name` is null for a positional argument; `text` is an expression. */
  private record Argument(String name, String text) {}

  private SqlCalls() {}

  /** SQ-30: null for a procedure of another catalog. Spark then reports that the catalog does not support CALL. */
  static LogicalPlan parse(SqlCursor in, ParserInterface spark) throws ParseException {
    TableNames.Target called = in.isAtName() ? TableNames.ours(in.names("a procedure")) : null;
    if (called == null) {
      return null;
    }
    List<Argument> arguments = arguments(in);
    in.expectEnd("");
    LakeCatalog catalog = called.catalog();
    JsonNode description = ProcedureCall.describe(catalog, called.identifier());
    DataType[] types = new DataType[description.get("parameters").size()];
    InternalRow values = values(description, arguments, types, spark);
    return new CallCommand(
        in.text(), columns(description, values), () -> ProcedureCall.run(catalog, description, types, values));
  }

  private static List<Argument> arguments(SqlCursor in) {
    in.expectSign("(");
    List<Argument> found = new ArrayList<>();
    while (!in.takeSign(")")) {
      if (!found.isEmpty()) {
        in.expectSign(",");
      }
      String name = null;
      if (in.isAtName() && in.peek(1).isSign("=") && in.peek(2).isSign(">")) {
        name = in.name("a parameter");
        in.next();
        in.next();
      }
      found.add(new Argument(name, in.expression("an argument")));
    }
    return found;
  }

  /** The values in the order of the parameters, null for parameters without an argument. Sets `types` to the types of the parameters. */
  private static InternalRow values(
      JsonNode description, List<Argument> arguments, DataType[] types, ParserInterface spark) throws ParseException {
    JsonNode parameters = description.get("parameters");
    String procedure = description.get("name").asText();
    List<InputParameter> expected = new ArrayList<>();
    for (JsonNode parameter : parameters) {
      Option<Expression> value = parameter.get("is_required").asBoolean()
          ? Option.empty() : Option.apply(Literal.create(null, DataTypes.NullType));
      expected.add(new InputParameter(parameter.get("name").asText(), value));
    }
    List<Expression> given = new ArrayList<>();
    for (Argument argument : arguments) {
      Literal value = value(argument.text(), spark);
      given.add(argument.name() == null ? value : new NamedArgumentExpression(asDescribed(parameters, argument.name()), value));
    }
    if (given.size() > types.length) {
      throw Errors.unchecked((Exception) QueryCompilationErrors$.MODULE$.wrongNumArgsError(
          procedure, Scala.seq((Object) types.length), given.size(), "", "", ""));
    }
    // Uses the rules and errors of Spark's functions with named arguments.
    List<Expression> arranged = Scala.list(NamedParametersSupport$.MODULE$.defaultRearrange(
        new FunctionSignature(Scala.seq(expected)), Scala.seq(given), procedure));
    InternalRow row = new GenericInternalRow(types.length);
    for (int i = 0; i < types.length; i++) {
      Literal value = (Literal) arranged.get(i);
      JsonNode type = parameters.get(i).get("type");
      types[i] = type.isNull() ? value.dataType() : DataType.fromJson(type.toString());
      row.update(i, cast(value, types[i], procedure + ": " + parameters.get(i).get("name").asText()));
    }
    return row;
  }

  /** The name as spelled in the description if only its case differs, because Spark compares names case-sensitively. */
  private static String asDescribed(JsonNode parameters, String name) {
    for (JsonNode parameter : parameters) {
      if (parameter.get("name").asText().equalsIgnoreCase(name)) {
        return parameter.get("name").asText();
      }
    }
    return name;
  }

  /** The value of the expression, computed by Spark. */
  private static Literal value(String expression, ParserInterface spark) throws ParseException {
    LogicalPlan selected = spark.parsePlan("SELECT (" + expression + ") AS value");
    QueryExecution query = Sessions.active().sessionState().executePlan(selected, CommandExecutionMode.NON_ROOT());
    DataType type = query.analyzed().schema().apply(0).dataType();
    return Literal.create(Constants.value(query.executedPlan().executeCollect()[0], 0, type), type);
  }

  /** Casts the value to the type. Raises an error if the value does not fit, regardless of the session's ANSI setting. */
  private static Object cast(Literal value, DataType type, String what) {
    if (value.dataType().equals(type) || value.value() == null) {
      return value.value();
    }
    if (!Cast$.MODULE$.canAnsiCast(value.dataType(), type)) {
      throw Errors.invalid(what + " has the type " + type.catalogString() + ", but " + value + " is not a value of this type.");
    }
    String zone = Sessions.active().sessionState().conf().sessionLocalTimeZone();
    return new Cast(value, type, Option.apply(zone), EvalMode$.MODULE$.ANSI()).eval(InternalRow.empty());
  }

  private static StructType columns(JsonNode description, InternalRow values) {
    StructType columns = Json.struct(description.get("columns"));
    JsonNode parameters = description.get("parameters");
    int place = IntStream.range(0, parameters.size())
        .filter(i -> parameters.get(i).get("name").asText().equals("all_columns")).findFirst().orElse(-1);
    if (place >= 0 && !values.isNullAt(place) && values.getBoolean(place)) {
      for (var column : Json.struct(description.get("more_columns")).fields()) {
        columns = columns.add(column);
      }
    }
    return columns;
  }
}
