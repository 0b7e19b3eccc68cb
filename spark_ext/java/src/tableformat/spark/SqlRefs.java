package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** `ALTER TABLE ... CREATE | REPLACE | DROP BRANCH | TAG` (SQ-3). */
final class SqlRefs {
  private SqlRefs() {}

  /** In Spark's grammar, ALTER TABLE is not followed by CREATE, and its only REPLACE is that of columns. */
  static boolean isAt(SqlCursor in) {
    return in.isAt("CREATE") || in.isAt("REPLACE", "BRANCH") || in.isAt("REPLACE", "TAG") || in.isAt("DROP", "BRANCH")
        || in.isAt("DROP", "TAG");
  }

  static ObjectNode parse(SqlCursor in) {
    return in.take("DROP") ? drop(in) : put(in);
  }

  private static ObjectNode drop(SqlCursor in) {
    ObjectNode statement = Json.object().put("name", "drop_ref").put("kind", kind(in));
    statement.put("if_exists", in.take("IF", "EXISTS"));
    statement.put("ref", in.name("a name"));
    in.expectEnd("");
    return statement;
  }

  private static ObjectNode put(SqlCursor in) {
    ObjectNode statement = Json.object().put("name", "put_ref");
    boolean create = in.take("CREATE");
    boolean replace = create ? in.take("OR", "REPLACE") : in.take("REPLACE");
    statement.put("create", create).put("replace", replace);
    String kind = kind(in);
    statement.put("kind", kind).put("if_not_exists", !replace && in.take("IF", "NOT", "EXISTS"));
    statement.put("ref", in.name("a name"));
    String missing = "AS OF VERSION, RETAIN";
    if (in.take("AS")) {
      in.expect("OF", "VERSION");
      statement.put("snapshot_id", in.wholeNumber("the id of a snapshot"));
      missing = "RETAIN";
    }
    if (in.take("RETAIN")) {
      statement.put("max_ref_age_ms", milliseconds(in, in.wholeNumber("a number")));
      missing = "";
    }
    if (kind.equals("branch") && in.take("WITH")) {
      in.expect("SNAPSHOT", "RETENTION");
      putSnapshotRetention(in, statement);
      missing = "";
    } else if (kind.equals("branch")) {
      missing = (missing.isEmpty() ? "" : missing + ", ") + "WITH SNAPSHOT RETENTION";
    }
    in.expectEnd(missing);
    return statement;
  }

  private static String kind(SqlCursor in) {
    if (in.take("BRANCH")) {
      return "branch";
    }
    if (in.take("TAG")) {
      return "tag";
    }
    throw in.error("BRANCH or TAG");
  }

  private static void putSnapshotRetention(SqlCursor in, ObjectNode statement) {
    long number = in.wholeNumber("a number");
    if (in.take("SNAPSHOTS")) {
      statement.put("min_snapshots_to_keep", number);
      if (in.peek().kind() != SqlCursor.Kind.NUMBER) {
        return;
      }
      number = in.wholeNumber("a number");
      statement.put("max_snapshot_age_ms", milliseconds(in, number));
    } else if (isAtUnit(in)) {
      statement.put("max_snapshot_age_ms", milliseconds(in, number));
    } else {
      throw in.error("SNAPSHOTS, DAYS, HOURS or MINUTES");
    }
  }

  private static boolean isAtUnit(SqlCursor in) {
    return in.isAt("DAYS") || in.isAt("HOURS") || in.isAt("MINUTES");
  }

  private static long milliseconds(SqlCursor in, long number) {
    if (!isAtUnit(in)) {
      throw in.error("DAYS, HOURS or MINUTES");
    }
    return TimeUnit.valueOf(in.next().text().toUpperCase(Locale.ROOT)).toMillis(number);
  }
}
