package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Statements for views of catalogs. This version of Spark parses them but executes them only for its session catalog. */
final class ViewStatements {
  private static final StructType NO_ROWS = new StructType();
  /** Properties that are set by the catalog, not by statements. */
  private static final Set<String> RESERVED =
      Set.of("provider", "location", "format-version", "spark.query-column-names");

  /** Properties that SHOW TBLPROPERTIES displays in addition to those that statements set. */
  private static final List<String> STATED = List.of("location", "provider");

  private static final StructType DESCRIBED = texts("col_name", "data_type", "comment");

  private ViewStatements() {}

  static void readViews(SparkSessionExtensions extensions) {
    extensions.injectResolutionRule(session -> new ViewReads());
  }

  /** Null for any other statement, and for views of other catalogs. */
  static LogicalPlan parse(String text, ParserInterface spark) throws ParseException {
    SqlCursor in = new SqlCursor(text);
    if (in.take("CREATE", "VIEW") || in.take("CREATE", "OR", "REPLACE", "VIEW")) {
      in.take("IF", "NOT", "EXISTS");
      // CREATE VIEW does not look at temporary views, even if one has the same name.
      TableNames.Target view = in.isAtName() ? TableNames.ours(in.names("a view")) : null;
      return view != null && spark.parsePlan(text) instanceof CreateView statement
          ? command(text, NO_ROWS, () -> ViewMaking.create(view, statement)) : null;
    }
    if (in.take("ALTER", "VIEW")) {
      return alter(in, target(in), spark);
    }
    if (in.take("DROP", "VIEW")) {
      return drop(in);
    }
    if (in.take("SHOW", "VIEWS")) {
      return show(in, spark);
    }
    if (in.take("SHOW", "CREATE", "TABLE")) {
      return told(in, texts("createtab_stmt"), ViewStatements::statement);
    }
    if (in.take("SHOW", "TBLPROPERTIES")) {
      return properties(in, target(in), spark);
    }
    if (in.take("DESCRIBE") || in.take("DESC")) {
      in.take("TABLE");
      boolean isExtended = in.take("EXTENDED") || in.take("FORMATTED");
      return told(in, DESCRIBED, view -> described(view, isExtended));
    }
    return null;
  }

  private static LogicalPlan alter(SqlCursor in, TableNames.Target view, ParserInterface spark) throws ParseException {
    if (view == null) {
      return null;
    }
    if (in.take("AS")) {
      String query = in.text().substring(in.peek().start());
      LogicalPlan parsed = spark.parsePlan(query);
      return command(in.text(), NO_ROWS, () -> ViewMaking.replace(view, existing(view), query, parsed));
    }
    if (in.take("RENAME", "TO")) {
      List<String> to = in.names("a name");
      in.expectEnd("");
      TableNames.Target target = TableNames.ours(to);
      Identifier name = target != null ? target.identifier()
          : Identifier.of(to.subList(0, to.size() - 1).toArray(String[]::new), to.get(to.size() - 1));
      return command(in.text(), NO_ROWS, () -> view.catalog().moveView(view.identifier(), name));
    }
    if (in.take("SET", "TBLPROPERTIES")) {
      Map<String, String> set = SqlProperties.parse(in, spark);
      return command(in.text(), NO_ROWS, () -> changed(view, set, List.of(), true));
    }
    if (in.take("UNSET", "TBLPROPERTIES")) {
      boolean ifExists = in.take("IF", "EXISTS");
      List<String> names = SqlProperties.names(in, spark);
      return command(in.text(), NO_ROWS, () -> changed(view, Map.of(), names, ifExists));
    }
    return null;
  }

  private static void changed(
      TableNames.Target target, Map<String, String> set, List<String> unset, boolean ifExists) {
    LakeView view = existing(target);
    Map<String, String> properties = new HashMap<>(view.properties());
    properties.putAll(set);
    for (String name : unset) {
      if (RESERVED.contains(name) && (ifExists || properties.containsKey(name))) {
        throw Errors.invalid("Cannot unset reserved property: '" + name + "'");
      }
      if (properties.remove(name) == null && !ifExists) {
        throw Errors.invalid("Cannot remove property that is not set: '" + name + "'");
      }
    }
    target.catalog().putView("replace_view", target.identifier(), view.with(properties));
  }

  private static LogicalPlan drop(SqlCursor in) {
    boolean ifExists = in.take("IF", "EXISTS");
    TableNames.Target view = target(in);
    if (view == null) {
      return null;
    }
    in.expectEnd("");
    return command(in.text(), NO_ROWS, () -> {
      if (!view.catalog().deleteView(view.identifier()) && !ifExists) {
        throw Errors.unchecked(new NoSuchViewException(view.identifier()));
      }
    });
  }

  private static LogicalPlan show(SqlCursor in, ParserInterface spark) {
    var manager = Sessions.active().sessionState().catalogManager();
    List<String> parts = in.take("IN") || in.take("FROM") ? in.names("a namespace") : null;
    boolean namesCatalog = parts != null && manager.isCatalogRegistered(parts.get(0));
    var catalog = namesCatalog ? manager.catalog(parts.get(0)) : manager.currentCatalog();
    if (!(catalog instanceof LakeCatalog lake)) {
      return null;
    }
    String[] namespace = parts == null ? manager.currentNamespace()
        : parts.subList(namesCatalog ? 1 : 0, parts.size()).toArray(String[]::new);
    in.take("LIKE");
    String pattern = in.peek().kind() == SqlCursor.Kind.TEXT ? in.text("a pattern", spark) : "*";
    in.expectEnd("LIKE");
    StructType columns = texts("namespace", "viewName").add("isTemporary", DataTypes.BooleanType);
    return new LakeCommand(in.text(), columns, () -> {
      ArrayNode rows = Json.array();
      String database = String.join(".", namespace);
      boolean areTemporary = database.equals(Sessions.active().conf().get("spark.sql.globalTempDatabase", "global_temp"));
      for (Identifier view : areTemporary ? new Identifier[0] : names(lake, namespace)) {
        if (!StringUtils.filterPattern(Scala.seq(view.name()), pattern).isEmpty()) {
          rows.add(Json.array(database, view.name()).add(false));
        }
      }
      var session = Sessions.active().sessionState().catalog();
      var temporary = areTemporary ? session.listViews(database, pattern) : session.listLocalTempViews(pattern);
      for (TableIdentifier view : Scala.list(temporary)) {
        rows.add(Json.array(view.database().getOrElse(() -> ""), view.table()).add(true));
      }
      return rows;
    });
  }

