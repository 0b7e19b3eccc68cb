package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * SP-98, SP-106: the options `replace-prefix`, `operation`, `op-column` and `order-by` of a write, and which columns its rows may have.
 *
 * @param operation what the rows do; "replace" with `replace-prefix`
 * @param prefix leading key columns
 * @param orderBy columns that tell an older message of a prefix from a newer one
 * @param opColumn the column that says what each row does; null for other operations than "changes"
 * @param upserts the codes of rows that are added, in capitals
 */
record Replacement(String operation, List<String> prefix, List<String> orderBy, String opColumn, List<String> upserts) {
  static final String OPERATION = "operation";
  private static final String OP_COLUMN = "op-column";
  private static final String PREFIX = "replace-prefix";
  private static final String ORDER_BY = "order-by";
  private static final String DELETE = "delete";
  private static final String UPSERT = "upsert";
  private static final String CHANGES = "changes";

  /** Null for a write whose rows are only added. Python refuses options that do not go together. */
  static Replacement of(CaseInsensitiveStringMap options, LakeTable table) {
    List<String> orderBy = names(options.getOrDefault(ORDER_BY, ""));
    if (!options.containsKey(OPERATION) && !options.containsKey(OP_COLUMN)) {
      return options.containsKey(PREFIX) ? new Replacement("replace", names(options.get(PREFIX)), orderBy, null, List.of()) : null;
    }
    ObjectNode arguments = table.arguments().set("options", Json.object(options.asCaseSensitiveMap()));
    JsonNode checked = table.catalog().call("check_operation", arguments).result();
    return new Replacement(
        checked.get("operation").asText(), List.of(table.key()), orderBy, options.get(OP_COLUMN),
        List.of(Json.strings(checked.get("codes").get("upsert"))));
  }

  /** SP-111: the same with the columns that order its messages, where a table has one of its own. */
  Replacement orderedBy(String[] names) {
    return new Replacement(operation, prefix, List.of(names), opColumn, upserts);
  }

  private static List<String> names(String text) {
    return Arrays.stream(text.split(",")).map(String::strip).filter(name -> !name.isEmpty()).toList();
  }

  /**
   * The table for this write, of rows with these columns. `byName`: whether columns are found by their names.
   */
  LakeTable target(LakeTable table, StructType rows, boolean byName) {
    if (byName && (operation.equals(UPSERT) || operation.equals(CHANGES))) {
      refuseLacking(table, rows);
    }
    return table.taking(accepted(table.schema(), rows), checks(table));
  }

  /** CHECK constraints are for rows that are added. */
  private Map<String, String> checks(LakeTable table) {
    if (operation.equals(DELETE)) {
      return Map.of();
    }
    if (operation.equals(CHANGES)) {
      String isUpsert = "upper(" + Names.quoted(opColumn) + ") IN ('" + String.join("', '", upserts) + "')";
      return unless("NOT (" + isUpsert + ")", table.checks());
    }
    // CP-66: a marker is a row without a value in any key column behind the prefix.
    String isMarker = Arrays.stream(table.key()).filter(name -> find(prefix, name) < 0)
        .map(name -> Names.quoted(name) + " IS NULL").collect(Collectors.joining(" AND "));
    return isMarker.isEmpty() ? table.checks() : unless(isMarker, table.checks());
  }

  private static Map<String, String> unless(String addsNothing, Map<String, String> conditions) {
    Map<String, String> checks = new HashMap<>();
    conditions.forEach((name, condition) -> checks.put(name, "(" + addsNothing + ") OR (" + condition + ")"));
    return checks;
  }

  /** CP-27: Spark writes null for a column that the rows lack, and the stored value would be gone. */
  private void refuseLacking(LakeTable table, StructType rows) {
    List<String> given = List.of(rows.fieldNames());
    List<String> lacking = Arrays.stream(table.schema().fieldNames()).filter(name -> find(given, name) < 0).toList();
    if (!lacking.isEmpty()) {
      throw Errors.invalid(
          "operation=" + operation + ": the rows lack " + String.join(", ", lacking) + " of " + table.name() + ", but whole rows are "
              + "replaced. Nothing was written. Add these columns, with null for rows without a value. Or keep the stored values with MERGE INTO.");
    }
  }

