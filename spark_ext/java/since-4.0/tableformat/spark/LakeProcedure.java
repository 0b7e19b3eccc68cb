package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A procedure that CALL runs. Python describes its parameters and executes it. */
final class LakeProcedure implements UnboundProcedure {
  private final LakeCatalog catalog;
  private final JsonNode description;

  LakeProcedure(LakeCatalog catalog, JsonNode description) {
    this.catalog = catalog;
    this.description = description;
  }

  @Override public String name() {
    return description.get("name").asText();
  }

  @Override public String description() {
    return description.get("description").asText();
  }

  @Override public BoundProcedure bind(StructType given) {
    JsonNode described = description.get("parameters");
    ProcedureParameter[] parameters = new ProcedureParameter[described.size()];
    for (int i = 0; i < parameters.length; i++) {
      JsonNode parameter = described.get(i);
      String name = parameter.get("name").asText();
      JsonNode type = parameter.get("type");
      ProcedureParameter.Builder builder = ProcedureParameter
          .in(name, type.isNull() ? typeGiven(given, i, name) : DataType.fromJson(type.toString()))
          .comment(parameter.get("comment").asText());
      parameters[i] = (parameter.get("is_required").asBoolean() ? builder : builder.defaultValue("NULL")).build();
    }
    return new Bound(parameters);
  }

  /** For a parameter that accepts any type: the type of the argument that CALL passes for it, by name or by position. */
  private static DataType typeGiven(StructType given, int place, String name) {
    for (int i = 0; i < given.size(); i++) {
      StructField argument = given.apply(i);
      boolean byName = argument.metadata().contains(ProcedureParameter.BY_NAME_METADATA_KEY);
      if (byName ? argument.name().equalsIgnoreCase(name) : i == place) {
        return argument.dataType();
      }
    }
    return DataTypes.NullType;
  }

  private final class Bound implements BoundProcedure {
    private final ProcedureParameter[] parameters;

    Bound(ProcedureParameter[] parameters) {
      this.parameters = parameters;
    }

    @Override public String name() {
      return LakeProcedure.this.name();
    }

    @Override public String description() {
      return LakeProcedure.this.description();
    }

    @Override public ProcedureParameter[] parameters() {
      return parameters;
    }

    @Override public boolean isDeterministic() {
      return false;
    }

    @Override public Iterator<Scan> call(InternalRow row) {
      DataType[] types = Arrays.stream(parameters).map(ProcedureParameter::dataType).toArray(DataType[]::new);
      return List.<Scan>of(ProcedureCall.run(catalog, description, types, row)).iterator();
    }
  }
}
