package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.runtime.AbstractPartialFunction;

/**
 * PR-8: the text of a condition on one table, interpreted like a WHERE of the session: with its literals, casts, time zone and names.
 *
 * <p>A query with the condition is planned, but not run, over a table that records the predicates that Spark pushes to a source.
 */
final class TableCondition {
  private TableCondition() {}

  /** `[[text, predicate], ...]`, all of which must be true. Raises an error for conditions that Spark could only apply to rows. */
  static ArrayNode of(LakeCatalog catalog, Identifier identifier, String text) {
    Noted noted = new Noted(table(catalog, identifier));
    LogicalPlan relation = DataSourceV2Relation.create(noted, Option.apply(catalog), Option.apply(identifier));
    List<String> qualifier = new ArrayList<>(List.of(identifier.namespace()));
    qualifier.add(0, catalog.name());
    relation = new SubqueryAlias(new AliasIdentifier(identifier.name(), Scala.seq(qualifier)), relation);
    Expression condition = (Expression) expression(text).transformUp(new InCatalog(catalog.name()));
    Filter query = new Filter(condition, relation);
    LogicalPlan analyzed = execution(query).analyzed();
    LogicalPlan plan = execution((LogicalPlan) analyzed.transformAllExpressions(new AsCalled())).optimizedPlan();
    while (plan instanceof Project project) {
      plan = project.child();
    }
    if (plan instanceof LocalRelation) {
      return json(new AlwaysFalse());
    }
    if (!(plan instanceof DataSourceV2ScanRelation)) {
      throw Errors.invalid(
          "where: " + (plan instanceof Filter left ? left.condition().sql() : text) + " cannot be used to choose files. Compare columns "
              + "with constants by =, <=>, <>, <, <=, >, >=, IN, BETWEEN, IS NULL and LIKE 'a%', joined by AND, OR and NOT.");
    }
    return json(noted.predicates);
  }

  private static QueryExecution execution(LogicalPlan plan) {
    return Sessions.active().sessionState().executePlan(plan, CommandExecutionMode.SKIP());
  }

  private static ArrayNode json(Predicate... predicates) {
    ArrayNode result = Json.array();
    for (Predicate predicate : predicates) {
      result.addArray().add(PredicateText.of(new Predicate[] {predicate})).add(ExpressionJson.of(predicate));
    }
    return result;
  }

  private static Table table(LakeCatalog catalog, Identifier identifier) {
    try {
      return catalog.loadTable(identifier);
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }

  private static Expression expression(String text) {
    try {
      return Sessions.active().sessionState().sqlParser().parseExpression(text);
    } catch (ParseException e) {
      throw Errors.invalid("where is not a condition in Spark SQL: " + text + "\n" + e.getMessage().strip());
    }
  }

  /** Resolves `system.bucket` to the function of the procedure's catalog, even if another catalog is current. */
  private static final class InCatalog extends AbstractPartialFunction<Expression, Expression> {
    private final String catalog;

    InCatalog(String catalog) {
      this.catalog = catalog;
    }

    @Override public boolean isDefinedAt(Expression expression) {
      return expression instanceof UnresolvedFunction function && function.nameParts().size() == 2
          && function.nameParts().head().equalsIgnoreCase("system");
    }

    @Override public Expression apply(Expression expression) {
      String name = Names.quoted(catalog) + ".system." + Names.quoted(((UnresolvedFunction) expression).nameParts().last());
      String places = String.join(", ", Collections.nCopies(expression.children().size(), "NULL"));
      return (Expression) expression(name + "(" + places + ")").withNewChildren(expression.children());
    }
  }

  /** Converts a method call to a call of the catalog's function: Spark 3.5 does not push method calls to a source. */
  private static final class AsCalled extends AbstractPartialFunction<Expression, Expression> {
    @Override public boolean isDefinedAt(Expression expression) {
      return expression instanceof Invoke call && call.targetObject() instanceof Literal target
          && target.value() instanceof ScalarFunction<?>;
    }

    @Override public Expression apply(Expression expression) {
      Invoke call = (Invoke) expression;
      return new ApplyFunctionExpression((ScalarFunction<?>) ((Literal) call.targetObject()).value(), call.arguments());
    }
  }

  /** The columns of a table. Records the pushed predicates and reads nothing. */
  private static final class Noted implements SupportsRead, ScanBuilder, SupportsPushDownV2Filters, Scan {
    private final Table table;
    private Predicate[] predicates = {};

    Noted(Table table) {
      this.table = table;
    }

    @Override public String name() {
      return table.name();
    }

    @Override public StructType schema() {
      return table.schema();
    }

    @Override public Column[] columns() {
      return table.columns();
    }

    @Override public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return this;
    }

    @Override public Predicate[] pushPredicates(Predicate[] given) {
      predicates = given;
      return new Predicate[0];
    }

    @Override public Predicate[] pushedPredicates() {
      return predicates;
    }

    @Override public Scan build() {
      return this;
    }

    @Override public StructType readSchema() {
      return table.schema();
    }
  }
}
