"""system_metering: what the ledger says of tables, partitions, statements, connections and roles after requests whose charge is known."""
import time
from datetime import datetime, timedelta

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, WriteTimeout
from cassandra.auth import PlainTextAuthProvider
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, SimpleStatement

from tally_server import create_keyspace, create_table, eventually, let_pass

QUORUM = ConsistencyLevel.LOCAL_QUORUM


@pytest.fixture(scope="module")
def session(server):
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "led")
        yield s


def account(session, table, keyspace="led"):
    return session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = %s AND table_name = %s", (keyspace, table)).one()


def test_a_table_is_charged_what_its_statements_said(session):
    create_table(session, "led", "sums", "pk int, ck int, s text static, v blob, PRIMARY KEY (pk, ck)")
    before = account(session, "sums")
    assert (before.read_units, before.write_units, before.requests) == (0, 0, 0)
    insert = session.prepare("INSERT INTO led.sums (pk, ck, v) VALUES (?, ?, ?)")
    for ck in range(5):
        session.execute(insert, (1, ck, bytes(2000)))  # 3 units each
    session.execute("INSERT INTO led.sums (pk, s) VALUES (1, 'static')")  # 1 static unit
    session.execute(SimpleStatement("SELECT * FROM led.sums WHERE pk = 1 AND ck = 1", consistency_level=ConsistencyLevel.LOCAL_ONE))  # 0.5
    session.execute("SELECT * FROM led.sums WHERE pk = 1")  # about 11 KB: 3
    session.execute("INSERT INTO led.sums (pk, ck, v) VALUES (1, 1, 0x00) IF NOT EXISTS")  # not applied: the row there, 3
    after = account(session, "sums")
    assert (after.write_units, after.static_write_units, after.read_units) == (5 * 3 + 1 + 3, 1, 3.5)
    assert (after.requests, after.condition_failed) == (9, 1)
    assert after.entities >= 5 + 1 + 1 + 1 + 6
    with pytest.raises(InvalidRequest):
        session.execute("SELECT nothing FROM led.sums")
    assert account(session, "sums").requests == 9


def test_seconds_and_minutes_are_told_apart(session):
    create_table(session, "led", "paced", "pk int PRIMARY KEY, v int")
    while not in_one_second(session):  # a machine that pauses cuts them in two
        pass
    eventually(lambda: account(session, "paced").write_units_last_second == 0)  # and is forgotten


def in_one_second(session):
    """Seven writes, and a look that does not see them yet, before the second is over; then all of them are seen at once. Whether they came to that."""
    eventually(lambda: time.time() % 1 < 0.1 and account(session, "paced").write_units_last_second == 0)
    second = int(time.time())
    for i in range(7):
        session.execute("INSERT INTO led.paced (pk, v) VALUES (%s, 1)", (i,))
    running = account(session, "paced").write_units_last_second
    if int(time.time()) > second:
        return False
    assert running == 0
    eventually(lambda: int(time.time()) > second)
    seen = account(session, "paced").write_units_last_second
    if int(time.time()) > second + 1:
        return False
    assert seen == 7
    return True


FIGURES = ("read_units", "write_units", "entities", "throttles")


def test_every_subject_has_its_last_second_and_minute(new_server):
    """Of a frozen clock: what was in the second and the minute before, and what is running is not yet told."""
    server = new_server("--ddl-delay", "none", "--control", "on", "--limits", "enforce", "--limit-values", "on-demand-write=5")
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "led")
        create_table(s, "led", "t", "pk int PRIMARY KEY, v blob")
        insert = s.prepare("INSERT INTO led.t (pk, v) VALUES (1, ?)")
        insert.retry_policy = FallthroughRetryPolicy()
        select = SimpleStatement("SELECT * FROM led.t WHERE pk = 1")

        def at(second):
            s.execute("UPDATE system_control.clock SET state = 'frozen', now = %s WHERE name = 'server'", (datetime(2036, 5, 6, 12) + timedelta(seconds=second),))

        def look():
            """Of the partition, the insert, the connection and the role: the figures of the last second and minute."""
            found = {}
            partition = s.execute("SELECT * FROM system_metering.partitions WHERE keyspace_name = 'led'").one()
            statement = [r for r in s.execute("SELECT * FROM system_metering.statements") if r.statement.startswith("INSERT")][0]
            connection = max(s.execute("SELECT * FROM system_metering.connections"), key=lambda r: r.write_units)
            role = s.execute("SELECT * FROM system_metering.roles").one()
            for name, row in (("partition", partition), ("statement", statement), ("connection", connection), ("role", role)):
                found[name] = {w: tuple(getattr(row, f"{f}_{w}") for f in FIGURES) for w in ("last_second", "last_minute")}
            return found

        at(0)
        s.execute(insert, (bytes(10_000),))  # 10 units, of 5 a second: a debt
        s.execute(select)                    # 3
        with pytest.raises(WriteTimeout):
            s.execute(insert, (b"",))
        nothing, both, write = (0, 0, 0, 0), (3, 10, 20, 1), (0, 10, 10, 1)
        assert all(figures == nothing for seen in look().values() for figures in seen.values())
        for second, wanted in ((1, ("last_second",)), (2, ()), (60, ("last_minute",)), (119, ("last_minute",)), (120, ())):
            at(second)
            for name, seen in look().items():
                for window, figures in seen.items():
                    busy = write if name == "statement" else both
                    assert figures == (busy if window in wanted else nothing), (second, name, window)


