package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Arrays;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Reads a view of the session that lists files: all paths, and the time each was written, in milliseconds since 1970. */
final class FileLists {
  private static final String PATH = "file_path";
  private static final String MODIFIED = "last_modified";

  private FileLists() {}

  static ArrayNode of(String view) {
    Dataset<Row> files = Sessions.active().table(view);
    check(view, files.schema(), PATH, DataTypes.StringType);
    check(view, files.schema(), MODIFIED, DataTypes.TimestampType);
    ArrayNode paths = Json.array();
    ArrayNode moments = Json.array();
    String known = PATH + " IS NOT NULL AND " + MODIFIED + " IS NOT NULL";
    for (Row row : files.where(known).selectExpr(PATH, "unix_millis(" + MODIFIED + ")").collectAsList()) {
      paths.add(row.getString(0));
      moments.add(row.getLong(1));
    }
    return Json.array().add(paths).add(moments);
  }

  private static void check(String view, StructType schema, String column, DataType type) {
    if (!Arrays.asList(schema.fieldNames()).contains(column)) {
      throw Errors.invalid(view + " is not a list of files: it has no column " + column + ".");
    }
    if (!schema.apply(column).dataType().equals(type)) {
      throw Errors.invalid(
          view + " is not a list of files: its column " + column + " must be " + type.simpleString() + ", not "
              + schema.apply(column).dataType().simpleString() + ".");
    }
  }
}
