"""Every metric of CloudWatch's namespace AWS/Cassandra, through a driver: there, with its unit and dimensions, in system_metering.metrics and on /metrics; or named in docs/ledger.md with the
reason why not. Names and dimensions: "Amazon Keyspaces metrics and dimensions", https://docs.aws.amazon.com/keyspaces/latest/devguide/metrics-dimensions.html"""
import re
import urllib.request

import pytest
from cassandra import InvalidRequest, ReadTimeout, WriteTimeout
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement, SimpleStatement

from control import set_clock
from ports import free_port
from tally_server import ROOT, await_active, create_keyspace, create_table, eventually

TABLE, OPERATION, ACCOUNT = "keyspace, table", "keyspace, table, operation", "none"
COUNTED, STANDS, ABSENT = "counter", "gauge", "absent"

# name, unit, dimensions, how it is shown. SystemErrors need a disk that is full (test_disk_full.py): here they are 0 on /metrics, and as on
# CloudWatch no minute has a figure of them.
LISTED = [
    ("ConsumedReadCapacityUnits", "Count", TABLE, COUNTED),
    ("ConsumedWriteCapacityUnits", "Count", TABLE, COUNTED),
    ("ProvisionedReadCapacityUnits", "Count", TABLE, STANDS),
    ("ProvisionedWriteCapacityUnits", "Count", TABLE, STANDS),
    ("BillableTableSizeInBytes", "Bytes", TABLE, STANDS),
    ("ReadThrottleEvents", "Count", OPERATION, COUNTED),
    ("WriteThrottleEvents", "Count", OPERATION, COUNTED),
    ("PerConnectionRequestRateExceeded", "Count", OPERATION, COUNTED),
    ("StoragePartitionThroughputCapacityExceeded", "Count", OPERATION, COUNTED),
    ("SuccessfulRequestCount", "Count", OPERATION, COUNTED),
    ("SuccessfulRequestLatency", "Milliseconds", OPERATION, COUNTED),
    ("SystemErrors", None, OPERATION, COUNTED),
    ("UserErrors", "Count", OPERATION, COUNTED),
    ("ReturnedItemCountBySelect", "Count", OPERATION, COUNTED),
    ("ConditionalCheckFailedRequests", "Count", TABLE, COUNTED),
    ("TTLDeletes", "Count", TABLE, COUNTED),
    ("SystemReconciliationDeletes", None, None, ABSENT),
    ("ReplicationLatency", None, None, ABSENT),
    ("ReturnedRecordsCount", None, None, ABSENT),
    ("AccountMaxTableLevelReads", "Count", ACCOUNT, STANDS),
    ("AccountMaxTableLevelWrites", "Count", ACCOUNT, STANDS),
    ("AccountMaxReads", "Count", ACCOUNT, STANDS),
    ("AccountMaxWrites", "Count", ACCOUNT, STANDS),
    ("AccountProvisionedReadCapacityUtilization", "Percent", ACCOUNT, STANDS),
    ("AccountProvisionedWriteCapacityUtilization", "Percent", ACCOUNT, STANDS),
    ("MaxProvisionedTableReadCapacityUtilization", "Percent", ACCOUNT, STANDS),
    ("MaxProvisionedTableWriteCapacityUtilization", "Percent", ACCOUNT, STANDS),
]
CONNECTION = 250


def once(query):
    return SimpleStatement(query, retry_policy=FallthroughRetryPolicy())


def provisioned(read, write):
    return f"{{'capacity_mode': {{'throughput_mode': 'PROVISIONED', 'read_capacity_units': {read}, 'write_capacity_units': {write}}}}}"


