package tableformat.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The write option `mergeSchema`, and Iceberg's session setting that is its default (SP-82). */
final class MergeSchemaOption {
  private static final List<String> NAMES = List.of("mergeschema", "merge-schema");

  /** Iceberg's names. The setting is not specific to a table, so it only applies if the owner of the table allows it. */
  private static final String SETTING = "spark.sql.iceberg.merge-schema";

  private static final String ACCEPTS = "write.spark.accept-any-schema";

  private MergeSchemaOption() {}

  /**
   * Whether columns are to be added to the target table of a plan. Always false for tables of other catalogs. The session's setting has no
   * effect if the rows already have the columns of the table.
   */
  static boolean asks(NamedRelation relation, Map<String, String> options, boolean rowsAreTheTables) {
    if (isTrue(options)) {
      return isOurs(relation);
    }
    if (rowsAreTheTables || !isSet(options) || !isOurs(relation)) {
      return false;
    }
    LakeTable table = table(relation);
    return table != null && accepts(table);
  }

  static boolean asks(LakeTable table, Map<String, String> options) {
    return isTrue(options) || isSet(options) && accepts(table);
  }

  private static boolean accepts(LakeTable table) {
    return "true".equalsIgnoreCase(table.properties().get(ACCEPTS));
  }

  private static boolean isTrue(Map<String, String> options) {
    return options.keySet().stream().anyMatch(name -> isName(name) && "true".equalsIgnoreCase(options.get(name)));
  }

  /** Whether the session's setting applies. An option of the write takes precedence over it. */
  private static boolean isSet(Map<String, String> options) {
    return options.keySet().stream().noneMatch(MergeSchemaOption::isName)
        && "true".equalsIgnoreCase(Sessions.active().conf().get(SETTING, "false"));
  }

  static boolean isOurs(NamedRelation relation) {
    if (relation instanceof DataSourceV2Relation resolved) {
      return resolved.table() instanceof LakeTable;
    }
    return relation instanceof UnresolvedRelation unresolved
        && TableNames.ours(Scala.list(unresolved.multipartIdentifier())) != null;
  }

  /** Our table that a plan writes to; null if it does not exist or is a metadata table. */
  static LakeTable table(NamedRelation relation) {
    if (relation instanceof DataSourceV2Relation resolved) {
      return (LakeTable) resolved.table();
    }
    TableNames.Target target = TableNames.ours(Scala.list(((UnresolvedRelation) relation).multipartIdentifier()));
    try {
      return target.catalog().loadToWrite(target.identifier()) instanceof LakeTable table ? table : null;
    } catch (NoSuchTableException e) {
      return null; // Spark raises the error.
    }
  }

  static scala.collection.immutable.Map<String, String> without(scala.collection.immutable.Map<String, String> options) {
    Map<String, String> rest = new HashMap<>(Scala.entries(options));
    rest.keySet().removeIf(MergeSchemaOption::isName);
    return Scala.map(rest);
  }

  static CaseInsensitiveStringMap without(CaseInsensitiveStringMap options) {
    Map<String, String> rest = new HashMap<>(options.asCaseSensitiveMap());
    rest.keySet().removeIf(MergeSchemaOption::isName);
    return new CaseInsensitiveStringMap(rest);
  }

  private static boolean isName(String name) {
    return NAMES.stream().anyMatch(name::equalsIgnoreCase);
  }
}
