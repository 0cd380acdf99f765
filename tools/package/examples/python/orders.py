"""An example application: the orders of a shop in Amazon Keyspaces."""
import time
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile

TABLES = {
    "orders": "customer text, placed timestamp, id uuid, total decimal, PRIMARY KEY (customer, placed, id)",
    "payments": "order_id uuid PRIMARY KEY, reference text",
}


@dataclass(frozen=True)
class Order:
    customer: str
    placed: datetime
    id: UUID
    total: Decimal


def connect(host, port=9142, timeout=10, **options):
    """A Cluster at LOCAL_QUORUM, the consistency level that Amazon Keyspaces requires for writes."""
    profile = ExecutionProfile(consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=timeout)
    return Cluster([host], port=port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=timeout,
                   control_connection_timeout=timeout, **options)


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def create_schema(session, keyspace):
    """Amazon Keyspaces answers CREATE at once and creates later, so this waits until the tables are ACTIVE."""
    def exists():
        return session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = %s", [keyspace]).one()

    def active():
        query = "SELECT table_name, status FROM system_schema_mcs.tables WHERE keyspace_name = %s"
        rows = session.execute(query, [keyspace])
        return {row.table_name for row in rows if row.status == "ACTIVE"} >= set(TABLES)

    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SingleRegionStrategy'}}")
    wait_until(exists)
    for table, columns in TABLES.items():
        session.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({columns})")
    wait_until(active)


class Orders:
    """All statements that the application sends."""

    def __init__(self, session, keyspace):
        self.session = session
        self.insert = session.prepare(
            f"INSERT INTO {keyspace}.orders (customer, placed, id, total) VALUES (?, ?, ?, ?)")
        self.select = session.prepare(
            f"SELECT customer, placed, id, total FROM {keyspace}.orders"
            " WHERE customer = ? AND placed >= ? AND placed < ?")
        self.insert_payment = session.prepare(
            f"INSERT INTO {keyspace}.payments (order_id, reference) VALUES (?, ?) IF NOT EXISTS")

    def place(self, order):
        self.session.execute(self.insert, (order.customer, order.placed, order.id, order.total))

    def between(self, customer, start, end):
        """The customer's orders from start up to, but not including, end; the oldest first."""
        return [Order(*row) for row in self.session.execute(self.select, (customer, start, end))]

    def pay(self, order, reference):
        """Returns False if the order is already paid."""
        return self.session.execute(self.insert_payment, (order.id, reference)).was_applied
