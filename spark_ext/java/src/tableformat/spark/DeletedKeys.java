package tableformat.spark;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * SP-107: collects the keys of a task's rows, each of which names rows to delete. The keys are passed to the commit; no file is written.
 */
final class DeletedKeys implements DataWriter<InternalRow> {
  private final StructType schema;
  private final int[] key;
  private final DistinctPrefixes keys;
  private final RefusedRows refused;

  /** `key` has the positions of the key columns in rows with the columns of `schema`. */
  DeletedKeys(StructType schema, int[] key, RefusedRows refused) {
    this.schema = schema;
    this.key = key;
    this.keys = new DistinctPrefixes(nullable(schema), key);
    this.refused = refused;
  }

  private static StructType nullable(StructType schema) {
    StructType fields = new StructType();
    for (StructField field : schema.fields()) {
      fields = fields.add(new StructField(field.name(), field.dataType(), true, field.metadata()));
    }
    return fields;
  }

  @Override public void write(InternalRow row) throws IOException {
    checkBegins(row);
    keys.add(row);
  }

  /** Checks that the row has a prefix of the key: values, followed only by nulls. */
  private void checkBegins(InternalRow row) {
    for (int i = 0; i < key.length; i++) {
      if (row.isNullAt(key[i]) && (i == 0 || IntStream.range(i, key.length).anyMatch(each -> !row.isNullAt(key[each])))) {
        throw Errors.invalid(
            "operation=delete: a row has no value in the key column " + schema.apply(key[i]).name() + (i == 0 ? "" : ", but has one in a later key column")
                + ". Nothing was written. A row must have values in all key columns, or in the leading ones to delete all rows "
                + "whose key begins with them.");
      }
    }
  }

  @Override public WriterCommitMessage commit() throws IOException {
    return TaskReport.of(List.of(), Map.of(), keys.serialized(), refused);
  }

  @Override public void abort() {}

  @Override public void close() {
    keys.close();
    refused.close();
  }
}
