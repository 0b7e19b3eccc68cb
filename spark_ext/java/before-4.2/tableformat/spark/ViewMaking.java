package tableformat.spark;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.command.ViewHelper$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.SchemaUtils$;
import scala.Option;
import scala.Tuple2;

/** Creates a view of a query, in the way that Spark creates views of its session catalog. */
final class ViewMaking {
  private static final String SCHEMA_MODE = "view.schemaMode";

  private ViewMaking() {}

  static void create(TableNames.Target target, CreateView statement) {
    LakeCatalog catalog = target.catalog();
    if (statement.allowExisting()
        && (catalog.view(target.identifier()) != null || catalog.tableExists(target.identifier()))) {
      return;
    }
    LogicalPlan query = analysed(target, statement.query(), statement.replace());
    StructType schema = named(target, query.schema(), Scala.list(statement.userSpecifiedColumns()));
    Map<String, String> properties = new HashMap<>(javaMap(statement.properties()));
    if (statement.comment().isDefined()) {
      properties.put("comment", statement.comment().get());
    }
    Map<String, String> described = javaMap(V1Views.described(statement, query, schema));
    LakeView view = view(statement.originalText().get(), query, schema, described, properties);
    catalog.putView(statement.replace() ? "create_or_replace_view" : "create_view", target.identifier(), view);
  }

  /** ALTER VIEW AS. The view keeps its comment and properties. */
  static void replace(TableNames.Target target, LakeView former, String text, LogicalPlan parsed) {
    LogicalPlan query = analysed(target, parsed, true);
    StructType schema = named(target, query.schema(), List.of());
    LakeView made = view(text, query, schema, Map.of(), former.properties());
    target.catalog().putView("replace_view", target.identifier(), new LakeView(
        made.sql(), made.currentCatalog(), made.currentNamespace(), schema, made.queryColumnNames(),
        former.sqlConfigs(), former.schemaMode(), former.properties()));
  }

  private static LakeView view(
      String text, LogicalPlan query, StructType schema, Map<String, String> described, Map<String, String> properties) {
    var manager = Sessions.active().sessionState().catalogManager();
    String prefix = CatalogTable$.MODULE$.VIEW_SQL_CONFIG_PREFIX();
    Map<String, String> settings = new HashMap<>();
    described.forEach((name, value) -> {
      if (name.startsWith(prefix)) {
        settings.put(name.substring(prefix.length()), value);
      }
    });
    return new LakeView(
        text, manager.currentCatalog().name(), manager.currentNamespace(), schema, query.schema().fieldNames(), settings,
        described.get(SCHEMA_MODE), properties);
  }

  private static LogicalPlan analysed(TableNames.Target target, LogicalPlan parsed, boolean mayReplace) {
    var execution = Sessions.active().sessionState().executePlan(parsed, CommandExecutionMode.SKIP());
    execution.assertAnalyzed();
    LogicalPlan query = execution.analyzed();
    TableIdentifier name = ViewReads.name(target);
    Set<String> functions = new LinkedHashSet<>();
    visit(parsed, node -> {
      if (node instanceof UnresolvedFunction function && function.nameParts().size() == 1) {
        addTemporary(function.nameParts().head(), functions);
      }
    });
    ViewHelper$.MODULE$.verifyTemporaryObjectsNotExists(
        false, name, query, Scala.seq(List.copyOf(functions)));
    if (mayReplace) {
      visit(query, node -> {
        if (node instanceof View view && view.desc().identifier().equals(name)) {
          throw Errors.recursiveView("View " + name.unquotedString() + " would refer to itself.");
        }
      });
    }
    return query;
  }

  /** The columns, with the names and comments that the statement gives them. */
  private static StructType named(
      TableNames.Target target, StructType columns, List<Tuple2<String, Option<String>>> names) {
    if (!names.isEmpty() && names.size() != columns.size()) {
      throw Errors.invalid(
          "Cannot create view " + Names.quoted(target.catalog().name(), target.identifier()) + ", the reason is "
              + (names.size() > columns.size() ? "not enough" : "too many") + " data columns: the query has "
              + columns.size() + ", and " + names.size() + " are named.");
    }
    StructField[] fields = new StructField[columns.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = columns.apply(i);
      Option<String> comment = names.isEmpty() ? field.getComment() : names.get(i)._2();
      Metadata metadata = comment.isDefined()
          ? new MetadataBuilder().putString("comment", comment.get()).build() : Metadata.empty();
      fields[i] = new StructField(
          names.isEmpty() ? field.name() : names.get(i)._1(), field.dataType(), field.nullable(), metadata);
    }
    StructType named = new StructType(fields);
    SchemaUtils$.MODULE$.checkColumnNameDuplication(
        Scala.seq(named.fieldNames()), Sessions.active().sessionState().conf().caseSensitiveAnalysis());
    return named;
  }

  private static void addTemporary(String name, Set<String> functions) {
    if (Sessions.active().sessionState().catalog().isTemporaryFunction(new FunctionIdentifier(name))) {
      functions.add(name);
    }
  }

  /** Visits every node of a plan, including its expressions, their subqueries and the plans of views. */
  private static void visit(TreeNode<?> node, Consumer<TreeNode<?>> consumer) {
    consumer.accept(node);
    if (node instanceof SubqueryExpression subquery) {
      visit((TreeNode<?>) (Object) subquery.plan(), consumer);
    }
    if (node instanceof QueryPlan<?> plan) {
      for (Expression expression : Scala.list(plan.expressions())) {
        visit(expression, consumer);
      }
    }
    for (Object child : Scala.list(node.children())) {
      visit((TreeNode<?>) child, consumer);
    }
    for (Object child : Scala.list(node.innerChildren())) {
      visit((TreeNode<?>) child, consumer);
    }
  }

  private static Map<String, String> javaMap(scala.collection.immutable.Map<String, String> entries) {
    Map<String, String> result = new HashMap<>();
    for (Tuple2<String, String> entry : Scala.list(entries.toSeq())) {
      result.put(entry._1(), entry._2());
    }
    return result;
  }
}
