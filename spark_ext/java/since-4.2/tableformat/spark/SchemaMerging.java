package tableformat.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * SP-82: the option `mergeSchema` of a data frame's write is its `withSchemaEvolution()`, which PySpark's writers lack.
 *
 * <p>Spark holds a write's columns against the table's in the batch of rules after that of hints.
 */
final class SchemaMerging {
  private static final List<String> NAMES = List.of("mergeschema", "merge-schema");

  private SchemaMerging() {}

  static void heed(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new Heed());
  }

  private static final class Heed extends Rule<LogicalPlan> {
    @Override public LogicalPlan apply(LogicalPlan plan) {
      if (plan instanceof AppendData write && isAsked(write.table(), write.writeOptions())) {
        return write.copy(
            without(write.table()), write.query(), without(write.writeOptions()), write.isByName(), true, write.write(),
            write.analyzedQuery());
      }
      if (plan instanceof OverwriteByExpression write && isAsked(write.table(), write.writeOptions())) {
        return write.copy(
            without(write.table()), write.deleteExpr(), write.query(), without(write.writeOptions()), write.isByName(), true,
            write.write(), write.analyzedQuery());
      }
      if (plan instanceof OverwritePartitionsDynamic write && isAsked(write.table(), write.writeOptions())) {
        return write.copy(
            without(write.table()), write.query(), without(write.writeOptions()), write.isByName(), true, write.write());
      }
      return plan;
    }

    private static boolean isAsked(NamedRelation table, scala.collection.immutable.Map<String, String> options) {
      Map<String, String> given = Scala.entries(options);
      return given.keySet().stream().anyMatch(name -> isMergeSchema(name) && "true".equalsIgnoreCase(given.get(name)))
          && isOurs(table);
    }

    private static scala.collection.immutable.Map<String, String> without(
        scala.collection.immutable.Map<String, String> options) {
      scala.collection.immutable.Map<String, String> rest = options;
      for (String name : Scala.entries(options).keySet()) {
        rest = isMergeSchema(name) ? rest.removed(name) : rest;
      }
      return rest;
    }

    /** The relation has the options too, and Spark wants both to be the same. */
    private static NamedRelation without(NamedRelation table) {
      LogicalPlan relation = (LogicalPlan) table;
      Object[] parts = new Object[relation.productArity()];
      for (int i = 0; i < parts.length; i++) {
        Object part = relation.productElement(i);
        parts[i] = part instanceof CaseInsensitiveStringMap options ? without(options) : part;
      }
      return (NamedRelation) relation.makeCopy(parts);
    }

    private static CaseInsensitiveStringMap without(CaseInsensitiveStringMap options) {
      Map<String, String> rest = new HashMap<>(options.asCaseSensitiveMap());
      rest.keySet().removeIf(Heed::isMergeSchema);
      return new CaseInsensitiveStringMap(rest);
    }

    private static boolean isMergeSchema(String name) {
      return NAMES.stream().anyMatch(name::equalsIgnoreCase);
    }

    private static boolean isOurs(NamedRelation table) {
      if (table instanceof DataSourceV2Relation relation) {
        return relation.table() instanceof LakeTable;
      }
      return table instanceof UnresolvedRelation unresolved
          && TableNames.ours(Scala.list(unresolved.multipartIdentifier())) != null;
    }
  }
}
