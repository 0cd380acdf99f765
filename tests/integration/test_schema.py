"""The schema under statements that ask for much: what is accepted is there after a restart, what is not is refused, and DDL goes on."""
import pytest
from cassandra import InvalidRequest
from cassandra.protocol import SyntaxException


def nested(word, levels, inner="int"):
    opens = {"tuple": "tuple<", "list": "frozen<list<", "set": "frozen<set<", "map": "frozen<map<int, ", "vector": "vector<"}[word]
    closes = {"tuple": ">", "vector": ", 2>"}.get(word, ">>")
    return opens * levels + inner + closes * levels


ACCEPTED = [
    "vector<int, 65537>", "vector<int, 2147483647>", nested("tuple", 17), nested("tuple", 128), nested("list", 17), nested("list", 64),
    nested("set", 20), nested("map", 64), nested("vector", 16), "frozen<list<vector<list<int>, 2>>>", "tuple<vector<frozen<set<int>>, 2>>", "tuple<" + ", ".join(["timeuuid"] * 2000) + ">",
    "tuple<" + ", ".join([nested("map", 5, "timestamp")] * 300) + ">",
]
REFUSED = [
    "vector<int, 0>", "vector<int, -1>", "vector<int, 2147483648>", nested("tuple", 129), nested("list", 129), nested("vector", 40),
    "tuple<" + ", ".join(["int"] * 5000) + ">", "vector<vector<int, 65536>, 65536>", "vector<tuple<" + ", ".join(["timeuuid"] * 3000) + ">, 2>",
]


@pytest.fixture
def ks(new_server):
    server = new_server("--mode", "cassandra")
    cluster = server.cluster(schema_metadata_enabled=False)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    yield server, session
    cluster.shutdown()


def types_of(session):
    rows = session.execute("SELECT table_name, type FROM system_schema.columns WHERE keyspace_name = 'k'")
    return sorted((r.table_name, r.type) for r in rows)


def restart(server):
    server.kill9()
    server.start()
    cluster = server.cluster(schema_metadata_enabled=False)
    return cluster, cluster.connect()


def test_types_that_are_accepted_are_there_after_a_restart(ks):
    server, session = ks
    for i, t in enumerate(ACCEPTED):
        session.execute(f"CREATE TABLE k.c{i} (p int PRIMARY KEY, v {t})")
        session.execute(f"CREATE TABLE k.a{i} (p int PRIMARY KEY)")
        session.execute(f"ALTER TABLE k.a{i} ADD v {t}")
    before = types_of(session)
    assert len(before) == 4 * len(ACCEPTED)
    cluster, again = restart(server)
    assert types_of(again) == before
    for i in range(len(ACCEPTED)):
        again.execute(f"INSERT INTO k.a{i} (p) VALUES (1)")
        assert again.execute(f"SELECT * FROM k.a{i}").one().v is None
    cluster.shutdown()
    assert "set aside" not in server.log_tail()


def test_types_above_the_limits_are_refused_and_ddl_goes_on(ks):
    server, session = ks
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    for t in REFUSED:
        with pytest.raises((InvalidRequest, SyntaxException)):
            session.execute(f"CREATE TABLE k.big (p int PRIMARY KEY, v {t})")
        with pytest.raises((InvalidRequest, SyntaxException)):
            session.execute(f"ALTER TABLE k.t ADD v {t}")
    session.execute("CREATE TABLE k.after (p int PRIMARY KEY)")
    cluster, again = restart(server)
    assert [name for name, _ in types_of(again)] == ["after", "t"]
    cluster.shutdown()


def test_names_and_properties_that_are_too_long_are_refused_and_ddl_goes_on(ks):
    server, session = ks
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    for name in ("x" * 65536, "x" * 200000):
        with pytest.raises(InvalidRequest, match="Column names must not be more than 65535 bytes long"):
            session.execute(f'ALTER TABLE k.t ADD "{name}" int')
    session.execute(f'ALTER TABLE k.t ADD "{"y" * 65000}" int')
    session.execute("ALTER TABLE k.t WITH comment = '%s'" % ("c" * 300000))
    many = ", ".join(f"'k{i}': 'v'" for i in range(1000))
    with pytest.raises(InvalidRequest, match="too many properties"):
        session.execute("ALTER TABLE k.t WITH compaction = {'class': 'SizeTieredCompactionStrategy', %s}" % many)
    session.execute("ALTER TABLE k.t WITH extensions = {%s}" % many)  # which nothing is kept of
    session.execute("CREATE TABLE k.after (p int PRIMARY KEY)")
    cluster, again = restart(server)
    assert len(again.execute("SELECT comment FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = 't'").one().comment) == 300000
    again.execute("INSERT INTO k.t (p) VALUES (1)")
    assert len(again.execute("SELECT * FROM k.t").one()) == 2
    cluster.shutdown()
