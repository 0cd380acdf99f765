"""system_control.faults: requests that a test has fail, wait or lose their connection, before or after they are applied."""
import time

import pytest
from cassandra import (
    AlreadyExists, ConsistencyLevel, FunctionFailure, InvalidRequest, OperationTimedOut, ReadFailure, ReadTimeout, Unauthorized, Unavailable, WriteFailure, WriteTimeout, WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.policies import FallthroughRetryPolicy, RetryPolicy
from cassandra.protocol import CDCWriteException, ConfigurationException, IsBootstrappingErrorMessage, OverloadedErrorMessage, ProtocolException, ServerError, SyntaxException, TruncateError
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from control import set_fault
from tally_server import Server, create_keyspace, create_table, eventually, let_pass


PROTOCOL = ("--protocol", "5")  # CDC_WRITE_FAILURE came with it


class Counting(RetryPolicy):
    """Says what it was asked; retries once where it may."""

    def __init__(self):
        self.asked = []

    def _note(self, kind, retry_num, **what):
        self.asked.append((kind, what))
        return (self.RETRY, None) if retry_num == 0 else (self.RETHROW, None)

    def on_read_timeout(self, query, consistency, required_responses, received_responses, data_retrieved, retry_num):
        return self._note("read timeout", retry_num, level=consistency, required=required_responses, received=received_responses, data=data_retrieved)

    def on_write_timeout(self, query, consistency, write_type, required_responses, received_responses, retry_num):
        return self._note("write timeout", retry_num, level=consistency, type=write_type, required=required_responses, received=received_responses)

    def on_unavailable(self, query, consistency, required_replicas, alive_replicas, retry_num):
        return self._note("unavailable", retry_num, level=consistency, required=required_replicas, alive=alive_replicas)

    def on_request_error(self, query, consistency, error, retry_num):
        return self._note(type(error).__name__, retry_num)


@pytest.fixture
def faulty(controlled):
    def start(*flags):
        server, session = controlled("--ddl-delay", "none", *PROTOCOL, *flags)
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, v text")
        return server, session
    return start


def once(statement):
    return SimpleStatement(statement, retry_policy=FallthroughRetryPolicy(), is_idempotent=False)


def counts(session, name):
    row = session.execute("SELECT matched, hits FROM system_control.faults WHERE name = %s", (name,)).one()
    return row and (row.matched, row.hits)


def units(session):
    """Write units, requests and system errors of k.t."""
    row = session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = 'k' AND table_name = 't'").one()
    return (row.write_units, row.read_units) if row else (0, 0)


def test_it_is_not_there_unless_asked_for(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        with pytest.raises(InvalidRequest, match="system_control is off: it is there when tallyd is started with --control on"):
            cluster.connect().execute("INSERT INTO system_control.faults (name, error) VALUES ('f', 'Overloaded')")


@pytest.mark.parametrize("error, raised", [
    ("Overloaded", OverloadedErrorMessage), ("IsBootstrapping", IsBootstrappingErrorMessage), ("ServerError", ServerError), ("TruncateError", TruncateError),
    ("WriteTimeout", WriteTimeout), ("ReadTimeout", ReadTimeout), ("Unavailable", Unavailable), ("WriteFailure", WriteFailure), ("ReadFailure", ReadFailure),
    ("FunctionFailure", FunctionFailure), ("AlreadyExists", AlreadyExists), ("Invalid", InvalidRequest), ("Unauthorized", Unauthorized), ("SyntaxError", SyntaxException),
    ("ConfigError", ConfigurationException), ("CDCWriteFailure", CDCWriteException)])
def test_every_error_of_the_protocol_reaches_the_driver_as_its_own(faults_server, error, raised):
    session = faults_server
    set_fault(session, "f", error=error, message=f"told to: {error}")
    with pytest.raises((raised, NoHostAvailable)) as e:
        session.execute(once("INSERT INTO k.t (p, v) VALUES (1, 'x')"))
    found = e.value if isinstance(e.value, raised) else list(e.value.errors.values())[0]
    assert isinstance(found, raised), found
    assert error in ("AlreadyExists",) or "told to" in str(found) or f"told to: {error}" in getattr(found, "message", "")
    session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
    assert session.execute("SELECT * FROM k.t WHERE p = 1").one() is None
    session.execute(once("INSERT INTO k.t (p, v) VALUES (1, 'x')"))
    session.execute("DELETE FROM k.t WHERE p = 1")


@pytest.fixture(scope="module")
def faults_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("faults"), "--control", "on", "--ddl-delay", "none", *PROTOCOL).start()
    cluster = server.cluster(schema_metadata_enabled=False)
    session = cluster.connect()
    create_keyspace(session, "k")
    create_table(session, "k", "t", "p int PRIMARY KEY, v text")
    yield session
    cluster.shutdown()
    assert server.alive(), server.log_tail()
    server.stop()


@pytest.mark.parametrize("fields, asked", [
    (dict(error="WriteTimeout", received=1, required=3, write_type="BATCH_LOG", consistency="EACH_QUORUM"),
     ("write timeout", dict(level=ConsistencyLevel.EACH_QUORUM, type=WriteType.BATCH_LOG, required=3, received=1))),
    (dict(error="WriteTimeout"), ("write timeout", dict(level=ConsistencyLevel.LOCAL_QUORUM, type=WriteType.SIMPLE, required=1, received=0))),
    (dict(error="ReadTimeout", received=2, required=2, data_present=True),
     ("read timeout", dict(level=ConsistencyLevel.LOCAL_QUORUM, required=2, received=2, data=True))),
    (dict(error="Unavailable", received=1, required=2, consistency="QUORUM"), ("unavailable", dict(level=ConsistencyLevel.QUORUM, required=2, alive=1))),
    (dict(error="Overloaded"), ("OverloadedErrorMessage", {}))])
def test_a_retry_policy_is_asked_with_the_fields_and_its_retry_succeeds(faults_server, fields, asked):
    session, policy = faults_server, Counting()
    set_fault(session, "first", nth=1, statement="INSERT", **fields)
    session.execute(SimpleStatement("INSERT INTO k.t (p, v) VALUES (2, 'retried')", retry_policy=policy, is_idempotent=True))
    assert policy.asked == [asked]
    assert counts(session, "first") == (2, 1)  # the request and its retry
    assert session.execute("SELECT v FROM k.t WHERE p = 2").one().v == "retried"
    session.execute("DELETE FROM system_control.faults WHERE name = 'first'")
    session.execute("DELETE FROM k.t WHERE p = 2")


class RetryWritesOnce(RetryPolicy):
    """The example of docs/faults.md."""

    def on_write_timeout(self, query, consistency, write_type, required_responses, received_responses, retry_num):
        if retry_num == 0 and query.is_idempotent:
            return self.RETRY, consistency
        return self.RETHROW, None


def test_the_documented_retry_policy(faults_server):
    session = faults_server
    insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, ?)")
    for idempotent, seen in ((True, (2, 1)), (False, (1, 1))):
        session.execute("INSERT INTO system_control.faults (name, statement, nth, moment, error) VALUES ('f', 'INSERT', 1, 'after', 'WriteTimeout')")
        insert.is_idempotent = idempotent
        insert.retry_policy = RetryWritesOnce()
        try:
            session.execute(insert, (31, "x"))
            assert idempotent
        except WriteTimeout:
            assert not idempotent
        assert counts(session, "f") == seen
        session.execute("DELETE FROM system_control.faults WHERE name = 'f'")


