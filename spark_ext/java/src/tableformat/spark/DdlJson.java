package tableformat.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;

/** Converts CREATE and ALTER statements to JSON. */
final class DdlJson {
  private DdlJson() {}

  /** Arguments for creating a table without constraints. */
  static ObjectNode newTable(
      Identifier identifier, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    ObjectNode arguments = Json.table(identifier);
    arguments.set("columns", columns(columns));
    arguments.set("partitioning", ExpressionJson.of(partitions));
    arguments.set("properties", Json.object(properties));
    arguments.putArray("key");
    arguments.putArray("checks");
    return arguments;
  }

  static ArrayNode columns(Column[] columns) {
    ArrayNode result = Json.array();
    for (Column column : columns) {
      ObjectNode json = result.addObject().put("name", column.name()).put("nullable", column.nullable());
      json.set("type", Json.type(column.dataType()));
      json.put("comment", column.comment());
      putDefault(json, column.defaultValue());
      if (GeneratedColumns.isOne(column)) {
        throw Errors.unsupported("Column " + column.name() + ": generated columns are not supported.");
      }
    }
    return result;
  }

  static ArrayNode changes(TableChange[] changes) {
    ArrayNode result = Json.array();
    for (TableChange change : changes) {
      result.add(change(change));
    }
    return result;
  }

  private static ObjectNode change(TableChange change) {
    ObjectNode json = Json.object().put("change", change.getClass().getSimpleName());
    if (change instanceof TableChange.ColumnChange column) {
      json.set("column", Json.array(column.fieldNames()));
    }
    if (change instanceof TableChange.SetProperty set) {
      json.put("property", set.property()).put("value", set.value());
    } else if (change instanceof TableChange.RemoveProperty remove) {
      json.put("property", remove.property());
    } else if (change instanceof TableChange.AddColumn add) {
      json.put("nullable", add.isNullable()).put("comment", add.comment());
      json.set("type", Json.type(add.dataType()));
      putPosition(json, add.position());
      putDefault(json, add.defaultValue());
    } else if (change instanceof TableChange.RenameColumn rename) {
      json.put("to", rename.newName());
    } else if (change instanceof TableChange.UpdateColumnType type) {
      json.set("type", Json.type(type.newDataType()));
    } else if (change instanceof TableChange.UpdateColumnNullability nullability) {
      json.put("nullable", nullability.nullable());
    } else if (change instanceof TableChange.UpdateColumnComment comment) {
      json.put("comment", comment.newComment());
    } else if (change instanceof TableChange.UpdateColumnPosition position) {
      putPosition(json, position.position());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue update) {
      NewDefaults.put(json, update);
    } else if (change instanceof TableChange.DeleteColumn delete) {
      json.put("if_exists", Boolean.TRUE.equals(delete.ifExists()));
    } else if (!ConstraintJson.putChange(json, change)) {
      throw Errors.unsupported("ALTER TABLE: " + change.getClass().getSimpleName() + " is not supported.");
    }
    return json;
  }

  static ArrayNode changes(NamespaceChange[] changes) {
    ArrayNode result = Json.array();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        result.addObject().put("property", set.property()).put("value", set.value());
      } else if (change instanceof NamespaceChange.RemoveProperty remove) {
        result.addObject().put("property", remove.property()).putNull("value");
      }
    }
    return result;
  }

  private static void putPosition(ObjectNode json, TableChange.ColumnPosition position) {
    if (position instanceof TableChange.After after) {
      json.put("after", after.column());
    } else if (position instanceof TableChange.First) {
      json.put("first", true);
    }
  }

  private static void putDefault(ObjectNode json, ColumnDefaultValue value) {
    if (value != null) {
      json.set("default", ExpressionJson.of(value.getValue()));
    }
  }
}
