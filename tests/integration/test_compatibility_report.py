"""--compatibility report: nothing is refused, and system_metering.compatibility lists every use of what would be."""
import pytest
from cassandra import InvalidRequest

from refusal_run import Run
from refusals import ELSEWHERE, cases, rules
from tally_server import Server, create_keyspace, create_table

KEYSPACE = "reported"


@pytest.fixture(scope="module")
def reporting(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp("report"), "--compatibility", "report", "--ddl-delay", "none").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module")
def session(reporting):
    """It reads no metadata: some cases make tables of seven thousand columns, and a driver would read them after each case."""
    with reporting.cluster(schema_metadata_enabled=False) as cluster:
        s = cluster.connect()
        create_keyspace(s, KEYSPACE)
        yield s


def report(session, rule):
    return list(session.execute("SELECT * FROM system_metering.compatibility WHERE rule = %s", (rule,)))


def test_every_rule_that_can_be_broken_in_a_statement_is_noted(session):
    """Every case of refusals.txt; what Tally cannot do at all still fails, as itself."""
    for number, case in enumerate(cases()):
        run = Run(session, KEYSPACE, case, number)
        try:
            run.refused()
        except Exception as e:  # pylint: disable=broad-except
            assert case.words.removesuffix("...") not in str(e), e
    noted = {r.rule for r in session.execute("SELECT rule FROM system_metering.compatibility")}
    assert sorted(set(rules()) - noted - set(ELSEWHERE)) == []


def test_a_use_is_counted_with_statement_and_table_and_values_left_out(session):
    create_table(session, KEYSPACE, "orders", "id int PRIMARY KEY, note text")
    for i in range(3):
        session.execute(f"SELECT max(id) FROM {KEYSPACE}.orders WHERE id = {i} AND note = 'it''s {i}' ALLOW FILTERING")
    mine = [r for r in report(session, "aggregate") if r.table_name == "orders"]
    assert [(r.keyspace_name, r.statement, r.uses) for r in mine] == [
        (KEYSPACE, f"SELECT max(id) FROM {KEYSPACE}.orders WHERE id = ? AND note = ? ALLOW FILTERING", 3)]
    assert mine[0].first_seen <= mine[0].last_seen
    assert mine[0].instead.startswith("Count or sum up in the application")


def test_a_prepared_statement_counts_with_every_execution(session):
    create_table(session, KEYSPACE, "prepared", "id int PRIMARY KEY")
    prepared = session.prepare(f"SELECT min(id) FROM {KEYSPACE}.prepared WHERE id = ?")
    for i in range(5):
        session.execute(prepared, (i,))
    mine = [r for r in report(session, "aggregate") if r.table_name == "prepared"]
    assert [r.uses for r in mine] == [6]


def test_ever_new_statements_take_no_room_from_other_rules(session):
    create_table(session, KEYSPACE, "many", "id int PRIMARY KEY, " + ", ".join(f"c{i} int" for i in range(100)))
    for i in range(100):
        session.execute(f"SELECT DISTINCT id AS a{'x' * i} FROM {KEYSPACE}.many")
    guilty = report(session, "distinct")
    assert len(guilty) == 65
    rest = [r for r in guilty if not r.statement]
    assert len(rest) == 1 and rest[0].table_name == ""
    assert sum(r.uses for r in guilty) >= 100
    create_table(session, KEYSPACE, "innocent", "id int PRIMARY KEY, v int")
    session.execute(f"SELECT WRITETIME(v) FROM {KEYSPACE}.innocent")
    assert [r.uses for r in report(session, "writetime") if r.table_name == "innocent"] == [1]


def test_cassandra_mode_reports_too_and_refuses_to_be_strict(tmp_path):
    s = Server(tmp_path, "--mode", "cassandra", "--compatibility", "report").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, KEYSPACE)
        session.execute(f"CREATE TABLE {KEYSPACE}.t (p int PRIMARY KEY, d vector<float, 2>)")
        assert session.execute(f"SELECT COUNT(*) FROM {KEYSPACE}.t").one()[0] == 0
        assert [(r.table_name, r.uses) for r in report(session, "data-type")] == [("t", 1)]
        assert [(r.table_name, r.uses) for r in report(session, "aggregate")] == [("t", 1)]
    s.stop()


def test_strict_reports_nothing_and_lists_its_rules_and_numbers(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        with pytest.raises(InvalidRequest):
            session.execute("SELECT COUNT(*) FROM system.local")
        assert list(session.execute("SELECT * FROM system_metering.compatibility")) == []
        listed = {r.id: r for r in session.execute("SELECT * FROM system_metering.refusals")}
        assert sorted(listed) == sorted(rules())
        assert listed["ttl"].confidence == "documented" and listed["ttl"].words == "TTL is not yet supported."
        assert listed["ttl"].source.endswith("https://docs.aws.amazon.com/keyspaces/latest/devguide/troubleshooting.cql.html")
        quotas = {r.name: r.value for r in session.execute("SELECT * FROM system_metering.quotas")}
        assert (quotas["TABLES"], quotas["ROW_BYTES"]) == (256, 1048576)
    s.stop()
