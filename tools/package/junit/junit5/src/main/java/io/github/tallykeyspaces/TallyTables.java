package io.github.tallykeyspaces;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import java.util.concurrent.TimeUnit;

/** As on Amazon Keyspaces, CREATE and ALTER return before the keyspace or table can be used. */
public final class TallyTables {
  private static final long TIMEOUT = TimeUnit.SECONDS.toNanos(60);

  private TallyTables() {}

  /** Waits until all tables of the session's keyspace are ACTIVE. */
  public static void waitActive(CqlSession session) {
    waitActive(session, session.getKeyspace().map(CqlIdentifier::asInternal)
        .orElseThrow(() -> new IllegalArgumentException("the session has no keyspace")));
  }

  /** Waits until the keyspace exists and all its tables are ACTIVE. */
  public static void waitActive(CqlSession session, String keyspace) {
    long begun = System.nanoTime();
    while (!active(session, keyspace)) {
      if (System.nanoTime() - begun > TIMEOUT) throw new IllegalStateException(keyspace + " has not become ACTIVE in 60 s");
      try {
        Thread.sleep(20);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted", e);
      }
    }
  }

  private static boolean active(CqlSession session, String keyspace) {
    return session.execute("SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = ?", keyspace).one() != null
        && session.execute("SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ?", keyspace).all().stream()
            .allMatch(table -> "ACTIVE".equals(table.getString("status")));
  }
}
