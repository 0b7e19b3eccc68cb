package org.apache.iceberg.rest;

import java.util.Map;
import org.junit.jupiter.api.extension.Extension;

/** In place of Iceberg's class of this name, whose address parameter sets name: there is no REST catalog. */
public class RESTServerExtension implements Extension {
  public RESTServerExtension(Map<String, String> ignoredOptions) {}

  public RESTCatalog client() {
    return new RESTCatalog() {
      @Override public Map<String, String> properties() {
        return Map.of("uri", "http://127.0.0.1:1");
      }
    };
  }
}