class Account:
    """A server whose clock stands, so that no bucket fills again, with every metric that its statements can provoke."""

    def __init__(self, server, cluster):
        self.server, self.cluster, self.s = server, cluster, cluster.connect()
        create_keyspace(self.s, "cw")
        definition = "(pk int, ck int, v blob, PRIMARY KEY (pk, ck)) WITH"
        for name, options in (("t", "comment = 'on demand'"), ("p", f"CUSTOM_PROPERTIES = {provisioned(10, 20)}"), ("q", f"CUSTOM_PROPERTIES = {provisioned(40, 5)}")):
            self.s.execute(f"CREATE TABLE cw.{name} {definition} {options}")
            await_active(self.s, "cw", name)
        set_clock(self.s, state="frozen")

    def insert(self, table, pk, v=b"", end=""):
        self.s.execute(once(f"INSERT INTO cw.{table} (pk, ck, v) VALUES (%s, 1, %s) {end}"), (pk, v))

    def use(self):
        s = self.s
        self.insert("t", 1, bytes(20_000))
        self.insert("t", 2, b"x")
        self.insert("t", 2, b"x", "IF NOT EXISTS")
        for i in range(3):
            self.insert("p", i, bytes(1500))
        self.insert("q", 1)
        for _ in range(2):
            s.execute("SELECT * FROM cw.p WHERE pk = 1")
        batch = BatchStatement()
        batch.add("INSERT INTO cw.t (pk, ck, v) VALUES (3, 1, 0x00)")
        s.execute(batch)
        s.execute(once("SELECT * FROM cw.t WHERE pk = 1"))

    def fail(self):
        s = self.s
        with pytest.raises(WriteTimeout):
            self.insert("t", 1)          # the partition is in debt
        with pytest.raises(ReadTimeout):
            s.execute(once("SELECT * FROM cw.t WHERE pk = 1"))
        with pytest.raises(InvalidRequest):
            s.execute("INSERT INTO cw.t (pk, ck, v) VALUES (1, 1, 'no blob')")
        before = self.sum("UserErrors", "", "SELECT")  # the driver itself asks for system tables that are not there
        with pytest.raises(InvalidRequest):
            s.execute("SELECT * FROM cw.nowhere")
        assert self.sum("UserErrors", "", "SELECT") == before + 1
        batch = BatchStatement()
        batch.add("INSERT INTO cw.nowhere (pk) VALUES (1)")
        with pytest.raises(InvalidRequest):
            s.execute(batch)
        for query in ("SELEC * FROM cw.t", "INSERT INTO"):
            with pytest.raises(SyntaxException):
                s.execute(query)
        with pytest.raises(SyntaxException):
            s.prepare("SELEC ?")
        with self.server.cluster(protocol_version=4) as cluster:
            other = cluster.connect()
            with pytest.raises(WriteTimeout):
                for i in range(CONNECTION + 1):
                    other.execute(once(f"INSERT INTO cw.t (pk, ck) VALUES ({100 + i}, 1)"))

    def metric(self, name, table=None, operation=None):
        return [r for r in self.s.execute("SELECT * FROM system_metering.metrics WHERE metric_name = %s", (name,))
                if table in (None, r.table_name) and operation in (None, r.operation)]

    def sum(self, name, table=None, operation=None):
        return sum(r.sum for r in self.metric(name, table, operation))

    def size(self, table):
        query = "SELECT billable_bytes FROM system_metering.storage WHERE keyspace_name = 'cw' AND table_name = %s"
        return self.s.execute(query, (table,)).one()[0]

    def scrape(self, query=""):
        """Values by their series; types by their name."""
        with urllib.request.urlopen(f"http://{self.server.admin}/metrics{query}") as answer:
            lines = answer.read().decode().splitlines()
        types = [tuple(line.split()[2:]) for line in lines if line.startswith("# TYPE ")]
        assert len(types) == len({name for name, _ in types}), "a name is introduced once"
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}, dict(types)


@pytest.fixture
def account(new_server):
    server = new_server("--ddl-delay", "none", "--control", "on", "--limits", "enforce", "--limit-values",
                        f"partition-write=15,partition-read=3,connection={CONNECTION}", "--admin-port", str(free_port()))
    with server.cluster(protocol_version=4) as cluster:
        yield Account(server, cluster)


def series_of(name, kind):
    return "aws_cassandra_" + re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower() + ("_total" if kind == COUNTED else "")


def check_row(row, unit, dimensions):
    assert (row.unit, row.period) == (unit, 60)
    assert bool(row.operation) == (dimensions == OPERATION)
    if dimensions == ACCOUNT:
        assert (row.keyspace_name, row.table_name) == ("", "")
    elif row.operation not in ("BATCH", "OTHER") and (row.metric_name, row.operation) != ("UserErrors", "SELECT"):
        assert row.keyspace_name == "cw" and row.table_name in ("t", "p", "q")
    if row.sample_count == 1:
        assert row.minimum == row.maximum == row.sum


def check_series(name, dimensions, kind, account, by_table):
    series = series_of(name, kind)
    for values, types in (account, by_table):
        labels = [set(re.findall(r'(\w+)="', k)) for k in values if re.split(r"\{", k)[0] == series]
        per_table = values is by_table[0] and dimensions != ACCOUNT
        wanted = ({"keyspace", "table_name"} if per_table else set()) | ({"operation"} if dimensions == OPERATION else set())
        hidden = kind == STANDS and dimensions == TABLE and not per_table
        assert bool(labels) != hidden and all(have == wanted for have in labels), (series, labels)
        assert hidden or types[series] == kind


UTILIZATIONS = ["MaxProvisionedTableReadCapacityUtilization", "MaxProvisionedTableWriteCapacityUtilization",
                "AccountProvisionedReadCapacityUtilization", "AccountProvisionedWriteCapacityUtilization"]


