package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructType;

/**
 * A view, independent of the version of Spark. `currentCatalog` and `currentNamespace` are those of the session that created the view; its
 * names are looked up there. `schemaMode` is null if it is not stated.
 */
record LakeView(
    String sql, String currentCatalog, String[] currentNamespace, StructType schema, String[] queryColumnNames,
    Map<String, String> sqlConfigs, String schemaMode, Map<String, String> properties) {

  /** A view of the catalog with that name, from Python's description. */
  static LakeView parse(String catalog, JsonNode json) {
    JsonNode current = json.get("catalog");
    JsonNode mode = json.get("schema_mode");
    return new LakeView(
        json.get("sql").asText(), current.isNull() ? catalog : current.asText(), Json.strings(json.get("namespace")),
        Schemas.withoutIds(Json.struct(json.get("schema"))), Json.strings(json.get("query_columns")),
        Json.map(json.get("sql_configs")), mode.isNull() ? null : mode.asText(), Json.map(json.get("properties")));
  }

  /** A copy of the view with other properties. */
  LakeView with(Map<String, String> properties) {
    return new LakeView(
        sql, currentCatalog, currentNamespace, schema, queryColumnNames, sqlConfigs, schemaMode, properties);
  }

  /** The properties that statements set and display, sorted by name. */
  Map<String, String> shownProperties() {
    Map<String, String> shown = new TreeMap<>(properties);
    shown.keySet().removeAll(Set.of("comment", "location", "provider"));
    return shown;
  }

  /** Arguments of a call that creates the view in the catalog `catalog`. A view whose current catalog is this one does not state it. */
  ObjectNode arguments(Identifier identifier, String catalog) {
    ObjectNode arguments = Json.table(identifier).put("sql", sql).put("schema_mode", schemaMode);
    arguments.put("catalog", catalog.equals(currentCatalog) ? null : currentCatalog);
    arguments.set("namespace", Json.array(currentNamespace));
    arguments.set("schema", Json.type(schema));
    arguments.set("query_columns", Json.array(queryColumnNames));
    arguments.set("sql_configs", Json.object(sqlConfigs));
    arguments.set("properties", Json.object(properties));
    return arguments.put("engine_version", org.apache.spark.package$.MODULE$.SPARK_VERSION());
  }
}
