"""What waits for blocking workers: no class of work holds up another, nobody waits for ever, and the server stops when it is told to."""
import contextlib
import time

import pytest
from cassandra import InvalidRequest, OperationTimedOut, ReadTimeout, WriteTimeout, WriteType
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.protocol import OverloadedErrorMessage, ServerError

ROWS, ROWS_OF_A_BATCH = 40_000, 200
SLOW_SCAN = "SELECT p FROM w.big WHERE v = 'nowhere' ALLOW FILTERING"


def fill(session, text="x" * 100):
    session.execute("CREATE KEYSPACE w WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE w.big (p int, c int, v text, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE w.t (p int PRIMARY KEY, v int)")
    batch = "BEGIN UNLOGGED BATCH " + " ".join(
        f"INSERT INTO w.big (p, c, v) VALUES (?, {c}, '{text}')" for c in range(ROWS_OF_A_BATCH)) + " APPLY BATCH"
    prepared = session.prepare(batch)
    args = [(p,) * ROWS_OF_A_BATCH for p in range(ROWS // ROWS_OF_A_BATCH)]
    for done, result in execute_concurrent_with_args(session, prepared, args, concurrency=8):
        assert done, result


def test_held_ddl_holds_no_worker_and_no_stop(new_server):
    first = new_server("--mode", "cassandra")
    with first.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE w WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE w.t (p int PRIMARY KEY, v int)")
    first.stop()
    server = new_server("--mode", "cassandra", "--ddl-delay", "held")
    with server.cluster() as cluster:
        session = cluster.connect()
        held = [session.execute_async(f"CREATE TABLE w.h{i} (p int PRIMARY KEY)") for i in range(12)]
        with server.cluster() as other:
            innocent = other.connect()
            assert innocent.execute("INSERT INTO w.t (p, v) VALUES (1, 1) IF NOT EXISTS").one()[0]
            assert innocent.execute("SELECT count(*) FROM w.t").one()[0] == 1
            with pytest.raises(InvalidRequest):
                innocent.execute("CREATE TABLE nowhere.t (p int PRIMARY KEY)")
        assert not any(f._event.is_set() for f in held)
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 15
        for f in held:
            with pytest.raises((ServerError, NoHostAvailable, OperationTimedOut)):
                f.result()


def many_scans(server):
    """Of four clients with as many under way as a connection may have: (clusters, futures)."""
    clusters = [server.cluster() for _ in range(4)]
    sessions = [c.connect() for c in clusters]
    return clusters, [s.execute_async(SLOW_SCAN) for _ in range(16) for s in sessions]


def went_before(server, statement, session):
    """How many of the others' scans, as a share."""
    clusters, scans = many_scans(server)
    session.execute(statement)
    answered = sum(f._event.is_set() for f in scans)
    for f in scans:
        f.result()
    for c in clusters:
        c.shutdown()
    return answered / len(scans)


@pytest.mark.parametrize("statement", ["INSERT INTO w.t (p, v) VALUES ({}, 1) IF NOT EXISTS", SLOW_SCAN,
                                       "SELECT v FROM w.big WHERE p IN (1, 2, 3) AND c = 1", "CREATE TABLE w.u{} (p int PRIMARY KEY)"])
def test_many_scans_of_others_hold_up_nobody(new_server, statement):
    """One queue for all would let every scan go before, each time; a pause of the machine lets some, now and then."""
    server = new_server("--mode", "cassandra", "--range-timeout", "60000")
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session)
        shares = []
        while len(shares) < 3 and (not shares or shares[-1] >= 1 / 4):
            shares.append(went_before(server, statement.format(len(shares)), session))
        assert shares[-1] < 1 / 4, f"scans of others that went before {statement}: {shares}"


def test_scan_that_takes_too_long_is_a_read_timeout(new_server):
    server = new_server("--mode", "cassandra", "--scan-workers", "1", "--range-timeout", "2")
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session)
        scans = [session.execute_async(SLOW_SCAN) for _ in range(16)]
        errors = []
        for f in scans:
            try:
                f.result()
            except ReadTimeout as e:
                errors.append(e)
        assert errors
        for e in errors:
            assert (e.received_responses, e.required_responses, e.data_retrieved) == (0, 1, False)
            assert "Operation timed out - received only 0 responses." in str(e)
        assert session.execute("SELECT v FROM w.big WHERE p = 1 LIMIT 1").one()


