package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;

/** A table with PRIMARY KEY and CHECK constraints. Spark checks new rows against them. */
interface Constrained extends Table {
  /** Python's description of the table. */
  JsonNode described();

  @Override default Constraint[] constraints() {
    List<Constraint> constraints = new ArrayList<>();
    String[] key = Json.strings(described().get("key"));
    if (key.length > 0) {
      NamedReference[] columns = Arrays.stream(key).map(name -> Expressions.column(Names.quoted(name)))
          .toArray(NamedReference[]::new);
      constraints.add(Constraint.primaryKey("key", columns).enforced(false).build());
    }
    Json.map(described().get("checks")).forEach((name, condition) -> constraints.add(
        Constraint.check(name).predicateSql(condition).enforced(true)
            .validationStatus(Constraint.ValidationStatus.VALID).build()));
    return constraints.toArray(new Constraint[0]);
  }
}