@pytest.mark.parametrize("threads", ["1", "2"])
def test_before_leaves_no_data_and_after_leaves_it_applied(faulty, threads):
    """Whatever way a statement goes: on the loop, on a worker (a condition), prepared, in a batch. Before costs nothing, after what it did."""
    server, session = faulty("--threads", threads)
    prepared = session.prepare("INSERT INTO k.t (p, v) VALUES (?, 'prepared')")
    prepared.retry_policy = FallthroughRetryPolicy()
    batch = BatchStatement(retry_policy=FallthroughRetryPolicy())
    batch.add(prepared, (4,))
    ways = {1: once("INSERT INTO k.t (p, v) VALUES (1, 'x')"), 2: once("INSERT INTO k.t (p, v) VALUES (2, 'x') IF NOT EXISTS"), 3: prepared.bind((3,)), 4: batch,
            5: once("BEGIN BATCH INSERT INTO k.t (p, v) VALUES (5, 'x') APPLY BATCH")}
    for delay in (0, 30):
        for p, statement in ways.items():
            for moment, there in (("before", False), ("after", True)):
                set_fault(session, "f", error="WriteTimeout", moment=moment, delay_ms=delay or None, keyspace_name="k", table_name="t", times=1)
                spent, began = units(session)[0], time.monotonic()
                with pytest.raises(WriteTimeout):
                    session.execute(statement)
                assert time.monotonic() - began >= delay / 1000
                assert (session.execute(f"SELECT * FROM k.t WHERE p = {p}").one() is not None) == there, (p, moment)
                assert units(session)[0] - spent == (1 if there else 0) * (2 if p in (4, 5) else 1), (p, moment)
                session.execute(f"DELETE FROM k.t WHERE p = {p}")
    session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
    assert server.alive()


