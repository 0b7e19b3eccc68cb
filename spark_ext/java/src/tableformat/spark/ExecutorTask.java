package tableformat.spark;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import scala.Option;

/**
 * Runs a task of the catalog's Python process in a Python process on an executor. The Spark job has one task, which Spark repeats if it
 * fails.
 */
final class ExecutorTask implements Function<byte[][], byte[]> {
  private static final long serialVersionUID = 1;

  private static final String MODULE = "spark_ext.executor_task";

  /** The job group of all these jobs, for all catalogs. */
  private static final String GROUP = "tableformat-tasks";

  private final String python;

  private ExecutorTask(String python) {
    this.python = python;
  }

  /** The pickled answer to a pickled task. `parts` are the data that the task shares with other tasks, followed by the task. */
  static byte[] run(String python, byte[][] parts) {
    // The context of the thread's session is not used, because the catalog's process may outlive a context that was stopped.
    Option<SparkContext> active = SparkContext$.MODULE$.getActive();
    if (active.isEmpty()) {
      throw new IllegalStateException("the Spark context is no longer active");
    }
    JavaSparkContext spark = JavaSparkContext.fromSparkContext(active.get());
    spark.setJobGroup(GROUP, "rewrite of table files: one task", true);
    return spark.parallelize(List.<byte[][]>of(parts), 1).map(new ExecutorTask(python)).collect().get(0);
  }

  @Override public byte[] call(byte[][] parts) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(python, "-m", MODULE).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try {
      DataOutputStream output = new DataOutputStream(new BufferedOutputStream(process.getOutputStream()));
      for (byte[] part : parts) {
        output.writeInt(part.length);
        output.write(part);
      }
      // The stream is not closed, because the process interprets the end of its input as the end of this executor.
      output.flush();
      byte[] answer = process.getInputStream().readAllBytes();
      int status = process.waitFor();
      if (status != 0) {
        throw new IOException(
            "The task's Python process ended with status " + status + "; see the standard error of the executor. It was "
                + "started as: " + python + " -m " + MODULE);
      }
      return answer;
    } finally {
      process.destroyForcibly();
    }
  }
}
