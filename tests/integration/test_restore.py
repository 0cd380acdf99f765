"""RESTORE TABLE through a real driver: at each of several seconds while writes go on, after a drop, across ALTER, outside of the window, over kill -9."""
import contextlib
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import SyntaxException

from tally_server import await_active, create_keyspace, eventually, let_pass, status_of

PITR = "CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}"


def make_table(session, name, definition, properties=PITR, ks="r"):
    session.execute(f"CREATE TABLE {ks}.{name} ({definition}) WITH {properties}")
    await_active(session, ks, name)


def text_of(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}+0000"


def now():
    return datetime.now(timezone.utc)


def moment_after():
    """A moment that a statement can name, in milliseconds, behind all that was answered and before all that is asked later."""
    let_pass(0.003)
    moment = now()
    let_pass(0.003)
    return moment


def restore(session, new, old, moment=None, more="", ks="r"):
    words = ([f"restore_timestamp = '{text_of(moment)}'"] if moment else []) + ([more] if more else [])
    session.execute(f"RESTORE TABLE {ks}.{new} FROM TABLE {ks}.{old}" + (" WITH " + " AND ".join(words) if words else ""))
    return await_active(session, ks, new)


def properties(session, table, ks="r"):
    return session.execute("SELECT custom_properties FROM system_schema_mcs.tables WHERE keyspace_name = %s AND table_name = %s", (ks, table)).one()[0]


@pytest.fixture
def session(new_server):
    server = new_server("--ddl-delay", "30")
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "r")
        s.server = server
        yield s


def test_a_table_is_restored_to_each_of_several_seconds_while_writes_go_on(session):
    make_table(session, "t", "pk int, ck int, v text, PRIMARY KEY (pk, ck)")
    insert = session.prepare("INSERT INTO r.t (pk, ck, v) VALUES (?, ?, ?)")
    delete = session.prepare("DELETE FROM r.t WHERE pk = ? AND ck = ?")
    acknowledged, stop = [], False  # (begun, ended, row, value or None)

    def write():
        row = 0
        while not stop:
            begun = now()
            session.execute(insert, (row % 7, row, f"v{row}"))
            acknowledged.append((begun, now(), row, f"v{row}"))
            if row % 5 == 4:
                begun = now()
                session.execute(delete, ((row - 3) % 7, row - 3))
                acknowledged.append((begun, now(), row - 3, None))
            row += 1

    writer = threading.Thread(target=write)
    writer.start()
    moments = []
    try:
        for n in range(4):
            let_pass(0.6)
            moments.append(now())
        for n, moment in enumerate(moments):
            assert restore(session, f"at{n}", "t", moment)[0] in ("RESTORING", "ACTIVE")
        eventually(lambda: len(acknowledged) > 100)
    finally:
        stop = True
        writer.join()
    assert len(acknowledged) > 100
    for n, moment in enumerate(moments):
        found = {r.ck: r.v for r in session.execute(f"SELECT ck, v FROM r.at{n}")}
        before, open_rows = {}, set()  # a client knows the moment of a write between its begin and its end
        for begun, ended, row, value in acknowledged:
            if ended < moment - timedelta(milliseconds=1):
                before[row] = value
            elif begun < moment:
                open_rows.add(row)
        expected = {row: v for row, v in before.items() if v is not None and row not in open_rows}
        for row in open_rows:
            found.pop(row, None)
        assert found == expected, f"at second {n}"
    assert len(list(session.execute("SELECT ck FROM r.at0"))) < len(list(session.execute("SELECT ck FROM r.at3")))


def test_a_dropped_table_is_restored_to_its_last_moment_and_to_one_before(session):
    make_table(session, "gone", "pk int PRIMARY KEY, v int, m map<text, int>, s set<int>")
    for i in range(20):
        session.execute("INSERT INTO r.gone (pk, v, m, s) VALUES (%s, %s, %s, %s)", (i, i, {"a": i}, {i, i + 1}))
    middle = moment_after()
    session.execute("UPDATE r.gone SET m['b'] = 7, s = s - {1} WHERE pk = 1")
    session.execute("DELETE FROM r.gone WHERE pk = 2")
    session.execute("DROP TABLE r.gone")
    eventually(lambda: not status_of(session, "r", "gone"))
    restore(session, "last", "gone")
    restore(session, "middle", "gone", middle)
    last, then = ({r.pk: r for r in session.execute(f"SELECT * FROM r.{t}")} for t in ("last", "middle"))
    assert len(last) == 19 and last[1].m == {"a": 1, "b": 7} and last[1].s == {2}
    assert len(then) == 20 and then[1].m == {"a": 1} and then[1].s == {1, 2} and then[2].v == 2
    with pytest.raises(InvalidRequest, match="the restore timestamp must be between"):
        restore(session, "late", "gone", now())
    # under its own name, too; and one that was made anew under the name hides the old one
    restore(session, "gone", "gone")
    assert len(list(session.execute("SELECT pk FROM r.gone"))) == 19


