package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** Temporary views that a procedure creates in the session. Python describes them in SQL. */
final class TemporaryViews {
  private TemporaryViews() {}

  static void make(String catalog, JsonNode views) {
    for (JsonNode view : views) {
      String[] parts = Json.strings(view.get("table"));
      String table = Names.quoted(catalog) + "." + String.join(".", Arrays.stream(parts).map(Names::quoted).toList());
      Dataset<Row> rows = Sessions.active().read().options(Json.map(view.get("options"))).table(table);
      for (JsonNode step : view.get("steps")) {
        List<String> expressions = List.of(Json.strings(step));
        String first = expressions.get(0);
        String[] rest = expressions.subList(1, expressions.size()).toArray(String[]::new);
        rows = first.equals("where") ? rows.where(rest[0]) : rows.selectExpr(rest);
      }
      try {
        rows.createOrReplaceTempView(view.get("name").asText());
      } catch (Exception e) {
        throw Errors.unchecked(e);
      }
    }
  }
}
