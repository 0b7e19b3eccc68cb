package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function0;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * Resolves names of views in our catalogs, in the way that Spark reads views of its session catalog. Tables of the same name come first.
 */
final class ViewReads extends Rule<LogicalPlan> {
  private static final String SCHEMA_MODE = "view.schemaMode";

  @Override public LogicalPlan apply(LogicalPlan plan) {
    return (LogicalPlan) plan.resolveOperators(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
      @Override public boolean isDefinedAt(LogicalPlan node) {
        return node instanceof UnresolvedRelation || written(node) != null;
      }

      @Override public LogicalPlan apply(LogicalPlan node) {
        if (node instanceof UnresolvedRelation relation) {
          return read(relation);
        }
        refuseView(written(node));
        return node;
      }
    });
  }

  /** The target of a DELETE, UPDATE or MERGE, by its name; null for any other plan. */
  private static UnresolvedRelation written(LogicalPlan plan) {
    LogicalPlan target = plan instanceof DeleteFromTable delete ? delete.table()
        : plan instanceof UpdateTable update ? update.table()
        : plan instanceof MergeIntoTable merge ? merge.targetTable() : null;
    while (target instanceof SubqueryAlias alias) {
      target = alias.child();
    }
    return target instanceof UnresolvedRelation relation ? relation : null;
  }

  /** SQ-28: raises an error if the target is a view. Otherwise Spark would resolve the view and write to the underlying table. */
  private static void refuseView(UnresolvedRelation relation) {
    TableNames.Target target = target(relation);
    if (target != null && target.catalog().view(target.identifier()) != null) {
      throw Errors.unsupported(
          Names.quoted(target.catalog().name(), target.identifier())
              + " is a view, whose rows cannot be changed. Nothing was changed. Change the table that the view reads.");
    }
  }

  /** Names inside a view are looked up in the catalog and namespace in which the view was created. They never refer to temporary views. */
  private static TableNames.Target target(UnresolvedRelation relation) {
    List<String> parts = Scala.list(relation.multipartIdentifier());
    List<String> place = Scala.list(AnalysisContext$.MODULE$.get().catalogAndNamespace());
    if (place.isEmpty()) {
      return isTemporary(parts) ? null : TableNames.ours(parts);
    }
    List<String> full = new ArrayList<>();
    if (parts.size() == 1) {
      full.addAll(place);
    } else if (!Sessions.active().sessionState().catalogManager().isCatalogRegistered(parts.get(0))) {
      full.add(place.get(0));
    }
    full.addAll(parts);
    return TableNames.ours(full);
  }

  private static LogicalPlan read(UnresolvedRelation relation) {
    TableNames.Target target = relation.isStreaming() ? null : target(relation);
    LakeView view = target == null ? null : target.catalog().view(target.identifier());
    if (view == null) {
      return relation;
    }
    var table = V1Views.table(name(target), view.schema(), view.sql(), described(view));
    LogicalPlan read = Sessions.active().sessionState().catalog().getRelation(table, CaseInsensitiveStringMap.empty());
    LogicalPlan inside = read instanceof SubqueryAlias alias ? alias.child() : read;
    return SubqueryAlias$.MODULE$.apply(relation.multipartIdentifier(), resolved((View) inside));
  }

  /** SQ-26: resolves names in the catalog and namespace, and with the settings, in which the view was created. */
  private static LogicalPlan resolved(View view) {
    var state = Sessions.active().sessionState();
    if (AnalysisContext$.MODULE$.get().nestedViewDepth() >= state.conf().maxNestedViewDepth()) {
      throw Errors.invalid(
          "View " + view.desc().identifier().unquotedString() + " refers to itself, or is nested deeper than "
              + "spark.sql.view.maxNestedViewDepth allows.");
    }
    Analyzer analyzer = state.analyzer();
    Function0<LogicalPlan> analysis =
        () -> analyzer.org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext(view.child());
    Function0<LogicalPlan> underSettings = () -> SQLConf$.MODULE$.withExistingConf(V1Views.settings(view), analysis);
    LogicalPlan query = AnalysisContext$.MODULE$.withAnalysisContext(view.desc(), underSettings);
    analyzer.checkAnalysis(query);
    return (LogicalPlan) view.withNewChildren(Scala.seq(query));
  }

  /** Whether the session has a temporary view of that name, which takes precedence. */
  static boolean isTemporary(List<String> parts) {
    return Sessions.active().sessionState().catalog().isTempView(Scala.seq(parts));
  }

  /** The identifier by which Spark detects a view that refers to itself. */
  static TableIdentifier name(TableNames.Target target) {
    return new TableIdentifier(
        target.identifier().name(), Option.apply(String.join(".", target.identifier().namespace())),
        Option.apply(target.catalog().name()));
  }

  private static Map<String, String> described(LakeView view) {
    CatalogTable$ names = CatalogTable$.MODULE$;
    Map<String, String> properties = new HashMap<>();
    List<String> place = new ArrayList<>(List.of(view.currentCatalog()));
    place.addAll(Arrays.asList(view.currentNamespace()));
    properties.put(names.VIEW_CATALOG_AND_NAMESPACE(), Integer.toString(place.size()));
    for (int i = 0; i < place.size(); i++) {
      properties.put(names.VIEW_CATALOG_AND_NAMESPACE_PART_PREFIX() + i, place.get(i));
    }
    view.sqlConfigs().forEach((name, value) -> properties.put(names.VIEW_SQL_CONFIG_PREFIX() + name, value));
    String[] columns = view.queryColumnNames();
    if (columns.length > 0) {
      properties.put(names.VIEW_QUERY_OUTPUT_NUM_COLUMNS(), Integer.toString(columns.length));
    }
    for (int i = 0; i < columns.length; i++) {
      properties.put(names.VIEW_QUERY_OUTPUT_COLUMN_NAME_PREFIX() + i, columns[i]);
    }
    if (view.schemaMode() != null) {
      properties.put(SCHEMA_MODE, view.schemaMode());
    }
    return properties;
  }
}