def test_query_classes_keep_their_density(session):
    create_table(session, "led", "classes", "pk int, ck int, v int, PRIMARY KEY (pk, ck)")
    for ck in range(20):
        session.execute("INSERT INTO led.classes (pk, ck, v) VALUES (1, %s, %s)", (ck, ck))
    session.execute("SELECT * FROM led.classes WHERE pk = 1 AND ck = 3")
    session.execute("SELECT * FROM led.classes WHERE pk = 1 AND ck > 9")
    session.execute("SELECT * FROM led.classes WHERE v = 7 ALLOW FILTERING")
    rows = {r.query_class: r for r in session.execute("SELECT * FROM system_metering.query_classes WHERE keyspace_name = 'led'")
            if r.table_name == "classes"}
    assert set(rows) == {"point", "row_range", "table_scan"}
    assert (rows["point"].reads, rows["point"].rows_returned) == (1, 1)
    assert rows["row_range"].rows_returned == 10
    scan = rows["table_scan"]
    assert (scan.rows_read, scan.rows_returned, scan.density) == (20, 1, 0.05)


def test_hot_partitions_show_their_share_and_error(session):
    create_table(session, "led", "hot", "pk int, ck int, v int, PRIMARY KEY (pk, ck)")
    insert = session.prepare("INSERT INTO led.hot (pk, ck, v) VALUES (?, ?, 1)")
    for i in range(300):
        session.execute(insert, (7 if i % 3 else i, i))
    rows = [r for r in session.execute("SELECT * FROM system_metering.partitions WHERE keyspace_name = 'led'") if r.table_name == "hot"]
    hottest = max(rows, key=lambda r: r.load)
    assert hottest.partition_key == (7).to_bytes(4, "big")
    assert hottest.write_units == 200 and hottest.entities == 200
    assert hottest.load - hottest.load_error <= 3 * 200 <= hottest.load  # a write unit weighs three read units
    assert 0 < hottest.share <= 1


def test_statements_are_known_by_their_shape(session):
    create_table(session, "led", "shapes", "pk int PRIMARY KEY, v text")
    for i in range(4):
        session.execute(f"INSERT INTO led.shapes (pk, v)  VALUES ({i}, 'it''s {i}')")
    session.execute("SELECT * FROM led.shapes WHERE pk IN (1, 2, 3)")
    session.execute("SELECT * FROM led.shapes WHERE pk IN (1, 2)")
    prepared = session.prepare("SELECT v FROM led.shapes WHERE pk = ?")
    for i in range(3):
        session.execute(prepared, (i,))
    rows = {r.statement: r for r in session.execute("SELECT * FROM system_metering.statements") if r.table_name == "shapes"}
    assert rows["INSERT INTO led.shapes(pk, v) VALUES(?)"].executions == 4
    assert rows["SELECT * FROM led.shapes WHERE pk IN(?)"].executions == 2
    assert rows["SELECT * FROM led.shapes WHERE pk IN(?)"].read_units == 5
    assert rows["SELECT v FROM led.shapes WHERE pk = ?"].executions == 3
    batch = BatchStatement()
    for i in range(2):
        batch.add(session.prepare("INSERT INTO led.shapes (pk, v) VALUES (?, ?)"), (i, "b"))
    session.execute(batch)
    rows = {r.statement: r for r in session.execute("SELECT * FROM system_metering.statements") if r.table_name == "shapes"}
    assert (rows["BATCH of 2 on led.shapes"].executions, rows["BATCH of 2 on led.shapes"].write_units) == (1, 4)


def test_connections_and_roles(server, session):
    create_table(session, "led", "who", "pk int PRIMARY KEY, v int")
    with server.cluster(protocol_version=4) as cluster:
        other = cluster.connect("led")
        before = {r.connection_id: r for r in session.execute("SELECT * FROM system_metering.connections")}
        for i in range(25):
            other.execute("INSERT INTO who (pk, v) VALUES (%s, 1)", (i,))
        after = {r.connection_id: r for r in session.execute("SELECT * FROM system_metering.connections")}
        assert all(r.role == "anonymous" and r.address == "127.0.0.1" for r in after.values())
        gained = {i: r.write_units - before[i].write_units for i, r in after.items() if i in before and r.write_units != before[i].write_units}
        assert sum(gained.values()) == 25
        role = session.execute("SELECT * FROM system_metering.roles WHERE role = 'anonymous'").one()
    eventually(lambda: not gained.keys() & {r.connection_id for r in session.execute("SELECT connection_id FROM system_metering.connections")})
    assert session.execute("SELECT * FROM system_metering.roles WHERE role = 'anonymous'").one().write_units >= role.write_units


