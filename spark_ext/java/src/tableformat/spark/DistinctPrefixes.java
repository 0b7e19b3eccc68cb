package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The distinct values of some leading key columns in the rows of one task. Rows are sorted, so a value is rarely stored twice. */
final class DistinctPrefixes implements AutoCloseable {
  private final UnsafeProjection projection;
  private final ArrowWriter values;
  private UnsafeRow last;

  DistinctPrefixes(StructType schema, int[] ordinals) {
    StructField[] fields = Arrays.stream(ordinals).mapToObj(schema::apply).toArray(StructField[]::new);
    Expression[] references = Arrays.stream(ordinals)
        .mapToObj(i -> new BoundReference(i, schema.apply(i).dataType(), schema.apply(i).nullable()))
        .toArray(Expression[]::new);
    projection = UnsafeProjection.create(Scala.seq(references));
    values = ArrowWriters.of(new StructType(fields));
  }

  void add(InternalRow row) {
    UnsafeRow prefix = projection.apply(row);
    if (!prefix.equals(last)) {
      last = prefix.copy();
      values.write(last);
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
