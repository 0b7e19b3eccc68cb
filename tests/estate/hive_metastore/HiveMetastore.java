import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/** A Hive metastore on loopback, over Derby in the directory that is named. Prints its port; ends when its standard input does. */
public final class HiveMetastore {
  public static void main(String[] arguments) throws Exception {
    String directory = arguments[0];
    System.setProperty("derby.stream.error.file", directory + "/derby.log");
    Configuration configuration = MetastoreConf.newMetastoreConf();
    MetastoreConf.setVar(configuration, ConfVars.CONNECT_URL_KEY, "jdbc:derby:" + directory + "/metastore;create=true");
    MetastoreConf.setVar(configuration, ConfVars.WAREHOUSE, "file://" + directory + "/warehouse");
    MetastoreConf.setBoolVar(configuration, ConfVars.AUTO_CREATE_ALL, true);
    MetastoreConf.setBoolVar(configuration, ConfVars.SCHEMA_VERIFICATION, false);
    // Defaults that are in other jars of Hive.
    MetastoreConf.setVar(
        configuration,
        ConfVars.EXPRESSION_PROXY_CLASS,
        "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy");
    MetastoreConf.setVar(
        configuration,
        ConfVars.TASK_THREADS_ALWAYS,
        "org.apache.hadoop.hive.metastore.events.EventCleanerTask");
    TxnDbUtil.setConfValues(configuration);
    TxnDbUtil.prepDb(configuration);
    IHMSHandler handler =
        RetryingHMSHandler.getProxy(
            configuration, new HiveMetaStore.HMSHandler("metastore", configuration, false), false);
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", 0));
    TServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor(new TSetIpAddressProcessor<>(handler))
                .transportFactory(new TTransportFactory())
                .protocolFactory(new TBinaryProtocol.Factory()));
    Thread serving = new Thread(server::serve);
    serving.setDaemon(true);
    serving.start();
    System.out.println(socket.getServerSocket().getLocalPort());
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