def test_a_table_made_anew_hides_the_history_of_the_one_before(session):
    make_table(session, "t", "pk int PRIMARY KEY, v int")
    session.execute("INSERT INTO r.t (pk, v) VALUES (1, 1)")
    before = moment_after()
    session.execute("DROP TABLE r.t")
    eventually(lambda: not status_of(session, "r", "t"))
    make_table(session, "t", "pk int PRIMARY KEY, w int", properties="comment = 'without'")
    with pytest.raises(InvalidRequest, match="point-in-time recovery is not enabled"):
        restore(session, "n", "t", before)


def test_the_definition_is_that_of_the_moment_and_settings_are_those_of_now(session):
    make_table(session, "t", "pk int PRIMARY KEY, a int", properties=PITR + " AND comment = 'first' AND default_time_to_live = 1000")
    session.execute("INSERT INTO r.t (pk, a) VALUES (1, 1)")
    before = moment_after()
    for change in ("ADD b text", "WITH comment = 'second'",
                   "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 7, 'write_capacity_units': 5}}"):
        session.execute(f"ALTER TABLE r.t {change}")
        await_active(session, "r", "t")
    session.execute("INSERT INTO r.t (pk, a, b) VALUES (2, 2, 'x')")
    restore(session, "old", "t", before)
    restore(session, "new", "t")
    session.cluster.refresh_schema_metadata()
    tables = session.cluster.metadata.keyspaces["r"].tables
    assert list(tables["old"].columns) == ["pk", "a"] and set(tables["new"].columns) == {"pk", "a", "b"}
    assert tables["old"].options["comment"] == "first" and tables["new"].options["comment"] == "second"
    assert tables["old"].options["default_time_to_live"] == 1000
    for t in ("old", "new"):
        assert properties(session, t)["capacity_mode"]["read_capacity_units"] == "7"
    assert [(r.pk, r.a) for r in session.execute("SELECT * FROM r.old")] == [(1, 1)]
    assert {(r.pk, r.b) for r in session.execute("SELECT pk, b FROM r.new")} == {(1, None), (2, "x")}
    session.execute("INSERT INTO r.old (pk, a) VALUES (3, 3)")
    assert len(list(session.execute("SELECT * FROM r.old"))) == 2


def test_statics_counters_ranges_ttl_and_own_timestamps_come_back_as_they_were(session):
    make_table(session, "t", "pk int, ck int, v int, st text static, PRIMARY KEY (pk, ck)", properties=PITR.replace(
        "}}", "}, 'client_side_timestamps': {'status': 'enabled'}, 'ttl': {'status': 'enabled'}}"))
    make_table(session, "c", "pk int PRIMARY KEY, n counter")
    for ck in range(10):
        session.execute("INSERT INTO r.t (pk, ck, v, st) VALUES (1, %s, %s, 'first')", (ck, ck))
    session.execute("INSERT INTO r.t (pk, ck, v) VALUES (2, 1, 1) USING TTL 3")
    session.execute("INSERT INTO r.t (pk, ck, v) VALUES (3, 1, 10) USING TIMESTAMP %s", (int(time.time() * 1e6) + 60_000_000,))
    session.execute("UPDATE r.c SET n = n + 5 WHERE pk = 1")
    before = moment_after()
    session.execute("DELETE FROM r.t WHERE pk = 1 AND ck > 3")
    session.execute("UPDATE r.t SET st = 'second' WHERE pk = 1")
    session.execute("INSERT INTO r.t (pk, ck, v) VALUES (3, 1, 11)")  # older than the one from the future
    session.execute("UPDATE r.c SET n = n + 2 WHERE pk = 1")
    session.execute("DELETE FROM r.t WHERE pk = 2")
    for name, moment in (("before", before), ("after", None)):
        restore(session, f"t_{name}", "t", moment)
        restore(session, f"c_{name}", "c", moment)
    rows = lambda t: sorted((r.pk, r.ck, r.v, r.st) for r in session.execute(f"SELECT * FROM r.{t}"))
    assert rows("t_before")[:10] == [(1, ck, ck, "first") for ck in range(10)]
    assert (3, 1, 10, None) in rows("t_before") and (3, 1, 10, None) in rows("t_after")
    assert rows("t_after")[:4] == [(1, ck, ck, "second") for ck in range(4)] and len(rows("t_after")) == 5
    assert session.execute("SELECT n FROM r.c_before").one().n == 5 and session.execute("SELECT n FROM r.c_after").one().n == 7
    left = session.execute("SELECT TTL(v) FROM r.t_before WHERE pk = 2 AND ck = 1").one()
    assert left is None or 0 <= left[0] <= 3  # its time runs on


