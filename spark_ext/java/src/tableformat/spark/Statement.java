package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.read.Scan;

/**
 * A statement that writes, in versions of Spark that pass statements to catalogs. Each table is loaded once, so that all its reads use the
 * same snapshot (ST-1). The reads of the target table are passed to the commit, where the conflict rules decide (ST-2).
 */
final class Statement {
  private final LakeCatalog catalog;

  /** The loaded tables, by the arguments of the call that loads them: identifier, version and timestamp. */
  private final Map<ObjectNode, Table> tables = new HashMap<>();

  /** The predicates of the scans of each table, by the pin of the table. */
  private final Map<JsonNode, Set<ArrayNode>> reads = new LinkedHashMap<>();

  Statement(LakeCatalog catalog) {
    this.catalog = catalog.within(this);
  }

  /** The copy of the catalog for this statement. */
  LakeCatalog catalog() {
    return catalog;
  }

  synchronized Table loaded(ObjectNode arguments) {
    return tables.get(arguments);
  }

  synchronized void remember(ObjectNode arguments, Table table) {
    tables.put(arguments.deepCopy(), table);
  }

  /**
   * Records an ALTER TABLE within the statement (schema evolution). The table must have the same snapshot as before; otherwise raises a
   * conflict.
   */
  synchronized void rememberAltered(ObjectNode arguments, Table altered) {
    if (tables.get(arguments) instanceof LakeTable before && altered instanceof LakeTable after
        && !before.version().equals(after.version())) {
      throw Errors.conflict(
          "Another commit changed " + after.name() + " while this statement added columns to it. No row was "
              + "written; the new columns remain. Run the statement again.");
    }
    remember(arguments, altered);
  }

  synchronized void noteRead(LakeTable table, ArrayNode predicates) {
    reads.computeIfAbsent(table.pin(), pin -> new LinkedHashSet<>()).add(predicates);
  }

  /** The reads of the table so far: the predicates of each scan. */
  synchronized ArrayNode readsOf(LakeTable table) {
    return Json.array().addAll(reads.getOrDefault(table.pin(), Set.of()));
  }

  /** Whether cached rows have the snapshots that this statement reads, so that they can replace the scans. */
  synchronized boolean mayStandForScans(Scan[] scans) {
    for (Scan scan : scans) {
      if (!(scan instanceof LakeScan lake) || !reads(lake.table())) {
        return false;
      }
    }
    for (Scan scan : scans) {
      ((LakeScan) scan).noteRead(this);
    }
    return true;
  }

  private boolean reads(LakeTable table) {
    return tables.values().stream().anyMatch(each -> each instanceof LakeTable lake && lake.pin().equals(table.pin()));
  }
}
