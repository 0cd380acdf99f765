package shop;

import java.time.Instant;
import java.util.List;
import org.springframework.data.cassandra.core.mapping.MapId;
import org.springframework.data.cassandra.repository.CassandraRepository;
import org.springframework.data.cassandra.repository.Query;

public interface Orders extends CassandraRepository<Order, MapId> {
  /** The customer's orders from start up to, but not including, end; the oldest first. */
  @Query("SELECT * FROM shop.orders WHERE customer = ?0 AND placed >= ?1 AND placed < ?2")
  List<Order> between(String customer, Instant start, Instant end);
}
