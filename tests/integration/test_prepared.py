"""Prepared statements of several sessions while tables change: drivers follow, on every protocol version, across pages."""
import io

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import ExecuteMessage, ResultMessage
from cassandra.query import BatchStatement

from tally_server import eventually

VERSIONS = [4, 5]


@pytest.fixture
def sessions(cassandra_server):
    """Makes sessions, each with a cluster of its own, on one protocol version."""
    clusters = []

    def make(version, n=2):
        made = []
        for _ in range(n):
            clusters.append(cassandra_server.cluster(protocol_version=version))
            made.append(clusters[-1].connect())
        return made

    yield make
    for c in clusters:
        c.shutdown()


def make_table(session, name, columns="v int", rows=10):
    session.execute("CREATE KEYSPACE IF NOT EXISTS prep WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(f"DROP TABLE IF EXISTS prep.{name}")
    session.execute(f"CREATE TABLE prep.{name} (p int, c int, {columns}, PRIMARY KEY (p, c))")
    for i in range(rows):
        session.execute(f"INSERT INTO prep.{name} (p, c, v) VALUES (1, {i}, {i})")


def listed(session, name):
    rows = session.execute("SELECT query_string FROM system.prepared_statements")
    return [r[0] for r in rows if f"prep.{name}" in r[0]]


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_follow_a_column_that_is_added(sessions, version):
    a, b = sessions(version)
    name = f"added{version}"
    make_table(a, name)
    text = f"SELECT * FROM prep.{name} WHERE p = 1"
    pa, pb = a.prepare(text), b.prepare(text)
    assert a.execute(pa).one() == b.execute(pb).one() == (1, 0, 0)
    a.execute(f"ALTER TABLE prep.{name} ADD a text")
    assert listed(a, name) == []
    assert a.execute(pa).one() == (1, 0, None, 0)  # told UNPREPARED, prepared anew
    result = b.execute(pb)  # its id is known again, and what it knows of it is old
    assert result.column_names == ["p", "c", "a", "v"] and result.one() == (1, 0, None, 0)
    b.execute(f"UPDATE prep.{name} SET a = 'x' WHERE p = 1 AND c = 0")
    for session, prepared in ((a, pa), (b, pb), (a, pa)):
        assert session.execute(prepared).one() == (1, 0, "x", 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_follow_a_column_that_is_added_between_them(sessions, version):
    a, b = sessions(version)
    name = f"paged{version}"
    make_table(a, name)
    text = f"SELECT * FROM prep.{name} WHERE p = 1"
    pages = []
    for session in (a, b):
        prepared = session.prepare(text)
        prepared.fetch_size = 4
        pages.append((session.execute(prepared), prepared))
        assert [r[1] for r in pages[-1][0].current_rows] == [0, 1, 2, 3]
    a.execute(f"ALTER TABLE prep.{name} ADD a text")
    for result, _ in pages:
        rest = []
        while result.has_more_pages:
            result.fetch_next_page()
            rest += result.current_rows
        assert rest == [(1, i, None, i) for i in range(4, 10)]
    for session, (_, prepared) in zip((a, b), pages):
        assert list(session.execute(prepared)) == [(1, i, None, i) for i in range(10)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_made_anew_is_never_written_or_read_as_the_old_one(sessions, version):
    a, b = sessions(version)
    name = f"anew{version}"
    make_table(a, name)
    select, insert = f"SELECT c, v FROM prep.{name} WHERE p = 1", f"INSERT INTO prep.{name} (p, c, v) VALUES (?, ?, ?)"
    read = [s.prepare(select) for s in (a, b)]
    written = [s.prepare(insert) for s in (a, b)]
    a.execute(f"DROP TABLE prep.{name}")
    a.execute(f"CREATE TABLE prep.{name} (p int, c int, v double, PRIMARY KEY (p, c))")
    assert listed(a, name) == []
    with pytest.raises(InvalidRequest, match="Expected 8 or 0 byte value for a double"):
        a.execute(written[0], (1, 1, 7))  # the driver sends the bytes of an int again
    a.execute(f"INSERT INTO prep.{name} (p, c, v) VALUES (1, 2, 2.5)")
    for session, prepared in zip((a, b), read):
        assert list(session.execute(prepared)) == [(2, 2.5)]
    a.execute(f"DROP TABLE prep.{name}")
    for session, prepared in zip((a, b), read):
        with pytest.raises(InvalidRequest, match="table .* does not exist"):
            session.execute(prepared)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_of_prepared_statements_follows_too(sessions, version):
    a, b = sessions(version)
    name = f"batched{version}"
    make_table(a, name, rows=0)
    insert = b.prepare(f"INSERT INTO prep.{name} (p, c, v) VALUES (?, ?, ?)")
    a.execute(f"ALTER TABLE prep.{name} ADD a text")
    batch = BatchStatement()
    for i in range(3):
        batch.add(insert, (1, i, i))
    b.execute(batch)
    assert list(a.execute(f"SELECT c, v FROM prep.{name}")) == [(0, 0), (1, 1), (2, 2)]


@pytest.fixture
def described(monkeypatch):
    """Executes on v4 and asks to leave columns out, as other drivers do; whether they came all the same."""
    seen, receive, write = [], ResultMessage.recv_results_metadata, ExecuteMessage._write_query_params

    def recv(self, f, user_type_map):
        receive(self, f, user_type_map)
        if not self.column_metadata or self.column_metadata[0][0] == "prep":  # what the driver itself asks for comes with columns of other keyspaces
            seen.append(self.column_metadata is not None)

    def write_skipping(self, f, protocol_version):
        params = io.BytesIO()
        write(self, params, protocol_version)
        consistency, flags, rest = params.getvalue()[:2], params.getvalue()[2], params.getvalue()[3:]
        f.write(consistency + bytes([flags | 0x02]) + rest)

    monkeypatch.setattr(ResultMessage, "recv_results_metadata", recv)
    monkeypatch.setattr(ExecuteMessage, "_write_query_params", write_skipping)

    def look(session, prepared):
        del seen[:]
        session.execute(prepared)
        (described,) = seen
        return described

    return look


def test_rows_of_a_table_that_is_made_anew_as_it_was_come_without_columns(sessions, described):
    """Test suites do that all the time: a server that lives long must not send columns with every result of v4."""
    (session,) = sessions(4, 1)
    for i in range(30):
        make_table(session, "anew", rows=1)
        prepared = session.prepare("SELECT * FROM prep.anew WHERE p = 1")
        assert not described(session, prepared), i


def test_a_connection_that_has_prepared_the_new_columns_gets_rows_without_them(sessions, described):
    a, b, c = sessions(4, 3)
    make_table(a, "learned", rows=1)
    text = "SELECT * FROM prep.learned WHERE p = 1"
    old = a.prepare(text)
    assert not described(a, old)
    a.execute("ALTER TABLE prep.learned ADD w int")
    fresh = b.prepare(text)
    assert not described(b, fresh) and b.execute(fresh).one() == (1, 0, 0, None)
    assert described(a, old) and described(c, fresh)  # they have not prepared it since
    a.execute("ALTER TABLE prep.learned ADD x int")
    again = a.prepare(text)
    assert not described(a, again) and a.execute(again).one() == (1, 0, 0, None, None)
    assert described(b, fresh) and b.execute(fresh).one() == (1, 0, 0, None, None)  # what it has prepared is old now


def test_rows_come_with_their_columns_until_who_may_know_others_has_gone(sessions, described, cassandra_server):
    with cassandra_server.cluster(protocol_version=4) as old:
        a = old.connect()
        make_table(a, "altered", rows=1)
        text = "SELECT * FROM prep.altered WHERE p = 1"
        known = a.prepare(text)
        assert not described(a, known)
        a.execute("ALTER TABLE prep.altered ADD w int")
        b, c = sessions(4, 2)
        fresh = b.prepare(text)
        assert described(a, known) and a.execute(known).one() == (1, 0, 0, None)
        assert described(c, fresh)  # its connection has not prepared the statement
        other = b.prepare("SELECT v FROM prep.altered WHERE p = 1")
        assert not described(b, other)  # nobody knows anything else of this one
    eventually(lambda: not described(c, fresh))
    assert c.execute(fresh).one() == (1, 0, 0, None)
