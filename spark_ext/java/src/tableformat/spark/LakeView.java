package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructType;

/**
 * A view as every version of Spark says it. `currentCatalog` and `currentNamespace` are those of the session that made it,
 * in which its names are looked up; `schemaMode` is null where nothing is said.
 */
record LakeView(
    String sql, String currentCatalog, String[] currentNamespace, StructType schema, String[] queryColumnNames,
    Map<String, String> sqlConfigs, String schemaMode, Map<String, String> properties) {

  /** A view of the catalog of that name, as Python describes it. */
  static LakeView parse(String catalog, JsonNode json) {
    JsonNode current = json.get("catalog");
    JsonNode mode = json.get("schema_mode");
    return new LakeView(
        json.get("sql").asText(), current.isNull() ? catalog : current.asText(), Json.strings(json.get("namespace")),
        Schemas.withoutIds(Json.struct(json.get("schema"))), Json.strings(json.get("query_columns")),
        Json.map(json.get("sql_configs")), mode.isNull() ? null : mode.asText(), Json.map(json.get("properties")));
  }

  /** The same view with other properties. */
  LakeView with(Map<String, String> properties) {
    return new LakeView(
        sql, currentCatalog, currentNamespace, schema, queryColumnNames, sqlConfigs, schemaMode, properties);
  }

  /** The properties that statements set and show, in the order of their names. */
  Map<String, String> shownProperties() {
    Map<String, String> shown = new TreeMap<>(properties);
    shown.keySet().removeAll(Set.of("comment", "location", "provider"));
    return shown;
  }

  /** Arguments of a call that makes the view in the catalog of that name, which is not said in a view of its own. */
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
