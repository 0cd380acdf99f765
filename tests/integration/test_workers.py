"""What waits for blocking workers: no class of work holds up another, nobody waits for ever, and the server stops when it is told to."""
import contextlib
import re
import time
import urllib.request

import pytest
from cassandra import InvalidRequest, OperationTimedOut, ReadTimeout, WriteTimeout, WriteType
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.protocol import OverloadedErrorMessage, ServerError

from ports import free_port
from tally_server import HANG, eventually

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
        server.stop()
        for f in held:
            with pytest.raises((ServerError, NoHostAvailable, OperationTimedOut)):
                f.result()


def many_scans(server):
    """Of four clients with as many under way as a connection may have: (clusters, futures)."""
    clusters = [server.cluster() for _ in range(4)]
    sessions = [c.connect() for c in clusters]
    return clusters, [s.execute_async(SLOW_SCAN) for _ in range(16) for s in sessions]


def went_before(server, statement, session):
    """How many of the others' scans were answered before the statement, as a share: in the order in which the driver's thread read the answers."""
    clusters, scans = many_scans(server)
    order = []
    one = session.execute_async(statement)
    for f in [*scans, one]:
        f.add_callbacks(callback=lambda _, f=f: order.append(f), errback=lambda _, f=f: order.append(f))
    for f in [*scans, one]:
        f.result()
    eventually(lambda: len(order) == len(scans) + 1)
    for c in clusters:
        c.shutdown()
    return order.index(one) / len(scans)


@pytest.mark.parametrize("statement", ["INSERT INTO w.t (p, v) VALUES ({}, 1) IF NOT EXISTS", SLOW_SCAN,
                                       "SELECT v FROM w.big WHERE p IN (1, 2, 3) AND c = 1", "CREATE TABLE w.u{} (p int PRIMARY KEY)"])
def test_many_scans_of_others_hold_up_nobody(new_server, statement):
    """One queue for all classes would let every scan go before, each time. A pause of the machine lets some go before."""
    server = new_server("--mode", "cassandra", "--range-timeout", "60000")
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session)
        shares = []
        while len(shares) < 5 and (not shares or shares[-1] >= 1 / 2):
            shares.append(went_before(server, statement.format(len(shares)), session))
        assert shares[-1] < 1 / 2, f"scans of others that went before {statement}: {shares}"


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


def parts_run(server):
    """Parts in which workers ran requests so far: a scan has many."""
    with urllib.request.urlopen(f"http://{server.admin}/metrics") as answer:
        return int(re.search(r"^tally_worker_parts_total (\d+)", answer.read().decode(), re.M)[1])


def test_scans_of_clients_that_went_are_not_run(new_server):
    """Counted in parts of scans: of 64 scans that wait for one worker while their clients go, at least a quarter is never run."""
    server = new_server("--mode", "cassandra", "--scan-workers", "1", "--admin-port", str(free_port()))
    with server.cluster() as cluster:
        session = cluster.connect()
        fill(session)
        before = parts_run(server)
        session.execute(SLOW_SCAN)
        of_one = parts_run(server) - before
        assert of_one >= 1
        before = parts_run(server)
        for _ in range(4):
            with server.cluster() as gone:
                guilty = gone.connect()
                for _ in range(16):
                    guilty.execute_async(SLOW_SCAN)
        session.execute(SLOW_SCAN)  # stands behind what is left of them
        assert parts_run(server) - before < 48 * of_one
    server.stop()


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
    """Each may take as long as ten of them, and sixty-four wait for one worker at a time; sets of them go on until some were answered and some were not."""
    limit = 10 * milliseconds_of_a_conditional_batch(new_server)
    server = new_server("--mode", "cassandra", "--update-workers", "1", "--write-timeout", str(max(50, int(limit))))
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(server.cluster()).connect() for _ in range(4)]  # a connection has sixteen under way
        batch = None
        while not batch:
            with contextlib.suppress(WriteTimeout):  # of the preparation, where the machine pauses
                batch = sessions[0].prepare(CONDITIONAL)
        answered, errors, sent, hang = 0, [], 0, time.monotonic() + HANG * 5
        while not (answered and errors):
            assert time.monotonic() < hang, (answered, len(errors))
            at_once = 1 if errors else 64  # what is alone is answered
            done, wrong = outcomes([sessions[p % 4].execute_async(batch, (sent + p,) * 1001) for p in range(at_once)])
            answered, errors, sent = answered + done, errors + wrong, sent + at_once
        for e in errors:
            assert isinstance(e, WriteTimeout), e
            assert (e.received_responses, e.required_responses, e.write_type) == (0, 1, WriteType.CAS)
        assert sessions[0].execute("SELECT count(*) FROM w.t").one()[0] == answered * 1001


def test_full_queue_is_paid_for_by_who_fills_it(new_server):
    server = new_server("--mode", "cassandra", "--scan-workers", "1", "--queue-requests", "8")
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(), request_timeout=300)
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
