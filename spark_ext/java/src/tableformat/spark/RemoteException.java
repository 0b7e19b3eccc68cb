package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;

/** An error that Python raised. `Errors` converts it to the corresponding exception of Spark. */
final class RemoteException extends RuntimeException {
  /** Name of the Python class by which callers distinguish errors, such as "TableNotFoundError". */
  final String type;

  /** Error condition in Spark's spelling, such as "TABLEFORMAT_COMMIT_CONFLICT". */
  final String condition;

  /** Standard SQLSTATE of the condition. */
  final String sqlState;

  private RemoteException(String type, String condition, String sqlState, String message) {
    super(message);
    this.type = type;
    this.condition = condition;
    this.sqlState = sqlState;
  }

  static RemoteException of(JsonNode error) {
    return new RemoteException(
        error.get("type").asText(), error.get("condition").asText(), error.get("sql_state").asText(),
        error.get("message").asText());
  }

  boolean is(String type) {
    return this.type.equals(type);
  }
}