def test_metrics_have_cloudwatchs_names_and_dimensions(session):
    create_table(session, "led", "watched", "pk int PRIMARY KEY, v blob")
    session.execute("INSERT INTO led.watched (pk, v) VALUES (1, %s)", (bytes(2900),))
    session.execute("INSERT INTO led.watched (pk, v) VALUES (2, 0x00)")
    session.execute("SELECT * FROM led.watched WHERE pk = 1")
    batch = BatchStatement()
    batch.add("INSERT INTO led.watched (pk, v) VALUES (3, 0x00)")
    session.execute(batch)
    with pytest.raises(InvalidRequest):
        session.execute("INSERT INTO led.watched (pk, v) VALUES (%s, 1)", (1,))

    def metric(name, table="watched", operation=None):
        rows = [r for r in session.execute("SELECT * FROM system_metering.metrics WHERE metric_name = %s", (name,))
                if r.table_name == table and operation in (None, r.operation)]
        assert rows and all(r.period == 60 for r in rows)
        return rows

    units = metric("ConsumedWriteCapacityUnits")
    assert sum(r.sum for r in units) == 3 + 1 + 2  # the batch is logged
    assert max(r.maximum for r in units) == 3 and min(r.minimum for r in units) == 1
    assert sum(r.sum for r in metric("SuccessfulRequestCount", operation="INSERT")) == 2
    assert sum(r.sum for r in metric("SuccessfulRequestCount", operation="SELECT")) == 1
    assert sum(r.sample_count for r in metric("SuccessfulRequestLatency", operation="SELECT")) == 1
    assert sum(r.sum for r in metric("SuccessfulRequestCount", "", "BATCH")) >= 1
    assert sum(r.sum for r in metric("ReturnedItemCountBySelect", operation="SELECT")) == 1
    assert sum(r.sum for r in metric("ConsumedReadCapacityUnits")) == 1


@pytest.mark.parametrize("end", ["stop", "kill9"])
def test_the_bill_is_kept_across_restarts(new_server, end):
    server = new_server("--ddl-delay", "none")
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        create_keyspace(s, "led")
        for table in ("kept", "gone"):
            create_table(s, "led", table, "pk int PRIMARY KEY, v int")
            for i in range(10):
                s.execute(f"INSERT INTO led.{table} (pk, v) VALUES (%s, 1)", (i,))
        s.execute("SELECT * FROM led.kept WHERE pk = 1")
        s.execute("DROP TABLE led.gone")
        role = s.execute("SELECT * FROM system_metering.roles").one()
        if end == "kill9":
            let_pass(2.5)  # what is older than a second is written
        before = account(s, "kept")
    server.stop() if end == "stop" else server.kill9()
    server.start()
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        after = account(s, "kept")
        assert (after.write_units, after.read_units, after.requests) == (10, 1, 11) == (before.write_units, before.read_units, before.requests)
        again = s.execute("SELECT * FROM system_metering.roles").one()
        assert (again.write_units, again.read_units, again.entities) == (20, 1, 21) == (role.write_units, role.read_units, role.entities)
        partitions = {r.partition_key: r for r in s.execute("SELECT * FROM system_metering.partitions WHERE keyspace_name = 'led'")}
        statements = {r.statement: r for r in s.execute("SELECT * FROM system_metering.statements")}
        if end == "stop":  # partitions and statements are written once a minute
            assert (partitions[bytes(3) + b"\1"].read_units, partitions[bytes(3) + b"\1"].write_units, len(partitions)) == (1, 1, 10)
            written = statements["INSERT INTO led.kept(pk, v) VALUES(?)"]
            assert (written.executions, written.write_units, written.load, written.table_name) == (10, 10, 30, "kept")
        s.execute("INSERT INTO led.kept (pk, v) VALUES (1, 2)")
        assert account(s, "kept").write_units == 11
        create_table(s, "led", "gone", "pk int PRIMARY KEY, v int")  # of the same name, and another one
        assert account(s, "gone").write_units == 0
    server.stop()


def test_who_logs_in_is_charged_as_that_role(new_server):
    server = new_server("--auth", "password", "--mode", "cassandra")
    login = PlainTextAuthProvider("cassandra", "cassandra")
    with server.cluster(protocol_version=4, auth_provider=login) as cluster:
        s = cluster.connect()
        create_keyspace(s, "led")
        create_table(s, "led", "roles", "pk int PRIMARY KEY, v int")
        for i in range(5):
            s.execute("INSERT INTO led.roles (pk, v) VALUES (%s, 1)", (i,))
        assert s.execute("SELECT write_units FROM system_metering.roles WHERE role = 'cassandra'").one().write_units == 5
        assert {r.role for r in s.execute("SELECT role FROM system_metering.connections")} == {"cassandra"}
