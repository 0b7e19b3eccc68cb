package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The changes of a table. Python returns the rows that were deleted and inserted. If the table has a key, Spark derives updates and net
 * changes from them.
 */
final class LakeChangelog implements Changelog {
  private final LakeTable table;
  private final ChangelogContext context;
  private final StructType schema;
  private final NamedReference[] key;

  LakeChangelog(LakeTable table, ChangelogContext context, JsonNode description) {
    this.table = table;
    this.context = context;
    this.key = Arrays.stream(Json.strings(description.get("key")))
        .map(name -> Expressions.column(Names.quoted(name))).toArray(NamedReference[]::new);
    StructType all = table.rowType();
    for (var column : Schemas.withoutIds(Json.struct(description.get("feed_columns"))).fields()) {
      all = all.add(column);
    }
    this.schema = all;
    if (derives() && !hasKey()) {
      throw Errors.unsupported(
          "computeUpdates and netChanges need the key of a table, but " + table.name() + " has no key.");
    }
  }

  /** Arguments that state the range: `start` and `end`. Each is null, or a version or time and whether it is inclusive. */
  static ObjectNode bounds(ChangelogRange range) {
    ObjectNode bounds = Json.object().putNull("start").putNull("end");
    if (range instanceof ChangelogRange.VersionRange versions) {
      bounds.set("start", version(versions.startingVersion(), range.startingBoundInclusive()));
      versions.endingVersion().ifPresent(end -> bounds.set("end", version(end, range.endingBoundInclusive())));
    } else if (range instanceof ChangelogRange.TimestampRange times) {
      bounds.set("start", time(times.startingTimestamp(), range.startingBoundInclusive()));
      times.endingTimestamp().ifPresent(end -> bounds.set("end", time(end, range.endingBoundInclusive())));
    }
    return bounds;
  }

  private static ObjectNode version(String version, boolean isInclusive) {
    return Json.object().put("version", version).put("inclusive", isInclusive);
  }

  private static ObjectNode time(long micros, boolean isInclusive) {
    return Json.object().put("micros", micros).put("inclusive", isInclusive);
  }

  /** Whether Spark derives updates or net changes from the rows. */
  private boolean derives() {
    return context.computeUpdates()
        || context.deduplicationMode() == ChangelogContext.DeduplicationMode.NET_CHANGES;
  }

  private boolean hasKey() {
    return key.length > 0;
  }

  @Override public String name() {
    return table.name() + " [changes]";
  }

  @Override public Column[] columns() {
    return Schemas.columns(schema, table.schemaWithIds());
  }

  @Override public boolean containsCarryoverRows() {
    return false;
  }

  @Override public boolean containsIntermediateChanges() {
    return hasKey();
  }

  @Override public boolean representsUpdateAsDeleteAndInsert() {
    return hasKey();
  }

  @Override public NamedReference[] rowId() {
    return key;
  }

  /** Spark requests this column together with each row id. It reads it only if rows may be carried over, which does not happen here. */
  @Override public NamedReference rowVersion() {
    return Expressions.column("_commit_version");
  }

  @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ObjectNode changes = Json.object().put("derives", derives()).set("bounds", bounds(context.range()));
    return new ChangesScan.Builder(table, schema, changes, options);
  }
}
