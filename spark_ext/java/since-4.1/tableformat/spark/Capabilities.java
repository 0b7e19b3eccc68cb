package tableformat.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;

/** Capabilities that tables and the catalog report to Spark. */
final class Capabilities {
  static final Set<TableCatalogCapability> OF_CATALOGS =
      Set.of(
          TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE, TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT);

  static final Set<TableCapability> OF_TABLES = Set.of(
      TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
      TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER,
      TableCapability.OVERWRITE_DYNAMIC, TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

  /** Capabilities of a table whose owner does not let statements change its columns. */
  static final Set<TableCapability> OF_TABLES_WITH_FIXED_COLUMNS = Set.of(
      TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
      TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER,
      TableCapability.OVERWRITE_DYNAMIC);

  /** Capabilities of a table at an earlier snapshot. */
  static final Set<TableCapability> OF_PAST_STATES =
      Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);

  /** Whether Spark checks rows against CHECK constraints before it writes them. */
  static final boolean HOLD_CHECKS = true;

  /** Whether MERGE WITH SCHEMA EVOLUTION changes a table. */
  static final boolean EVOLVE_IN_MERGE = true;

  /** Whether Spark has a type for times of day. */
  static final boolean HAVE_TIMES = true;

  private Capabilities() {}
}
