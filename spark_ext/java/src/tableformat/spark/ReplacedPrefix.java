package tableformat.spark;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Converts the columns of INSERT INTO ... REPLACE USING and REPLACE ON to an option of the write: `replace-prefix` if they are the first
 * columns of the key (SQ-31), else `replace-equal` (SQ-34).
 */
final class ReplacedPrefix {
  static final String OPTION = "replace-prefix";
  static final String EQUAL = "replace-equal";

  private ReplacedPrefix() {}

  /** The options of a relation with this option added. */
  static CaseInsensitiveStringMap added(CaseInsensitiveStringMap options, LakeTable table, List<String> columns) {
    Map<String, String> all = new HashMap<>(options.asCaseSensitiveMap());
    all.putAll(of(table, columns));
    return new CaseInsensitiveStringMap(all);
  }

  /** The option and its value. Columns can be in any order. */
  static Map<String, String> of(LakeTable table, List<String> columns) {
    List<String> key = List.of(table.key());
    TreeSet<String> given = names(columns);
    List<String> first = key.subList(0, Math.min(given.size(), key.size()));
    if (!key.isEmpty() && names(first).equals(given)) {
      return Map.of(OPTION, String.join(",", first));
    }
    TreeSet<String> known = names(Arrays.asList(table.schema().fieldNames()));
    for (String column : given) {
      if (!known.contains(column)) {
        throw Errors.invalid(
            "INSERT INTO " + table.name() + " REPLACE by the columns (" + String.join(", ", columns) + "): the table has no column "
                + column + ". Its columns: (" + String.join(", ", known) + "). Nothing was written.");
      }
    }
    return Map.of(EQUAL, String.join(",", given.stream().map(known::floor).toList()));
  }

  private static TreeSet<String> names(List<String> columns) {
    TreeSet<String> names = new TreeSet<>(
        SQLConf.get().caseSensitiveAnalysis() ? Comparator.<String>naturalOrder() : String.CASE_INSENSITIVE_ORDER);
    names.addAll(columns);
    return names;
  }
}