def test_a_part_of_an_unlogged_batch_over_partitions_is_applied(faulty):
    """Half of the partitions, by token; charged for that. Logged and conditional batches, and those of one partition, are not matched."""
    _, session = faulty()
    create_table(session, "k", "w", "p int, c int, s text static, v text, PRIMARY KEY (p, c)")
    create_table(session, "k", "n", "p int PRIMARY KEY, n counter")
    by_token = [r.p for r in _filled(session)]
    set_fault(session, "f", error="WriteTimeout", moment="partly", message="slow down")
    unlogged = BatchStatement(BatchType.UNLOGGED, retry_policy=FallthroughRetryPolicy())
    for p in range(5):
        unlogged.add("INSERT INTO k.t (p, v) VALUES (%s, 'new')", (p,))
        unlogged.add("UPDATE k.t SET v = 'newer' WHERE p = %s", (p,))
    spent = units(session)[0]
    with pytest.raises(WriteTimeout, match="slow down") as e:
        session.execute(unlogged)
    assert e.value.write_type == WriteType.UNLOGGED_BATCH
    assert {r.p for r in session.execute("SELECT p, v FROM k.t") if r.v == "newer"} == set(by_token[:2])
    assert units(session)[0] - spent == 4
    counting = "; ".join(f"UPDATE k.n SET n = n + 1 WHERE p = {p}" for p in (1, 1, 2))
    with pytest.raises(WriteTimeout):
        session.execute(once(f"BEGIN COUNTER BATCH {counting} APPLY BATCH"))
    assert len(list(session.execute("SELECT * FROM k.n"))) == 1
    assert counts(session, "f") == (2, 2)
    row = "INSERT INTO k.w (p, c, s, v) VALUES ({}, {}, 's', 'v')"
    for kind, rows, end in (("", [(1, 1), (2, 1)], ""), ("UNLOGGED", [(1, 1), (1, 2)], ""), ("UNLOGGED", [(3, 1), (3, 2)], " IF NOT EXISTS")):
        session.execute(once(f"BEGIN {kind} BATCH {'; '.join(row.format(*r) + end for r in rows)} APPLY BATCH"))
    session.execute(once("INSERT INTO k.t (p, v) VALUES (9, 'alone')"))
    assert counts(session, "f") == (2, 2)
    assert len(list(session.execute("SELECT * FROM k.w"))) == 5


