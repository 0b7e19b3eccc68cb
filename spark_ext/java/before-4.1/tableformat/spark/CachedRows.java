package tableformat.spark;

import java.util.List;
import java.util.stream.Collectors;

/** Rows of tables that Spark has cached. */
final class CachedRows {
  private CachedRows() {}

  static void refresh(List<String> tableName) {
    Sessions.active().catalog().refreshTable(
        tableName.stream().map(part -> "`" + part.replace("`", "``") + "`").collect(Collectors.joining(".")));
  }
}
