package tableformat.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;

/**
 * SP-98: new rows of a task that replace all rows of their prefixes. Rows come sorted: within a partition by prefix, the newest
 * message of a prefix first, and by the rest of the key.
 *
 * <p>Of a prefix the rows of the newest message are written. The commit is told which messages are in which file, and
 * compares them with those of other tasks and partitions.
 */
final class ReplacingRows implements DataWriter<InternalRow> {
  private final DataFiles files;
  private final RefusedRows refused;
  private final WritePlan plan;
  private final UnsafeProjection prefix;
  private final UnsafeProjection order;
  private final UnsafeProjection rest;
  private final ProjectingInternalRow written;
  private final int[] required;
  private final Messages messages;
  private final DistinctPrefixes duplicates;
  private UnsafeRow lastPrefix;
  private UnsafeRow lastOrder;
  private UnsafeRow lastRest;
  private DataFiles.Home home;
  private int lastFile;
  private RowOperations.Kind lastKind;
  private long duplicateCount;

  ReplacingRows(DataFiles files, RefusedRows refused, WritePlan plan) {
    this.files = files;
    this.refused = refused;
    this.plan = plan;
    this.prefix = projection(references(plan, plan.prefix));
    this.order = projection(order(plan));
    this.rest = projection(references(plan, plan.rest));
    int columns = plan.schema.size();
    boolean hasMore = plan.operations != null || Arrays.stream(plan.orderOrdinals).anyMatch(ordinal -> ordinal >= columns);
    List<Object> ordinals = IntStream.range(0, columns).<Object>mapToObj(i -> i).toList();
    this.written = hasMore ? new ProjectingInternalRow(plan.schema, Scala.seq(ordinals).toIndexedSeq()) : null;
    this.required = IntStream.range(0, columns).filter(i -> !plan.schema.apply(i).nullable()).toArray();
    this.messages = new Messages(plan);
    this.duplicates = new DistinctPrefixes(
        plan.schema, IntStream.concat(Arrays.stream(plan.prefix), Arrays.stream(plan.rest)).toArray());
  }

  private static UnsafeProjection projection(List<Expression> expressions) {
    return UnsafeProjection.create(Scala.seq(expressions));
  }

  private static List<Expression> references(WritePlan plan, int[] ordinals) {
    return Arrays.stream(ordinals).<Expression>mapToObj(
        i -> new BoundReference(i, plan.schema.apply(i).dataType(), true)).toList();
  }

  /** Values that are equal have equal bytes. */
  private static List<Expression> order(WritePlan plan) {
    List<Expression> expressions = new ArrayList<>();
    for (int i = 0; i < plan.order.length; i++) {
      DataType type = plan.order[i].dataType();
      Expression value = new BoundReference(plan.orderOrdinals[i], type, true);
      expressions.add(type instanceof DoubleType || type instanceof FloatType ? new NormalizeNaNAndZero(value) : value);
    }
    return expressions;
  }

  @Override public void write(InternalRow row) throws IOException {
    if (refused.failsWrite()) {
      return;
    }
    RowOperations.Kind kind = plan.operations == null ? null : plan.operations.of(row);
    if (kind == RowOperations.Kind.TRUNCATE) {
      messages.add(new GenericInternalRow(plan.prefix.length), order.apply(row), kind, Messages.NO_FILE);
      return;
    }
    if (kind != null) {
      checkKey(row);
    }
    UnsafeRow rowPrefix = prefix.apply(row);
    UnsafeRow rowOrder = order.apply(row);
    boolean samePrefix = rowPrefix.equals(lastPrefix);
    boolean sameOrder = samePrefix && rowOrder.equals(lastOrder);
    if (samePrefix && isAtHome(row) && (!sameOrder || isBefore(kind))) {
      return;
    }
    boolean sameMessage = sameOrder && kind == lastKind;
    UnsafeRow rowRest = rest.apply(row);
    if (kind == null ? isMarker(rowRest) : kind != RowOperations.Kind.UPSERT) {
      if (!sameMessage) {
        note(row, rowPrefix, rowOrder, kind, Messages.NO_FILE);
      }
      noteRest(rowRest);
      return;
    }
    if (sameMessage && plan.ignoresDuplicates && isAtHome(row)) {
      return;
    }
    checkRequired(row);
    if (refused.refuses(row)) {
      return;
    }
    boolean isDuplicate = !plan.ignoresDuplicates && sameMessage && rowRest.equals(lastRest);
    if (isDuplicate && plan.order.length == 0 && duplicateCount++ == 0) {
      duplicates.add(row);
    }
    files.write(written == null ? row : project(row));
    // Another partition or task may have a newer message, so the commit decides about ordered duplicates.
    if (!sameMessage || lastFile != files.number() || isDuplicate) {
      note(row, rowPrefix, rowOrder, kind, files.number());
    }
    noteRest(rowRest);
  }

  /** Whether an event of equal order comes before the last one. */
  private boolean isBefore(RowOperations.Kind kind) {
    return kind != null && Messages.rank(kind) < Messages.rank(lastKind);
  }

  private void checkKey(InternalRow row) {
    for (int ordinal : plan.prefix) {
      if (row.isNullAt(ordinal)) {
        throw Errors.invalid(
            "a row has no value in the key column " + plan.schema.apply(ordinal).name() + ", so the rows to replace are unknown. "
                + "Nothing was written. Remove such rows, or add a key to them.");
      }
    }
  }

  private void noteRest(UnsafeRow rowRest) {
    if (lastRest == null) {
      lastRest = rowRest.copy();
    } else {
      lastRest.copyFrom(rowRest);
    }
  }

  private InternalRow project(InternalRow row) {
    written.project(row);
    return written;
  }

  /** Whether the row is where the last message of its prefix is, so that an older one comes behind it. */
  private boolean isAtHome(InternalRow row) {
    return home == null || files.home(row).equals(home);
  }

  private void note(InternalRow row, UnsafeRow rowPrefix, UnsafeRow rowOrder, RowOperations.Kind kind, int file) {
    lastKind = kind;
    lastPrefix = rowPrefix.copy();
    lastOrder = rowOrder.copy();
    lastFile = file;
    home = plan.partition.length == 0 && plan.ranges == null ? null : files.home(row);
    messages.add(lastPrefix, lastOrder, kind, file);
  }

  /** CP-66: a row without a value in any key column behind the prefix. */
  private boolean isMarker(UnsafeRow rowRest) {
    for (int i = 0; i < plan.rest.length; i++) {
      if (!rowRest.isNullAt(i)) {
        return false;
      }
    }
    return plan.rest.length > 0;
  }

  private void checkRequired(InternalRow row) {
    for (int ordinal : required) {
      if (row.isNullAt(ordinal)) {
        StructField field = plan.schema.apply(ordinal);
        throw Errors.invalid(
            "a row has no value in the column " + field.name() + ", which is required. Nothing was written."
                + (plan.rest.length == 0 ? "" : " A row without values in all key columns after the prefix marks an empty message."));
      }
    }
  }

  @Override public WriterCommitMessage commit() throws IOException {
    ObjectNode header = Json.object();
    if (duplicateCount > 0) {
      header.putObject("duplicates").put("rows", duplicateCount)
          .put("key", Base64.getEncoder().encodeToString(duplicates.serialized()));
    }
    return TaskReport.of(header, files.finish(), Map.of(), messages.serialized(), refused);
  }

  @Override public void abort() throws IOException {
    files.abort();
    refused.abort();
  }

  @Override public void close() {
    refused.close();
    messages.close();
    duplicates.close();
  }
}
