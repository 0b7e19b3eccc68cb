package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.constraints.Check;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.catalog.constraints.PrimaryKey;
import org.apache.spark.sql.connector.expressions.NamedReference;

/** PRIMARY KEY and CHECK as JSON. */
final class ConstraintJson {
  private ConstraintJson() {}

  /** CK-5: adds the key columns and the CHECK constraints. Raises an error for any other constraint, because nothing would enforce it. */
  static void put(ObjectNode json, Constraint[] constraints) {
    ArrayNode key = json.putArray("key");
    ArrayNode checks = json.putArray("checks");
    for (Constraint constraint : constraints) {
      if (constraint instanceof PrimaryKey primary) {
        key.addAll(columns(primary));
      } else if (constraint instanceof Check check && check.enforced()) {
        ObjectNode described = checks.addObject().put("name", check.name()).put("condition", check.predicateSql());
        if (check.predicate() != null) {
          described.set("predicate", ExpressionJson.of(check.predicate()));
        }
      } else {
        throw Errors.unsupported(
            constraint.toDDL() + ": only PRIMARY KEY and enforced CHECK constraints are supported.");
      }
    }
  }

  private static ArrayNode columns(PrimaryKey primary) {
    ArrayNode key = Json.array();
    for (NamedReference column : primary.columns()) {
      if (column.fieldNames().length != 1) {
        throw Errors.unsupported(primary.toDDL() + ": a key column cannot be inside a struct.");
      }
      key.add(column.fieldNames()[0]);
    }
    return key;
  }

  /** Whether the change adds or drops a constraint. */
  static boolean putChange(ObjectNode json, TableChange change) {
    if (change instanceof TableChange.AddConstraint add) {
      put(json, new Constraint[] {add.constraint()});
      json.put("validated_version", add.validatedTableVersion());
      return true;
    }
    if (change instanceof TableChange.DropConstraint drop) {
      json.put("constraint", drop.name()).put("if_exists", drop.ifExists());
      return true;
    }
    return false;
  }
}
