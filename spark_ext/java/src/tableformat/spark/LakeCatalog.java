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
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableContext;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.catalog.transactions.TransactionInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * `spark.sql.catalog.NAME = tableformat.spark.LakeCatalog`. Every question about tables goes to the Python process.
 *
 * <p>Options: `python`, the interpreter; all others belong to the Python side.
 */
public final class LakeCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog, TransactionalCatalogPlugin {
  private static final String PYTHON = "python";

  private String name;
  private Sidecar sidecar;

  /** The statement that this catalog is for; null in a session's own. */
  private LakeTransaction transaction;

  @Override public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    ObjectNode passed = Json.object();
    options.asCaseSensitiveMap().forEach((option, value) -> {
      if (!option.equals(PYTHON)) {
        passed.put(option, value);
      }
    });
    List<String> command = new ArrayList<>();
    command.add(options.getOrDefault(PYTHON, System.getenv().getOrDefault("PYSPARK_PYTHON", "python3")));
    command.addAll(List.of("-m", "spark_ext.sidecar"));
    sidecar = Sidecar.shared(command, Json.object().put("name", name).set("options", passed));
    SourceKeyPruning.addToActiveSession();
  }

  @Override public String name() {
    return name;
  }

  @Override public Transaction beginTransaction(TransactionInfo info) {
    return new LakeTransaction(this);
  }

  /** This catalog as one statement sees it. */
  LakeCatalog within(LakeTransaction statement) {
    LakeCatalog catalog = new LakeCatalog();
    catalog.name = name;
    catalog.sidecar = sidecar;
    catalog.transaction = statement;
    return catalog;
  }

  /** The statement that this catalog is for; null in a session's own. */
  LakeTransaction transaction() {
    return transaction;
  }

  /** Asks Python something that may be asked twice. Errors are AnalysisExceptions. */
  Sidecar.Answer call(String method, ObjectNode arguments, byte[]... parts) {
    try {
      return sidecar.call(method, arguments, parts);
    } catch (RemoteException error) {
      throw Errors.translated(error);
    }
  }

  /** Has Python change something. Errors are AnalysisExceptions. */
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
    return Set.of(
        TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE, TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT);
  }

  @Override public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    JsonNode names;
    try {
      names = sidecar.call("list_tables", Json.namespace(namespace)).result();
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, namespace);
    }
    Identifier[] tables = new Identifier[names.size()];
    for (int i = 0; i < tables.length; i++) {
      tables[i] = Identifier.of(namespace, names.get(i).asText());
    }
    return tables;
  }

  @Override public Table loadTable(Identifier identifier) throws NoSuchTableException {
    return load(identifier, Json.table(identifier));
  }

  @Override public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, Json.table(identifier).put("version", version));
  }

  @Override public Table loadTable(Identifier identifier, long timestampMicros) throws NoSuchTableException {
    return load(identifier, Json.table(identifier).put("timestamp_micros", timestampMicros));
  }

  /** What writes do with their options is decided where they are planned. */
  @Override public Table loadTable(Identifier identifier, TableContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    if (options.isEmpty() || !context.writePrivileges().isEmpty()) {
      return StagingTableCatalog.super.loadTable(identifier, context, options);
    }
    if (context.timeTravel().isPresent()) {
      throw Errors.invalid(
          Names.quoted(name, identifier) + ": " + String.join(" and ", options.keySet())
              + " names a state of the table, and VERSION AS OF or TIMESTAMP AS OF another; give one.");
    }
    return load(identifier, Json.table(identifier).set("options", Json.object(options)));
  }

  /** Options that choose a state of a table, those of `read_options.py`: Spark loads the table with them. */
  @Override public Set<String> tableStateOptionKeys() {
    return Set.of("snapshot-id", "as-of-timestamp", "branch", "tag");
  }

  @Override public Changelog loadChangelog(
      Identifier identifier, ChangelogContext context, CaseInsensitiveStringMap options) throws NoSuchTableException {
    ObjectNode arguments = Json.table(identifier).set("bounds", LakeChangelog.bounds(context.range()));
    arguments.set("options", Json.object(options.asCaseSensitiveMap()));
    try {
      JsonNode description = sidecar.call("load_changes", arguments).result();
      return new LakeChangelog(new LakeTable(this, identifier, description), context, description);
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  /** Options that decide which changes there are. */
  @Override public Set<String> changelogStateOptionKeys() {
    return Set.of("branch");
  }

  private Table load(Identifier identifier, ObjectNode arguments) throws NoSuchTableException {
    Table loaded = transaction == null ? null : transaction.loaded(arguments);
    if (loaded != null) {
      return loaded;
    }
    try {
      loaded = table(identifier, sidecar.call("load_table", arguments).result());
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
    if (transaction != null) {
      transaction.remember(arguments, loaded);
    }
    return loaded;
  }

  private Table table(Identifier identifier, JsonNode description) {
    return description.get("is_metadata_table").asBoolean()
        ? new MetadataTable(this, identifier, description) : new LakeTable(this, identifier, description);
  }

  @Override public Table createTable(Identifier identifier, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return table(identifier, sidecar.callOnce("create_table", newTable(identifier, info)).result());
    } catch (RemoteException error) {
      throw Errors.forNewTable(error, identifier);
    }
  }

  private static ObjectNode newTable(Identifier identifier, TableInfo info) {
    ObjectNode arguments = Json.table(identifier);
    arguments.set("columns", DdlJson.columns(info.columns()));
    arguments.set("partitioning", ExpressionJson.of(info.partitions()));
    arguments.set("properties", Json.object(info.properties()));
    DdlJson.putConstraints(arguments, info.constraints());
    return arguments;
  }

  @Override public StagedTable stageCreate(Identifier identifier, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return staged(identifier, info, "create");
    } catch (RemoteException error) {
      throw Errors.forNewTable(error, identifier);
    }
  }

  @Override public StagedTable stageReplace(Identifier identifier, TableInfo info)
      throws NoSuchNamespaceException, NoSuchTableException {
    try {
      return staged(identifier, info, "replace");
    } catch (RemoteException error) {
      throw Errors.forTable(error, identifier);
    }
  }

  @Override public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info)
      throws NoSuchNamespaceException {
    try {
      return staged(identifier, info, "create-or-replace");
    } catch (RemoteException error) {
      throw Errors.forNamespace(error, identifier.namespace());
    }
  }

  private StagedTable staged(Identifier identifier, TableInfo info, String kind) {
    ObjectNode arguments = newTable(identifier, info).put("kind", kind);
    if (transaction != null && transaction.loaded(Json.table(identifier)) instanceof LakeTable replaced) {
      arguments.set("pin", replaced.pin());
    }
    return new StagedLakeTable(
        new LakeTable(this, identifier, sidecar.callOnce("stage_table", arguments).result()));
  }

  @Override public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    ObjectNode arguments = Json.table(identifier).set("changes", DdlJson.changes(changes));
    try {
      Table altered = table(identifier, sidecar.callOnce("alter_table", arguments).result());
      if (transaction != null) {
        transaction.rememberAltered(Json.table(identifier), altered);
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
    try {
      sidecar.callOnce("rename_table", Json.table(from).set("to", Json.identifier(to)));
    } catch (RemoteException error) {
      if (error.is("AlreadyExistsError")) {
        throw new TableAlreadyExistsException(to);
      }
      throw Errors.forTable(error, from);
    }
  }

  // -- procedures: in the namespace "system"

  @Override public Identifier[] listProcedures(String[] namespace) {
    return isSystem(namespace)
        ? Arrays.stream(Json.strings(call("list_procedures", Json.object()).result()))
            .map(name -> Identifier.of(namespace, name)).toArray(Identifier[]::new)
        : new Identifier[0];
  }

  @Override public UnboundProcedure loadProcedure(Identifier identifier) {
    return new LakeProcedure(
        this, call("load_procedure", Json.object().set("procedure", Json.identifier(identifier))).result());
  }

  // -- functions: the partition transforms, in the namespace "system", where users call them, and in none, where Spark looks

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

  private static boolean isSystem(String[] namespace) {
    return namespace.length == 1 && namespace[0].equals("system");
  }
}
