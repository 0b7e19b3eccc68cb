package tableformat.spark;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;

/** Converts errors that Python raised to the exceptions that Spark's callers expect. */
final class Errors {
  private Errors() {}

  /** An error of the user or of the table, as an AnalysisException with a condition and Python's message. */
  static RuntimeException translated(RemoteException error) {
    return unchecked(analysis(error.condition, error.sqlState, error.getMessage(), error));
  }

  /** A failure outside the table: in the Python process, a file or this JVM. */
  static RuntimeException external(String message, Throwable cause) {
    return unchecked(analysis("TABLEFORMAT_EXTERNAL_ERROR", "58000", message, cause));
  }

  /** An exception by which Spark recognizes that a statement or a stream was stopped and did not fail (SS-11). */
  static RuntimeException interrupted(String message, InterruptedException cause) {
    InterruptedIOException interruption = new InterruptedIOException(message);
    interruption.initCause(cause);
    return new UncheckedIOException(message, interruption);
  }

  /** DA-8: a file of the table that is missing or damaged, with the condition of Python's CorruptFileError. */
  static RuntimeException corrupt(String message, Throwable cause) {
    return unchecked(analysis("TABLEFORMAT_CORRUPT_FILE", "58030", message, cause));
  }

  /** A conflict with a concurrent commit; nothing was written. */
  static RuntimeException conflict(String message) {
    return unchecked(analysis("TABLEFORMAT_COMMIT_CONFLICT", "40001", message, null));
  }

  /** SQ-28: uses the condition that Spark itself uses for recursive views. */
  static RuntimeException recursiveView(String message) {
    return unchecked(analysis("RECURSIVE_VIEW", "42K0H", message, null));
  }

  /** A statement that this catalog does not support. */
  static RuntimeException unsupported(String message) {
    return unchecked(analysis("TABLEFORMAT_UNSUPPORTED", "0A000", message, null));
  }

  /** An invalid argument of a statement. */
  static RuntimeException invalid(String message) {
    return unchecked(analysis("TABLEFORMAT_INVALID_ARGUMENT", "22023", message, null));
  }

  static RuntimeException forTable(RemoteException error, Identifier table) throws NoSuchTableException {
    if (error.is("TableNotFoundError") || error.is("NamespaceNotFoundError")) {
      throw new NoSuchTableException(table);
    }
    throw translated(error);
  }

  static RuntimeException forNewTable(RemoteException error, Identifier table)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    if (error.is("AlreadyExistsError")) {
      throw new TableAlreadyExistsException(table);
    }
    throw error.is("NamespaceNotFoundError") ? noSuchNamespace(table.namespace()) : translated(error);
  }

  /** `target` is the new name of the view. */
  static RuntimeException forView(RemoteException error, Identifier view, Identifier target) {
    if (error.is("AlreadyExistsError")) {
      throw unchecked(new ViewAlreadyExistsException(target));
    }
    if (error.is("ViewNotFoundError")) {
      throw unchecked(new NoSuchViewException(view));
    }
    throw error.is("NamespaceNotFoundError") ? noSuchNamespace(target.namespace()) : translated(error);
  }

  static RuntimeException forNamespace(RemoteException error, String[] namespace) throws NoSuchNamespaceException {
    throw error.is("NamespaceNotFoundError") ? noSuchNamespace(namespace) : translated(error);
  }

  static RuntimeException forNewNamespace(RemoteException error, String[] namespace)
      throws NamespaceAlreadyExistsException {
    if (error.is("AlreadyExistsError")) {
      throw new NamespaceAlreadyExistsException(namespace);
    }
    throw translated(error);
  }

  static RuntimeException noSuchNamespace(String[] namespace) {
    return unchecked(new NoSuchNamespaceException(namespace));
  }

  private static AnalysisException analysis(String condition, String sqlState, String message, Throwable cause) {
    return AnalysisErrors.of(condition, sqlState, message, cause);
  }

  /**
   * AnalysisException is a checked exception in Java. Scala has no checked exceptions, so Spark's interfaces do not declare it although
   * Spark catches it.
   */
  static RuntimeException unchecked(Exception exception) {
    return Errors.<RuntimeException>sneak(exception);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Exception> RuntimeException sneak(Exception exception) throws E {
    throw (E) exception;
  }
}
