package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;

/**
 * Writes Spark rows into Parquet columns with Spark's own writer. Adds what that writer does not support: field ids inside lists and maps,
 * fixed-length byte types, and the table's entries in the footer.
 */
final class DataFileSupport extends ParquetWriteSupport {
  private final WritePlan plan;
  private final FloatColumns floats;

  /** Every row is added to `floats`. */
  DataFileSupport(WritePlan plan, FloatColumns floats) {
    this.plan = plan;
    this.floats = floats;
  }

  @Override public WriteContext init(Configuration configuration) {
    WriteContext context = super.init(configuration);
    Map<String, String> footer = new HashMap<>(context.getExtraMetaData());
    // This entry is the schema in Spark's form. The table's schema contains more.
    footer.remove(ParquetReadSupport$.MODULE$.SPARK_METADATA_KEY());
    footer.putAll(plan.footer);
    MessageType schema = context.getSchema();
    return new WriteContext(new MessageType(schema.getName(), withIds(schema, plan.columns())), footer);
  }

  @Override public void write(InternalRow row) {
    floats.add(row);
    super.write(plan.hasUuids ? withBytes(row) : row);
  }

  private InternalRow withBytes(InternalRow row) {
    Object[] values = new Object[plan.isUuid.length];
    for (int i = 0; i < values.length; i++) {
      if (!row.isNullAt(i)) {
        values[i] = plan.isUuid[i] ? PartitionTransform.bytes(UUID.fromString(row.getUTF8String(i).toString()))
            : row.get(i, plan.schema.apply(i).dataType());
      }
    }
    return new GenericInternalRow(values);
  }

  private static List<Type> withIds(GroupType group, JsonNode trees) {
    List<Type> fields = new ArrayList<>();
    for (int i = 0; i < group.getFieldCount(); i++) {
      fields.add(withIds(group.getType(i), trees.get(i)));
    }
    return fields;
  }

  private static Type withIds(Type type, JsonNode tree) {
    int id = tree.get("id").asInt();
    if (tree.has("fields")) {
      GroupType struct = type.asGroupType();
      return struct.withNewFields(withIds(struct, tree.get("fields"))).withId(id);
    }
    if (tree.has("element")) {
      GroupType repeated = type.asGroupType().getType(0).asGroupType();
      return around(type, repeated.withNewFields(withIds(repeated.getType(0), tree.get("element")))).withId(id);
    }
    if (tree.has("key")) {
      GroupType repeated = type.asGroupType().getType(0).asGroupType();
      Type key = withIds(repeated.getType(0), tree.get("key"));
      return around(type, repeated.withNewFields(key, withIds(repeated.getType(1), tree.get("value")))).withId(id);
    }
    if (tree.has("fixed")) {
      Types.PrimitiveBuilder<?> fixed = Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, type.getRepetition())
          .length(tree.get("fixed").asInt()).id(id);
      return (Type) (tree.path("uuid").asBoolean() ? fixed.as(LogicalTypeAnnotation.uuidType()) : fixed)
          .named(type.getName());
    }
    return type.withId(id);
  }

  private static GroupType around(Type list, Type repeated) {
    return list.asGroupType().withNewFields(repeated);
  }
}
