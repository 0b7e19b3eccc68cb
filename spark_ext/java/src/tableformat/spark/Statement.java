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
 * One statement that writes, where Spark tells catalogs of statements. Each table is loaded once, so that all its reads
 * see one snapshot (ST-1), and what was read of the table that is written to goes along with the commit, where the
 * conflict rules decide (ST-2).
 */
final class Statement {
  private final LakeCatalog catalog;

  /** By the arguments of the call that loads them: identifier, version and timestamp. */
  private final Map<ObjectNode, Table> tables = new HashMap<>();

  /** By the pin of a table the predicates of each of its scans. */
  private final Map<JsonNode, Set<ArrayNode>> reads = new LinkedHashMap<>();

  Statement(LakeCatalog catalog) {
    this.catalog = catalog.within(this);
  }

  /** The catalog as this statement sees it. */
  LakeCatalog catalog() {
    return catalog;
  }

  synchronized Table loaded(ObjectNode arguments) {
    return tables.get(arguments);
  }

  synchronized void remember(ObjectNode arguments, Table table) {
    tables.put(arguments.deepCopy(), table);
  }

  /** ALTER TABLE within the statement (schema evolution): the same rows in a new schema, or a conflict. */
  synchronized void rememberAltered(ObjectNode arguments, Table altered) {
    if (tables.get(arguments) instanceof LakeTable before && altered instanceof LakeTable after
        && !before.version().equals(after.version())) {
      throw Errors.conflict(
          "Another commit changed " + after.name() + " while its columns were changed for this statement. No row was "
              + "written; the new columns stay. Run the statement again.");
    }
    remember(arguments, altered);
  }

  synchronized void noteRead(LakeTable table, ArrayNode predicates) {
    reads.computeIfAbsent(table.pin(), pin -> new LinkedHashSet<>()).add(predicates);
  }

  /** What was read of the table so far: the predicates of each scan. */
  synchronized ArrayNode readsOf(LakeTable table) {
    return Json.array().addAll(reads.getOrDefault(table.pin(), Set.of()));
  }

  /** Whether cached rows are of the snapshots that this statement reads, so that they may stand for the scans. */
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