def test_deadline_ends_a_scan_that_runs(new_server):
    server = new_server("--mode", "cassandra", "--range-timeout", "1")
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session, "x")  # a page ends with so many bytes: of short rows it is all of them, which take some milliseconds
        with pytest.raises(ReadTimeout):  # nothing else waits for a worker: it is stopped between two parts
            session.execute(SLOW_SCAN)


def test_scans_of_clients_that_went_are_not_run(new_server):
    server = new_server("--mode", "cassandra", "--scan-workers", "1")
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session)
        for _ in range(4):
            with server.cluster() as gone:
                guilty = gone.connect()
                for _ in range(16):
                    guilty.execute_async(SLOW_SCAN)
        started = time.monotonic()
        session.execute(SLOW_SCAN)
        one = time.monotonic() - started
        started = time.monotonic()
        session.execute(SLOW_SCAN)
        assert one < 16 * (time.monotonic() - started) + 1


def outcomes(futures):
    """(how many were answered, the errors of the others)."""
    errors = []
    for f in futures:
        try:
            f.result()
        except Exception as e:  # noqa: BLE001 - the caller looks at each
            errors.append(e)
    return len(futures) - len(errors), errors


CONDITIONAL = ("BEGIN BATCH INSERT INTO w.t (p, c, v) VALUES (?, -1, 0) IF NOT EXISTS; "
               + " ".join(f"INSERT INTO w.t (p, c, v) VALUES (?, {c}, {c});" for c in range(1000)) + " APPLY BATCH")


def milliseconds_of_a_conditional_batch(new_server):
    """The least of five, alone, and so is their preparation: on the machine as it is."""
    server, took = new_server("--mode", "cassandra"), []
    with server.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE w WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE w.t (p int, c int, v int, PRIMARY KEY (p, c))")
        batch = session.prepare(CONDITIONAL)
        for p in range(5):
            began = time.monotonic()
            session.execute(batch, (p,) * 1001)
            took.append(time.monotonic() - began)
        session.execute("TRUNCATE w.t")
    server.stop()
    return 1000 * min(took)


def test_write_that_waits_too_long_is_a_write_timeout_and_leaves_no_trace(new_server):
    """Each may take as long as four of them; a connection has sixteen under way."""
    limit = 4 * milliseconds_of_a_conditional_batch(new_server)
    server = new_server("--mode", "cassandra", "--update-workers", "1", "--write-timeout", str(max(20, int(limit))))
    with server.cluster() as cluster:
        session = cluster.connect()
        batch = None
        while not batch:
            with contextlib.suppress(WriteTimeout):  # of the preparation, where the machine pauses
                batch = session.prepare(CONDITIONAL)
        answered, errors, sent = 0, [], 0
        while not (answered and errors) and sent < 256:
            done, wrong = outcomes([session.execute_async(batch, (sent + p,) * 1001) for p in range(64)])
            answered, errors, sent = answered + done, errors + wrong, sent + 64
        assert answered and errors, (answered, len(errors))
        for e in errors:
            assert isinstance(e, WriteTimeout), e
            assert (e.received_responses, e.required_responses, e.write_type) == (0, 1, WriteType.CAS)
        assert session.execute("SELECT count(*) FROM w.t").one()[0] == answered * 1001


def test_full_queue_is_paid_for_by_who_fills_it(new_server):
    server = new_server("--mode", "cassandra", "--scan-workers", "1", "--queue-requests", "8")
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(), request_timeout=30)
    with server.cluster() as cluster, server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as other:
        session, guilty = cluster.connect(), other.connect()
        fill(session)
        scans = [guilty.execute_async(SLOW_SCAN) for _ in range(64)]
        for _ in range(4):
            assert session.execute(SLOW_SCAN).one() is None
        answered, errors = outcomes(scans)
        assert answered and errors
        for e in errors:
            assert isinstance(e, OverloadedErrorMessage), e
            assert "this connection has the most of them" in str(e)
