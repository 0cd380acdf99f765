"""Traces tell what happened to a request, in its order, with the time that it took; they are kept for a day and can be deleted."""
import pytest
from cassandra import ConsistencyLevel, InvalidRequest, Unauthorized
from cassandra.query import SimpleStatement

import stores
from control import set_clock
from tally_server import create_keyspace, create_table


@pytest.fixture(scope="module")
def session(server):
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "tracing")
        yield session


def trace_of(session, statement, **options):
    query = SimpleStatement(statement, consistency_level=ConsistencyLevel.LOCAL_QUORUM, **options)
    future = session.execute_async(query, trace=True)
    future.result()
    return future.get_query_trace()


def steps_of(trace):
    """The events' texts; their moments never go back, and the last one ends the trace."""
    moments = [e.source_elapsed for e in trace.events]
    assert moments == sorted(moments) and moments[0].total_seconds() == 0
    assert trace.duration >= moments[-1]
    return [e.description for e in trace.events]


def assert_in_order(steps, *words):
    at = 0
    for word in words:
        found = [i for i in range(at, len(steps)) if word in steps[i]]
        assert found, f"{word!r} does not follow in {steps}"
        at = found[0] + 1


def test_write_waits_for_the_disk_last(session):
    create_table(session, "tracing", "w", "p int PRIMARY KEY, v text")
    steps = steps_of(trace_of(session, "INSERT INTO tracing.w (p, v) VALUES (1, 'a')"))
    assert_in_order(steps, "Parsing INSERT", "Charged", "Admitted", "Applied")
    assert stores.in_use.last_step in steps[-1]


def test_condition_on_a_row_in_memory_is_decided_where_it_came(session):
    create_table(session, "tracing", "c", "p int PRIMARY KEY, v text")
    session.execute(SimpleStatement("INSERT INTO tracing.c (p, v) VALUES (1, 'a')", consistency_level=ConsistencyLevel.LOCAL_QUORUM))
    trace = trace_of(session, "UPDATE tracing.c SET v = 'b' WHERE p = 1 IF v = 'a'")
    assert_in_order(steps_of(trace), "Read 1 rows (35 bytes, 0 tombstones) of 1 partitions from memory", "Charged", "Applied", "The log is on disk")
    assert {e.thread_name for e in trace.events} == {"event-loop"}


def test_write_into_the_middle_of_a_list_is_handed_to_a_worker_that_reads(session):
    create_table(session, "tracing", "l", "p int PRIMARY KEY, l list<text>")
    session.execute(SimpleStatement("INSERT INTO tracing.l (p, l) VALUES (1, ['a'])", consistency_level=ConsistencyLevel.LOCAL_QUORUM))
    trace = trace_of(session, "UPDATE tracing.l SET l[0] = 'b' WHERE p = 1")
    steps = steps_of(trace)
    assert_in_order(steps, "Handed to the update workers", "A worker begins", "Charged", "Applied")
    assert stores.in_use.last_step in steps[-1]
    assert {e.thread_name for e in trace.events} == {"event-loop", "update-worker"}


def test_page_says_what_was_read_and_that_another_follows(session):
    create_table(session, "tracing", "r", "p int, c int, PRIMARY KEY (p, c)")
    for c in range(9):
        session.execute(SimpleStatement(f"INSERT INTO tracing.r (p, c) VALUES (1, {c})", consistency_level=ConsistencyLevel.LOCAL_QUORUM))
    steps = steps_of(trace_of(session, "SELECT * FROM tracing.r WHERE p = 1", fetch_size=4))
    assert_in_order(steps, "Parsing SELECT", "Read 4 rows", "Charged 1 read units", "Another page may follow")
    whole = steps_of(trace_of(session, "SELECT * FROM tracing.r WHERE p = 1"))
    assert_in_order(whole, "Read 9 rows")
    assert not any("page" in s for s in whole)


def test_untraced_requests_in_between_leave_nothing_in_a_trace(session):
    create_table(session, "tracing", "u", "p int PRIMARY KEY")
    steps_of(trace_of(session, "SELECT * FROM tracing.u WHERE p = 1"))
    for _ in range(20):
        session.execute("SELECT * FROM tracing.u WHERE p = 1")
    steps = steps_of(trace_of(session, "SELECT * FROM tracing.u WHERE p = 1"))
    assert len([s for s in steps if s.startswith("Read ")]) == 1


def test_deleted_session_is_gone_with_its_events(session):
    create_table(session, "tracing", "d", "p int PRIMARY KEY")
    kept, gone = (trace_of(session, "SELECT * FROM tracing.d WHERE p = 1").trace_id for _ in range(2))
    session.execute("DELETE FROM system_traces.sessions WHERE session_id = %s", (gone,))
    for table in ("sessions", "events"):
        assert not list(session.execute(f"SELECT * FROM system_traces.{table} WHERE session_id = %s", (gone,)))
        assert list(session.execute(f"SELECT * FROM system_traces.{table} WHERE session_id = %s", (kept,)))
    with pytest.raises(Unauthorized):
        session.execute("INSERT INTO system_traces.sessions (session_id, command) VALUES (uuid(), 'x')")


