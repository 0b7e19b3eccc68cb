package tableformat.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.View;

/** Views of the catalog (SQ-26). Spark has statements for them since 4.2. */
interface Views extends RelationCatalog {
  /** The table, or the view if no table of that name exists (SQ-28). */
  @Override default Relation loadRelation(Identifier identifier) throws NoSuchTableException {
    try {
      return loadTable(identifier);
    } catch (NoSuchTableException noTable) {
      LakeView view = ((LakeCatalog) this).view(identifier);
      if (view == null) {
        throw noTable;
      }
      return spark(view);
    }
  }

  @Override default View loadView(Identifier identifier) throws NoSuchViewException {
    LakeView view = ((LakeCatalog) this).view(identifier);
    if (view == null) {
      throw new NoSuchViewException(identifier);
    }
    return spark(view);
  }

  @Override default boolean viewExists(Identifier identifier) {
    return ((LakeCatalog) this).view(identifier) != null;
  }

  @Override default Identifier[] listViews(String[] namespace) throws NoSuchNamespaceException {
    return ((LakeCatalog) this).namesOfViews(namespace);
  }

  @Override default View createView(Identifier identifier, View view)
      throws ViewAlreadyExistsException, NoSuchNamespaceException {
    return made("create_view", identifier, view);
  }

  @Override default View replaceView(Identifier identifier, View view) throws NoSuchViewException {
    return made("replace_view", identifier, view);
  }

  @Override default View createOrReplaceView(Identifier identifier, View view)
      throws ViewAlreadyExistsException, NoSuchNamespaceException {
    return made("create_or_replace_view", identifier, view);
  }

  @Override default boolean dropView(Identifier identifier) {
    return ((LakeCatalog) this).deleteView(identifier);
  }

  @Override default void renameView(Identifier from, Identifier to)
      throws NoSuchViewException, ViewAlreadyExistsException {
    ((LakeCatalog) this).moveView(from, to);
  }

  private View made(String method, Identifier identifier, View view) {
    Map<String, String> properties = new HashMap<>(view.properties());
    LakeView asked = new LakeView(
        view.queryText(), view.currentCatalog(), view.currentNamespace(), view.schema(), view.queryColumnNames(),
        view.sqlConfigs(), view.schemaMode(), properties);
    return spark(((LakeCatalog) this).putView(method, identifier, asked));
  }

  private static View spark(LakeView view) {
    View.Builder builder = new View.Builder();
    builder.withSchema(view.schema());
    builder.withProperties(view.properties());
    return builder.withQueryText(view.sql()).withCurrentCatalog(view.currentCatalog())
        .withCurrentNamespace(view.currentNamespace()).withSqlConfigs(view.sqlConfigs())
        .withSchemaMode(view.schemaMode()).withQueryColumnNames(view.queryColumnNames()).build();
  }
}
