package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Range partitions, as users of Kudu write them; ranges go on as text (RP-23), which Python reads (SQ-10). */
final class SqlRanges {
  private static final String PROPERTIES = "TBLPROPERTIES";

  private final SqlCursor in;
  private final ParserInterface spark;

  SqlRanges(SqlCursor in, ParserInterface spark) {
    this.in = in;
    this.spark = spark;
  }

  /** Spark's ADD and DROP go on with COLUMN or PARTITION. */
  static boolean isAt(SqlCursor in) {
    return in.isAt("ADD", "RANGE") || in.isAt("ADD", "IF", "NOT", "EXISTS", "RANGE") || in.isAt("DROP", "RANGE")
        || in.isAt("DROP", "IF", "EXISTS", "RANGE");
  }

  /** ADD and DROP RANGE PARTITION. */
  ObjectNode change() {
    boolean adds = in.take("ADD");
    ObjectNode statement = Json.object().put("name", adds ? "add_range_partition" : "drop_range_partition");
    if (adds) {
      statement.put("if_not_exists", in.take("IF", "NOT", "EXISTS"));
    } else {
      in.expect("DROP");
      statement.put("if_exists", in.take("IF", "EXISTS"));
    }
    in.expect("RANGE", "PARTITION");
    statement.put("range", range());
    in.expectEnd("");
    return statement;
  }

  /**
   * The statement of CREATE or REPLACE TABLE with properties instead of `PARTITION BY RANGE (...) (...)`; null without that.
   * Behind its name, where the cursor is, the clause lies in no parentheses.
   */
  String withProperties() {
    int properties = -1;
    int depth = 0;
    for (; in.peek().kind() != SqlCursor.Kind.END; in.next()) {
      if (depth == 0 && in.isAt(PROPERTIES) && in.peek(1).isSign("(")) {
        properties = in.peek(1).stop();
      }
      if (depth == 0 && in.isAt("PARTITION", "BY", "RANGE")) {
        return replaced(properties);
      }
      depth += in.peek().isSign("(") ? 1 : in.peek().isSign(")") ? -1 : 0;
    }
    return null;
  }

  private String replaced(int propertiesBefore) {
    int start = in.peek().start();
    String entries = definition();
    int stop = in.peek().start();
    String text = in.text();
    int properties = propertiesBefore;
    for (int depth = 0; properties < 0 && in.peek().kind() != SqlCursor.Kind.END; in.next()) {
      if (depth == 0 && in.isAt(PROPERTIES) && in.peek(1).isSign("(")) {
        properties = in.peek(1).stop();
      }
      depth += in.peek().isSign("(") ? 1 : in.peek().isSign(")") ? -1 : 0;
    }
    if (properties < 0) {
      return text.substring(0, start) + PROPERTIES + " (" + entries + ") " + text.substring(stop);
    }
    return properties <= start
        ? text.substring(0, properties) + entries + ", " + text.substring(properties, start) + text.substring(stop)
        : text.substring(0, start) + text.substring(stop, properties) + entries + ", " + text.substring(properties);
  }

  /** The clause as entries of TBLPROPERTIES. */
  private String definition() {
    in.expect("PARTITION", "BY", "RANGE");
    in.expectSign("(");
    List<String> columns = new ArrayList<>();
    do {
      columns.add(in.name("a column"));
    } while (in.takeSign(","));
    in.expectSign(")");
    in.expectSign("(");
    List<String> ranges = new ArrayList<>();
    do {
      in.expect("PARTITION");
      ranges.add(range());
    } while (in.takeSign(","));
    in.expectSign(")");
    return entry("on", String.join(", ", columns)) + ", " + entry("bounds", String.join(", ", ranges));
  }

  private static String entry(String name, String value) {
    return "'range-partitions." + name + "' = '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  /** `[a <|<=] VALUES [<|<= b]` or `VALUE = a`. */
  private String range() {
    if (in.take("VALUE")) {
      in.expectSign("=");
      return "VALUE = " + value();
    }
    String lower = null;
    boolean lowerInclusive = true;
    if (!in.isAt("VALUES")) {
      lower = value();
      lowerInclusive = comparison();
    }
    in.expect("VALUES");
    String upper = null;
    boolean upperInclusive = false;
    if (lower == null || in.peek().isSign("<") || in.peek().isSign("<=")) {
      upperInclusive = comparison();
      upper = value();
    }
    return (lowerInclusive ? "[" : "(") + (lower == null ? "-inf" : lower) + ", " + (upper == null ? "inf" : upper)
        + (upperInclusive ? "]" : ")");
  }

  /** Whether the end belongs to the range. */
  private boolean comparison() {
    if (in.takeSign("<=")) {
      return true;
    }
    if (!in.takeSign("<")) {
      throw in.error("'<' or '<='");
    }
    return false;
  }

  /** A constant, or constants of several columns in parentheses. */
  private String value() {
    if (!in.takeSign("(")) {
      return constant();
    }
    List<String> values = new ArrayList<>();
    do {
      values.add(constant());
    } while (in.takeSign(","));
    in.expectSign(")");
    return values.size() == 1 ? values.get(0) : "(" + String.join(", ", values) + ")";
  }

  private String constant() {
    SqlCursor.Token first = in.peek();
    boolean isTyped = first.kind() == SqlCursor.Kind.WORD && in.peek(1).kind() == SqlCursor.Kind.TEXT;
    boolean isNegative = first.isSign("-");
    SqlCursor.Token last = isTyped || isNegative ? in.peek(1) : first;
    boolean isConstant = isNegative ? last.kind() == SqlCursor.Kind.NUMBER
        : last.kind() == SqlCursor.Kind.NUMBER || last.kind() == SqlCursor.Kind.TEXT
            || last.isWord("TRUE") || last.isWord("FALSE");
    if (!isConstant) {
      throw in.error("a constant");
    }
    try {
      if (spark.parseExpression(in.text().substring(first.start(), last.stop())) instanceof Literal literal) {
        in.next();
        if (first != last) {
          in.next();
        }
        return text(literal, first);
      }
    } catch (ParseException e) {
      throw in.error("a constant");
    }
    throw in.error("a constant");
  }

  private String text(Literal literal, SqlCursor.Token token) {
    if (literal.dataType() instanceof DateType) {
      return LocalDate.ofEpochDay((Integer) literal.value()).toString();
    }
    if (literal.dataType() instanceof TimestampType || literal.dataType() instanceof TimestampNTZType) {
      Instant moment = Instant.EPOCH.plus((Long) literal.value(), ChronoUnit.MICROS);
      LocalDateTime local = LocalDateTime.ofInstant(moment, ZoneOffset.UTC);
      return local + (literal.dataType() instanceof TimestampType ? "+00:00" : "");
    }
    String value = literal.value().toString();
    if (!(literal.dataType() instanceof StringType)) {
      return value;
    }
    if (value.contains("'") && value.contains("\"")) {
      throw SqlErrors.syntax(in.text(), token, "a text with one kind of quotation marks inside");
    }
    String quote = value.contains("'") ? "\"" : "'";
    return quote + value + quote;
  }
}
