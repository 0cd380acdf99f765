package shop;

import java.math.BigDecimal;
import java.time.Instant;
import java.util.UUID;
import org.springframework.data.cassandra.core.cql.PrimaryKeyType;
import org.springframework.data.cassandra.core.mapping.PrimaryKeyColumn;
import org.springframework.data.cassandra.core.mapping.Table;

@Table(keyspace = "shop", value = "orders")
public record Order(
    @PrimaryKeyColumn(type = PrimaryKeyType.PARTITIONED) String customer,
    @PrimaryKeyColumn(ordinal = 1) Instant placed,
    @PrimaryKeyColumn(ordinal = 2) UUID id,
    BigDecimal total) {}
