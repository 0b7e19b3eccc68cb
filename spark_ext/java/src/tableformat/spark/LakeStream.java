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
 * A read that follows a table. Python says where it begins, how far each micro-batch goes and what is in it. Spark pushes
 * no filters into streams.
 */
final class LakeStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final LakeTable table;
  private final StructType required;
  /** What `stream_open` answered: the arguments of every later call, the first offset, the read limits. */
  private final JsonNode opened;
  /** Where a run ends that reads what is there when it starts; null for one that goes on. */
  private JsonNode stop;
  /** The newest that there was when Spark last asked how far to go. */
  private JsonNode head;
  private ScanFiles files;

  /** `arguments` are the options, and for a stream of changes its range. */
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

  /** Of the micro-batch that was planned last: Spark plans a micro-batch and then asks for its readers. */
  @Override public PartitionReaderFactory createReaderFactory() {
    return files.readerFactory(table.schemaWithIds(), table.lineage(), required, new Predicate[0]);
  }

  /** SS-15: Spark has written down that the micro-batches before the offset are done; it says so before the next one. */
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
