package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Range partitions in Kudu's syntax (SQ-10). Ranges are passed to Python as text (RP-23). */
final class SqlRanges {
  private final SqlCursor in;
  private final ParserInterface spark;

  SqlRanges(SqlCursor in, ParserInterface spark) {
    this.in = in;
    this.spark = spark;
  }

  /** In Spark's own statements, ADD and DROP are followed by COLUMN or PARTITION. */
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

  /** `[a <|<=] VALUES [<|<= b]` or `VALUE = a`. */
  String range() {
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

  /**
   * `VALUES IN (a, b, ...)` as ranges (SQ-40). Consecutive whole numbers or dates become one range; any other value becomes its own range.
   */
  List<String> valueList() {
    in.expect("VALUES", "IN");
    in.expectSign("(");
    List<ListedValue> values = new ArrayList<>();
    do {
      values.add(listedValue());
    } while (in.takeSign(","));
    in.expectSign(")");
    if (values.stream().anyMatch(each -> each.ordinal() == null)) {
      return values.stream().map(each -> "VALUE = " + each.text()).toList();
    }
    values.sort(Comparator.comparing(ListedValue::ordinal));
    List<String> ranges = new ArrayList<>();
    for (int first = 0, last; first < values.size(); first = last + 1) {
      last = first;
      while (last + 1 < values.size() && values.get(last + 1).ordinal() == values.get(last).ordinal() + 1) {
        last++;
      }
      ranges.add(first == last ? "VALUE = " + values.get(first).text()
          : "[" + values.get(first).text() + ", " + values.get(last).text() + "]");
    }
    return ranges;
  }

  /** A value of a list; `ordinal` is null if its type does not have consecutive values. */
  private record ListedValue(String text, Long ordinal) {}

  private ListedValue listedValue() {
    if (in.peek().isSign("(")) {
      return new ListedValue(value(), null);
    }
    Literal literal = literal();
    boolean isWhole = literal.value() instanceof Integer || literal.value() instanceof Long;
    boolean isMoment = literal.dataType() instanceof TimestampType || literal.dataType() instanceof TimestampNTZType;
    return new ListedValue(text(literal), isWhole && !isMoment ? (Long) ((Number) literal.value()).longValue() : null);
  }

  /** Whether the end is included in the range. */
  private boolean comparison() {
    if (in.takeSign("<=")) {
      return true;
    }
    if (!in.takeSign("<")) {
      throw in.error("'<' or '<='");
    }
    return false;
  }

  /** A constant, or the constants of several columns in parentheses. */
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
    return text(literal());
  }

  private Literal literal() {
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
        check(literal, first);
        in.next();
        if (first != last) {
          in.next();
        }
        return literal;
      }
    } catch (ParseException e) {
      throw in.error("a constant");
    }
    throw in.error("a constant");
  }

  private void check(Literal literal, SqlCursor.Token token) {
    String value = literal.value().toString();
    if (literal.dataType() instanceof StringType && value.contains("'") && value.contains("\"")) {
      throw SqlErrors.syntax(in.text(), token, "a text with one kind of quotation marks inside");
    }
  }

  private static String text(Literal literal) {
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
    String quote = value.contains("'") ? "\"" : "'";
    return quote + value + quote;
  }
}
