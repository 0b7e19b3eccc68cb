package tableformat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The Python process that implements the table format. It is called through its standard input and output.
 *
 * <p>A frame consists of a header and parts: the length of the header as a 32-bit big-endian integer, the header as JSON, then the bytes of
 * each part. The header has the lengths of the parts as "parts". Requests have an id. Answers come in any order, so many calls can be in
 * progress at once. The process ends when its input ends, that is, with this JVM. If it dies earlier, the next call starts a new one. The
 * process itself makes one kind of call, for a task on an executor. The answer is sent as a request that is not answered.
 */
final class Sidecar {
  /** One process for each (command, options). It is shared by sessions and by the clones created for streaming queries. */
  private static final Map<String, Sidecar> SHARED = new ConcurrentHashMap<>();

  private static final byte[][] NO_PARTS = {};

  /** The result of a call: JSON, and binary parts that are too large for JSON. */
  record Answer(JsonNode result, byte[][] parts) {}

  private final List<String> command;
  private final ObjectNode options;
  private Connection connection;

  private Sidecar(List<String> command, ObjectNode options) {
    this.command = command;
    this.options = options;
  }

  static Sidecar shared(List<String> command, ObjectNode options) {
    return SHARED.computeIfAbsent(command + options.toString(), key -> new Sidecar(command, options));
  }

  /** Calls a method that may be repeated. If the process dies during the call, it is repeated once in a new process. */
  Answer call(String method, ObjectNode arguments, byte[]... parts) {
    try {
      return connected().call(method, arguments, parts);
    } catch (ProcessEnded ended) {
      return callOnce(method, arguments, parts);
    }
  }

  /** Calls a method at most once. If the process dies during the call, the outcome is unknown and the call fails. */
  Answer callOnce(String method, ObjectNode arguments, byte[]... parts) {
    try {
      return connected().call(method, arguments, parts);
    } catch (ProcessEnded ended) {
      throw Errors.external(ended.getMessage(), ended);
    }
  }

  private synchronized Connection connected() {
    if (connection == null || !connection.isUsable()) {
      connection = Connection.open(command, options);
    }
    return connection;
  }

  /** The process ended before it answered. */
  private static final class ProcessEnded extends RuntimeException {
    ProcessEnded(List<String> command, Throwable cause) {
      super(
          "The Python process of the catalog ended before it answered; see its standard error. It was started as: "
              + String.join(" ", command),
          cause);
    }
  }

  /** One running process. It is not reused after it has died; all calls that wait for it then fail. */
  private static final class Connection {
    private final List<String> command;
    private final Process process;
    private final DataOutputStream output;
    private final AtomicLong lastId = new AtomicLong();
    private final Map<Long, CompletableFuture<Answer>> waiting = new ConcurrentHashMap<>();
    private volatile boolean ended;

    private Connection(List<String> command, Process process) {
      this.command = command;
      this.process = process;
      this.output = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
    }

    static Connection open(List<String> command, ObjectNode options) {
      Process process;
      try {
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
      } catch (IOException e) {
        throw Errors.external(
            "The Python process of the catalog cannot be started: " + e.getMessage()
                + ". Set the catalog option 'python' to a Python that has the library.", e);
      }
      Connection connection = new Connection(command, process);
      Thread reader = new Thread(connection::readAnswers, "tableformat-sidecar-" + process.pid());
      reader.setDaemon(true);
      reader.start();
      try {
        connection.call("start", options, NO_PARTS);
      } catch (ProcessEnded e) {
        throw Errors.external(
            "The Python process of the catalog ended immediately after the start; see its standard error. It was started "
                + "as: " + String.join(" ", command) + ". Set the catalog option 'python' (spark.sql.catalog.NAME.python) to "
                + "a Python that has the library: pip install tableformat.", e);
      } catch (RuntimeException e) {
        process.destroy();
        throw e;
      }
      return connection;
    }

