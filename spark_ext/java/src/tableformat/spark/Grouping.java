package tableformat.spark;

import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** What a scan has to know of its table's partitioning to report it, so that joins need no exchange (SP-40). */
record Grouping(Transform[] transforms, StructType fields, int specId) {
  private static final String WANTED = "spark.sql.iceberg.planning.preserve-data-grouping";

  /** Null where the session does not ask for it, and for a table without partitions. */
  static Grouping of(LakeTable table) {
    if (!Boolean.parseBoolean(Sessions.active().conf().get(WANTED, "false"))) {
      return null;
    }
    Transform[] transforms = table.partitioning();
    StructType fields = table.partitionSchema();
    boolean isKnown = transforms.length > 0 && transforms.length == fields.size();
    return isKnown ? new Grouping(transforms, fields, table.described().get("spec_id").asInt()) : null;
  }
}
