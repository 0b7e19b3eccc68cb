package tableformat.suite;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.FileFormat;

/**
 * What a class is run with. Iceberg runs a test once for each of its catalogs, file formats and ways to plan, and for some of
 * their combinations; here is one catalog and one format, and tables of versions 2 and 3. Of the sets that differ in what is left, as many are kept as it
 * takes for each value of each parameter to occur, or all with `-Dsuite.sets=all`.
 */
public final class ParameterSets {
  /** Who plans and when, whether columns are read as vectors, how many files a task has open: not asked of our catalog. */
  private static final Set<String> OF_ENGINE = Set.of("planningMode", "vectorized", "fanoutEnabled", "async");

  /** Iceberg's name of the catalog that most classes are run with first. */
  private static final String CATALOG = "testhive";

  private ParameterSets() {}

  /** A place and its value. */
  private record Value(int place, Object value) {}

  /**
   * The sets to run.
   *
   * @param given as a class gives them, an Object[][] or a collection whose members are sets or single values
   * @param names of the fields that take the values, by place
   */
  public static List<Object[]> of(Object given, Map<Integer, String> names) {
    Collection<?> all = given instanceof Object[] array ? Arrays.asList(array) : (Collection<?>) given;
    List<Object[]> left = new ArrayList<>();
    Set<Set<Value>> seen = new HashSet<>();
    for (Object each : all) {
      Object[] set = asOurs(each instanceof Object[] array ? array.clone() : new Object[] {each}, names);
      if (seen.add(values(set, names))) {
        left.add(set);
      }
    }
    return "all".equals(System.getProperty("suite.sets")) ? left : covering(left, names);
  }

  private static Object[] asOurs(Object[] set, Map<Integer, String> names) {
    String catalog = namesCatalog(set) ? (String) set[0] : null;
    for (int i = 0; i < set.length; i++) {
      if (set[i] instanceof FileFormat) {
        set[i] = FileFormat.PARQUET;
      } else if (names.getOrDefault(i, "").equals("formatVersion")) {
        set[i] = Math.max(2, Math.min(3, (int) set[i]));
      } else if (names.getOrDefault(i, "").equals("isHadoopCatalog")) {
        set[i] = false;
      } else if (i > 2 && catalog != null && set[i] instanceof String text) {
        boolean isUnnamed = catalog.equals("spark_catalog") && names.getOrDefault(i, "").toLowerCase(Locale.ROOT).matches(".*(name|namespace)");
        set[i] = isUnnamed ? CATALOG + "." + text : text.replaceFirst("^" + catalog + "\\.", CATALOG + ".");
      }
    }
    if (catalog != null) {
      set[0] = CATALOG;
    }
    return set;
  }

  /** Name, class and options of a catalog come first. */
  private static boolean namesCatalog(Object[] set) {
    return set.length >= 3 && set[0] instanceof String && set[1] instanceof String && set[2] instanceof Map;
  }

  /** What tells a set from others. */
  private static Set<Value> values(Object[] set, Map<Integer, String> names) {
    Set<Value> values = new HashSet<>();
    for (int i = namesCatalog(set) ? 3 : 0; i < set.length; i++) {
      if (!OF_ENGINE.contains(names.getOrDefault(i, ""))) {
        values.add(new Value(i, set[i]));
      }
    }
    return values;
  }

  private static List<Object[]> covering(List<Object[]> sets, Map<Integer, String> names) {
    List<Object[]> kept = new ArrayList<>();
    Set<Value> covered = new HashSet<>();
    Comparator<Object[]> byNewValues =
        Comparator.comparingLong(set -> values(set, names).stream().filter(value -> !covered.contains(value)).count());
    while (kept.isEmpty() || !sets.stream().allMatch(set -> covered.containsAll(values(set, names)))) {
      // The first of those with the most.
      Object[] next = sets.stream().reduce((a, b) -> byNewValues.compare(b, a) > 0 ? b : a).orElseThrow();
      kept.add(next);
      covered.addAll(values(next, names));
    }
    return kept;
  }
}
