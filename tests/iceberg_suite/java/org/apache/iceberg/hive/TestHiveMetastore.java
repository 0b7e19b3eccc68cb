package org.apache.iceberg.hive;

import org.apache.hadoop.hive.conf.HiveConf;
import tableformat.suite.Lake;

/** In place of Iceberg's class of this name, which each class of tests starts first: a new lake, and no metastore. */
public class TestHiveMetastore {
  public void start() {
    Lake.begin();
  }

  public void stop() {
    Lake.end();
  }

  public HiveConf hiveConf() {
    HiveConf configuration = new HiveConf();
    configuration.set(HiveConf.ConfVars.METASTOREURIS.varname, "");
    return configuration;
  }

  public String getDatabasePath(String name) {
    return Lake.current().directory().resolve(name).toString();
  }
}