  /**
   * The table's columns, of which only those of the prefix are required, as a marker has no others; behind them the order
   * columns that the table lacks, as the rows have them. Rows that name what is deleted may have any columns.
   */
  private StructType accepted(StructType table, StructType rows) {
    List<StructField> fields = new ArrayList<>();
    for (StructField field : operation.equals(DELETE) ? keyOf(table, rows) : table.fields()) {
      boolean nullable = field.nullable() || find(prefix, field.name()) < 0 || opColumn != null || operation.equals(DELETE);
      fields.add(new StructField(field.name(), field.dataType(), nullable, field.metadata()));
    }
    for (String name : operation.equals(DELETE) ? othersOf(rows) : beside(table)) {
      int at = find(List.of(rows.fieldNames()), name);
      if (at >= 0) {
        fields.add(new StructField(name, rows.apply(at).dataType(), true, rows.apply(at).metadata()));
      }
    }
    return new StructType(fields.toArray(StructField[]::new));
  }

  /** SP-107: the leading key columns that the rows have, as the table has them. */
  StructField[] keyOf(StructType table, StructType rows) {
    List<String> given = List.of(rows.fieldNames());
    StructField[] fields = prefix.stream().takeWhile(name -> find(given, name) >= 0).map(table::apply).toArray(StructField[]::new);
    if (fields.length == 0) {
      throw Errors.invalid(
          "operation=delete: the rows lack the column " + prefix.get(0) + ", the first of the key (" + String.join(", ", prefix)
              + "). Nothing was written. Pass all columns of the key, or the leading ones.");
    }
    return fields;
  }

  private List<String> othersOf(StructType rows) {
    List<String> key = prefix.stream().takeWhile(name -> find(List.of(rows.fieldNames()), name) >= 0).toList();
    return Arrays.stream(rows.fieldNames()).filter(name -> find(key, name) < 0).toList();
  }

  /** The columns that the rows need and that the table lacks. */
  private List<String> beside(StructType table) {
    List<String> known = List.of(table.fieldNames());
    Stream<String> needed = opColumn == null ? orderBy.stream() : Stream.concat(orderBy.stream(), Stream.of(opColumn));
    return needed.filter(name -> find(known, name) < 0).toList();
  }

  /** The order columns of rows that come with these columns. */
  StructField[] order(StructType rows) {
    return orderBy.stream().map(name -> field(rows, name, ORDER_BY)).toArray(StructField[]::new);
  }

  private static StructField field(StructType rows, String name, String option) {
    int at = find(List.of(rows.fieldNames()), name);
    if (at < 0) {
      throw Errors.invalid(
          "option " + option + " refers to " + name + ", which the rows do not have: " + String.join(", ", rows.fieldNames())
              + ". Nothing was written. Use columns of the rows. Columns that the table lacks are supported in data frames "
              + "since Spark 4.0, in a session with the SQL extension, and in streams.");
    }
    return rows.apply(at);
  }

  /** Where the order columns are in rows as they are written: the table's columns, and behind them the others. */
  int[] orderOrdinals(StructType table) {
    return orderBy.stream().mapToInt(name -> ordinal(table, name)).toArray();
  }

  /** SP-108: how tasks read the column of operations; null for another operation. */
  RowOperations operations(JsonNode codes, StructType table, StructType rows) {
    if (opColumn == null) {
      return null;
    }
    StructField field = field(rows, opColumn, OP_COLUMN);
    if (!(field.dataType() instanceof StringType)) {
      throw Errors.invalid(
          "option op-column refers to " + opColumn + ", which is " + field.dataType().sql() + ". Nothing was written. Operations must be text, "
              + "such as INSERT, UPDATE and DELETE.");
    }
    return new RowOperations(opColumn, ordinal(table, opColumn), codes);
  }

  private int ordinal(StructType table, String name) {
    int at = find(List.of(table.fieldNames()), name);
    return at >= 0 ? at : table.size() + beside(table).indexOf(name);
  }

  static int find(List<String> names, String name) {
    for (int i = 0; i < names.size(); i++) {
      if ((boolean) SQLConf.get().resolver().apply(names.get(i), name)) {
        return i;
      }
    }
    return -1;
  }
}
