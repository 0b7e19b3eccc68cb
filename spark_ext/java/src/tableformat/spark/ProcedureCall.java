package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Executes CALL once its arguments are known. */
final class ProcedureCall {
  private ProcedureCall() {}

  /** The description of a procedure: its parameters and columns. If it does not exist, the error names the most similar one. */
  static JsonNode describe(LakeCatalog catalog, Identifier name) {
    return catalog.call("load_procedure", Json.object().set("procedure", Json.identifier(name))).result();
  }

  /**
   * Runs the procedure in the catalog's Python process, which also answers all other calls about tables, and not on executors.
   *
   * @param description Python's description of the procedure
   * @param types the types of the parameters, in order
   * @param row the arguments, null for parameters that CALL omits
   */
  static ArrowRows.Rows run(LakeCatalog catalog, JsonNode description, DataType[] types, InternalRow row) {
    ObjectNode values = Json.object();
    List<byte[]> parts = new ArrayList<>();
    Identifier table = null;
    for (int i = 0; i < types.length; i++) {
      JsonNode parameter = description.get("parameters").get(i);
      String name = parameter.get("name").asText();
      Object value = Constants.value(row, i, types[i]);
      String role = parameter.get("role").asText();
      String text = value == null ? "" : value.toString();
      switch (value == null && !role.equals("table") ? "value" : role) {
        case "table" -> table = TableNames.parse(catalog.name(), text);
        case "other_table" -> values.set(name, Json.table(TableNames.parse(catalog.name(), text)));
        case "name" -> values.set(name, Json.object().set("name", Json.identifier(TableNames.parse(catalog.name(), text))));
        case "condition" -> values.set(name, Json.object().set("condition", TableCondition.of(catalog, table, text)));
        case "file_list" -> values.set(name, Json.object().set("file_list", FileLists.of(text)));
        case "rows" -> {
          values.set(name, Json.object().put("rows", parts.size()));
          parts.add(SourceRows.ofPrefixes(catalog, table, text));
        }
        case "ranges" -> {
          values.set(name, Json.object().put("rows", parts.size()));
          parts.add(SourceRows.ofRanges(catalog, text));
        }
        case "source" -> values.set(name, Json.object().set("source", SourceTables.of(text)));
        default -> values.set(name, ValueJson.of(value, types[i]));
      }
    }
    ObjectNode arguments = Json.object().put("procedure", description.get("name").asText()).set("arguments", values);
    // Iceberg's procedures read the same setting.
    arguments.put("is_in_test", Boolean.parseBoolean(Sessions.active().conf().get("spark.testing", "false")));
    if (table != null) {
      arguments.set("table", Json.identifier(table));
    }
    Sidecar.Answer answer;
    try {
      answer = catalog.callOnce("call_procedure", arguments, parts.toArray(byte[][]::new));
    } finally {
      // Also after a failure, because some jobs commit more than once.
      if (table != null && description.get("changes_table").asBoolean()) {
        TableNames.refreshCached(catalog, table);
      }
    }
    TemporaryViews.make(catalog.name(), answer.result().get("views"));
    StructType schema = Json.struct(answer.result().get("columns"));
    return new ArrowRows.Rows(schema, ArrowRows.read(answer.parts()[0], schema));
  }
}
