package tableformat.suite;

import static net.bytebuddy.matcher.ElementMatchers.named;

import java.util.Arrays;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.loading.ClassReloadingStrategy;
import net.bytebuddy.implementation.MethodDelegation;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.iceberg.spark.SparkSessionCatalog;
import org.apache.spark.sql.SparkSession;

/** Iceberg's own ways from the name of a table in Spark to its Java API lead to the lake's JDBC catalog, and none to its Spark catalogs. */
public final class Redirect {
  private Redirect() {}

  static void install() {
    ByteBuddyAgent.install();
    for (Class<?> catalog : new Class<?>[] {SparkCatalog.class, SparkSessionCatalog.class}) {
      new ByteBuddy().decorate(catalog)
          .visit(Advice.to(Refuse.class).on(named("initialize")))
          .make()
          .load(catalog.getClassLoader(), ClassReloadingStrategy.fromInstalledAgent());
    }
    new ByteBuddy().redefine(Spark3Util.class)
        .method(named("loadIcebergTable").or(named("loadIcebergCatalog")))
        .intercept(MethodDelegation.to(Targets.class))
        .make()
        .load(Spark3Util.class.getClassLoader(), ClassReloadingStrategy.fromInstalledAgent());
  }

  /** Inlined at the beginning of methods that nobody is to call. */
  public static final class Refuse {
    private Refuse() {}

    @Advice.OnMethodEnter
    static void enter() {
      throw new IllegalStateException("a catalog of Iceberg's own is not what is judged");
    }
  }

  /** What is called instead, by the same names. */
  public static final class Targets {
    private Targets() {}

    public static Table loadIcebergTable(SparkSession spark, String name) throws Exception {
      var parts = scala.jdk.javaapi.CollectionConverters.asJava(
          spark.sessionState().sqlParser().parseMultipartIdentifier(name)).toArray(new String[0]);
      boolean named = spark.sessionState().catalogManager().isCatalogRegistered(parts[0]);
      String[] namespace = Arrays.copyOfRange(parts, named ? 1 : 0, parts.length - 1);
      return loadIcebergCatalog(spark, parts[0])
          .loadTable(TableIdentifier.of(Namespace.of(namespace.length == 0 ? new String[] {"default"} : namespace), parts[parts.length - 1]));
    }

    public static Catalog loadIcebergCatalog(SparkSession spark, String name) {
      HiveCatalog catalog = new HiveCatalog();
      catalog.setConf(spark.sessionState().newHadoopConf());
      catalog.initialize(name, java.util.Map.of());
      return catalog;
    }
  }
}