def test_what_is_outside_of_the_window_or_unknown_is_refused_in_words(session):
    make_table(session, "t", "pk int PRIMARY KEY")
    make_table(session, "plain", "pk int PRIMARY KEY", properties="comment = ''")
    run = lambda text: session.execute(text)
    for words, kind, text in (
            ("must be between", InvalidRequest, "RESTORE TABLE r.n FROM TABLE r.t WITH restore_timestamp = '2020-01-01T00:00:00+0000'"),
            ("must be between", InvalidRequest, "RESTORE TABLE r.n FROM TABLE r.t WITH restore_timestamp = '2999-01-01T00:00:00+0000'"),
            ("Invalid restore_timestamp", InvalidRequest, "RESTORE TABLE r.n FROM TABLE r.t WITH restore_timestamp = 'yesterday'"),
            ("Unknown property", SyntaxException, "RESTORE TABLE r.n FROM TABLE r.t WITH nonsense = 1"),
            ("unconfigured table r.nowhere", InvalidRequest, "RESTORE TABLE r.n FROM TABLE r.nowhere"),
            ("not enabled", InvalidRequest, "RESTORE TABLE r.n FROM TABLE r.plain")):
        with pytest.raises(kind, match=words):
            run(text)
    with pytest.raises(Exception, match="already exist"):
        run("RESTORE TABLE r.plain FROM TABLE r.t")
    assert "earliest_restorable_timestamp" not in properties(session, "plain")["point_in_time_recovery"]


def test_recovery_enabled_later_begins_then_and_disabled_forgets(session):
    make_table(session, "t", "pk int PRIMARY KEY, v int", properties="comment = ''")
    for i in range(50):
        session.execute("INSERT INTO r.t (pk, v) VALUES (%s, 0)", (i,))
    before = moment_after()
    session.execute(f"ALTER TABLE r.t WITH {PITR}")
    await_active(session, "r", "t")
    eventually(lambda: "earliest_restorable_timestamp" in properties(session, "t")["point_in_time_recovery"])
    with pytest.raises(InvalidRequest, match="must be between"):
        restore(session, "early", "t", before)
    after = moment_after()
    session.execute("INSERT INTO r.t (pk, v) VALUES (1, 1)")
    restore(session, "then", "t", after)
    assert {r.v for r in session.execute("SELECT v FROM r.then")} == {0} and len(list(session.execute("SELECT * FROM r.then"))) == 50
    # the restored table has recovery of its own, unless the statement says otherwise
    assert properties(session, "then")["point_in_time_recovery"]["status"] == "enabled"
    restore(session, "without", "t", more="CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'disabled'}}")
    assert properties(session, "without")["point_in_time_recovery"]["status"] == "disabled"
    session.execute("ALTER TABLE r.t WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'disabled'}}")
    await_active(session, "r", "t")
    with pytest.raises(InvalidRequest, match="not enabled"):
        restore(session, "late", "t")


