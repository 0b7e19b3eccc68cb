package tableformat.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.View$;
import org.apache.spark.sql.execution.command.ViewHelper$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A view in the form of Spark's session catalog. This version of Spark reads persistent views in this form only. */
final class V1Views {
  private V1Views() {}

  static CatalogTable table(TableIdentifier name, StructType schema, String sql, Map<String, String> properties) {
    return new CatalogTable(
        name, CatalogTableType.VIEW(), CatalogStorageFormat.empty(), schema, Option.empty(), Scala.seq(), Option.empty(),
        "", 0, 0, "", Scala.map(properties), Option.empty(), Option.apply(sql), Option.empty(), Scala.seq(), false, true,
        Scala.map(Map.of()), Option.apply(sql));
  }

  /** The settings of the session that created the view. */
  static SQLConf settings(View view) {
    return View$.MODULE$.effectiveSQLConf(
        view.desc().viewSQLConfigs(), false);
  }

  /** The properties of the session that Spark would store with a view of this query. */
  static scala.collection.immutable.Map<String, String> described(
      CreateView statement, LogicalPlan query, StructType schema) {
    return ViewHelper$.MODULE$.generateViewProperties(
        Scala.map(Map.of()), Sessions.active(), query, schema.fieldNames(), Scala.seq(), Scala.seq());
  }
}