def _filled(session):
    for p in range(5):
        session.execute("INSERT INTO k.t (p, v) VALUES (%s, 'old')", (p,))
    return list(session.execute("SELECT p FROM k.t"))


def test_nth_every_times_and_a_seeded_probability_are_the_same_each_time(faults_server):
    session = faults_server
    read = once("SELECT * FROM k.t WHERE p = 1")

    def hits_of(n, **fields):
        set_fault(session, "f", error="ReadTimeout", statement="SELECT", **fields)
        found = []
        for i in range(1, n + 1):
            try:
                session.execute(read)
            except ReadTimeout:
                found.append(i)
        assert counts(session, "f") == (n, len(found))
        session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
        return found

    assert hits_of(6, nth=4) == [4]
    assert hits_of(9, every=3) == [3, 6, 9]
    assert hits_of(9, every=3, times=2) == [3, 6]
    assert hits_of(3) == [1, 2, 3]
    one = hits_of(60, probability=0.3, seed=7)
    assert one == hits_of(60, probability=0.3, seed=7) and 6 <= len(one) <= 32
    assert one != hits_of(60, probability=0.3, seed=8)
    assert hits_of(5, probability=0.0) == [] and hits_of(3, probability=1.0) == [1, 2, 3]


def test_what_is_matched(faulty):
    server, session = faulty()
    create_table(session, "k", "other", "p int PRIMARY KEY")
    insert = session.prepare("INSERT INTO k.t (p) VALUES (?)")
    insert.retry_policy = FallthroughRetryPolicy()
    connection = session.execute("SELECT connection_id FROM system_metering.connections").all()
    everything = {"text": once("INSERT INTO k.t (p) VALUES (1)"), "prepared": insert.bind((1,)), "read": once("SELECT * FROM k.t WHERE p = 1"),
                  "other": once("INSERT INTO k.other (p) VALUES (1)"), "ddl": once("ALTER TABLE k.other ADD c0 int"), "rules": once("SELECT id FROM system_metering.rules")}
    cases = [
        (dict(), {"text", "prepared", "read", "other", "ddl"}),  # system keyspaces, which drivers read, are spared
        (dict(statement="insert"), {"text", "prepared", "other"}), (dict(opcode="EXECUTE"), {"prepared"}), (dict(opcode="QUERY", keyspace_name="k"), {"text", "read", "other", "ddl"}),
        (dict(keyspace_name="k", table_name="other"), {"other", "ddl"}), (dict(keyspace_name="system_metering"), {"rules"}), (dict(statement="ALTER TABLE"), {"ddl"}),
        (dict(keyspace_name="nowhere"), set()), (dict(role="nobody"), set()), (dict(connection=987654321), set()),
        (dict(opcode="PREPARE", statement="SELECT"), set())]
    for number, (fields, hit) in enumerate(cases):
        set_fault(session, "f", error="Overloaded", **fields)
        found = set()
        for name, statement in everything.items():
            try:
                session.execute(statement)
            except OverloadedErrorMessage:
                found.add(name)
            if name == "ddl" and name not in found:
                everything["ddl"] = once(f"ALTER TABLE k.other ADD c{number + 1} int")
        assert found == hit, fields
        session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
    set_fault(session, "f", error="Overloaded", opcode="PREPARE", keyspace_name="k", table_name="t", times=1)
    with pytest.raises(NoHostAvailable):
        session.prepare("SELECT * FROM k.t WHERE p = 3")
    session.prepare("SELECT * FROM k.t WHERE p = 4")
    session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
    ids = [r.connection_id for r in connection]
    for each in ids:
        set_fault(session, f"of{each}", error="Overloaded", connection=each, statement="SELECT", keyspace_name="k")
    with pytest.raises(OverloadedErrorMessage):
        session.execute(everything["read"])
    assert sorted(counts(session, f"of{each}")[1] for each in ids)[-1] == 1 and sum(counts(session, f"of{each}")[1] for each in ids) == 1