def test_a_restore_before_recovery_has_begun_says_when_to_try_again(new_server):
    with new_server("--control", "on", "--ddl-rules", "ALTER TABLE * = held").cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "r")
        make_table(session, "t", "pk int PRIMARY KEY", properties="comment = ''")
        session.execute(f"ALTER TABLE r.t WITH {PITR}")
        with pytest.raises(InvalidRequest, match="r.t cannot be restored yet: point-in-time recovery is being enabled for it; "
                                                 "try again when system_schema_mcs.tables shows its earliest_restorable_timestamp"):
            session.execute("RESTORE TABLE r.n FROM TABLE r.t")
        session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = 'r' AND kind = 'table' AND name = 't'")
        await_active(session, "r", "t")
        eventually(lambda: "earliest_restorable_timestamp" in properties(session, "t")["point_in_time_recovery"])
        restore(session, "n", "t")


def await_type(session):
    eventually(lambda: [r.status for r in session.execute("SELECT status FROM system_schema_mcs.types WHERE keyspace_name = 'r'")] == ["ACTIVE"])


def test_columns_that_were_dropped_stay_away_and_user_types_come_back(session):
    session.execute("CREATE TYPE r.place (street text, zip int)")
    await_type(session)
    make_table(session, "t", "pk int PRIMARY KEY, a int, b text, home place, work frozen<place>, m map<text, frozen<place>>")
    session.execute("INSERT INTO r.t (pk, a, b, home, work, m) VALUES (1, 1, 'old', {street: 's', zip: 1}, {zip: 2}, {'k': {zip: 3}})")
    first = moment_after()
    alter = lambda change: (session.execute(f"ALTER TABLE r.t {change}"), await_active(session, "r", "t"))
    alter("DROP b")
    session.execute("UPDATE r.t SET home.street = 'moved' WHERE pk = 1")
    without = moment_after()
    alter("ADD b text")
    session.execute("INSERT INTO r.t (pk, a, b) VALUES (2, 2, 'new')")
    session.execute("ALTER TYPE r.place ADD town text")
    await_type(session)
    for name, moment in (("first", first), ("without", without), ("last", None)):
        restore(session, name, "t", moment)
    read = lambda table, columns: sorted(tuple(r) for r in session.execute(f"SELECT pk, {columns} FROM r.{table}"))
    assert read("first", "a, b, home.street, work.zip") == [(1, 1, "old", "s", 2)]
    assert read("without", "a, home.street") == [(1, 1, "moved")]
    assert read("last", "a, b, home.street") == [(1, 1, None, "moved"), (2, 2, "new", None)]
    assert session.execute("SELECT m FROM r.last WHERE pk = 1").one().m["k"].zip == 3
    with pytest.raises(InvalidRequest):
        session.execute("SELECT b FROM r.without")
    session.execute("ALTER TABLE r.without ADD b text")
    await_active(session, "r", "without")
    assert read("without", "b") == [(1, None)]


def test_a_table_is_restored_to_before_and_after_a_truncation(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "r")
        make_table(session, "t", "pk int PRIMARY KEY, v int")
        since = properties(session, "t")["point_in_time_recovery"]["earliest_restorable_timestamp"]
        moments = []
        for turn in range(3):
            for i in range(turn + 1):
                session.execute("INSERT INTO r.t (pk, v) VALUES (%s, %s)", (i, turn))
            moments.append(moment_after())
            session.execute("TRUNCATE r.t")
            assert list(session.execute("SELECT * FROM r.t")) == []
        session.execute("INSERT INTO r.t (pk, v) VALUES (9, 9)")
        assert properties(session, "t")["point_in_time_recovery"]["earliest_restorable_timestamp"] == since
        server.stop()
        server.start()
    with server.cluster() as cluster:
        session = cluster.connect()
        rows = lambda t: sorted((r.pk, r.v) for r in session.execute(f"SELECT pk, v FROM r.{t}"))
        for turn, moment in enumerate(moments):
            restore(session, f"at{turn}", "t", moment)
            assert rows(f"at{turn}") == [(i, turn) for i in range(turn + 1)]
        restore(session, "now", "t")
        assert rows("now") == rows("t") == [(9, 9)]
        session.execute("DROP TABLE r.t")
        restore(session, "gone", "t", moments[1])
        assert rows("gone") == [(0, 1), (1, 1)]
        restore(session, "last", "t")
        assert rows("last") == [(9, 9)]
        # what is given up is given up with what was before a truncation
        session.execute("TRUNCATE r.last")
        session.execute("ALTER TABLE r.last WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'disabled'}}")
        with pytest.raises(InvalidRequest, match="not enabled"):
            restore(session, "none", "last")


