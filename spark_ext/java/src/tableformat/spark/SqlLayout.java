package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** `ALTER TABLE ... PARTITION FIELD`, `WRITE ...` and `IDENTIFIER FIELDS` (SQ-4 to SQ-6). */
final class SqlLayout {
  private SqlLayout() {}

  /** In Spark's own statements, ADD, DROP and REPLACE are followed by COLUMN or PARTITION (...), and SET is not followed by IDENTIFIER. */
  static boolean isAt(SqlCursor in) {
    return in.isAt("ADD", "PARTITION", "FIELD") || in.isAt("DROP", "PARTITION", "FIELD")
        || in.isAt("REPLACE", "PARTITION") || in.isAt("WRITE") || in.isAt("SET", "IDENTIFIER")
        || in.isAt("DROP", "IDENTIFIER");
  }

  static ObjectNode parse(SqlCursor in) {
    if (in.take("WRITE")) {
      return write(in);
    }
    if (in.isAt("SET", "IDENTIFIER") || in.isAt("DROP", "IDENTIFIER")) {
      return identifierFields(in);
    }
    return partitionField(in);
  }

  private static ObjectNode partitionField(SqlCursor in) {
    ObjectNode statement = Json.object();
    boolean adds = in.isAt("ADD");
    boolean drops = in.isAt("DROP");
    in.next();
    in.expect("PARTITION", "FIELD");
    statement.put("name", (adds ? "add" : drops ? "drop" : "replace") + "_partition_field");
    if (!adds) {
      statement.set("dropped", transform(in));
    }
    if (!adds && !drops) {
      in.expect("WITH");
    }
    if (!drops) {
      statement.set("added", transform(in));
      statement.put("field", in.take("AS") ? in.name("a name") : null);
    }
    in.expectEnd(drops || statement.get("field").isTextual() ? "" : "AS");
    return statement;
  }

  private static ObjectNode write(SqlCursor in) {
    ObjectNode statement = Json.object().put("name", "write_order");
    ArrayNode order = Json.array();
    boolean byPartition = false;
    boolean locally = false;
    String ordered = null;
    while (true) {
      if (!byPartition && in.take("DISTRIBUTED")) {
        in.expect("BY", "PARTITION");
        byPartition = true;
      } else if (ordered == null && in.take("UNORDERED")) {
        ordered = "none";
      } else if (ordered == null && (in.isAt("LOCALLY") || in.isAt("ORDERED"))) {
        locally = in.take("LOCALLY");
        ordered = "range";
        in.expect("ORDERED", "BY");
        order = order(in);
      } else if (!byPartition && ordered == null) {
        throw in.error("ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION or UNORDERED");
      } else {
        in.expectEnd(
            !byPartition ? "DISTRIBUTED BY PARTITION" : ordered == null ? "LOCALLY ORDERED BY, ORDERED BY, UNORDERED" : "");
        statement.put("distribution", byPartition ? "hash" : locally ? null : ordered);
        return statement.set("order", order);
      }
    }
  }

  private static ArrayNode order(SqlCursor in) {
    boolean inParentheses = in.takeSign("(");
    ArrayNode order = Json.array();
    do {
      ObjectNode field = order.addObject().set("transform", transform(in));
      boolean descends = !in.take("ASC") && in.take("DESC");
      field.put("descends", descends).put("nulls_first", !descends);
      if (in.take("NULLS")) {
        boolean isFirst = in.take("FIRST");
        if (!isFirst) {
          in.expect("LAST");
        }
        field.put("nulls_first", isFirst);
      }
    } while (in.takeSign(","));
    if (inParentheses) {
      in.expectSign(")");
    }
    return order;
  }

  private static ObjectNode identifierFields(SqlCursor in) {
    ObjectNode statement = Json.object().put("name", in.isAt("SET") ? "set_identifier_fields" : "drop_identifier_fields");
    in.next();
    in.expect("IDENTIFIER", "FIELDS");
    ArrayNode columns = statement.putArray("columns");
    do {
      columns.add(Json.array(in.names("a column").toArray(String[]::new)));
    } while (in.takeSign(","));
    in.expectEnd("','");
    return statement;
  }

  /** A column or a transform of one: {"transform": name, "arguments": [...]}, as in ExpressionJson. */
  static ObjectNode transform(SqlCursor in) {
    String[] names = in.names("a column or a transform").toArray(String[]::new);
    ObjectNode transform = Json.object();
    if (names.length > 1 || !in.takeSign("(")) {
      transform.put("transform", "identity").putArray("arguments").addObject().set("column", Json.array(names));
      return transform;
    }
    ArrayNode arguments = transform.put("transform", names[0]).putArray("arguments");
    do {
      if (in.isAtName()) {
        arguments.addObject().set("column", Json.array(in.names("a column").toArray(String[]::new)));
      } else {
        long number = in.wholeNumber("a column or a whole number");
        arguments.addObject().put("literal", Long.toString(number)).put("type", "long");
      }
    } while (in.takeSign(","));
    in.expectSign(")");
    return transform;
  }
}
