package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The messages of one task for the commit: prefix, order columns, and the number of the file that has the rows. */
final class Messages implements AutoCloseable {
  /** Of a message without rows. */
  static final int NO_FILE = -1;

  private final ArrowWriter values;
  private final GenericInternalRow file = new GenericInternalRow(1);
  private final JoinedRow key = new JoinedRow();
  private final JoinedRow message = new JoinedRow();

  Messages(WritePlan plan) {
    StructType schema = new StructType();
    for (int ordinal : plan.prefix) {
      schema = schema.add(plan.schema.apply(ordinal));
    }
    for (int i = 0; i < plan.order.length; i++) {
      schema = schema.add(new StructField("order " + i, plan.order[i].dataType(), true, plan.order[i].metadata()));
    }
    values = ArrowWriters.of(schema.add("file", DataTypes.IntegerType, false));
  }

  void add(UnsafeRow prefix, UnsafeRow order, int number) {
    file.update(0, number);
    values.write(message.apply(key.apply(prefix, order), file));
  }

  /** An Arrow stream. */
  byte[] serialized() throws IOException {
    return ArrowStreams.of(values);
  }

  @Override public void close() {
    values.root().close();
  }
}