    boolean isUsable() {
      return !ended && process.isAlive();
    }

    Answer call(String method, ObjectNode arguments, byte[][] parts) {
      long id = lastId.incrementAndGet();
      CompletableFuture<Answer> answer = new CompletableFuture<>();
      waiting.put(id, answer);
      try {
        send(Json.object().put("id", id).put("method", method).set("arguments", arguments), parts);
      } catch (IOException e) {
        end(e);
      }
      if (ended) {
        // The reader may have gone through `waiting` before this call was added.
        answer.completeExceptionally(new ProcessEnded(command, null));
      }
      try {
        return answer.get();
      } catch (ExecutionException e) {
        throw (RuntimeException) e.getCause();
      } catch (InterruptedException e) {
        cancel(id);
        Thread.currentThread().interrupt();
        throw Errors.interrupted("The statement was interrupted while it waited for the catalog's Python process.", e);
      }
    }

    /** MT-62: the answer is no longer needed, so the request must not commit anything more. */
    private void cancel(long id) {
      waiting.remove(id);
      try {
        send(Json.object().put("id", 0).put("method", "cancel").set("arguments", Json.object().put("request", id)), NO_PARTS);
      } catch (IOException e) {
        end(e);
      }
    }

    private void send(ObjectNode header, byte[][] parts) throws IOException {
      ArrayNode lengths = header.putArray("parts");
      for (byte[] part : parts) {
        lengths.add(part.length);
      }
      byte[] text = Json.bytes(header);
      synchronized (output) {
        output.writeInt(text.length);
        output.write(text);
        for (byte[] part : parts) {
          output.write(part);
        }
        output.flush();
      }
    }

    private void readAnswers() {
      try (DataInputStream input = new DataInputStream(new BufferedInputStream(process.getInputStream(), 1 << 16))) {
        while (true) {
          JsonNode header = Json.parse(readBytes(input, input.readInt()));
          JsonNode lengths = header.path("parts");
          byte[][] parts = new byte[lengths.size()][];
          for (int i = 0; i < parts.length; i++) {
            parts[i] = readBytes(input, lengths.get(i).asInt());
          }
          if (header.has("call")) {
            long call = header.get("call").asLong();
            Thread task = new Thread(() -> runTask(call, parts), "tableformat-task-" + call);
            task.setDaemon(true);
            task.start();
            continue;
          }
          CompletableFuture<Answer> answer = waiting.remove(header.get("id").asLong());
          if (answer == null) {
            continue; // The caller was interrupted.
          }
          if (header.has("error")) {
            answer.completeExceptionally(RemoteException.of(header.get("error")));
          } else {
            answer.complete(new Answer(header.get("result"), parts));
          }
        }
      } catch (IOException | RuntimeException e) {
        end(e);
      }
    }

    /** MT-100: runs a task from the Python process on an executor. */
    private void runTask(long call, byte[][] parts) {
      ObjectNode arguments = Json.object().put("call", call);
      byte[][] answer = NO_PARTS;
      try {
        answer = new byte[][] {ExecutorTask.run(command.get(0), parts)};
        arguments.putNull("error");
      } catch (Throwable e) {
        // Any failure must be answered, because the Python process waits.
        arguments.put("error", String.valueOf(e.getMessage()).lines().findFirst().orElse(e.toString()));
      }
      try {
        send(Json.object().put("id", 0).put("method", "answer_call").set("arguments", arguments), answer);
      } catch (IOException e) {
        end(e);
      }
    }

    private static byte[] readBytes(DataInputStream input, int length) throws IOException {
      byte[] bytes = new byte[length];
      input.readFully(bytes);
      return bytes;
    }

    private void end(Exception cause) {
      ended = true;
      process.destroy();
      waiting.forEach((id, answer) -> answer.completeExceptionally(new ProcessEnded(command, cause)));
      waiting.clear();
    }
  }
}
