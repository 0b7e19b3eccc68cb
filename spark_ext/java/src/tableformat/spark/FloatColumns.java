package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Statistics of the floating point columns of a file that a Parquet footer lacks: the number of NaN values, and the range of the other
 * values. Columns inside lists and maps are omitted.
 */
final class FloatColumns {
  private final List<Column> columns = new ArrayList<>();

  /** The columns of a new file. */
  FloatColumns(WritePlan plan) {
    if (hasFloats(plan.schema)) {
      find(plan.schema, plan.columns(), new int[0], new int[0]);
    }
  }

  private static boolean hasFloats(StructType struct) {
    return Arrays.stream(struct.fields()).anyMatch(field -> field.dataType() instanceof StructType inner
        ? hasFloats(inner) : isFloat(field.dataType()));
  }

  private static boolean isFloat(DataType type) {
    return type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType);
  }

  private void find(StructType struct, JsonNode trees, int[] around, int[] sizes) {
    for (int i = 0; i < struct.size(); i++) {
      DataType type = struct.apply(i).dataType();
      int[] path = Arrays.copyOf(around, around.length + 1);
      path[around.length] = i;
      if (type instanceof StructType inner) {
        int[] innerSizes = Arrays.copyOf(sizes, sizes.length + 1);
        innerSizes[sizes.length] = inner.size();
        find(inner, trees.get(i).get("fields"), path, innerSizes);
      } else if (isFloat(type)) {
        columns.add(new Column(trees.get(i).get("id").asInt(), path, sizes, type.equals(DataTypes.FloatType)));
      }
    }
  }

  void add(InternalRow row) {
    for (Column column : columns) {
      column.add(row);
    }
  }

  /** Writes the statistics in the form that `task_reports.py` reads. */
  void write(ArrayNode array) {
    for (Column column : columns) {
      ObjectNode json = array.addObject().put("id", column.id).put("nans", column.nanCount);
      if (column.nanCount > 0 && column.lowest <= column.highest) {
        json.put("lowest", Double.toString(column.lowest)).put("highest", Double.toString(column.highest));
      }
    }
  }

  private static final class Column {
    private final int id;
    private final int[] path;

    /** The number of fields of each struct on the path. */
    private final int[] sizes;
    private final boolean isSingle;
    private long nanCount = 0;
    private double lowest = Double.POSITIVE_INFINITY;
    private double highest = Double.NEGATIVE_INFINITY;

    Column(int id, int[] path, int[] sizes, boolean isSingle) {
      this.id = id;
      this.path = path;
      this.sizes = sizes;
      this.isSingle = isSingle;
    }

    void add(InternalRow row) {
      InternalRow struct = row;
      for (int i = 0; i < sizes.length; i++) {
        if (struct.isNullAt(path[i])) {
          return;
        }
        struct = struct.getStruct(path[i], sizes[i]);
      }
      int last = path[sizes.length];
      if (struct.isNullAt(last)) {
        return;
      }
      double value = isSingle ? struct.getFloat(last) : struct.getDouble(last);
      if (Double.isNaN(value)) {
        nanCount++;
      } else {
        lowest = Math.min(lowest, value);
        highest = Math.max(highest, value);
      }
    }
  }
}
