package tableformat.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** `spark.sql.extensions = tableformat.spark.SqlExtensions`: adds statements that Spark's grammar lacks, before its own parser (SQ-1). */
public final class SqlExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser((session, parser) -> new SqlParser(parser));
    ViewStatements.readViews(extensions);
    MergeEvolution.check(extensions);
    SchemaMerging.heed(extensions);
    PastStates.keep(extensions);
    InsertReplace.heed(extensions);
    DeleteByKeys.heed(extensions);
    ReplacementColumns.accept(extensions);
    return BoxedUnit.UNIT;
  }
}
