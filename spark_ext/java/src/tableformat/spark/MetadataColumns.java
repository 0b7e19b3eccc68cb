package tableformat.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Columns that every table has beside its own, named as Iceberg's Spark tables name them. */
final class MetadataColumns {
  static final String FILE = "_file";
  static final String POSITION = "_pos";
  static final String SPEC_ID = "_spec_id";
  static final String PARTITION = "_partition";
  static final String DELETED = "_deleted";

  private MetadataColumns() {}

  /** `partition` is the struct of all partition fields that the table has had. */
  static MetadataColumn[] of(StructType partition) {
    List<MetadataColumn> columns = new ArrayList<>();
    columns.add(new Column(FILE, DataTypes.StringType, false, "Location of the row's data file"));
    columns.add(new Column(POSITION, DataTypes.LongType, false, "Position of the row in its data file"));
    columns.add(new Column(SPEC_ID, DataTypes.IntegerType, false, "Partition spec of the row's data file"));
    columns.add(new Column(PARTITION, partition, true, "Partition of the row's data file"));
    columns.add(
        new Column(DELETED, DataTypes.BooleanType, false, "Whether the row is deleted; selecting it shows deleted rows"));
    return columns.toArray(new MetadataColumn[0]);
  }

  private record Column(String name, DataType dataType, boolean isNullable, String comment) implements MetadataColumn {}
}