def test_unprepared_makes_the_driver_prepare_again(faults_server):
    session = faults_server
    insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, ?)")
    set_fault(session, "f", error="Unprepared", nth=1)
    session.execute("INSERT INTO k.t (p, v) VALUES (11, 'text')")  # has no id: it is none that could be forgotten
    session.execute(insert, (12, "again"))
    assert counts(session, "f") == (2, 1)
    assert session.execute("SELECT v FROM k.t WHERE p = 12").one().v == "again"
    session.execute("DELETE FROM system_control.faults WHERE name = 'f'")


def test_a_delay_holds_up_one_request_and_nobody_else(faults_server):
    """On the loop and on workers; the thread goes on, and the client's own time-out ends its patience."""
    session = faults_server
    for moment in ("before", "after"):
        set_fault(session, "f", delay_ms=800, moment=moment, statement="INSERT", times=1)
        slow = session.execute_async(once("INSERT INTO k.t (p, v) VALUES (21, 'slow')"))
        eventually(lambda: counts(session, "f") == (1, 1))
        began = time.monotonic()
        for _ in range(20):
            row = session.execute("SELECT v FROM k.t WHERE p = 21").one()
        in_time = time.monotonic() - began < 0.5
        assert not in_time or (row is not None) == (moment == "after")
        slow.result()
        assert session.execute("SELECT v FROM k.t WHERE p = 21").one().v == "slow"
        session.execute("DELETE FROM k.t WHERE p = 21")
    set_fault(session, "f", delay_ms=1000, statement="SELECT", keyspace_name="k", times=1)
    with pytest.raises(OperationTimedOut):
        session.execute(once("SELECT * FROM k.t WHERE p = 1"), timeout=0.3)
    session.execute("DELETE FROM system_control.faults WHERE name = 'f'")


@pytest.mark.parametrize("moment, delay", [("before", None), ("after", None), ("after", 50)])
def test_a_closed_connection_is_opened_again(faulty, moment, delay):
    server, session = faulty()
    set_fault(session, "f", close=True, moment=moment, delay_ms=delay, statement="INSERT", times=1)
    with pytest.raises((ConnectionShutdown, NoHostAvailable)):
        session.execute(once("INSERT INTO k.t (p, v) VALUES (1, 'x')"))

    def there():
        try:
            return (session.execute("SELECT * FROM k.t WHERE p = 1").one() is not None,)
        except NoHostAvailable:  # not connected again yet
            return None
    eventually(lambda: there() is not None)
    assert there() == (moment == "after",)
    assert server.alive()


@pytest.mark.parametrize("condition", ["", " IF NOT EXISTS"])
def test_what_a_lost_connection_has_written_is_kept_though_nobody_waits_for_it(faulty, condition):
    """Others read it at once, so that it must not stay in the memory of a process until somebody else's write is synced."""
    server, session = faulty()
    set_fault(session, "f", close=True, moment="after", statement="INSERT", times=1)
    with pytest.raises((ConnectionShutdown, NoHostAvailable)):
        session.execute(once(f"INSERT INTO k.t (p, v) VALUES (1, 'x'){condition}"))
    with server.cluster(schema_metadata_enabled=False) as cluster:
        other = cluster.connect()
        assert other.execute("SELECT v FROM k.t").one() == ("x",)
        let_pass(0.5)  # a sync takes milliseconds
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        assert cluster.connect().execute("SELECT v FROM k.t").one() == ("x",)


def test_after_a_protocol_error_the_driver_connects_anew(faulty):
    _, session = faulty()
    set_fault(session, "f", error="ProtocolError", message="told to", nth=1, statement="INSERT")
    with pytest.raises(ProtocolException, match="told to"):
        session.execute(once("INSERT INTO k.t (p, v) VALUES (1, 'x')"))

    def writes():
        try:
            return session.execute(once("INSERT INTO k.t (p, v) VALUES (1, 'x')")) is not None
        except NoHostAvailable:  # not connected again yet
            return False
    eventually(writes)