def test_how_long_a_dropped_table_can_be_restored_is_told(new_server):
    server = new_server("--ddl-delay", "none", "--control", "on", "--pitr-window", "3600")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "r")
        make_table(session, "t", "pk int PRIMARY KEY")
        make_table(session, "plain", "pk int PRIMARY KEY", properties="comment = ''")
        for table in ("t", "plain"):
            session.execute(f"DROP TABLE r.{table}")
        dropped = now()
        recovery = {(r.table_name, r.event): r.custom_properties["point_in_time_recovery"]
                    for r in session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'r'")}
        assert "restorable_until_time" not in recovery["t", "CREATE"] and "restorable_until_time" not in recovery["plain", "DROP"]
        until = datetime.fromisoformat(recovery["t", "DROP"]["restorable_until_time"].replace("Z", "+00:00"))
        assert recovery["t", "DROP"]["status"] == "enabled" and abs(until - timedelta(seconds=3600) - dropped) < timedelta(seconds=60)
        kept = session.execute("SELECT * FROM system_metering.recovery").one()
        assert abs(kept.restorable_until_time.replace(tzinfo=timezone.utc) - until) < timedelta(seconds=1)
        move = lambda seconds: session.execute("UPDATE system_control.clock SET advance_ms = %s WHERE name = 'server'", (seconds * 1000,))
        move(3500)
        restore(session, "again", "t")
        move(200)
        with pytest.raises(InvalidRequest, match="unconfigured table r.t"):
            restore(session, "late", "t")


def test_the_space_that_histories_take_is_seen(session):
    make_table(session, "t", "pk int PRIMARY KEY, v text")
    for i in range(100):
        session.execute("INSERT INTO r.t (pk, v) VALUES (%s, %s)", (i, "x" * 1000))
    row = session.execute("SELECT * FROM system_metering.recovery").one()
    assert (row.keyspace_name, row.table_name) == ("r", "t") and row.bytes > 100_000
    assert row.earliest_restorable_timestamp is not None and row.restorable_until_time is None


def test_a_restore_goes_on_after_kill9(new_server):
    server = new_server("--ddl-delay", "30")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "r")
        make_table(session, "t", "pk int, ck int, v text, PRIMARY KEY (pk, ck)")
        insert = session.prepare("INSERT INTO r.t (pk, ck, v) VALUES (?, ?, ?)")
        for n in range(0, 4000, 200):
            for f in [session.execute_async(insert, (i % 5, i, "v" * 200)) for i in range(n, n + 200)]:
                f.result()
        moment = moment_after()
        session.execute("DELETE FROM r.t WHERE pk = 1 AND ck = 1")
        for wait in (0, 0.01, 0.05):
            session.execute(f"RESTORE TABLE r.n{int(wait * 100)} FROM TABLE r.t WITH restore_timestamp = '{text_of(moment)}'")
            let_pass(wait)
            server.kill9()
            server.start()
            with server.cluster() as again:
                session = again.connect()
                await_active(session, "r", f"n{int(wait * 100)}")
                assert len(list(session.execute(f"SELECT ck FROM r.n{int(wait * 100)}"))) == 4000
            session = server.cluster().connect()
    server.stop()


def test_a_short_window_moves_on_and_what_it_passed_is_gone(new_server):
    server = new_server("--ddl-delay", "none", "--pitr-window", "3")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "r")
        make_table(session, "t", "pk int PRIMARY KEY, v int")
        session.execute("INSERT INTO r.t (pk, v) VALUES (1, 1)")
        early = moment_after()
        session.execute("INSERT INTO r.t (pk, v) VALUES (2, 2)")
        let_pass(4.5)
        with pytest.raises(InvalidRequest, match="must be between"):
            restore(session, "n", "t", early)
        since = properties(session, "t")["point_in_time_recovery"]["earliest_restorable_timestamp"]
        assert early < datetime.fromisoformat(since.replace("Z", "+00:00")) < now() - timedelta(seconds=2.5)
        for turn in range(5):  # the window is short, and so a machine that pauses comes too late
            with contextlib.suppress(InvalidRequest) if turn < 4 else contextlib.nullcontext():
                restore(session, "n", "t", now() - timedelta(seconds=1))
                break
        assert {(r.pk, r.v) for r in session.execute("SELECT * FROM r.n")} == {(1, 1), (2, 2)}
