package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Import;
import org.springframework.data.cassandra.CassandraInvalidQueryException;
import org.springframework.data.cassandra.core.CassandraTemplate;
import org.springframework.data.cassandra.core.InsertOptions;

@SpringBootTest(properties = { // a build machine may be busy
    "spring.cassandra.request.timeout=2m",
    "spring.cassandra.connection.init-query-timeout=2m",
    "spring.cassandra.controlconnection.timeout=2m"})
@Import(TallyConfiguration.class)
class OrdersTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

  @Autowired private Orders orders;
  @Autowired private CassandraTemplate template;

  /** Each test has a customer of its own, so the tests can share the table. */
  private final String customer = UUID.randomUUID().toString();

  private Order order(int day) {
    return new Order(customer, START.plus(Duration.ofDays(day)), UUID.randomUUID(), new BigDecimal("19.90"));
  }

  @Test
  void ordersAreFoundByCustomerAndTime() {
    List<Order> placed = orders.saveAll(List.of(order(0), order(1), order(31)));
    assertEquals(placed.subList(0, 2), orders.between(customer, START, START.plus(Duration.ofDays(31))));
  }

  @Test
  void anOrderIsPlacedOnce() {
    Order order = order(0);
    InsertOptions once = InsertOptions.builder().withIfNotExists().build();
    assertTrue(template.insert(order, once).wasApplied());
    assertFalse(template.insert(order, once).wasApplied());
  }

  @Test
  void tallyRefusesWhatAmazonKeyspacesRefuses() {
    assertThrows(CassandraInvalidQueryException.class, orders::count);
  }
}
