package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Columns that every table has in addition to its own, with the names of Iceberg's Spark tables. */
final class MetadataColumns {
  static final String FILE = "_file";
  static final String POSITION = "_pos";
  static final String SPEC_ID = "_spec_id";
  static final String PARTITION = "_partition";
  static final String DELETED = "_deleted";
  static final String ROW_ID = "_row_id";
  static final String LAST_UPDATED_SEQUENCE_NUMBER = "_last_updated_sequence_number";

  /** Makes Spark keep the id of a row that is deleted and inserted again with other values. */
  private static final String KEPT = Json.object().put("__preserve_on_reinsert", true).toString();

  private MetadataColumns() {}

  /** SP-87: the names of the requested metadata columns, and null at the positions of the table's own columns. */
  static String[] among(StructType required, StructType own) {
    List<String> known = List.of(own.fieldNames());
    return Arrays.stream(required.fieldNames()).map(name -> known.contains(name) ? null : name).toArray(String[]::new);
  }

  /** SP-87: statements that change rows find them by two metadata columns. Raises an error if a column of the table hides one of them. */
  static void checkRowsCanBeFound(LakeTable table) {
    boolean looksAtCase = Sessions.active().sessionState().conf().caseSensitiveAnalysis();
    for (String name : table.rowType().fieldNames()) {
      for (String needed : List.of(FILE, POSITION)) {
        if (looksAtCase ? name.equals(needed) : name.equalsIgnoreCase(needed)) {
          throw Errors.unsupported(table.name() + " has a column " + Names.quoted(name) + ", which hides the metadata column "
              + needed + " that Spark needs to identify deleted and changed rows. Rename the column (ALTER TABLE " + table.name()
              + " RENAME COLUMN " + Names.quoted(name) + " TO ...), or use the operations of the library in Python.");
        }
      }
    }
  }

  /** Whether a name returned by `among` is a column of row lineage. */
  static boolean isLineage(String name) {
    return ROW_ID.equals(name) || LAST_UPDATED_SEQUENCE_NUMBER.equals(name);
  }

  /** `partition` is the struct of all partition fields in the history of the table, `lineage` has the lineage columns. */
  static MetadataColumn[] of(StructType partition, StructType lineage) {
    List<MetadataColumn> columns = new ArrayList<>();
    columns.add(new Column(FILE, DataTypes.StringType, false, "Location of the row's data file"));
    columns.add(new Column(POSITION, DataTypes.LongType, false, "Position of the row in its data file"));
    columns.add(new Column(SPEC_ID, DataTypes.IntegerType, false, "Partition spec of the row's data file"));
    columns.add(new Column(PARTITION, partition, true, "Partition of the row's data file"));
    columns.add(
        new Column(DELETED, DataTypes.BooleanType, false, "Whether the row is deleted; selecting it shows deleted rows"));
    for (String name : lineage.fieldNames()) {
      columns.add(name.equals(ROW_ID)
          ? new Column(name, DataTypes.LongType, true, "Id of the row, which never changes", KEPT)
          : new Column(name, DataTypes.LongType, true, "Sequence number of the row's last change"));
    }
    return columns.toArray(new MetadataColumn[0]);
  }

  /** Hidden columns of a metadata table. */
  static MetadataColumn[] of(StructType hidden) {
    return Arrays.stream(hidden.fields())
        .map(field -> new Column(field.name(), field.dataType(), field.nullable(), null)).toArray(MetadataColumn[]::new);
  }

  private record Column(String name, DataType dataType, boolean isNullable, String comment, String metadataInJSON)
      implements MetadataColumn {
    Column(String name, DataType dataType, boolean isNullable, String comment) {
      this(name, dataType, isNullable, comment, null);
    }
  }
}
