package org.apache.iceberg.rest;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.net.InetSocketAddress;
import java.util.EnumSet;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.responses.LoadTableResponse;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.FilterHolder;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's own REST catalog, as its tests run it, over a catalog in SQLite whose files are in an object store. The
 * adapter's routes are visible in its package alone.
 *
 * <p>Arguments: the token that every request has to carry, then NAME=VALUE for the catalog behind it. Where the files are and
 * with what to open them is told to nobody but in the answer to loading a table. Prints its port; ends when its
 * standard input does.
 */
public final class RestServer {
  public static void main(String[] arguments) throws Exception {
    String token = arguments[0];
    Map<String, String> properties = new TreeMap<>();
    for (int index = 1; index < arguments.length; index++) {
      String[] pair = arguments[index].split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.initialize("rest", properties);
    Map<String, String> vended = new TreeMap<>(properties);
    vended.keySet().removeIf(name -> !name.startsWith("s3.") && !name.equals("client.region"));
    if (properties.containsKey("client.region")) {
      vended.put("s3.region", properties.get("client.region"));
    }

    Filter guard =
        (request, response, chain) -> {
          String given = ((HttpServletRequest) request).getHeader("Authorization");
          if (("Bearer " + token).equals(given)) {
            chain.doFilter(request, response);
            return;
          }
          HttpServletResponse refusal = (HttpServletResponse) response;
          refusal.setStatus(HttpServletResponse.SC_UNAUTHORIZED);
          refusal.setContentType("application/json");
          refusal
              .getWriter()
              .write("{\"error\":{\"message\":\"no such token\",\"type\":\"NotAuthorizedException\",\"code\":401}}");
        };
    ServletContextHandler context = new ServletContextHandler();
    context.addFilter(new FilterHolder(guard), "/*", EnumSet.of(DispatcherType.REQUEST));
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new Vending(catalog, vended))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(server.getURI().getPort());
    while (System.in.read() >= 0) {}
    server.stop();
  }

  /** Adds to what is said of a table how to open its files. */
  private static final class Vending extends RESTCatalogAdapter {
    private final Map<String, String> vended;

    Vending(Catalog catalog, Map<String, String> vended) {
      super(catalog);
      this.vended = vended;
    }

    @Override
    public <T extends RESTResponse> T handleRequest(
        Route route, Map<String, String> variables, Object body, Class<T> type) {
      T answer = super.handleRequest(route, variables, body, type);
      if (answer instanceof LoadTableResponse) {
        LoadTableResponse loaded = (LoadTableResponse) answer;
        return type.cast(
            LoadTableResponse.builder()
                .withTableMetadata(loaded.tableMetadata())
                .addAllConfig(vended)
                .build());
      }
      return answer;
    }
  }
}
