package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * SP-82: changes to the columns of a table so that it accepts rows with other columns. Optional columns are added at the end and types are
 * widened, at every depth. Nothing is dropped, narrowed or made optional.
 */
final class SchemaEvolution {
  private static final List<DataType> INTEGERS =
      List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType);

  private final List<TableChange> changes = new ArrayList<>();

  private SchemaEvolution() {}

  /** The table with the columns that the rows need. If the table could not accept the rows even then, nothing is changed. */
  static LakeTable evolve(LakeTable table, LogicalPlan rows) {
    SchemaEvolution evolution = new SchemaEvolution();
    DataType merged = evolution.merge(table.schema(), rows.schema(), List.of());
    if (evolution.changes.isEmpty()) {
      return table;
    }
    if (table.hasFixedColumns()) {
      throw fixedColumns(table);
    }
    TableOutput.of(table.name(), Scala.list(DataTypeUtils.toAttributes((StructType) merged)), rows);
    try {
      return (LakeTable) table.catalog().alterTable(table.identifier(), evolution.changes.toArray(TableChange[]::new));
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }

  /** The error for a table whose owner allows only ALTER TABLE to change its columns. */
  static RuntimeException fixedColumns(LakeTable table) {
    return Errors.unsupported(
        "Columns of " + table.name() + " cannot be changed by statements that write rows: its owner has set "
            + "write.spark.auto-schema-evolution.enabled to false. Nothing was changed. Remove WITH SCHEMA EVOLUTION "
            + "and mergeSchema, or use ALTER TABLE.");
  }

  /** The new type of the table at this path. Records the changes. */
  private DataType merge(DataType stored, DataType given, List<String> path) {
    if (stored instanceof StructType storedStruct && given instanceof StructType givenStruct) {
      return mergeFields(storedStruct, givenStruct, path);
    }
    if (stored instanceof ArrayType storedArray && given instanceof ArrayType givenArray) {
      DataType element = merge(storedArray.elementType(), givenArray.elementType(), with(path, "element"));
      return new ArrayType(element, storedArray.containsNull());
    }
    if (stored instanceof MapType storedMap && given instanceof MapType givenMap) {
      DataType value = merge(storedMap.valueType(), givenMap.valueType(), with(path, "value"));
      return new MapType(storedMap.keyType(), value, storedMap.valueContainsNull());
    }
    if (isWider(given, stored)) {
      changes.add(TableChange.updateColumnType(path.toArray(String[]::new), given));
      return given;
    }
    return stored;
  }

  private StructType mergeFields(StructType stored, StructType given, List<String> path) {
    List<StructField> merged = new ArrayList<>(Arrays.asList(stored.fields()));
    for (StructField field : given.fields()) {
      int at = indexOf(stored, field.name());
      List<String> place = with(path, at < 0 ? field.name() : stored.apply(at).name());
      if (at < 0) {
        DataType type = field.dataType().asNullable();
        changes.add(
            TableChange.addColumn(place.toArray(String[]::new), type, true, field.getComment().getOrElse(() -> null)));
        merged.add(DataTypes.createStructField(field.name(), type, true));
      } else {
        StructField known = stored.apply(at);
        DataType type = merge(known.dataType(), field.dataType(), place);
        merged.set(at, new StructField(known.name(), type, known.nullable(), known.metadata()));
      }
    }
    return new StructType(merged.toArray(StructField[]::new));
  }

  /** The position of the name, by the session's case sensitivity; -1 if it does not exist. */
  static int indexOf(StructType struct, String name) {
    boolean caseSensitive = SQLConf.get().caseSensitiveAnalysis();
    for (int i = 0; i < struct.size(); i++) {
      String each = struct.apply(i).name();
      if (caseSensitive ? each.equals(name) : each.equalsIgnoreCase(name)) {
        return i;
      }
    }
    return -1;
  }

  /**
   * Whether `than` can be widened to `type`. Supports the widenings of Iceberg's specification for which Spark has types, except those of
   * dates, and also integer types that Iceberg lacks.
   */
  static boolean isWider(DataType type, DataType than) {
    if (type instanceof DecimalType wide && than instanceof DecimalType narrow) {
      return wide.scale() == narrow.scale() && wide.precision() > narrow.precision();
    }
    return INTEGERS.indexOf(type) > INTEGERS.indexOf(than) && INTEGERS.contains(than)
        || type.equals(DataTypes.DoubleType) && than.equals(DataTypes.FloatType);
  }

  /** The type of the rows, with each narrower type replaced by that of the table, at every depth. */
  static DataType widened(DataType given, DataType stored) {
    if (given instanceof StructType givenStruct && stored instanceof StructType storedStruct) {
      StructField[] fields = givenStruct.fields().clone();
      for (int i = 0; i < fields.length; i++) {
        int at = indexOf(storedStruct, fields[i].name());
        DataType type = at < 0 ? fields[i].dataType() : widened(fields[i].dataType(), storedStruct.apply(at).dataType());
        fields[i] = new StructField(fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
      }
      return new StructType(fields);
    }
    if (given instanceof ArrayType givenArray && stored instanceof ArrayType storedArray) {
      return new ArrayType(widened(givenArray.elementType(), storedArray.elementType()), givenArray.containsNull());
    }
    if (given instanceof MapType givenMap && stored instanceof MapType storedMap) {
      return new MapType(
          widened(givenMap.keyType(), storedMap.keyType()), widened(givenMap.valueType(), storedMap.valueType()),
          givenMap.valueContainsNull());
    }
    return isWider(stored, given) ? stored : given;
  }

  private static List<String> with(List<String> path, String name) {
    List<String> longer = new ArrayList<>(path);
    longer.add(name);
    return longer;
  }
}
