"""system_control: a test says how long DDL takes, whether it fails, and when what is held goes on."""

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.policies import FallthroughRetryPolicy
from cassandra.protocol import ServerError
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from control import drop_rule, objects, release, rules, set_rule
from tally_server import await_active, create_keyspace, create_table, eventually, status_of


def test_it_is_not_there_unless_asked_for(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        for statement in ("SELECT * FROM system_control.ddl", "UPDATE system_control.ddl SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'"):
            with pytest.raises(InvalidRequest, match="system_control is off: it is there when tallyd is started with --control on"):
                session.execute(statement)
        names = {r.keyspace_name for r in session.execute("SELECT keyspace_name FROM system_schema.keyspaces")}
        assert "system_control" not in names


def test_before_there_is_any_object_none_is_shown(controlled):
    _, session = controlled()
    assert list(session.execute("SELECT * FROM system_control.objects")) == []


def test_a_table_is_held_in_creating_and_released(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES ('CREATE TABLE', 'k', 't', 'held')")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.other (p int PRIMARY KEY)")
    await_active(session, "k", "other")
    assert status_of(session, "k", "t") == "CREATING"
    with pytest.raises(InvalidRequest, match="unconfigured table k.t"):
        session.execute("SELECT * FROM k.t")
    row = objects(session, "k")["table", "t"]
    assert (row.status, row.statement, row.held, row.due) == ("CREATING", "CREATE TABLE", True, None)
    release(session, "k", "t")
    assert status_of(session, "k", "t") == "ACTIVE"  # as soon as the UPDATE is answered
    session.execute("INSERT INTO k.t (p) VALUES (1)")
    row = objects(session, "k")["table", "t"]
    assert (row.status, row.statement, row.held) == ("ACTIVE", None, None)


def test_the_closest_rule_counts_and_rules_come_and_go(controlled):
    _, session = controlled("--ddl-delay", "60000", "--ddl-rules", "CREATE KEYSPACE * = none; CREATE TABLE k.slow = held fail it was told to; * k = none")
    create_keyspace(session, "k")
    assert rules(session) == {
        ("*", "*", "*"): ("60000", None), ("CREATE KEYSPACE", "*", "*"): ("none", None),
        ("CREATE TABLE", "k", "slow"): ("held", "it was told to"), ("*", "k", "*"): ("none", None)}
    session.execute("CREATE TABLE k.fast (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.slow (p int PRIMARY KEY)")
    assert (status_of(session, "k", "fast"), status_of(session, "k", "slow")) == ("ACTIVE", "CREATING")
    session.execute("DELETE FROM system_control.ddl WHERE statement = '*' AND keyspace_name = 'k' AND name = '*'")
    session.execute("CREATE TABLE k.late (p int PRIMARY KEY)")
    assert status_of(session, "k", "late") == "CREATING"
    session.execute("UPDATE system_control.ddl SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'")
    session.execute("CREATE TABLE k.now (p int PRIMARY KEY)")
    assert status_of(session, "k", "now") == "ACTIVE"
    session.execute("DELETE FROM system_control.ddl WHERE statement = '*' AND keyspace_name = '*' AND name = '*'")
    assert rules(session)["*", "*", "*"] == ("60000", None)  # the configuration's again
    session.execute("DELETE failure FROM system_control.ddl WHERE statement = 'CREATE TABLE' AND keyspace_name = 'k' AND name = 'slow'")
    assert rules(session)["CREATE TABLE", "k", "slow"] == ("held", None)
    session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = '*' AND kind = '*' AND name = '*'")
    assert status_of(session, "k", "late") == "ACTIVE"


def test_rules_that_were_set_survive_kill9(controlled):
    """They go before the configuration's of the same statement and object, which come back when nothing else was said of them."""
    server, session = controlled("--ddl-delay", "1", "--ddl-rules", "CREATE TABLE k.a = 2; CREATE TABLE k.b = 3; CREATE TABLE k.c = 4")
    set_rule(session, "held", "DROP TABLE", "k", "t", failure="no luck")
    set_rule(session, "5", "CREATE TABLE", "k", "a")
    set_rule(session, "6")
    set_rule(session, "7", "ALTER TABLE", "k")
    drop_rule(session, "ALTER TABLE", "k")
    drop_rule(session, "CREATE TABLE", "k", "b")  # which the configuration says
    now = {("DROP TABLE", "k", "t"): ("held", "no luck"), ("CREATE TABLE", "k", "a"): ("5", None), ("*", "*", "*"): ("6", None), ("CREATE TABLE", "k", "c"): ("4", None)}
    for _ in range(2):
        assert rules(session) == now
        assert [r.name for r in session.execute("SELECT name, configured FROM system_control.ddl") if r.configured] == ["c"]
        server.kill9()
        server.start()
        session = server.cluster(schema_metadata_enabled=False).connect()
    with pytest.raises(InvalidRequest, match="Column configured of system_control.ddl is read-only"):
        session.execute("UPDATE system_control.ddl SET configured = true WHERE statement = '*' AND keyspace_name = '*' AND name = '*'")
    drop_rule(session)
    now["*", "*", "*"] = ("1", None)  # the configuration's again
    assert rules(session) == now
    for flags in (("--control", "off"), ("--control", "on")):  # without control nobody sees them, and they do not count
        server.kill9()
        server.flags = (*server.flags, *flags)
        server.start()
        session = server.cluster(schema_metadata_enabled=False).connect()
        if flags[1] == "off":
            create_keyspace(session, "k")
            create_table(session, "k", "t", "p int PRIMARY KEY")
            session.execute("DROP TABLE k.t")
            eventually(lambda: status_of(session, "k", "t") is None)
    assert rules(session) == now


def test_a_seed_makes_the_same_delays_again(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    seen = []
    for round_ in range(2):
        session.execute("UPDATE system_control.ddl SET delay = 'lognormal(100000, 0.5, 42)' WHERE statement = 'CREATE TABLE' AND keyspace_name = 'k' AND name = '*'")
        for i in range(5):
            session.execute(f"CREATE TABLE k.t{round_}_{i} (p int PRIMARY KEY)")
        of = objects(session, "k")
        seen.append([round((of["table", f"t{round_}_{i}"].due - of["table", f"t{round_}_{i}"].since).total_seconds(), 2) for i in range(5)])
    assert seen[0] == pytest.approx(seen[1], abs=0.02)
    assert len(set(seen[0])) == 5 and all(5 < s < 2000 for s in seen[0])


FAILURES = [
    ("CREATE TABLE", "CREATE TABLE k.n (p int PRIMARY KEY)", "n", "CREATING", None),
    ("ALTER TABLE", "ALTER TABLE k.t ADD extra int", "t", "UPDATING", "ACTIVE"),
    ("DROP TABLE", "DROP TABLE k.t", "t", "DELETING", "ACTIVE"),
]


@pytest.mark.parametrize("statement, text, name, during, after", FAILURES)
def test_what_fails_leaves_what_was(controlled, statement, text, name, during, after):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("INSERT INTO k.t (p) VALUES (7)")
    session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay, failure) VALUES (%s, 'k', '*', 'held', 'no luck')", (statement,))
    session.execute(text)
    assert status_of(session, "k", name) == during
    release(session, "k", name)
    assert status_of(session, "k", name) == after
    assert [list(r) for r in session.execute("SELECT * FROM k.t")] == [[7]]  # with the columns that it had
    session.execute("DELETE FROM system_control.ddl WHERE statement = %s AND keyspace_name = 'k' AND name = '*'", (statement,))
    session.execute(text)
    assert status_of(session, "k", name) == (None if "DROP" in statement else "ACTIVE")
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as again:
        assert status_of(again.connect(), "k", name) == (None if "DROP" in statement else "ACTIVE")


def test_a_keyspace_whose_drop_fails_has_its_tables_again(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("INSERT INTO k.t (p) VALUES (7)")
    session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay, failure) VALUES ('DROP KEYSPACE', 'k', '*', 'held', 'no luck')")
    session.execute("DROP KEYSPACE k")
    assert status_of(session, "k", "t") == "DELETING"
    assert session.execute("SELECT * FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'k'").one()
    with pytest.raises(InvalidRequest, match="Keyspace k does not exist"):
        session.execute("SELECT * FROM k.t")
    release(session, "k", "k", kind="keyspace")
    assert session.execute("SELECT * FROM k.t").one().p == 7


def test_in_cassandra_mode_who_waits_is_told_that_it_failed(controlled):
    _, session = controlled("--mode", "cassandra", "--ddl-rules", "CREATE TABLE k.n = 50 fail the disk is on fire")
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    with pytest.raises(ServerError, match="the disk is on fire"):
        session.execute(SimpleStatement("CREATE TABLE k.n (p int PRIMARY KEY)", retry_policy=FallthroughRetryPolicy()))
    session.execute("DELETE FROM system_control.ddl WHERE statement = 'CREATE TABLE' AND keyspace_name = 'k' AND name = 'n'")
    session.execute("CREATE TABLE k.n (p int PRIMARY KEY)")
    session.execute("INSERT INTO k.n (p) VALUES (1)")


def test_a_table_loses_its_key_and_finds_it_again(controlled):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("INSERT INTO k.t (p) VALUES (7)")
    lost = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
    session.execute("UPDATE system_control.objects SET status = %s WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", (lost,))
    assert status_of(session, "k", "t") == lost
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        assert status_of(session, "k", "t") == lost
        for statement in ("SELECT * FROM k.t", "INSERT INTO k.t (p) VALUES (8)"):
            with pytest.raises(InvalidRequest, match=f"Table 't' is {lost}: wait until it is ACTIVE"):
                session.execute(statement)
        with pytest.raises(InvalidRequest, match=f"Table 't' is {lost}: wait until it is ACTIVE"):
            session.execute("ALTER TABLE k.t ADD x int")
        session.execute("UPDATE system_control.objects SET status = 'ACTIVE' WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'")
        assert session.execute("SELECT * FROM k.t").one().p == 7
        session.execute("UPDATE system_control.objects SET status = %s WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", (lost,))
        session.execute("DROP TABLE k.t")
        assert status_of(session, "k", "t") is None


REFUSED = [
    ("UPDATE system_control.ddl SET delay = 'soon' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'", "'soon' is no DDL delay: none, MS"),
    ("UPDATE system_control.ddl SET delay = '5..1' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'", "is no DDL delay"),
    ("UPDATE system_control.ddl SET delay = 'none' WHERE statement = 'TRUNCATE' AND keyspace_name = '*' AND name = '*'", "is no DDL statement that takes time"),
    ("UPDATE system_control.ddl SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = 't'", "names its keyspace, too"),
    ("UPDATE system_control.ddl SET delay = null WHERE statement = '*' AND keyspace_name = '*' AND name = '*'", "The rule for everything needs a delay"),
    ("UPDATE system_control.ddl SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = '*' IF EXISTS", "Conditional updates are not supported by virtual tables"),
    ("UPDATE system_control.ddl USING TTL 5 SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'", "Expiring columns are not supported by virtual tables"),
    ("UPDATE system_control.ddl USING TIMESTAMP 5 SET delay = 'none' WHERE statement = '*' AND keyspace_name = '*' AND name = '*'", "Custom timestamp is not supported by virtual tables"),
    ("DELETE FROM system_control.ddl WHERE statement = '*'", "Partition deletion is not supported by table system_control.ddl"),
    ("DELETE FROM system_control.ddl WHERE statement = '*' AND keyspace_name = '*'", "Range deletion is not supported by table system_control.ddl"),
    ("UPDATE system_control.objects SET held = true WHERE keyspace_name = 'none' AND kind = 'table' AND name = 't'", "There is no table t in keyspace none"),
    ("UPDATE system_control.objects SET held = true WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", "Nothing is under way on table t: it is ACTIVE"),
    ("UPDATE system_control.objects SET status = 'CREATING' WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", "all others come with their statements"),
    ("UPDATE system_control.objects SET due = 5 WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", "Column due of system_control.objects is read-only"),
    ("DELETE FROM system_control.objects WHERE keyspace_name = 'k' AND kind = 'table' AND name = 't'", "Row deletion is not supported by table system_control.objects"),
    ("BEGIN BATCH INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES ('*', 'k', '*', 'none') APPLY BATCH", "Cannot include a virtual table statement in a logged batch"),
    ("BEGIN UNLOGGED BATCH INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES ('*', 'k', '*', 'none') INSERT INTO k.t (p) VALUES (1) APPLY BATCH",
     "Mutations for virtual and regular tables cannot exist in the same batch"),
]


def test_what_cannot_be_is_refused_in_words_and_changes_nothing(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    before = rules(session)
    for statement, words in REFUSED:
        with pytest.raises(InvalidRequest, match=words):
            session.execute(statement)
    with pytest.raises((Unauthorized, InvalidRequest), match="system_control keyspace is not user-modifiable|System keyspace"):
        session.execute("DROP TABLE system_control.ddl")
    assert rules(session) == before


def test_prepared_statements_and_batches_of_rules(controlled):
    _, session = controlled("--ddl-delay", "none")
    put = session.prepare("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES (?, ?, ?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for i in range(10):
        batch.add(put, ("CREATE TABLE", "k", f"t{i}", str(i)))
    session.execute(batch)
    assert rules(session)["CREATE TABLE", "k", "t7"] == ("7", None)
    session.execute("DELETE FROM system_control.ddl WHERE statement = 'CREATE TABLE' AND keyspace_name = 'k' AND name IN ('t7', 't8')")
    assert len(rules(session)) == 9


def test_so_many_rules_and_no_more(controlled):
    """Who adds one rule too many is refused; nobody else is."""
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    put = session.prepare("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES ('CREATE TABLE', 'guilty', ?, 'held')")
    for i in range(999):
        session.execute(put, (f"t{i}",))
    with pytest.raises(InvalidRequest, match="There are 1000 rules of DDL delays already"):
        session.execute(put, ("one_more",))
    session.execute("CREATE TABLE k.innocent (p int PRIMARY KEY)")
    await_active(session, "k", "innocent")
    session.execute("DELETE FROM system_control.ddl WHERE statement = 'CREATE TABLE' AND keyspace_name = 'guilty' AND name = 't1'")
    session.execute(put, ("one_more",))
