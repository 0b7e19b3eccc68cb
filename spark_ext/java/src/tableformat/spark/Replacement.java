package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * SP-98: the options `replace-prefix` and `order-by` of a write, and which columns its rows may have.
 *
 * @param prefix leading key columns
 * @param orderBy columns that tell an older message of a prefix from a newer one
 */
record Replacement(List<String> prefix, List<String> orderBy) {
  private static final String PREFIX = "replace-prefix";
  private static final String ORDER_BY = "order-by";

  /** Null for a write that replaces no prefixes. */
  static Replacement of(CaseInsensitiveStringMap options) {
    return options.containsKey(PREFIX)
        ? new Replacement(names(options.get(PREFIX)), names(options.getOrDefault(ORDER_BY, ""))) : null;
  }

  private static List<String> names(String text) {
    return Arrays.stream(text.split(",")).map(String::strip).filter(name -> !name.isEmpty()).toList();
  }

  /**
   * The table's columns, of which only those of the prefix are required, as a marker has no others; behind them the order
   * columns that the table lacks, as the rows have them.
   */
  StructType accepted(StructType table, StructType rows) {
    List<StructField> fields = new ArrayList<>();
    for (StructField field : table.fields()) {
      boolean nullable = field.nullable() || find(prefix, field.name()) < 0;
      fields.add(new StructField(field.name(), field.dataType(), nullable, field.metadata()));
    }
    for (String name : beside(table)) {
      int at = find(List.of(rows.fieldNames()), name);
      if (at >= 0) {
        fields.add(new StructField(name, rows.apply(at).dataType(), true, rows.apply(at).metadata()));
      }
    }
    return new StructType(fields.toArray(StructField[]::new));
  }

  /** The order columns that the table lacks. */
  private List<String> beside(StructType table) {
    List<String> known = List.of(table.fieldNames());
    return orderBy.stream().filter(name -> find(known, name) < 0).toList();
  }

  /** The order columns of rows that come with these columns. */
  StructField[] order(StructType rows) {
    return orderBy.stream().map(name -> {
      int at = find(List.of(rows.fieldNames()), name);
      if (at < 0) {
        throw Errors.invalid(
            "option order-by names " + name + ", which the rows do not have: " + String.join(", ", rows.fieldNames())
                + ". Nothing was written. Name columns of the rows; those that the table lacks are taken from data frames "
                + "since Spark 4.0, in a session with the SQL extension, and from streams.");
      }
      return rows.apply(at);
    }).toArray(StructField[]::new);
  }

  /** Where the order columns are in rows as they are written: the table's columns, and behind them the others. */
  int[] orderOrdinals(StructType table) {
    List<String> known = List.of(table.fieldNames());
    List<String> beside = beside(table);
    return orderBy.stream()
        .mapToInt(name -> find(known, name) >= 0 ? find(known, name) : table.size() + beside.indexOf(name)).toArray();
  }

  private static int find(List<String> names, String name) {
    for (int i = 0; i < names.size(); i++) {
      if ((boolean) SQLConf.get().resolver().apply(names.get(i), name)) {
        return i;
      }
    }
    return -1;
  }
}
