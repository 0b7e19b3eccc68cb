package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Options that select a state of a table. Before 4.3, Spark loads the table without them and scans it with them. */
interface StateOptions {
  /** The table in the state that the options select. Its columns must be those with which the query was analyzed. */
  static LakeTable chosen(LakeTable loaded, CaseInsensitiveStringMap options) {
    if (chooseNone(options)) {
      return loaded;
    }
    LakeTable chosen = new LakeTable(
        loaded.catalog(), loaded.identifier(),
        state(loaded.catalog(), loaded.identifier(), loaded.pin(), options));
    if (!chosen.schemaWithIds().equals(loaded.schemaWithIds())) {
      throw Errors.unsupported(
          loaded.name() + ": the chosen state has other columns than the current table, which this version of Spark "
              + "cannot read with options. Use VERSION AS OF.");
    }
    return chosen;
  }

  /** The pin of a metadata table in the state that the options select. */
  static JsonNode chosenPin(LakeCatalog catalog, Identifier identifier, JsonNode pin, CaseInsensitiveStringMap options) {
    return chooseNone(options) ? pin : state(catalog, identifier, pin, options).get("pin");
  }

  private static boolean chooseNone(CaseInsensitiveStringMap options) {
    return ReadOptions.OF_STATES.stream().noneMatch(options::containsKey);
  }

  private static JsonNode state(
      LakeCatalog catalog, Identifier identifier, JsonNode pin, CaseInsensitiveStringMap options) {
    ObjectNode arguments = Json.table(identifier).set("pin", pin);
    ObjectNode states = Json.object();
    ReadOptions.OF_STATES.stream().filter(options::containsKey).forEach(name -> states.put(name, options.get(name)));
    return catalog.call("load_state", arguments.set("options", states)).result();
  }
}
