package tableformat.suite;

/** `RunSuite RESULTS CLASS...`: runs the classes of Iceberg's Spark tests with our catalog in place of Iceberg's. */
public final class RunSuite {
  private RunSuite() {}

  public static void main(String[] arguments) {
    Redirect.install();
    ErrorWording.install();
    ClassRunner.run(arguments, ErrorWording::taken);
    Lake.end();
    // Threads of Spark's may still be there.
    Runtime.getRuntime().halt(0);
  }
}
