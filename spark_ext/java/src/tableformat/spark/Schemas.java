package tableformat.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Field ids in Spark schemas. Spark's Parquet reader finds columns by the id in the metadata of a field. Users and their queries do not see
 * the ids.
 */
final class Schemas {
  private static final String FIELD_ID = "parquet.field.id";
  private static final String EXISTS_DEFAULT = "EXISTS_DEFAULT";
  private static final String IS_UUID = "tableformat.uuid";

  private Schemas() {}

  /** The columns of `one`, followed by those of `other`. */
  static StructType both(StructType one, StructType other) {
    StructType columns = one;
    for (StructField field : other.fields()) {
      columns = columns.add(field);
    }
    return columns;
  }

  /** Converts a schema to the columns of a table, with their comments and defaults. */
  static Column[] columns(StructType schema) {
    return V2Columns.of(schema);
  }

  /**
   * The same, with the id of the field of each name, at every depth. Spark compares them with data frames that were created before the
   * columns of the table changed (ST-8).
   */
  static Column[] columns(StructType schema, StructType fieldsWithIds) {
    return V2Columns.of(identified(schema, fieldsWithIds));
  }

  private static StructType identified(StructType schema, StructType full) {
    List<String> known = List.of(full.fieldNames());
    StructField[] fields = schema.fields().clone();
    for (int i = 0; i < fields.length; i++) {
      if (known.contains(fields[i].name())) {
        StructField named = full.apply(fields[i].name());
        DataType type = typeIdentified(fields[i].dataType(), named.dataType());
        StructField field = new StructField(fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
        fields[i] = ColumnIds.with(field, named.metadata().getLong(FIELD_ID));
      }
    }
    return new StructType(fields);
  }

  private static DataType typeIdentified(DataType type, DataType full) {
    if (type instanceof StructType struct && full instanceof StructType fullStruct) {
      return identified(struct, fullStruct);
    }
    if (type instanceof ArrayType array && full instanceof ArrayType fullArray) {
      return new ArrayType(typeIdentified(array.elementType(), fullArray.elementType()), array.containsNull());
    }
    if (type instanceof MapType map && full instanceof MapType fullMap) {
      return new MapType(
          typeIdentified(map.keyType(), fullMap.keyType()), typeIdentified(map.valueType(), fullMap.valueType()),
          map.valueContainsNull());
    }
    return type;
  }

  /** The schema that users see. */
  static StructType withoutIds(StructType schema) {
    StructField[] fields = new StructField[schema.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = schema.apply(i);
      Metadata metadata = new MetadataBuilder().withMetadata(field.metadata()).remove(FIELD_ID).remove(IS_UUID).build();
      fields[i] = new StructField(field.name(), typeWithoutIds(field.dataType()), field.nullable(), metadata);
    }
    return new StructType(fields);
  }

  /** Whether the type is a time of day, which Spark has since 4.1. */
  static boolean isTime(DataType type) {
    return type.typeName().startsWith("time(");
  }

  static long fieldId(StructField fieldWithId) {
    return fieldWithId.metadata().getLong(FIELD_ID);
  }

  /** The column for files that must have it: nothing stands for a missing one. */
  static StructField demanded(StructField fieldWithId) {
    Metadata metadata = new MetadataBuilder().withMetadata(fieldWithId.metadata()).remove(EXISTS_DEFAULT).build();
    return new StructField(fieldWithId.name(), fieldWithId.dataType(), false, metadata);
  }

  /** Whether data files store this string column as the 16 bytes of a UUID. */
  static boolean isUuid(StructField fieldWithId) {
    return fieldWithId.metadata().contains(IS_UUID);
  }

  /**
   * The wanted columns as they are read from data files: with their metadata in the full schema, and UUIDs as bytes. Their structs may have
   * only some of the fields.
   */
  static StructType withIds(StructType wanted, StructType full) {
    StructField[] fields = new StructField[wanted.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = wanted.apply(i);
      StructField known = full.apply(field.name());
      fields[i] = new StructField(
          field.name(), isUuid(known) ? DataTypes.BinaryType : typeWithIds(field.dataType(), known.dataType()),
          field.nullable(), known.metadata());
    }
    return new StructType(fields);
  }

  /**
   * SP-97: the columns, with those made nullable that a file may lack although they are required: `names`, and columns with an initial
   * default.
   */
  static StructType notRequired(StructType schema, List<String> names) {
    StructField[] fields = new StructField[schema.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = schema.apply(i);
      boolean nullable =
          field.nullable() || names.contains(field.name()) || field.metadata().contains(EXISTS_DEFAULT);
      fields[i] = new StructField(field.name(), field.dataType(), nullable, field.metadata());
    }
    return new StructType(fields);
  }

  /** The columns with their names in a file without field ids. A field that the file lacks is read as missing. */
  static StructType renamed(StructType schema, Map<Long, String> names) {
    StructField[] fields = new StructField[schema.size()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = schema.apply(i);
      long id = field.metadata().getLong(FIELD_ID);
      String name = names.getOrDefault(id, "\u0000missing field " + id);
      Metadata metadata = new MetadataBuilder().withMetadata(field.metadata()).remove(FIELD_ID).build();
      fields[i] = new StructField(name, typeRenamed(field.dataType(), names), field.nullable(), metadata);
    }
    return new StructType(fields);
  }

  private static DataType typeRenamed(DataType type, Map<Long, String> names) {
    if (type instanceof StructType struct) {
      return renamed(struct, names);
    }
    if (type instanceof ArrayType array) {
      return new ArrayType(typeRenamed(array.elementType(), names), array.containsNull());
    }
    if (type instanceof MapType map) {
      return new MapType(
          typeRenamed(map.keyType(), names), typeRenamed(map.valueType(), names), map.valueContainsNull());
    }
    return type;
  }

  private static DataType typeWithoutIds(DataType type) {
    if (type instanceof StructType struct) {
      return withoutIds(struct);
    }
    if (type instanceof ArrayType array) {
      return new ArrayType(typeWithoutIds(array.elementType()), array.containsNull());
    }
    if (type instanceof MapType map) {
      return new MapType(typeWithoutIds(map.keyType()), typeWithoutIds(map.valueType()), map.valueContainsNull());
    }
    return type;
  }

  private static DataType typeWithIds(DataType wanted, DataType full) {
    if (wanted instanceof StructType struct && full instanceof StructType fullStruct) {
      return withIds(struct, fullStruct);
    }
    if (wanted instanceof ArrayType array && full instanceof ArrayType fullArray) {
      return new ArrayType(typeWithIds(array.elementType(), fullArray.elementType()), array.containsNull());
    }
    if (wanted instanceof MapType map && full instanceof MapType fullMap) {
      return new MapType(
          typeWithIds(map.keyType(), fullMap.keyType()), typeWithIds(map.valueType(), fullMap.valueType()),
          map.valueContainsNull());
    }
    return wanted;
  }
}
