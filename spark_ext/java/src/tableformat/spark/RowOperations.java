package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** SP-108, CF-12: what the column of operations says of each row. Travels to the executors. */
final class RowOperations implements Serializable {
  /** What an event does. */
  enum Kind {
    UPSERT, DELETE, TRUNCATE
  }

  private final String column;
  private final int ordinal;
  private final Map<UTF8String, Kind> kinds = new HashMap<>();

  /** `codes` are Python's spellings of each kind, in capitals. */
  RowOperations(String column, int ordinal, JsonNode codes) {
    this.column = column;
    this.ordinal = ordinal;
    for (Kind kind : Kind.values()) {
      for (String code : Json.strings(codes.get(kind.name().toLowerCase(java.util.Locale.ROOT)))) {
        kinds.put(UTF8String.fromString(code), kind);
      }
    }
  }

  Kind of(InternalRow row) {
    UTF8String code = row.isNullAt(ordinal) ? null : row.getUTF8String(ordinal);
    Kind kind = code == null ? null : kinds.get(code.toUpperCase());
    if (kind == null) {
      throw Errors.invalid(
          "column " + column + " contains " + (code == null ? "null" : "'" + code + "'") + ", which is not an operation. Nothing was written. "
              + "Known: " + String.join(", ", kinds.keySet().stream().map(UTF8String::toString).sorted().toList()) + ".");
    }
    return kind;
  }
}
