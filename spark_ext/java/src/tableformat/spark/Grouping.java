package tableformat.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The partition fields that a scan reports, so that joins do not need an exchange (SP-40). */
record Grouping(Transform[] transforms, StructType fields) {
  private static final String WANTED = "spark.sql.iceberg.planning.preserve-data-grouping";

  /** Null if the session does not request it, or if the table is not partitioned. */
  static Grouping of(LakeTable table) {
    if (!Boolean.parseBoolean(Sessions.active().conf().get(WANTED, "false"))) {
      return null;
    }
    Transform[] transforms = table.partitioning();
    StructType fields = table.groupingFields();
    return transforms.length > 0 && transforms.length == fields.size() ? new Grouping(transforms, fields) : null;
  }

  /** The fields whose source columns are read; null if there are none. */
  Grouping ofColumns(StructType required) {
    List<String> read = List.of(required.fieldNames());
    return among(i -> Arrays.stream(transforms[i].references()).map(NamedReference::fieldNames)
        .allMatch(path -> read.contains(path[0])));
  }

  /** The fields that all of these specs have; null if there are none. */
  Grouping ofSpecs(Set<Integer> specIds, LakeTable table) {
    return among(i -> specIds.stream().allMatch(id -> table.defaultFieldsOf(id).contains(fields.apply(i).name())));
  }

  private Grouping among(IntPredicate isKept) {
    List<Transform> kept = new ArrayList<>();
    List<StructField> keptFields = new ArrayList<>();
    for (int i = 0; i < transforms.length; i++) {
      if (isKept.test(i)) {
        kept.add(transforms[i]);
        keptFields.add(fields.apply(i));
      }
    }
    return kept.isEmpty()
        ? null : new Grouping(kept.toArray(Transform[]::new), new StructType(keptFields.toArray(StructField[]::new)));
  }
}
