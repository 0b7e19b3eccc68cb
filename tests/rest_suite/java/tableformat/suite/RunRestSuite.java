package tableformat.suite;

import java.util.List;

/** `RunRestSuite RESULTS CLASS...`: runs the classes against the server at the address in `suite.server`. */
public final class RunRestSuite {
  private RunRestSuite() {}

  public static void main(String[] arguments) {
    ClassRunner.run(arguments, List::of);
  }
}
