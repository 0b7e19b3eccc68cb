package tableformat.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;

/** Capabilities that tables and the catalog report to Spark. */
final class Capabilities {
  static final Set<TableCatalogCapability> OF_CATALOGS =
      Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);

  static final Set<TableCapability> OF_TABLES = Set.of(
      TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
      TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER,
      TableCapability.OVERWRITE_DYNAMIC);

  /** Capabilities of a table whose owner does not let statements change its columns. In this version of Spark no statement does. */
  static final Set<TableCapability> OF_TABLES_WITH_FIXED_COLUMNS = OF_TABLES;

  /** Capabilities of a table at an earlier snapshot. */
  static final Set<TableCapability> OF_PAST_STATES =
      Set.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);

  /** Whether Spark checks rows against CHECK constraints before it writes them. */
  static final boolean HOLD_CHECKS = false;

  /** Whether MERGE WITH SCHEMA EVOLUTION changes a table. */
  static final boolean EVOLVE_IN_MERGE = false;

  /** Whether Spark has a type for times of day. */
  static final boolean HAVE_TIMES = false;

  private Capabilities() {}
}
