package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * The PARTITION BY clause of CREATE TABLE in Kudu's syntax (SQ-10, SQ-40). It is rewritten to Spark's syntax:
 *
 * <pre>
 * PARTITION BY HASH (id) PARTITIONS 4, RANGE (year) (PARTITION 2011 &lt;= VALUES &lt; 2016)
 * PARTITIONED BY (bucket(4, `id`)) TBLPROPERTIES ('range-partitions.on' = 'year', 'range-partitions.bounds' = '[2011, 2016)')
 * </pre>
 */
final class SqlPartitionBy {
  private static final String PROPERTIES = "TBLPROPERTIES";

  private final SqlCursor in;
  private final SqlRanges ranges;
  private final List<String> buckets = new ArrayList<>();

  /** Entries of TBLPROPERTIES; empty if the clause has neither RANGE nor LIST. */
  private String entries = "";

  SqlPartitionBy(SqlCursor in, ParserInterface spark) {
    this.in = in;
    this.ranges = new SqlRanges(in, spark);
  }

  /**
   * The statement without the clause; null if it does not have the clause. The cursor is after the name of the table. The clause is not
   * inside parentheses.
   */
  String rewritten() {
    int properties = -1;
    int depth = 0;
    for (; in.peek().kind() != SqlCursor.Kind.END; in.next()) {
      if (depth == 0 && isAtProperties()) {
        properties = in.peek(1).stop();
      }
      if (depth == 0 && (in.isAt("PARTITION", "BY", "RANGE") || in.isAt("PARTITION", "BY", "HASH")
          || in.isAt("PARTITION", "BY", "LIST"))) {
        return replaced(properties);
      }
      depth += in.peek().isSign("(") ? 1 : in.peek().isSign(")") ? -1 : 0;
    }
    return null;
  }

  private boolean isAtProperties() {
    return in.isAt(PROPERTIES) && in.peek(1).isSign("(");
  }

  private String replaced(int propertiesBefore) {
    int start = in.peek().start();
    clause();
    int stop = in.peek().start();
    String text = in.text();
    String partitioned = buckets.isEmpty() ? "" : "PARTITIONED BY (" + String.join(", ", buckets) + ") ";
    if (entries.isEmpty()) {
      return text.substring(0, start) + partitioned + text.substring(stop);
    }
    int properties = propertiesBefore;
    for (int depth = 0; properties < 0 && in.peek().kind() != SqlCursor.Kind.END; in.next()) {
      if (depth == 0 && isAtProperties()) {
        properties = in.peek(1).stop();
      }
      depth += in.peek().isSign("(") ? 1 : in.peek().isSign(")") ? -1 : 0;
    }
    if (properties < 0) {
      return text.substring(0, start) + partitioned + PROPERTIES + " (" + entries + ") " + text.substring(stop);
    }
    return properties <= start
        ? text.substring(0, properties) + entries + ", " + text.substring(properties, start) + partitioned + text.substring(stop)
        : text.substring(0, start) + partitioned + text.substring(stop, properties) + entries + ", " + text.substring(properties);
  }

  private void clause() {
    in.expect("PARTITION", "BY");
    do {
      if (in.take("HASH")) {
        hash();
      } else if (!entries.isEmpty()) {
        throw in.error("HASH: RANGE or LIST is allowed only once");
      } else if (in.take("LIST")) {
        define(true);
      } else if (in.take("RANGE")) {
        define(false);
      } else {
        throw in.error("HASH, RANGE or LIST");
      }
    } while (in.takeSign(","));
  }

  /** HASH has a single column, because Iceberg's transform does. */
  private void hash() {
    in.expectSign("(");
    String column = in.name("a column");
    in.expectSign(")");
    in.expect("PARTITIONS");
    buckets.add("bucket(" + in.wholeNumber("the number of partitions") + ", `" + column.replace("`", "``") + "`)");
  }

  private void define(boolean isList) {
    in.expectSign("(");
    List<String> columns = new ArrayList<>();
    do {
      columns.add(in.name("a column"));
    } while (in.takeSign(","));
    in.expectSign(")");
    in.expectSign("(");
    List<String> bounds = new ArrayList<>();
    do {
      in.expect("PARTITION");
      if (isList) {
        bounds.addAll(ranges.valueList());
      } else {
        bounds.add(ranges.range());
      }
    } while (in.takeSign(","));
    in.expectSign(")");
    entries = entry("on", String.join(", ", columns)) + ", " + entry("bounds", String.join(", ", bounds));
  }

  private static String entry(String name, String value) {
    return "'range-partitions." + name + "' = '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
