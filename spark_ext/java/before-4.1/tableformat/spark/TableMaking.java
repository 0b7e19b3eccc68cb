package tableformat.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** CREATE and REPLACE TABLE, with new tables described as Spark does before 4.1: a table property names the key columns. */
interface TableMaking extends StagingTableCatalog {
  @Override default Table createTable(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return ((LakeCatalog) this).create(identifier, DdlJson.newTable(identifier, columns, partitions, properties));
  }

  @Override default StagedTable stageCreate(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return ((LakeCatalog) this).stageNew(identifier, DdlJson.newTable(identifier, columns, partitions, properties));
  }

  @Override default StagedTable stageReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    return ((LakeCatalog) this).stageReplaced(identifier, DdlJson.newTable(identifier, columns, partitions, properties));
  }

  @Override default StagedTable stageCreateOrReplace(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    return ((LakeCatalog) this).stageNewOrReplaced(
        identifier, DdlJson.newTable(identifier, columns, partitions, properties));
  }

  // Older overloads that Spark declares and does not call.

  @Override default Table createTable(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return createTable(identifier, Schemas.columns(schema), partitions, properties);
  }

  @Override default StagedTable stageCreate(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return stageCreate(identifier, Schemas.columns(schema), partitions, properties);
  }

  @Override default StagedTable stageReplace(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    return stageReplace(identifier, Schemas.columns(schema), partitions, properties);
  }

  @Override default StagedTable stageCreateOrReplace(
      Identifier identifier, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    return stageCreateOrReplace(identifier, Schemas.columns(schema), partitions, properties);
  }
}