def test_events_are_deleted_for_themselves_and_all_traces_by_truncate(session):
    create_table(session, "tracing", "e", "p int PRIMARY KEY")
    first, second = (trace_of(session, "SELECT * FROM tracing.e WHERE p = 1").trace_id for _ in range(2))
    count = lambda table, trace: len(list(session.execute(f"SELECT * FROM system_traces.{table} WHERE session_id = %s", (trace,))))
    event = session.execute("SELECT event_id FROM system_traces.events WHERE session_id = %s", (first,)).one().event_id
    with pytest.raises(InvalidRequest, match="Row deletion is not supported by table system_traces.events"):
        session.execute("DELETE FROM system_traces.events WHERE session_id = %s AND event_id = %s", (first, event))
    session.execute("DELETE FROM system_traces.events WHERE session_id = %s", (first,))
    assert (count("events", first), count("sessions", first)) == (0, 1)
    assert count("events", second) > 0
    session.execute("TRUNCATE system_traces.events")
    assert (count("events", second), count("sessions", second)) == (0, 1)
    session.execute("TRUNCATE system_traces.sessions")
    assert (count("sessions", first), count("sessions", second)) == (0, 0)
    with pytest.raises(Unauthorized):
        session.execute("UPDATE system_traces.events SET activity = 'x' WHERE session_id = %s AND event_id = %s", (first, event))


def test_cassandra_takes_writes_of_traces(cassandra_server):
    """Recorded from Cassandra 5.0.8: columns of a trace can be deleted and set, and rows inserted."""
    with cassandra_server.cluster() as cluster:
        session = cluster.connect()
        one = lambda what, table, where: tuple(session.execute(f"SELECT {what} FROM system_traces.{table} WHERE {where}").one() or ())
        other, trace = (trace_of(session, "SELECT key FROM system.local") for _ in range(2))
        of = f"session_id = {trace.trace_id}"
        session.execute(f"DELETE client FROM system_traces.sessions WHERE {of}")
        session.execute(f"UPDATE system_traces.sessions SET command = 'X', parameters = {{'a': 'b'}} WHERE {of}")
        assert one("client, command, parameters, request", "sessions", of) == (None, "X", {"a": "b"}, "Execute CQL3 query")
        first, second, *rest = list(session.execute(f"SELECT event_id FROM system_traces.events WHERE {of}"))
        event = f"{of} AND event_id = {first.event_id}"
        with pytest.raises(InvalidRequest, match="Range deletions are not supported for specific columns"):
            session.execute(f"DELETE activity FROM system_traces.events WHERE {of}")
        session.execute(f"DELETE activity FROM system_traces.events WHERE {event}")
        session.execute(f"UPDATE system_traces.events SET thread = 't' WHERE {event}")
        assert one("activity, thread, source_elapsed", "events", event) == (None, "t", 0)
        session.execute(f"DELETE FROM system_traces.events WHERE {of} AND event_id = {second.event_id}")
        assert [r.event_id for r in session.execute(f"SELECT event_id FROM system_traces.events WHERE {of}")] \
            == [first.event_id, *(r.event_id for r in rest)]
        session.execute(f"UPDATE system_traces.events SET thread = 'again' WHERE {of} AND event_id = {second.event_id}")
        assert one("activity, thread", "events", f"{of} AND event_id = {second.event_id}") == (None, "again")
        # rows of a client's own: an UPDATE makes one of its values alone, an INSERT also an empty one
        of, event = "session_id = 5a1c69ef-37a0-11ee-be56-0242ac120002", "event_id = 5a1c69ef-37a0-11ee-be56-0242ac120003"
        session.execute(f"UPDATE system_traces.sessions SET duration = 5 WHERE {of}")
        assert one("duration, command", "sessions", of) == (5, None)
        session.execute(f"DELETE duration FROM system_traces.sessions WHERE {of}")
        assert one("duration", "sessions", of) == ()
        session.execute(f"INSERT INTO system_traces.sessions (session_id) VALUES ({of.split()[-1]})")
        assert one("duration", "sessions", of) == (None,)
        session.execute(f"UPDATE system_traces.events SET activity = 'mine' WHERE {of} AND {event}")
        assert one("activity, source", "events", of) == ("mine", None)
        session.execute(f"DELETE FROM system_traces.events WHERE {of} AND {event}")
        assert one("activity", "events", of) == () and one("duration", "sessions", of) == (None,)
        # a bound on what one session may hold; the traces of others stay as they were
        room = session.prepare(f"UPDATE system_traces.sessions SET request = ? WHERE {of}")
        session.execute(room, ("x" * 200_000,))
        with pytest.raises(InvalidRequest, match="may hold at most 262144 bytes that clients wrote"):
            session.execute(f"UPDATE system_traces.events SET activity = '{'y' * 100_000}' WHERE {of} AND {event}")
        session.execute(room, ("z" * 200_000,))
        assert one("request", "sessions", of) == ("z" * 200_000,)
        assert one("command", "sessions", f"session_id = {other.trace_id}") == ("QUERY",)
        session.execute(f"DELETE FROM system_traces.sessions WHERE {of}")
        assert one("request", "sessions", of) == ()


def test_traces_are_gone_after_a_day(new_server):
    server = new_server("--control", "on", "--ddl-delay", "none")
    with server.cluster() as cluster:
        session = cluster.connect()
        trace_id = trace_of(session, "SELECT key FROM system.local").trace_id
        count = "SELECT * FROM system_traces.sessions WHERE session_id = %s"
        assert list(session.execute(count, (trace_id,)))
        set_clock(session, advance_ms=25 * 3600 * 1000)
        assert not list(session.execute(count, (trace_id,)))


def test_only_so_many_traces_are_kept(session):
    """Who traces everything pays with the oldest traces."""
    first = trace_of(session, "SELECT key FROM system.local").trace_id
    futures = [session.execute_async(SimpleStatement("SELECT key FROM system.local"), trace=True) for _ in range(300)]
    for f in futures:
        f.result()
    assert len(list(session.execute("SELECT session_id FROM system_traces.sessions"))) <= 256
    assert not list(session.execute("SELECT * FROM system_traces.sessions WHERE session_id = %s", (first,)))