def test_faults_that_make_no_sense_are_refused_and_change_nothing(faults_server):
    session = faults_server
    refused = [
        ("(name) VALUES ('f')", "A fault has an error, closes the connection, or delays"),
        ("(name, error) VALUES ('f', 'Nothing')", "'Nothing' is no error of a fault: ServerError, ProtocolError"),
        ("(name, error, opcode) VALUES ('f', 'Overloaded', 'STARTUP')", "'STARTUP' is no opcode of a fault: QUERY, EXECUTE, BATCH, PREPARE"),
        ("(name, error, statement) VALUES ('f', 'Overloaded', 'MERGE')", "'MERGE' is no statement of a fault"),
        ("(name, error, write_type) VALUES ('f', 'Overloaded', 'CAS')", "write_type goes with errors that carry it, and Overloaded does not"),
        ("(name, error, write_type) VALUES ('f', 'WriteTimeout', 'ODD')", "'ODD' is no write_type"),
        ("(name, error, consistency) VALUES ('f', 'WriteTimeout', 'MOST')", "'MOST' is no consistency"),
        ("(name, error, nth, every) VALUES ('f', 'Overloaded', 1, 2)", "give one of nth, every and probability"),
        ("(name, error, nth) VALUES ('f', 'Overloaded', 0)", "at least 1"),
        ("(name, error, probability) VALUES ('f', 'Overloaded', 1.5)", "from 0 to 1"),
        ("(name, error, seed) VALUES ('f', 'Overloaded', 5)", "A seed goes with a probability"),
        ("(name, error, close) VALUES ('f', 'Overloaded', true)", "not both"),
        ("(name, delay_ms) VALUES ('f', 600001)", "0 to 600000 milliseconds"),
        ("(name, delay_ms, moment) VALUES ('f', 5, 'during')", "The moment of a fault is before"),
        ("(name, delay_ms, hits) VALUES ('f', 5, 5)", "Column hits of system_control.faults is read-only"),
        ("(name, delay_ms, table_name) VALUES ('f', 5, 't')", "names its keyspace, too"),
        ("(name, delay_ms, keyspace_name) VALUES ('f', 5, 'system_control')", "A fault cannot hit statements on system_control"),
        ("(name, delay_ms, message) VALUES ('f', 5, 'words')", "A message goes with an error"),
        ("(name, delay_ms) VALUES ('', 5)", "The name of a fault has 1 to 64 bytes|Key may not be empty"),
    ]
    for statement, words in refused:
        with pytest.raises(InvalidRequest, match=words):
            session.execute(f"INSERT INTO system_control.faults {statement}")
    assert session.execute("SELECT * FROM system_control.faults").all() == []


def test_a_hundred_faults_and_no_more_and_none_after_a_restart(controlled):
    server, session = controlled("--ddl-delay", "none")
    put = session.prepare("INSERT INTO system_control.faults (name, error, keyspace_name) VALUES (?, 'Overloaded', 'guilty')")
    for i in range(100):
        session.execute(put, (f"f{i}",))
    with pytest.raises(InvalidRequest, match="There are 100 faults already"):
        session.execute(put, ("one_more",))
    create_keyspace(session, "innocent")
    session.execute("DELETE FROM system_control.faults WHERE name = 'f1'")
    session.execute(put, ("one_more",))
    session.execute("UPDATE system_control.faults SET nth = 5 WHERE name = 'one_more'")
    row = session.execute("SELECT * FROM system_control.faults WHERE name = 'one_more'").one()
    assert (row.nth, row.error, row.keyspace_name, row.delay_ms) == (5, "Overloaded", "guilty", None)
    server.stop()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        assert cluster.connect().execute("SELECT * FROM system_control.faults").all() == []
