"""A password of a statement is kept as a hash only: no trace, log, capture or list of statements has it."""
import pytest
from cassandra import InvalidRequest
from cassandra.auth import PlainTextAuthProvider
from cassandra.protocol import SyntaxException
from cassandra.query import SimpleStatement

from tally_server import Server, eventually

SECRET = "hunter2-secret"
STATEMENTS = [
    f"CREATE ROLE {{}} WITH PASSWORD = '{SECRET}' AND LOGIN = true",
    f"CREATE USER IF NOT EXISTS {{}} WITH password '{SECRET}'",
    f"/* a remark */ create role {{}} with login = true and PassWord = '{SECRET}'",
]
WRONG = [
    f"CREATE ROLE {{}} WITH PASSWORD = '{SECRET}' AND LOGIN = maybe",
    f"CREATE ROLE {{}} WITH LOGIN = true AND PASSWORD = '{SECRET}' '{SECRET}'",
    f"ALTER ROLE {{}}_unknown WITH PASSWORD = '{SECRET}'",
]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A server that tells of everything it can, and what it told of statements with a password."""
    folder = tmp_path_factory.mktemp("secrets")
    s = Server(folder, "--mode", "cassandra", "--auth", "password", "--audit-log", str(folder / "audit"), "--capture",
               str(folder / "capture.tcap"),
               "--slow-statement", "1", "--log-level", "debug").start()
    with s.cluster(auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        for n, statement in enumerate(STATEMENTS):
            session.execute(SimpleStatement(statement.format(f"plain{n}")), trace=True)
            prepared = session.prepare(statement.format(f"prepared{n}"))
            session.execute(prepared, trace=True)
        for n, statement in enumerate(WRONG):
            with pytest.raises((SyntaxException, InvalidRequest)):
                session.execute(SimpleStatement(statement.format(f"wrong{n}")), trace=True)
        traced = "SELECT session_id FROM system_traces.sessions"
        eventually(lambda: len(session.execute(traced).all()) >= 2 * len(STATEMENTS) + len(WRONG))
        s.rows = {table: session.execute(f"SELECT * FROM {table}").all()
                  for table in ("system_traces.sessions", "system_traces.events", "system.prepared_statements",
                                "system_auth.roles")}
    s.stop()
    return s


@pytest.mark.parametrize("table", ["system_traces.sessions", "system_traces.events", "system.prepared_statements",
                                   "system_auth.roles"])
def test_no_table_shows_a_password(told, table):
    assert told.rows[table]
    assert SECRET not in str(told.rows[table])


def test_traces_show_the_statement_without_its_values(told):
    queries = {row.parameters["query"] for row in told.rows["system_traces.sessions"]}
    assert "CREATE ROLE plain0 WITH PASSWORD = ? AND LOGIN = ?" in queries


def test_no_file_holds_a_password(told):
    files = [f for f in told.folder.rglob("*") if f.is_file()]
    assert {"audit", "capture.tcap", "tallyd.log"} <= {f.name for f in files}
    assert [f.name for f in files if SECRET.encode() in f.read_bytes()] == []