def test_every_metric_of_the_namespace(account):
    account.insert("t", 9, b"x", "USING TTL 20")
    set_clock(account.s, advance_ms=11 * 86_400_000)  # what has expired stays for ten days
    account.use()
    account.fail()
    used = {table: account.s.execute("SELECT read_units, write_units FROM system_metering.tables WHERE keyspace_name = 'cw' AND table_name = %s", (table,)).one()
            for table in ("p", "q")}
    set_clock(account.s, advance_ms=60_000)
    used_of = {name: account.sum(name) for name in UTILIZATIONS}  # in the minute that has ended
    set_clock(account.s, advance_ms=120_000)  # on a cluster a row stays for a minute after it has expired
    eventually(lambda: account.metric("TTLDeletes"), "the reclaimer removed nothing", interval=0.5)
    text = (ROOT / "docs" / "ledger.md").read_text()
    everything = list(account.s.execute("SELECT * FROM system_metering.metrics"))
    assert {r.metric_name for r in everything} <= {name for name, *_ in LISTED}
    scrapes = account.scrape(), account.scrape("?per=table")
    for name, unit, dimensions, kind in LISTED:
        rows = [r for r in everything if r.metric_name == name]
        assert bool(rows) == (unit is not None), name
        assert [tuple(r) for r in rows] == [tuple(r) for r in account.metric(name)]
        for row in rows:
            check_row(row, unit, dimensions)
        if kind == ABSENT:
            assert f"`{name}`" in text, "the reason is said"
            assert not any(series_of(name, COUNTED) in k or series_of(name, STANDS) in k for values, _ in scrapes for k in values)
        else:
            check_series(name, dimensions, kind, *scrapes)

    read, write = used["p"][0] / 60 / 10 * 100, used["p"][1] / 60 / 20 * 100
    assert used["p"] == (2, 6) and used["q"] == (0, 1)
    assert [used_of[name] for name in UTILIZATIONS] == pytest.approx([read, write, 2 / 60 / (10 + 40) * 100, (6 + 1) / 60 / (20 + 5) * 100])
    assert account.sum("UserErrors", "t", "INSERT") == 1
    assert account.sum("UserErrors", "", "BATCH") == 1
    assert account.sum("UserErrors", "", "OTHER") == 3  # of what could not be parsed, prepared or not
    assert not account.metric("SuccessfulRequestCount", operation="OTHER")
    assert account.sum("PerConnectionRequestRateExceeded", "t", "INSERT") == 1


def test_the_billable_size_is_that_of_storage_at_once(account):
    for i in range(40):
        account.insert("t", i, bytes(100 + i))
        if i % 10 == 9:
            assert account.sum("BillableTableSizeInBytes", "t") == account.size("t") > 0
    assert account.sum("BillableTableSizeInBytes", "q") == account.size("q") == 0
    before = account.size("t")
    account.s.execute("DELETE FROM cw.t WHERE pk = 1")
    assert account.sum("BillableTableSizeInBytes", "t") == account.size("t") < before


def test_a_scrape_has_the_size_that_was_counted_last_and_says_when(account):
    size = 'aws_cassandra_billable_table_size_in_bytes{keyspace="cw",table_name="p"}'
    age = 'tally_billable_size_age_seconds{keyspace="cw",table_name="p"}'
    account.insert("p", 1, bytes(100))
    assert size not in account.scrape("?per=table")[0], "nobody has asked"
    counted = account.sum("BillableTableSizeInBytes", "p")
    account.insert("p", 2, bytes(100))
    set_clock(account.s, advance_ms=5000)
    values = account.scrape("?per=table")[0]
    assert (values[size], values[age]) == (counted, 5)
    assert account.size("p") > counted
    values = account.scrape("?per=table")[0]
    assert (values[size], values[age]) == (account.size("p"), 0)
    account.s.execute("DROP TABLE cw.p")
    assert size not in account.scrape("?per=table")[0]


def test_a_statement_that_is_to_be_prepared_again_is_nobodys_error(account):
    """A table that is made anew forgets its prepared statements: the driver is told so, and prepares them again. That is neither a request that succeeded nor an error."""
    s = account.s
    create_table(s, "cw", "anew", "pk int PRIMARY KEY")
    insert = s.prepare("INSERT INTO cw.anew (pk) VALUES (?)")
    for batched, operation, table in ((False, "INSERT", "anew"), (True, "BATCH", "")):
        s.execute("DROP TABLE cw.anew")
        create_table(s, "cw", "anew", "pk int PRIMARY KEY")
        before = account.sum("SuccessfulRequestCount", table, operation), account.sum("UserErrors")
        batch = BatchStatement()
        batch.add(insert, (1,))
        future = s.execute_async(batch if batched else insert.bind((1,)))
        future.result()
        assert account.sum("SuccessfulRequestCount", table, operation) == before[0] * batched + 1
        assert account.sum("UserErrors") == before[1]
