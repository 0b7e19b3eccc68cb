package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/**
 * A streaming read of a table. Python determines the first offset, the end of each micro-batch and its files. Spark does not push filters
 * into streams.
 */
final class LakeStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final LakeTable table;
  private final StructType required;
  /** The result of `stream_open`: the arguments of every later call, the first offset and the read limits. */
  private final JsonNode opened;
  /** The end of a run that only reads data that existed when it started; null for a continuous run. */
  private JsonNode stop;
  /** The newest offset when Spark last requested one. */
  private JsonNode head;
  private ScanFiles files;

  /** `arguments` are the options, and the range if it is a stream of changes. */
  LakeStream(LakeTable table, StructType required, ObjectNode arguments) {
    this.table = table;
    this.required = required;
    this.opened = table.catalog().call("stream_open", table.arguments().setAll(arguments)).result();
  }

  @Override public Offset initialOffset() {
    return new StreamOffset(opened.get("begin").toString());
  }

  @Override public Offset deserializeOffset(String json) {
    return new StreamOffset(json);
  }

  @Override public ReadLimit getDefaultReadLimit() {
    JsonNode files = opened.get("limit").get("files");
    JsonNode rows = opened.get("limit").get("rows");
    if (files.isNull()) {
      return rows.isNull() ? ReadLimit.allAvailable() : ReadLimit.maxRows(rows.asLong());
    }
    ReadLimit maxFiles = ReadLimit.maxFiles(files.asInt());
    return rows.isNull() ? maxFiles
        : ReadLimit.compositeLimit(new ReadLimit[] {maxFiles, ReadLimit.maxRows(rows.asLong())});
  }

  @Override public void prepareForTriggerAvailableNow() {
    stop = call("stream_head", arguments()).result();
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark asks with a start and a limit");
  }

  @Override public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode arguments = arguments().set("start", ((StreamOffset) start).tree());
    arguments.set("limit", limits(Json.object().putNull("files").putNull("rows"), limit));
    arguments.set("stop", stop);
    JsonNode latest = call("stream_latest", arguments).result();
    head = latest.get("head");
    return latest.get("end").isNull() ? null : new StreamOffset(latest.get("end").toString());
  }

  private static ObjectNode limits(ObjectNode limits, ReadLimit limit) {
    if (limit instanceof CompositeReadLimit composite) {
      for (ReadLimit each : composite.getReadLimits()) {
        limits(limits, each);
      }
    } else if (limit instanceof ReadMaxFiles files) {
      limits.put("files", files.maxFiles());
    } else if (limit instanceof ReadMaxRows rows) {
      limits.put("rows", rows.maxRows());
    }
    return limits;
  }

  @Override public Offset reportLatestOffset() {
    return head == null ? null : new StreamOffset(head.toString());
  }

  @Override public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ObjectNode arguments = arguments().set("start", ((StreamOffset) start).tree());
    arguments.set("end", ((StreamOffset) end).tree());
    arguments.set("columns", Json.array(required.fieldNames()));
    files = ScanFiles.of(call("stream_files", arguments));
    return Splits.of(files.tasks());
  }

  /** The factory of the micro-batch that was planned last: Spark plans a micro-batch and then requests its readers. */
  @Override public PartitionReaderFactory createReaderFactory() {
    return files.readerFactory(table.schemaWithIds(), table.lineage(), required, new Predicate[0]);
  }

  /** SS-15: Spark has recorded that all micro-batches before the offset are finished. Spark calls this before the next micro-batch. */
  @Override public void commit(Offset end) {
    if (opened.get("has_consumer").asBoolean()) {
      call("stream_commit", arguments().set("end", new StreamOffset(end.json()).tree()));
    }
  }

  @Override public void stop() {}

  private ObjectNode arguments() {
    return Json.object().set("stream", opened.get("stream"));
  }

  private Sidecar.Answer call(String method, ObjectNode arguments) {
    return table.catalog().call(method, arguments);
  }
}
