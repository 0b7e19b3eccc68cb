package tableformat.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/** Procedures for CALL, in the namespace "system". */
interface Procedures extends ProcedureCatalog {
  /** Called by Spark since 4.1 to list procedures. */
  default Identifier[] listProcedures(String[] namespace) {
    return LakeCatalog.isSystem(namespace)
        ? Arrays.stream(Json.strings(((LakeCatalog) this).call("list_procedures", Json.object()).result()))
            .map(name -> Identifier.of(namespace, name)).toArray(Identifier[]::new)
        : new Identifier[0];
  }

  @Override default UnboundProcedure loadProcedure(Identifier identifier) {
    LakeCatalog catalog = (LakeCatalog) this;
    return new LakeProcedure(catalog, ProcedureCall.describe(catalog, identifier));
  }
}
