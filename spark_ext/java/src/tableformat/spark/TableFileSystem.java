package tableformat.spark;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * S3 with the options of one table (LK-15). Uses one instance of Hadoop's S3A for each bucket and set of options; Hadoop's own cache would
 * give the options of the first table to all.
 */
public final class TableFileSystem extends FilterFileSystem {
  private static final String S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem";
  private static final String OPTIONS = "tableformat.s3.options";
  private static final String[] SCHEMES = {"s3", "s3a"};

  /** After this time, vended credentials have expired and their readers have ended. */
  private static final long UNUSED_NANOS = TimeUnit.HOURS.toNanos(24);

  private static final Map<List<String>, Opened> OPENED = new HashMap<>();

  /**
   * Makes tasks with this configuration open S3 with these S3A options. If the configuration names another file system, that one is used.
   */
  static void set(Configuration hadoop, Map<String, String> options) {
    if (options.isEmpty()) {
      hadoop.setIfUnset("fs.s3.impl", S3A);
      return;
    }
    for (String scheme : SCHEMES) {
      String name = "fs." + scheme + ".impl";
      if (hadoop.get(name, S3A).equals(S3A)) {
        hadoop.set(name, TableFileSystem.class.getName());
        hadoop.setBoolean(name + ".disable.cache", true);
      }
    }
    options.forEach(hadoop::set);
    hadoop.setStrings(OPTIONS, options.keySet().stream().sorted().toArray(String[]::new));
  }

  @Override public void initialize(URI name, Configuration configuration) throws IOException {
    setConf(configuration);
    fs = opened(name, configuration);
  }

  /** Does nothing, because others use the same file system. */
  @Override public void close() {}

  private static synchronized FileSystem opened(URI name, Configuration configuration) throws IOException {
    List<String> key = new ArrayList<>(List.of(name.getScheme(), name.getAuthority()));
    for (String option : configuration.getStrings(OPTIONS)) {
      key.add(option + "=" + configuration.get(option));
    }
    long now = System.nanoTime();
    Opened found = OPENED.get(key);
    if (found == null) {
      closeUnused(now);
      found = new Opened(s3a(name, configuration));
      OPENED.put(key, found);
    }
    found.usedNanos = now;
    return found.files;
  }

  private static void closeUnused(long now) throws IOException {
    for (var each = OPENED.values().iterator(); each.hasNext();) {
      Opened opened = each.next();
      if (now - opened.usedNanos > UNUSED_NANOS) {
        each.remove();
        opened.files.close();
      }
    }
  }

  private static FileSystem s3a(URI name, Configuration configuration) throws IOException {
    Class<?> type = configuration.getClassByNameOrNull(S3A);
    if (type == null) {
      throw new IOException(
          name + ": Spark lacks " + S3A + ". Start Spark with the package org.apache.hadoop:hadoop-aws for its version of "
              + "Hadoop, such as spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2.");
    }
    FileSystem files = (FileSystem) ReflectionUtils.newInstance(type, configuration);
    files.initialize(name, configuration);
    return files;
  }

  private static final class Opened {
    final FileSystem files;
    long usedNanos;

    Opened(FileSystem files) {
      this.files = files;
    }
  }
}
