package shop;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import java.time.Duration;
import java.time.Instant;
import java.util.function.BooleanSupplier;
import org.springframework.stereotype.Component;

/**
 * Creates the schema. Amazon Keyspaces answers CREATE at once and creates later, so this waits
 * until the table is ACTIVE.
 */
@Component
class Schema {
  private final CqlSession session;

  Schema(CqlSession session) throws InterruptedException {
    this.session = session;
    session.execute("CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SingleRegionStrategy'}");
    waitUntil(() -> one("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'shop'") != null);
    session.execute("CREATE TABLE IF NOT EXISTS shop.orders"
        + " (customer text, placed timestamp, id uuid, total decimal, PRIMARY KEY (customer, placed, id))");
    waitUntil(() -> {
      Row table = one("SELECT status FROM system_schema_mcs.tables"
          + " WHERE keyspace_name = 'shop' AND table_name = 'orders'");
      return table != null && "ACTIVE".equals(table.getString("status"));
    });
  }

  private Row one(String query) {
    return session.execute(query).one();
  }

  private static void waitUntil(BooleanSupplier condition) throws InterruptedException {
    Instant deadline = Instant.now().plus(Duration.ofMinutes(2));
    while (!condition.getAsBoolean()) {
      if (Instant.now().isAfter(deadline)) throw new IllegalStateException("the schema has not become ACTIVE");
      Thread.sleep(50);
    }
  }
}
