package tableformat.spark;

import java.util.List;
import java.util.Map;
import scala.jdk.javaapi.CollectionConverters;

/** Converts to the Scala collections that Spark's constructors require. */
final class Scala {
  private Scala() {}

  @SuppressWarnings("unchecked")
  static <K, V> scala.collection.immutable.Map<K, V> map(Map<K, V> entries) {
    scala.collection.immutable.Map<K, V> result = scala.collection.immutable.Map$.MODULE$.<K, V>empty();
    for (Map.Entry<K, V> entry : entries.entrySet()) {
      result = result.updated(entry.getKey(), entry.getValue());
    }
    return result;
  }

  @SafeVarargs
  static <T> scala.collection.immutable.Seq<T> seq(T... elements) {
    return scala.collection.immutable.ArraySeq.unsafeWrapArray(elements);
  }

  static <T> scala.collection.immutable.Seq<T> seq(List<T> elements) {
    return CollectionConverters.asScala(elements).toSeq();
  }

  static <T> List<T> list(scala.collection.Seq<T> elements) {
    return CollectionConverters.asJava(elements);
  }

  static <K, V> Map<K, V> entries(scala.collection.Map<K, V> entries) {
    return CollectionConverters.asJava(entries);
  }
}
