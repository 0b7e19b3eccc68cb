package tableformat.suite;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.function.Supplier;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs classes, or `CLASS#METHOD`, one after the other, and writes a line of JSON for each invocation that ends. */
public final class ClassRunner implements TestExecutionListener {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int KEPT_CHARACTERS = 6000;

  private final Path results;
  private final Supplier<List<String>> otherErrors;
  private long started;

  private ClassRunner(Path results, Supplier<List<String>> otherErrors) {
    this.results = results;
    this.otherErrors = otherErrors;
  }

  /**
   * Runs classes.
   *
   * @param arguments the file of results, then the classes
   * @param otherErrors takes the errors that a test passed over since the last call
   */
  static void run(String[] arguments, Supplier<List<String>> otherErrors) {
    ClassRunner listener = new ClassRunner(Path.of(arguments[0]), otherErrors);
    Launcher launcher = LauncherFactory.create();
    for (int i = 1; i < arguments.length; i++) {
      launcher.execute(
          LauncherDiscoveryRequestBuilder.request()
              .selectors(arguments[i].contains("#") ? selectMethod(arguments[i]) : selectClass(arguments[i]))
              .configurationParameter("junit.jupiter.execution.timeout.testable.method.default", System.getProperty("suite.timeout", "120 s"))
              .build(),
          listener);
      listener.write(JSON.createObjectNode().put("class", arguments[i]).put("status", "done"));
    }
  }

  @Override public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      started = System.nanoTime();
      otherErrors.get();
    }
  }

  @Override public void executionSkipped(TestIdentifier test, String reason) {
    write(described(test).put("status", "skipped").put("error", reason));
  }

  @Override public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (!test.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
      return;
    }
    ObjectNode line = described(test);
    line.put("status", switch (result.getStatus()) {
      case SUCCESSFUL -> "passed";
      case ABORTED -> "skipped";
      case FAILED -> "failed";
    });
    line.put("seconds", Math.round((System.nanoTime() - started) / 1e7) / 100.0);
    otherErrors.get().forEach(line.withArray("other_errors")::add);
    result.getThrowable().ifPresent(error -> line.put("error", text(error)));
    write(line);
  }

  private static ObjectNode described(TestIdentifier test) {
    ObjectNode line = JSON.createObjectNode();
    test.getSource().ifPresent(source -> {
      if (source instanceof MethodSource method) {
        line.put("class", method.getClassName()).put("method", method.getMethodName());
      } else if (source instanceof ClassSource type) {
        line.put("class", type.getClassName()).put("method", "");
      }
    });
    return line.put("invocation", test.getDisplayName());
  }

  private static String text(Throwable error) {
    StringWriter written = new StringWriter();
    error.printStackTrace(new PrintWriter(written));
    String text = written.toString();
    return text.length() > KEPT_CHARACTERS ? text.substring(0, KEPT_CHARACTERS) : text;
  }

  private void write(ObjectNode line) {
    try {
      Files.writeString(results, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
