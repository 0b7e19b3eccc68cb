package tableformat.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Converts small results that Python computes, such as metadata tables, from an Arrow stream to Spark rows. */
final class ArrowRows {
  private ArrowRows() {}

  /** A scan of rows that are already in memory. */
  record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}

  /** The columns of the stream must have the types of the schema, in the same order. */
  static InternalRow[] read(byte[] stream, StructType schema) {
    List<InternalRow> rows = new ArrayList<>();
    UnsafeProjection copy = UnsafeProjection.create(schema);
    try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("tableformat", 0, Long.MAX_VALUE);
        ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
      VectorSchemaRoot root = reader.getVectorSchemaRoot();
      List<FieldVector> vectors = root.getFieldVectors();
      while (reader.loadNextBatch()) {
        ColumnVector[] columns = new ColumnVector[vectors.size()];
        for (int i = 0; i < columns.length; i++) {
          columns[i] = new ArrowColumnVector(vectors.get(i));
        }
        ColumnarBatch batch = new ColumnarBatch(columns, root.getRowCount());
        for (int row = 0; row < batch.numRows(); row++) {
          rows.add(copy.apply(batch.getRow(row)).copy());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return rows.toArray(new InternalRow[0]);
  }
}
