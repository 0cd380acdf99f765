"""Pages of system tables: each goes on behind the key of the last row, so that rows which are there all the time come once while others come and go."""
import pytest
from cassandra.protocol import ProtocolException
from cassandra.query import SimpleStatement

from tally_server import create_keyspace, create_table

TABLES = 300


@pytest.fixture
def session(new_server):
    server = new_server("--mode", "cassandra", "--control", "on", "--ddl-delay", "none")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        s = cluster.connect()
        create_keyspace(s, "k")
        yield s


def make_tables(session, names):
    for name in names:
        create_table(session, "k", name, "p int, c int, a int, b int, PRIMARY KEY (p, c)")


def pages(session, query, size, between=lambda page: None, prepared=True, bound=()):
    """All rows; between is called with the number of each page that another one follows."""
    statement = session.prepare(query).bind(bound) if prepared else SimpleStatement(query)
    statement.fetch_size = size
    result, rows, page = session.execute(statement), [], 0
    while True:
        rows += result.current_rows
        if not result.has_more_pages:
            return rows
        page += 1
        between(page)
        result.fetch_next_page()


@pytest.mark.parametrize("size", [1, 7, 256, 257])
@pytest.mark.parametrize("query", [
    "SELECT keyspace_name, table_name, column_name FROM system_schema.columns",
    "SELECT keyspace_name, table_name FROM system_schema.tables",
    "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'system' AND table_name > 'l'",
    "SELECT DISTINCT keyspace_name FROM system_schema.columns",
    "SELECT keyspace_name, table_name FROM system_schema.columns PER PARTITION LIMIT 3",
    "SELECT keyspace_name, table_name FROM system_schema.columns LIMIT 77",
    "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'system' ORDER BY table_name DESC",
    "SELECT keyspace_name, table_name, count(*) FROM system_schema.columns GROUP BY keyspace_name, table_name",
    "SELECT keyspace_name, kind FROM system_schema.columns WHERE position = 1 ALLOW FILTERING",
    "SELECT name FROM system_views.settings", "SELECT keyspace_name, kind, name FROM system_control.objects",
])
def test_pages_hold_what_one_page_holds(session, query, size):
    whole = pages(session, query, 50_000)
    assert whole and pages(session, query, size) == whole


def test_rows_that_are_there_all_the_time_come_once(session):
    """Tables before, at and behind the place of the reader come and go between its pages."""
    steady = [f"m{i:03}" for i in range(TABLES)]
    make_tables(session, steady + ["a0", "a1", "m150x", "z0"])

    def change(page):
        if page == 3:
            session.execute("DROP TABLE k.a0")
            make_tables(session, ["a00", "a000", "m000x", "m298x"])
        if page == 6:
            session.execute("DROP TABLE k.m000x")
            session.execute("DROP TABLE k.a1")
            session.execute("DROP TABLE k.m150x")

    for prepared in (True, False):
        rows = [r.table_name for r in pages(session, "SELECT keyspace_name, table_name FROM system_schema.tables", 10, change, prepared) if r.keyspace_name == "k"]
        assert rows == sorted(rows) and len(rows) == len(set(rows)) and set(steady) <= set(rows)
        for name in ("a00", "a000", "m298x"):
            session.execute(f"DROP TABLE k.{name}")
        make_tables(session, ["a0", "a1", "m150x"])


def test_prepared_statements_that_stay_come_once_while_others_are_prepared(session):
    create_table(session, "k", "t", "p int PRIMARY KEY, v int")
    for i in range(400):
        session.prepare(f"SELECT v AS v{i} FROM k.t WHERE p = ?")
    rows = [bytes(r.prepared_id) for r in pages(session, "SELECT prepared_id, query_string FROM system.prepared_statements", 16,
                                               lambda page: session.prepare(f"SELECT p AS p{page} FROM k.t WHERE p = ?"))]
    assert rows == sorted(rows) and len(rows) == len(set(rows)) >= 400


def test_a_page_whose_row_is_gone_goes_on_behind_it(session):
    make_tables(session, [f"t{i}" for i in range(9)])
    query = SimpleStatement("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'", fetch_size=3)
    first = session.execute(query)
    assert [r.table_name for r in first.current_rows] == ["t0", "t1", "t2"]
    session.execute("DROP TABLE k.t2")
    second = session.execute(query, paging_state=first.paging_state)
    assert [r.table_name for r in second.current_rows] == ["t3", "t4", "t5"]


def test_a_paging_state_of_another_statement_is_refused(session):
    make_tables(session, ["t0", "t1", "t2"])
    state = session.execute(SimpleStatement("SELECT * FROM system_schema.tables", fetch_size=2)).paging_state
    with pytest.raises(ProtocolException, match="paging state"):
        session.execute(SimpleStatement("SELECT * FROM system_schema.columns", fetch_size=2), paging_state=state)
