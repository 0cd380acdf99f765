package io.github.tallykeyspaces;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import java.time.Duration;
import java.util.UUID;

/** A session in a new keyspace, which is ACTIVE; close() drops it. */
final class TestKeyspace implements AutoCloseable {
  private final String name = "test_" + UUID.randomUUID().toString().replace("-", "").substring(0, 16);
  private final CqlSession session;

  TestKeyspace(TallyServer server) {
    Duration patience = Duration.ofSeconds(60);
    session = CqlSession.builder().addContactPoint(server.address())
        .withConfigLoader(DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.REQUEST_CONSISTENCY, "LOCAL_QUORUM") // Amazon Keyspaces requires it for writes
            .withString(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, "DcInferringLoadBalancingPolicy")
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, patience)
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, patience)
            .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, patience)
            // by default a session waits a second after each DDL statement, and four to close
            .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(1))
            .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0)
            .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0)
            .build())
        .build();
    session.execute("CREATE KEYSPACE " + name + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    TallyTables.waitActive(session, name);
    session.execute("USE " + CqlIdentifier.fromInternal(name));
  }

  CqlSession session() {
    return session;
  }

  @Override
  public void close() {
    session.execute("DROP KEYSPACE " + name);
    session.close();
  }
}
