package tableformat.spark;

import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;

/** The columns of a table with the types of a file that was written before they were widened (SP-61). */
final class StoredTypes {
  private static final String FIELD_ID = "parquet.field.id";

  private StoredTypes() {}

  /** `wanted`, but with the file's type for every column that can be widened from it. */
  static StructType of(StructType wanted, GroupType stored) {
    StructField[] fields = new StructField[wanted.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = wanted.apply(i);
      Type found = find(field, stored);
      DataType type = found == null ? field.dataType() : of(field.dataType(), found);
      fields[i] = new StructField(field.name(), type, field.nullable(), field.metadata());
    }
    return new StructType(fields);
  }

  /** The column of the file with the same id, or with the same name if the file has no ids. Null if the file lacks the column. */
  private static Type find(StructField field, GroupType stored) {
    Metadata metadata = field.metadata();
    for (Type type : stored.getFields()) {
      boolean isSame = metadata.contains(FIELD_ID)
          ? type.getId() != null && type.getId().intValue() == metadata.getLong(FIELD_ID)
          : type.getName().equals(field.name());
      if (isSame) {
        return type;
      }
    }
    return null;
  }

  private static DataType of(DataType wanted, Type stored) {
    if (stored.isPrimitive()) {
      return ofPrimitive(wanted, stored.asPrimitiveType());
    }
    GroupType group = stored.asGroupType();
    if (wanted instanceof StructType struct) {
      return of(struct, group);
    }
    if (wanted instanceof ArrayType array) {
      return new ArrayType(of(array.elementType(), element(group)), array.containsNull());
    }
    if (wanted instanceof MapType map) {
      GroupType entry = group.getType(0).asGroupType();
      return new MapType(
          of(map.keyType(), entry.getType(0)), of(map.valueType(), entry.getType(1)), map.valueContainsNull());
    }
    return wanted;
  }

  /** The element of a list with the middle level, or of a list without it, as old writers wrote them. */
  private static Type element(GroupType list) {
    Type repeated = list.getType(0);
    boolean hasLevel = !repeated.isPrimitive() && repeated.asGroupType().getFieldCount() == 1
        && !repeated.getName().equals("array") && !repeated.getName().equals(list.getName() + "_tuple");
    return hasLevel ? repeated.asGroupType().getType(0) : repeated;
  }

  private static DataType ofPrimitive(DataType wanted, PrimitiveType stored) {
    PrimitiveTypeName name = stored.getPrimitiveTypeName();
    boolean isInt = name == PrimitiveTypeName.INT32;
    if (wanted instanceof LongType && isInt) {
      return DataTypes.IntegerType;
    }
    if (wanted instanceof DoubleType && name == PrimitiveTypeName.FLOAT) {
      return DataTypes.FloatType;
    }
    if (wanted instanceof TimestampNTZType && isInt) {
      return DataTypes.DateType;
    }
    if (wanted instanceof DecimalType && (isInt || name == PrimitiveTypeName.INT64)
        && stored.getLogicalTypeAnnotation() instanceof DecimalLogicalTypeAnnotation decimal) {
      return new DecimalType(decimal.getPrecision(), decimal.getScale());
    }
    return wanted;
  }
}
