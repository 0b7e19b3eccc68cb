package tableformat.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Parses lists of properties in parentheses. */
final class SqlProperties {
  private SqlProperties() {}

  static Map<String, String> parse(SqlCursor in, ParserInterface spark) {
    Map<String, String> properties = new HashMap<>();
    in.expectSign("(");
    do {
      String name = name(in, spark);
      in.takeSign("=");
      properties.put(name, in.text("the property's value as a text", spark));
    } while (in.takeSign(","));
    in.expectSign(")");
    in.expectEnd("");
    return properties;
  }

  static List<String> names(SqlCursor in, ParserInterface spark) {
    List<String> names = new ArrayList<>();
    in.expectSign("(");
    do {
      names.add(name(in, spark));
    } while (in.takeSign(","));
    in.expectSign(")");
    in.expectEnd("");
    return names;
  }

  private static String name(SqlCursor in, ParserInterface spark) {
    return in.isAtName() ? String.join(".", in.names("a property")) : in.text("a property", spark);
  }
}