  private static Identifier[] names(LakeCatalog catalog, String[] namespace) {
    try {
      return catalog.namesOfViews(namespace);
    } catch (NoSuchNamespaceException e) {
      throw Errors.unchecked(e);
    }
  }

  /** A statement that displays information about a view; null if the name belongs to a table. */
  private static LogicalPlan told(
      SqlCursor in, StructType columns, Function<TableNames.Target, ArrayNode> answer) {
    TableNames.Target view = target(in);
    if (view == null || !isAtEnd(in) || view.catalog().view(view.identifier()) == null) {
      return null;
    }
    return new LakeCommand(in.text(), columns, () -> answer.apply(view));
  }

  private static ArrayNode described(TableNames.Target target, boolean isExtended) {
    LakeView view = existing(target);
    ArrayNode rows = Json.array();
    for (StructField field : view.schema().fields()) {
      rows.add(Json.array(field.name(), field.dataType().simpleString(), field.getComment().getOrElse(() -> "")));
    }
    if (isExtended) {
      rows.add(Json.array("", "", "")).add(Json.array("# Detailed View Information", "", ""));
      rows.add(Json.array("Comment", view.properties().getOrDefault("comment", ""), ""));
      rows.add(Json.array("View Text", view.sql(), ""));
      rows.add(Json.array("View Current Catalog", view.currentCatalog(), ""));
      rows.add(Json.array("View Current Namespace", String.join(".", view.currentNamespace()), ""));
      rows.add(Json.array("View Query Output Columns", "[" + String.join(", ", view.queryColumnNames()) + "]", ""));
      rows.add(Json.array("View Properties", view.shownProperties().toString(), ""));
    }
    return rows;
  }

  private static boolean isAtEnd(SqlCursor in) {
    return in.peek().kind() == SqlCursor.Kind.END || in.peek().isSign(";");
  }

  private static LogicalPlan properties(SqlCursor in, TableNames.Target target, ParserInterface spark) {
    if (target == null || target.catalog().view(target.identifier()) == null) {
      return null;
    }
    List<String> asked = isAtEnd(in) ? null : SqlProperties.names(in, spark);
    return new LakeCommand(in.text(), texts("key", "value"), () -> {
      LakeView stored = existing(target);
      Map<String, String> shown = new TreeMap<>(stored.shownProperties());
      STATED.forEach(name -> shown.put(name, stored.properties().get(name)));
      String view = target.catalog().name() + "." + target.identifier();
      ArrayNode rows = Json.array();
      for (String name : asked == null ? shown.keySet() : asked) {
        rows.add(Json.array(name, shown.getOrDefault(name, "View " + view + " does not have property: " + name)));
      }
      return rows;
    });
  }

  private static ArrayNode statement(TableNames.Target target) {
    LakeView view = existing(target);
    StringBuilder text = new StringBuilder("CREATE VIEW ")
        .append(Names.quoted(target.catalog().name(), target.identifier())).append(" (\n  ");
    List<String> columns = new ArrayList<>();
    for (StructField field : view.schema().fields()) {
      String comment = field.getComment().isDefined() ? " COMMENT " + literal(field.getComment().get()) : "";
      columns.add(Names.quoted(field.name()) + comment);
    }
    text.append(String.join(",\n  ", columns)).append(")\n");
    if (view.properties().containsKey("comment")) {
      text.append("COMMENT ").append(literal(view.properties().get("comment"))).append('\n');
    }
    List<String> shown = new ArrayList<>();
    view.shownProperties().forEach((name, value) -> shown.add(literal(name) + " = " + literal(value)));
    if (!shown.isEmpty()) {
      text.append("TBLPROPERTIES (\n  ").append(String.join(",\n  ", shown)).append(")\n");
    }
    return Json.array().add(Json.array(text.append("AS ").append(view.sql()).append('\n').toString()));
  }

  private static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  static LakeView existing(TableNames.Target target) {
    LakeView view = target.catalog().view(target.identifier());
    if (view == null) {
      throw Errors.unchecked(new NoSuchViewException(target.identifier()));
    }
    return view;
  }

  /** Null if the name does not belong to one of our catalogs, or if it is a temporary view. */
  private static TableNames.Target target(SqlCursor in) {
    if (!in.isAtName()) {
      return null;
    }
    List<String> parts = in.names("a view");
    return ViewReads.isTemporary(parts) ? null : TableNames.ours(parts);
  }

  private static LogicalPlan command(String text, StructType columns, Runnable action) {
    Supplier<JsonNode> run = () -> {
      action.run();
      return Json.array();
    };
    return new LakeCommand(text, columns, run);
  }

  private static StructType texts(String... names) {
    StructType columns = new StructType();
    for (String name : names) {
      columns = columns.add(name, DataTypes.StringType);
    }
    return columns;
  }
}
