package tableformat.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;

/** PR-25, PR-28: the distinct rows of a table or view as an Arrow stream. Spark reads them; they must fit into the driver's memory. */
final class SourceRows {
  private SourceRows() {}

  /** PR-25: prefixes of the key. `text` names a temporary view, a table with its catalog, or a table of the procedure's catalog. */
  static byte[] ofPrefixes(LakeCatalog catalog, Identifier target, String text) {
    Dataset<Row> rows = Sessions.active().table(name(catalog, text));
    checkPrefixes(catalog, target, text, rows.columns());
    return serialized(rows.distinct());
  }

  /** PR-28: ranges. `text` as above. */
  static byte[] ofRanges(LakeCatalog catalog, String text) {
    Dataset<Row> rows = Sessions.active().table(name(catalog, text));
    checkRanges(text, rows.columns());
    return serialized(rows.distinct());
  }

  private static String name(LakeCatalog catalog, String text) {
    List<String> parts = List.of(TableNames.parts(text));
    var session = Sessions.active().sessionState();
    boolean isComplete = session.catalog().isTempView(Scala.seq(parts))
        || parts.size() > 1 && session.catalogManager().isCatalogRegistered(parts.get(0));
    return isComplete ? text : Names.quoted(catalog.name(), TableNames.parse(catalog.name(), text));
  }

  /** Checks the columns before a wide table is read unnecessarily. */
  private static void checkRanges(String text, String[] columns) {
    for (String column : columns) {
      String name = column.toLowerCase(Locale.ROOT);
      if (!name.startsWith("lower_") && !name.startsWith("upper_")) {
        throw Errors.invalid(
            "source " + text + " has the columns (" + String.join(", ", columns) + "), but " + column + " is not a bound. Nothing was "
                + "changed. Rename the columns to lower_<column> and upper_<column> in a temporary view, and pass the view.");
      }
    }
  }

  /** Checks the columns before a wide table is read unnecessarily. */
  private static void checkPrefixes(LakeCatalog catalog, Identifier target, String text, String[] columns) {
    String[] key = key(catalog, target);
    for (String column : columns) {
      if (!Arrays.asList(key).contains(Names.asStored(column, key))) {
        throw Errors.invalid(
            "source " + text + " has the columns (" + String.join(", ", columns) + "), but " + column + " is not in the key ("
                + String.join(", ", key) + ") of " + Names.quoted(catalog.name(), target) + ". Nothing was changed. Select the leading "
                + "columns of the key in a temporary view, and pass the view.");
      }
    }
  }

  private static String[] key(LakeCatalog catalog, Identifier target) {
    try {
      return catalog.loadTable(target) instanceof LakeTable table ? table.key() : new String[0];
    } catch (NoSuchTableException e) {
      throw Errors.unchecked(e);
    }
  }

  /** Rows as an Arrow stream. */
  static byte[] serialized(Dataset<Row> rows) {
    StructType schema = rows.schema();
    var converter = CatalystTypeConverters$.MODULE$.createToCatalystConverter(schema);
    ArrowWriter values = ArrowWriters.of(schema);
    try {
      for (Iterator<Row> found = rows.toLocalIterator(); found.hasNext();) {
        values.write((InternalRow) converter.apply(found.next()));
      }
      return ArrowStreams.of(values);
    } catch (IOException e) {
      throw Errors.external("the rows of the source cannot be passed on: " + e.getMessage(), e);
    } finally {
      values.root().close();
    }
  }
}
