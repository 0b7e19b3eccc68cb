package tableformat.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import scala.collection.JavaConverters;

/** Converts to the Scala collections that Spark's constructors require. */
final class Scala {
  private Scala() {}

  static <K, V> scala.collection.immutable.Map<K, V> map(Map<K, V> entries) {
    scala.collection.immutable.Map<K, V> result = scala.collection.immutable.Map$.MODULE$.<K, V>empty();
    for (Map.Entry<K, V> entry : entries.entrySet()) {
      result = result.updated(entry.getKey(), entry.getValue());
    }
    return result;
  }

  @SafeVarargs
  static <T> scala.collection.immutable.Seq<T> seq(T... elements) {
    return seq(Arrays.asList(elements));
  }

  static <T> scala.collection.immutable.Seq<T> seq(List<T> elements) {
    return JavaConverters.asScalaBufferConverter(elements).asScala().toList();
  }

  static <T> List<T> list(scala.collection.Seq<T> elements) {
    return JavaConverters.seqAsJavaListConverter(elements).asJava();
  }

  static <K, V> Map<K, V> entries(scala.collection.Map<K, V> entries) {
    return JavaConverters.mapAsJavaMapConverter(entries).asJava();
  }
}
