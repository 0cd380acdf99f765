package io.github.tallykeyspaces;

import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** Starts the servers of {@link Tally} and injects them. The store of JUnit closes servers and sessions. */
public final class TallyExtension implements BeforeAllCallback, ParameterResolver {
  private static final Namespace NAMESPACE = Namespace.create(TallyExtension.class);
  private static final String SESSION = "com.datastax.oss.driver.api.core.CqlSession"; // of a driver that may be missing

  // CloseableResource is what JUnit before 5.13 closes; later versions close any AutoCloseable.
  @SuppressWarnings("deprecation")
  private static final class Resource<T extends AutoCloseable> implements CloseableResource, AutoCloseable {
    private final T value;

    Resource(T value) {
      this.value = value;
    }

    @Override
    public void close() throws Exception {
      value.close();
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    server(context);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == TallyServer.class || type == InetSocketAddress.class || type.getName().equals(SESSION);
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    TallyServer server = server(context);
    Class<?> type = parameter.getParameter().getType();
    if (type == TallyServer.class) return server;
    return type == InetSocketAddress.class ? server.address() : Sessions.of(server, context);
  }

  private static TallyServer server(ExtensionContext context) {
    Tally tally = AnnotationSupport.findAnnotation(context.getRequiredTestClass(), Tally.class)
        .orElseThrow(() -> new IllegalStateException(context.getRequiredTestClass() + " has no annotation @Tally"));
    List<Object> key = List.of(tally.mode(), Arrays.asList(tally.flags()));
    return (TallyServer) context.getRoot().getStore(NAMESPACE).getOrComputeIfAbsent(key, k -> {
      try {
        return new Resource<>(TallyServer.start(tally.mode(), tally.flags()));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }, Resource.class).value;
  }

  /** A class of its own, so that the extension works without the driver. */
  private static final class Sessions {
    static CqlSession of(TallyServer server, ExtensionContext context) {
      return ((TestKeyspace) context.getStore(NAMESPACE)
          .getOrComputeIfAbsent(SESSION, k -> new Resource<>(new TestKeyspace(server)), Resource.class).value).session();
    }
  }
}
