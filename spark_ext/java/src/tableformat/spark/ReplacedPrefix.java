package tableformat.spark;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The columns of INSERT INTO ... REPLACE USING and REPLACE ON as the option `replace-prefix` (SQ-31). */
final class ReplacedPrefix {
  static final String OPTION = "replace-prefix";

  private ReplacedPrefix() {}

  /** The options of a relation with that one. */
  static CaseInsensitiveStringMap added(CaseInsensitiveStringMap options, LakeTable table, List<String> columns) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.put(OPTION, of(table, columns));
    return new CaseInsensitiveStringMap(all);
  }

  /** The value of the option. The columns are the first ones of the key, in any order. */
  static String of(LakeTable table, List<String> columns) {
    List<String> key = List.of(table.key());
    TreeSet<String> given = names(columns);
    List<String> first = key.subList(0, Math.min(given.size(), key.size()));
    if (!names(first).equals(given)) {
      throw Errors.unsupported(
          "INSERT INTO " + table.name() + " REPLACE by the columns (" + String.join(", ", columns) + "): rows are replaced by the first "
              + "columns of the key, which is (" + String.join(", ", key) + "). For other columns use MERGE INTO, or DELETE FROM "
              + table.name() + " WHERE ... IN (SELECT ...) and INSERT INTO.");
    }
    return String.join(",", first);
  }

  private static TreeSet<String> names(List<String> columns) {
    TreeSet<String> names = new TreeSet<>(
        SQLConf.get().caseSensitiveAnalysis() ? Comparator.<String>naturalOrder() : String.CASE_INSENSITIVE_ORDER);
    names.addAll(columns);
    return names;
  }
}
