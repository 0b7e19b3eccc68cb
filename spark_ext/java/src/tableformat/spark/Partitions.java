package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * SHOW PARTITIONS, DROP PARTITION and TRUNCATE PARTITION by the fields of the table's partition spec (SQ-8). A partition exists as long as
 * a data file has rows in it.
 */
interface Partitions extends SupportsAtomicPartitionManagement {
  private LakeTable table() {
    return (LakeTable) this;
  }

  @Override default StructType partitionSchema() {
    return Json.struct(table().described().get("partition_fields"));
  }

  @Override default InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
    StructType fields = partitionSchema();
    if (names.length > 0) {
      Names.refuseAlike(table().name(), fields.fieldNames());
    }
    byte[][] parts = table().catalog().call("list_partitions", table().arguments()).parts();
    return Arrays.stream(ArrowRows.read(parts[0], fields)).filter(row -> {
      for (int i = 0; i < names.length; i++) {
        int place = fields.fieldIndex(names[i]);
        DataType type = fields.apply(place).dataType();
        if (!Objects.deepEquals(Constants.value(row, place, type), Constants.value(values, i, type))) {
          return false;
        }
      }
      return true;
    }).toArray(InternalRow[]::new);
  }

  @Override default boolean dropPartition(InternalRow values) {
    return dropPartitions(new InternalRow[] {values});
  }

  @Override default boolean truncatePartition(InternalRow values) {
    return dropPartitions(new InternalRow[] {values});
  }

  @Override default boolean truncatePartitions(InternalRow[] partitions) {
    return dropPartitions(partitions);
  }

  /** Deletes the rows of all these partitions in one commit. */
  @Override default boolean dropPartitions(InternalRow[] partitions) {
    table().checkCurrent();
    StructType fields = partitionSchema();
    ObjectNode arguments = table().arguments();
    ArrayNode described = arguments.putArray("partitions");
    for (InternalRow partition : partitions) {
      ArrayNode values = described.addArray();
      for (int i = 0; i < fields.size(); i++) {
        DataType type = fields.apply(i).dataType();
        values.add(ValueJson.of(Constants.value(partition, i, type), type));
      }
    }
    CommitCall.call(table().catalog(), "drop_partitions", arguments);
    return true;
  }

  @Override default void createPartition(InternalRow values, Map<String, String> properties) {
    throw withoutRows();
  }

  @Override default void createPartitions(InternalRow[] partitions, Map<String, String>[] properties) {
    throw withoutRows();
  }

  @Override default Map<String, String> loadPartitionMetadata(InternalRow values) {
    return Map.of();
  }

  @Override default void replacePartitionMetadata(InternalRow values, Map<String, String> properties) {
    throw Errors.unsupported("Partitions of " + table().name() + " have no properties.");
  }

  private RuntimeException withoutRows() {
    return Errors.unsupported(
        "A partition of " + table().name() + " is created only with its first rows: INSERT them.");
  }
}
