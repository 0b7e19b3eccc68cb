package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The messages of one task for the commit: prefix, order columns, and the number of the file that has the rows. Events have their rank
 * behind the order columns (SP-108).
 */
final class Messages implements AutoCloseable {
  /** Of a message without rows. */
  static final int NO_FILE = -1;

  private final ArrowWriter values;
  private final GenericInternalRow file;
  private final JoinedRow key = new JoinedRow();
  private final JoinedRow message = new JoinedRow();

  Messages(WritePlan plan) {
    StructType schema = new StructType();
    for (int ordinal : plan.prefix) {
      StructField field = plan.schema.apply(ordinal);
      // A truncate event is of no key, whichever its row has.
      schema = schema.add(new StructField(field.name(), field.dataType(), true, field.metadata()));
    }
    for (int i = 0; i < plan.order.length; i++) {
      schema = schema.add(new StructField("order " + i, plan.order[i].dataType(), true, plan.order[i].metadata()));
    }
    if (plan.operations != null) {
      schema = schema.add("rank", DataTypes.IntegerType, false);
    }
    file = new GenericInternalRow(plan.operations == null ? 1 : 2);
    values = ArrowWriters.of(schema.add("file", DataTypes.IntegerType, false));
  }

  void add(InternalRow prefix, UnsafeRow order, RowOperations.Kind kind, int number) {
    if (kind != null) {
      file.update(0, rank(kind));
    }
    file.update(file.numFields() - 1, number);
    values.write(message.apply(key.apply(prefix, order), file));
  }

  /** Among events of equal order those that delete come first: an image of a row before its update, and the one after it. */
  static int rank(RowOperations.Kind kind) {
    return kind == RowOperations.Kind.UPSERT ? 1 : 0;
  }

  /** An Arrow stream. */
  byte[] serialized() throws IOException {
    return ArrowStreams.of(values);
  }

  @Override public void close() {
    values.root().close();
  }
}
