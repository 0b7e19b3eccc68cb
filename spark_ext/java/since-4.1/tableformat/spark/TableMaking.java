package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;

/** CREATE and REPLACE TABLE, with new tables described as Spark does since 4.1: with their constraints. */
interface TableMaking extends StagingTableCatalog {
  @Override default Table createTable(Identifier identifier, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return ((LakeCatalog) this).create(identifier, arguments(identifier, info));
  }

  @Override default StagedTable stageCreate(Identifier identifier, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return ((LakeCatalog) this).stageNew(identifier, arguments(identifier, info));
  }

  @Override default StagedTable stageReplace(Identifier identifier, TableInfo info)
      throws NoSuchNamespaceException, NoSuchTableException {
    return ((LakeCatalog) this).stageReplaced(identifier, arguments(identifier, info));
  }

  @Override default StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info)
      throws NoSuchNamespaceException {
    return ((LakeCatalog) this).stageNewOrReplaced(identifier, arguments(identifier, info));
  }

  private static ObjectNode arguments(Identifier identifier, TableInfo info) {
    ObjectNode arguments = DdlJson.newTable(identifier, info.columns(), info.partitions(), info.properties());
    ConstraintJson.put(arguments, info.constraints());
    return arguments;
  }
}
