package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * `spark.sql.catalog.NAME = tableformat.spark.LakeCatalog`. All calls about tables are answered by the Python process.
 *
 * <p>Options: `python` is the interpreter. `default-namespace` is the namespace after USE, in which names without a namespace are looked up
 * (SP-54). All other options are passed to Python.
 */
public final class LakeCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, TableMaking, Procedures, Transactions,
        Changelogs, StateOptions, TableSummaries, Views {
  /** SP-59: this catalog does not replace Spark's session catalog. */
  private static final String SESSION_CATALOG = "spark_catalog";

  private static final String PYTHON = "python";
  private static final String DEFAULT_NAMESPACE = "default-namespace";
  private static final String NULLABLE_QUERY_SCHEMA = "use-nullable-query-schema";

  private String name;
  private String[] defaultNamespace = {};
  private boolean isNullableQuerySchema = true;
  private Sidecar sidecar;

  /** The statement that this catalog belongs to; null in the catalog of a session. */
  private Statement statement;

  @Override public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    SparkOfJar.check();
    if (name.equals(SESSION_CATALOG)) {
      throw Errors.unsupported(
          "spark.sql.catalog.spark_catalog: a catalog of tableformat cannot replace Spark's session catalog, because it would "
              + "hide the tables of that catalog. Use another name, such as spark.sql.catalog.lake, and set "
              + "spark.sql.defaultCatalog to that name. Names without a catalog then refer to its tables, and spark_catalog.db.t "
              + "still refers to the session catalog.");
    }
    ObjectNode passed = Json.object();
    options.asCaseSensitiveMap().forEach((option, value) -> {
      if (!option.equals(PYTHON) && !option.equals(DEFAULT_NAMESPACE) && !option.equals(NULLABLE_QUERY_SCHEMA)) {
        passed.put(option, value);
      }
    });
    if (options.containsKey(DEFAULT_NAMESPACE)) {
      defaultNamespace = options.get(DEFAULT_NAMESPACE).split("\\.");
    }
    isNullableQuerySchema = options.getBoolean(NULLABLE_QUERY_SCHEMA, true);
    List<String> command = new ArrayList<>();
    command.add(options.getOrDefault(PYTHON, System.getenv().getOrDefault("PYSPARK_PYTHON", "python3")));
    command.addAll(List.of("-m", "spark_ext.sidecar"));
    ObjectNode start = Json.object().put("name", name).set("options", passed);
    if (Sessions.found().isDefined()) {
      start.put("master", Sessions.active().sparkContext().master());
    }
    sidecar = Sidecar.shared(command, start.set("environment", Json.object(Applications.environment())));
    SourceKeyPruning.addToActiveSession();
    if (Sessions.found().isDefined()) {
      SubmittedJars.sendToExecutors(Sessions.active().sparkContext());
    }
  }

  @Override public String name() {
    return name;
  }

  /** Whether the columns of CREATE TABLE AS SELECT are nullable even if those of the query are not; an option of Iceberg. */
  @Override public boolean useNullableQuerySchema() {
    return isNullableQuerySchema;
  }

  @Override public String[] defaultNamespace() {
    return defaultNamespace.clone();
  }

  /** A copy of this catalog for one statement. */
  LakeCatalog within(Statement statement) {
    LakeCatalog catalog = new LakeCatalog();
    catalog.name = name;
    catalog.defaultNamespace = defaultNamespace;
    catalog.isNullableQuerySchema = isNullableQuerySchema;
    catalog.sidecar = sidecar;
    catalog.statement = statement;
    return catalog;
  }

  /**
   * ST-9: the catalog of a statement equals those of sessions, but not vice versa.
   *
   * <p>When a statement writes the rows of a data frame, Spark looks up the tables of the data frame again. It keeps the columns of the
   * data frame only if the new relation's catalog equals that of the data frame, which may belong to the session that a stream was started
   * from. If the catalog of a session equaled that of a statement, Spark would read cached tables at the snapshot at which they were cached
   * (ST-1). Spark 4.1 does not pass statements to catalogs, and compares the catalogs of a session and of its clone in the same way.
   */
  @Override public boolean equals(Object other) {
    return this == other
        || (statement != null || !ARE_KNOWN) && other instanceof LakeCatalog session && session.statement == null
            && sidecar == session.sidecar && name.equals(session.name);
  }

  @Override public int hashCode() {
    return name.hashCode();
  }

  /** The statement that this catalog belongs to; null in the catalog of a session. */
  Statement statement() {
    return statement;
  }

  /** Calls a Python method that may be repeated. Errors are AnalysisExceptions. */
  Sidecar.Answer call(String method, ObjectNode arguments, byte[]... parts) {
    try {
      return sidecar.call(method, arguments, parts);
    } catch (RemoteException error) {
      throw Errors.translated(error);
    }
  }

  /** Calls a Python method that makes a change and is not repeated. Errors are AnalysisExceptions. */
  Sidecar.Answer callOnce(String method, ObjectNode arguments, byte[]... parts) {
    try {
      return sidecar.callOnce(method, arguments, parts);
    } catch (RemoteException error) {
      throw Errors.translated(error);
    }
  }

  // -- namespaces

  @Override public String[][] listNamespaces() throws NoSuchNamespaceException {
    return listNamespaces(new String[0]);
  }

  @Override public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    try {
      return namespaces(sidecar.call("list_namespaces", Json.namespace(parent)).result());
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, parent);
    }
  }

  private static String[][] namespaces(JsonNode json) {
    String[][] result = new String[json.size()][];
    for (int i = 0; i < result.length; i++) {
      result[i] = Json.strings(json.get(i));
    }
    return result;
  }

  @Override public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    try {
      return Json.map(sidecar.call("load_namespace", Json.namespace(namespace)).result());
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, namespace);
    }
  }

  @Override public void createNamespace(String[] namespace, Map<String, String> properties)
      throws NamespaceAlreadyExistsException {
    ObjectNode arguments = Json.namespace(namespace).set("properties", Json.object(properties));
    try {
      sidecar.callOnce("create_namespace", arguments);
    } catch (RemoteException error) {
      throw Errors.forNewNamespace(error, namespace);
    }
  }

  @Override public void alterNamespace(String[] namespace, NamespaceChange... changes) throws NoSuchNamespaceException {
    ObjectNode arguments = Json.namespace(namespace).set("changes", DdlJson.changes(changes));
    try {
      sidecar.callOnce("alter_namespace", arguments);
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, namespace);
    }
  }

  @Override public boolean dropNamespace(String[] namespace, boolean cascade) throws NoSuchNamespaceException {
    try {
      return sidecar.callOnce("drop_namespace", Json.namespace(namespace).put("cascade", cascade)).result().asBoolean();
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, namespace);
    }
  }

  // -- tables

  @Override public Set<TableCatalogCapability> capabilities() {
    return Capabilities.OF_CATALOGS;
  }

  @Override public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return identifiers("list_tables", namespace);
  }

  private Identifier[] identifiers(String method, String[] namespace) throws NoSuchNamespaceException {
    JsonNode names;
    try {
      names = sidecar.call(method, Json.namespace(namespace)).result();
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, namespace);
    }
    Identifier[] found = new Identifier[names.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = Identifier.of(namespace, names.get(i).asText());
    }
    return found;
  }

  @Override public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, Json.table(identifier));
  }

  /** Called by Spark since 3.5.3 if a statement will write to the table. The session may name a branch that has to be created first. */
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges) throws NoSuchTableException {
    return loadToWrite(identifier);
  }

  Table loadToWrite(Identifier identifier) throws NoSuchTableException {
    if (WriteAuditPublish.namesBranch()) {
      callOnce("begin_write", WriteAuditPublish.added(Json.table(identifier)));
    }
    return loadTable(identifier);
  }

  @Override public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, Json.table(identifier).put("version", version));
  }

  @Override public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, Json.table(identifier).put("timestamp_micros", timestampMicros));
  }

  /** The branch that the session writes to is ignored, because loading the table with it may fail. */
  @Override public boolean tableExists(Identifier identifier) {
    try {
      callAbout(identifier, "load_table", Json.table(identifier));
      return true;
    } catch (NoSuchTableException e) {
      return false;
    }
  }

  /** Calls a Python method about a table. */
  JsonNode callAbout(Identifier identifier, String method, ObjectNode arguments) throws NoSuchTableException {
    try {
      return sidecar.call(method, arguments).result();
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  /** CREATE TABLE LIKE: the arguments are about the source and include those of the target. */
  void createLike(Identifier source, Identifier target, ObjectNode arguments)
      throws NoSuchTableException, TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      sidecar.callOnce("create_table_like", arguments);
    } catch (RemoteException error) {
      throw error.is("TableNotFoundError") ? Errors.forTable(error, source) : Errors.forNewTable(error, target);
    }
  }

  /** Runs a statement of the SQL extension and returns its rows. Each has a value or null for every column. */
  JsonNode runStatement(Identifier identifier, ObjectNode arguments) throws NoSuchTableException {
    try {
      return sidecar.callOnce("run_statement", arguments).result();
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  Table load(Identifier identifier, ObjectNode arguments) throws NoSuchTableException {
    Table loaded = statement == null ? null : statement.loaded(arguments);
    if (loaded != null) {
      return loaded;
    }
    JsonNode description = callAbout(identifier, "load_table", WriteAuditPublish.added(arguments.deepCopy()));
    JsonNode state = arguments.has("version") ? arguments.get("version") : arguments.get("timestamp_micros");
    if (state != null) {
      ((ObjectNode) description).put("as_of", " AS OF " + state.asText());
    }
    loaded = table(identifier, description);
    if (statement != null) {
      statement.remember(arguments, loaded);
    }
    return loaded;
  }

  private Table table(Identifier identifier, JsonNode description) {
    if (description.get("is_metadata_table").asBoolean()) {
      return new MetadataTable(this, identifier, description);
    }
    return description.has("changelog_columns")
        ? new ChangelogTable(this, identifier, description) : new LakeTable(this, identifier, description);
  }

  /** CREATE TABLE, with the arguments of the Python method. */
  Table create(Identifier identifier, ObjectNode arguments)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return table(identifier, sidecar.callOnce("create_table", arguments).result());
    } catch (RemoteException error) {
      throw Errors.forNewTable(error, identifier);
    }
  }

  StagedTable stageNew(Identifier identifier, ObjectNode arguments)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return staged(identifier, arguments, "create");
    } catch (RemoteException error) {
      throw Errors.forNewTable(error, identifier);
    }
  }

  StagedTable stageReplaced(Identifier identifier, ObjectNode arguments)
      throws NoSuchNamespaceException, NoSuchTableException {
    try {
      return staged(identifier, arguments, "replace");
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  StagedTable stageNewOrReplaced(Identifier identifier, ObjectNode arguments) throws NoSuchNamespaceException {
    try {
      return staged(identifier, arguments, "create-or-replace");
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, identifier.namespace());
    }
  }

  private StagedTable staged(Identifier identifier, ObjectNode arguments, String kind) {
    arguments.put("kind", kind);
    if (statement != null && statement.loaded(Json.table(identifier)) instanceof LakeTable replaced) {
      arguments.set("pin", replaced.pin());
    }
    return new StagedLakeTable(
        new LakeTable(this, identifier, sidecar.callOnce("stage_table", arguments).result()));
  }

  @Override public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    if (statement != null && statement.loaded(Json.table(identifier)) instanceof LakeTable table && table.hasFixedColumns()) {
      throw SchemaEvolution.fixedColumns(table);
    }
    ObjectNode arguments = Json.table(identifier).set("changes", DdlJson.changes(changes));
    try {
      Table altered =
          table(identifier, sidecar.callOnce("alter_table", WriteAuditPublish.added(arguments)).result());
      if (statement != null) {
        statement.rememberAltered(Json.table(identifier), altered);
      }
      return altered;
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  @Override public boolean dropTable(Identifier identifier) {
    return callOnce("drop_table", Json.table(identifier).put("purge", false)).result().asBoolean();
  }

  @Override public boolean purgeTable(Identifier identifier) {
    return callOnce("drop_table", Json.table(identifier).put("purge", true)).result().asBoolean();
  }

  @Override public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    Identifier target = withoutCatalog(to);
    try {
      sidecar.callOnce("rename_table", Json.table(from).set("to", Json.identifier(target)));
    } catch (RemoteException error) {
      if (error.is("AlreadyExistsError")) {
        throw new TableAlreadyExistsException(to);
      }
      throw error.is("NamespaceNotFoundError")
          ? Errors.noSuchNamespace(target.namespace()) : Errors.forTable(error, from);
    }
  }

  /** The new name of RENAME TO without the catalog. Spark passes the name as written, which may include the catalog. */
  private Identifier withoutCatalog(Identifier to) {
    String[] namespace = to.namespace();
    return namespace.length > 1 && namespace[0].equals(name)
        ? Identifier.of(Arrays.copyOfRange(namespace, 1, namespace.length), to.name()) : to;
  }

  // -- views

  /** Null if no view of that name exists. */
  LakeView view(Identifier identifier) {
    JsonNode view = call("load_view", Json.table(identifier)).result();
    return view.isNull() ? null : LakeView.parse(name, view);
  }

  /** Empty for the catalog itself if views have namespaces. */
  Identifier[] namesOfViews(String[] namespace) throws NoSuchNamespaceException {
    return namespace.length == 0 ? new Identifier[0] : identifiers("list_views", namespace);
  }

  /** Creates or replaces a view; `method` is the Python method for it. */
  LakeView putView(String method, Identifier identifier, LakeView view) {
    return LakeView.parse(name, changeView(method, identifier, identifier, view.arguments(identifier, name)));
  }

  /** Drops a view; false if no view of that name existed. */
  boolean deleteView(Identifier identifier) {
    return callOnce("drop_view", Json.table(identifier)).result().asBoolean();
  }

  void moveView(Identifier from, Identifier to) {
    Identifier target = withoutCatalog(to);
    changeView("rename_view", from, target, Json.table(from).set("to", Json.identifier(target)));
  }

  private JsonNode changeView(String method, Identifier identifier, Identifier target, ObjectNode arguments) {
    try {
      return sidecar.callOnce(method, arguments).result();
    } catch (RemoteException error) {
      throw Errors.forView(error, identifier, target);
    }
  }

  // -- functions: the partition transforms. Users call them in the namespace "system"; Spark looks them up without a namespace.

  @Override public Identifier[] listFunctions(String[] namespace) {
    return isOfFunctions(namespace)
        ? Arrays.stream(Transforms.NAMES).map(name -> Identifier.of(namespace, name)).toArray(Identifier[]::new)
        : new Identifier[0];
  }

  @Override public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
    UnboundFunction function =
        isOfFunctions(identifier.namespace()) ? Transforms.named(identifier.name().toLowerCase(Locale.ROOT)) : null;
    if (function == null) {
      throw new NoSuchFunctionException(identifier);
    }
    return function;
  }

  private static boolean isOfFunctions(String[] namespace) {
    return namespace.length == 0 || isSystem(namespace);
  }

  static boolean isSystem(String[] namespace) {
    return namespace.length == 1 && namespace[0].equals("system");
  }
}
