package tableformat.suite;

import java.util.Map;

/** The same with the options of Java's client that change its requests: pages, plans on the server, snapshots on demand. */
public class ServedCatalogOptionsTest extends ServedCatalogTest {
  @Override protected Map<String, String> clientProperties() {
    return Map.of("rest-page-size", "1", "scan-planning-mode", "server", "snapshot-loading-mode", "REFS");
  }
}
