package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** SQ-34: the distinct values of some columns in the rows of one task, which may be in any order. A row with a null equals no other row. */
final class DistinctValues implements AutoCloseable {
  private final UnsafeProjection projection;
  private final Set<UnsafeRow> known = new HashSet<>();
  private final ArrowWriter values;

  DistinctValues(StructType schema, int[] ordinals) {
    Expression[] references = Arrays.stream(ordinals)
        .mapToObj(i -> new BoundReference(i, schema.apply(i).dataType(), schema.apply(i).nullable()))
        .toArray(Expression[]::new);
    projection = UnsafeProjection.create(Scala.seq(references));
    values = ArrowWriters.of(new StructType(Arrays.stream(ordinals).mapToObj(schema::apply).toArray(StructField[]::new)));
  }

  void add(InternalRow row) {
    UnsafeRow found = projection.apply(row);
    if (!found.anyNull() && !known.contains(found)) {
      UnsafeRow value = found.copy();
      known.add(value);
      values.write(value);
    }
  }

  /** The values as an Arrow stream. */
  byte[] serialized() throws IOException {
    return ArrowStreams.of(values);
  }

  @Override public void close() {
    values.root().close();
  }
}
