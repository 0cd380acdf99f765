"""Asynchronous DDL as an application meets it: polling as AWS's documentation recommends, migration tools, what is refused meanwhile, kill -9."""
import random
import re
import threading
import time

import pytest
from cassandra import AlreadyExists, InvalidRequest
from cassandra.protocol import ConfigurationException

import stores
from control import objects, release_all, set_clock, set_rule, set_status
from tally_server import HANG, await_active, create_keyspace, eventually, let_pass, status_of


# ---- docs/ddl.md, "Answers while a change is under way": kind x status x statement -> answer ----

OK, NOTHING, EXISTS = "done", "nothing", AlreadyExists
LOST = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
NEW = "WITH replication = {'class': 'SingleRegionStrategy'}"


def busy(status, end="ACTIVE", what="Table 'o'"):
    return f"{what} is {status}: wait until it is {end}"


def of_an_object(what, exists, missing, lost=False):
    """The answers that all kinds give to what creates, alters and drops them, by status; the rest is the kind's own."""
    def answers(create, again, alter, drop):
        return {f"CREATE {c}": a for c, a in (("o", create), ("IF NOT EXISTS o", again))} | {f"ALTER {c}": alter for c in ("o", "IF EXISTS o")} | {
            f"DROP {c}": drop for c in ("o", "IF EXISTS o")}

    table = {status: answers(exists, NOTHING, busy(status, what=what), busy(status, what=what)) for status in ("CREATING", "UPDATING")}
    table[None] = answers(OK, OK, missing, missing) | {"ALTER IF EXISTS o": NOTHING, "DROP IF EXISTS o": NOTHING}
    table["ACTIVE"] = answers(exists, NOTHING, OK, OK)
    gone = busy("DELETING", "gone", what)
    table["DELETING"] = answers(gone, gone, gone, NOTHING)
    return table


class Kind:
    """Each object is called o; a table and a type are in keyspace k."""

    def __init__(self, word, texts, answers, uses):
        """texts: the statements that create, alter and drop; uses: statement -> answers by status, for those that are not in answers."""
        self.word, self.texts = word, texts
        self.answers = {status: dict(given) for status, given in answers.items()}
        for statement, by_status in uses.items():
            for status in self.answers:
                self.answers[status][statement] = by_status.get(status, OK)

    def text(self, statement):
        verb, _, rest = statement.partition(" ")
        if rest not in ("o", "IF NOT EXISTS o", "IF EXISTS o") or verb not in self.texts:
            return statement
        return self.texts[verb].replace("{o}", rest if self.word == "keyspace" else rest.replace("o", "k.o") if rest == "o" else rest[:-1] + "k.o")


def everywhere(answer, *but, **others):
    return {status: answer for status in (None, "CREATING", "RESTORING", "ACTIVE", "UPDATING", "DELETING", LOST) if status not in but} | others


def table_kind():
    answers = of_an_object("Table 'o'", EXISTS, "unconfigured table o")
    answers["RESTORING"] = {s: busy("RESTORING") if a == busy("CREATING") else a for s, a in answers["CREATING"].items()}
    answers[LOST] = {s: busy(LOST) if s.startswith("ALTER") else a for s, a in answers["ACTIVE"].items()}
    usable = everywhere("unconfigured table k.o", "ACTIVE", "UPDATING", LOST) | {LOST: busy(LOST)}
    uses = {s: usable for s in ("SELECT * FROM k.o", "INSERT INTO k.o (p) VALUES (1)", "UPDATE k.o SET v = 1 WHERE p = 1", "DELETE FROM k.o WHERE p = 1")}
    uses["TRUNCATE k.o"] = usable | {"UPDATING": busy("UPDATING")}
    uses["ALTER TABLE k.o WITH comment = 'new'"] = {status: given["ALTER o"] for status, given in answers.items()}
    uses["RESTORE TABLE k.o FROM TABLE k.src"] = everywhere(EXISTS) | {None: OK, "DELETING": busy("DELETING", "gone")}
    texts = {"CREATE": "CREATE TABLE {o} (p int PRIMARY KEY, v int)", "ALTER": "ALTER TABLE {o} ADD x int", "DROP": "DROP TABLE {o}"}
    return Kind("table", texts, answers, uses)


def type_kind():
    what = "Type 'o'"
    answers = of_an_object(what, "A user type of name k.o already exists", "No user type named k.o exists.")
    used = everywhere("UDT o does not exist", "ACTIVE", "UPDATING") | {"UPDATING": busy("UPDATING", what=what)}
    uses = {"CREATE TABLE k.made_of (p int PRIMARY KEY, v frozen<o>)": used, "CREATE TYPE k.made_of (v frozen<o>)": used}
    uses["ALTER TYPE k.o RENAME a TO b"] = {status: given["ALTER o"] for status, given in answers.items()}
    return Kind("type", {"CREATE": "CREATE TYPE {o} (a int)", "ALTER": "ALTER TYPE {o} ADD x int", "DROP": "DROP TYPE {o}"}, answers, uses)


def keyspace_kind():
    what = "Keyspace 'o'"
    answers = of_an_object(what, EXISTS, "Unknown keyspace o|Cannot drop non existing keyspace 'o'.")
    early, gone = "unconfigured keyspace o", busy("DELETING", "gone", what)
    made = {"CREATING": early, None: "Keyspace o does not exist|Cannot add type in unknown keyspace o", "DELETING": gone}
    changed = {"CREATING": early, "DELETING": gone}
    used = {"CREATING": early, None: "Keyspace '?o'? does not exist", "DELETING": "Keyspace '?o'? does not exist"}
    uses = {"CREATE TABLE o.new (p int PRIMARY KEY)": made, "CREATE TABLE IF NOT EXISTS o.new (p int PRIMARY KEY)": made, "CREATE TYPE o.new (a int)": made,
            "ALTER TABLE o.t ADD x int": changed | {None: "Keyspace o does not exist"}, "DROP TABLE o.t": changed | {None: "Keyspace o does not exist"},
            "DROP TABLE IF EXISTS o.t": changed | {None: NOTHING}, "DROP TYPE o.u": changed | {None: "Cannot drop type in unknown keyspace o"}, "DROP TYPE IF EXISTS o.u": changed | {None: NOTHING}}
    uses |= {s: used for s in ("SELECT * FROM o.t", "INSERT INTO o.t (p) VALUES (1)", "TRUNCATE o.t", "USE o")}
    return Kind("keyspace", {"CREATE": "CREATE KEYSPACE {o} " + NEW, "ALTER": "ALTER KEYSPACE {o} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", "DROP": "DROP KEYSPACE {o}"}, answers, uses)


KINDS = {kind.word: kind for kind in (table_kind(), type_kind(), keyspace_kind())}


def status_now(session, kind):
    row = objects(session, "o" if kind.word == "keyspace" else "k").get((kind.word, "o"))
    return row.status if row else None


def settle(session):
    """Nothing is under way any more; what is restored comes to its end by itself."""
    def under_way():
        return [r for r in session.execute("SELECT status FROM system_control.objects") if r.status not in ("ACTIVE", LOST)]

    deadline = time.monotonic() + HANG
    while under_way():
        assert time.monotonic() < deadline
        release_all(session)


def clear(session, kind):
    settle(session)
    if status_now(session, kind) == LOST:
        set_status(session, "k", "o", "ACTIVE")
    for statement in ("DROP TABLE IF EXISTS k.made_of", "DROP TYPE IF EXISTS k.made_of", kind.text("DROP IF EXISTS o")):
        session.execute(statement)


def bring_to(session, kind, status):
    """The object into this status, and held there; other changes take no time."""
    clear(session, kind)
    held = {"CREATING": "CREATE o", "UPDATING": "ALTER o", "DELETING": "DROP o", "RESTORING": "RESTORE TABLE k.o FROM TABLE k.src"}.get(status)
    if status not in (None, "CREATING", "RESTORING"):
        session.execute(kind.text("CREATE o"))
        settle(session)  # on a cluster it waits until the rows of the last one are freed
        if kind.word == "keyspace":
            session.execute("CREATE TABLE o.t (p int PRIMARY KEY)")
            session.execute("CREATE TYPE o.u (a int)")
    if held:
        set_rule(session, "held")
        session.execute(kind.text(held).replace(" ADD x ", " ADD y "))
        set_rule(session, "none")
    if status == LOST:
        set_status(session, "k", "o", LOST)
    assert status_now(session, kind) == status


def check_answer(session, statement, answer, where):
    if answer in (OK, NOTHING):
        session.execute(statement)
    elif answer is EXISTS:
        with pytest.raises(AlreadyExists):
            session.execute(statement)
    else:
        with pytest.raises((InvalidRequest, ConfigurationException)) as refused:
            session.execute(statement)
        assert re.search(answer, str(refused.value)), where


@pytest.mark.parametrize("word", KINDS)
def test_every_statement_on_an_object_in_every_status(controlled, word):
    server, session = controlled("--ddl-delay", "none")
    kind = KINDS[word]
    session.execute(f"CREATE KEYSPACE k {NEW}")
    session.execute("CREATE TABLE k.src (p int PRIMARY KEY) WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': '%s'}}" % stores.in_use.recovery)
    for status, answers in kind.answers.items():
        if status == "RESTORING" and stores.in_use.recovery == "disabled":
            continue
        for statement, answer in answers.items():
            if statement.startswith("RESTORE") and stores.in_use.recovery == "disabled":
                continue
            bring_to(session, kind, status)
            where = f"{word} {status}: {statement}: {answer}"
            check_answer(session, kind.text(statement), answer, where)
            assert answer == OK or status_now(session, kind) == status, where  # what is refused, or asks for nothing, changes nothing
    assert "set aside" not in server.log_tail()


def test_what_is_under_way_in_a_keyspace_keeps_it(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    for kind, verb, status in (("table", "CREATE", "CREATING"), ("type", "CREATE", "CREATING"), ("table", "ALTER", "UPDATING")):
        bring_to(session, KINDS[kind], status)
        for statement in ("DROP KEYSPACE k", "DROP KEYSPACE IF EXISTS k"):
            with pytest.raises(InvalidRequest, match=busy(status, what=f"{kind.title()} 'o'")):
                session.execute(statement)
        clear(session, KINDS[kind])
    session.execute("DROP KEYSPACE k")


def test_a_dropped_name_is_taken_until_a_client_that_waits_has_seen_it_go(controlled):
    """For each kind: DELETING is shown, the name is refused meanwhile, and the new object of the name is another one."""
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    shown = {"table": "tables WHERE keyspace_name = 'k' AND table_name = 'o'", "type": "types WHERE keyspace_name = 'k' AND type_name = 'o'", "keyspace": "keyspaces WHERE keyspace_name = 'o'"}
    for word, kind in KINDS.items():
        bring_to(session, kind, "DELETING")
        seen = f"SELECT * FROM system_schema_mcs.{shown[word]}"
        assert session.execute(seen).one()
        for _ in range(3):
            with pytest.raises(InvalidRequest, match="is DELETING: wait until it is gone"):
                session.execute(kind.text("CREATE o"))
        release_all(session)
        assert session.execute(seen).one() is None
        session.execute(kind.text("CREATE o"))
        eventually(lambda: session.execute(seen).one())  # a keyspace is not shown while rows of its namesake are being freed
        if word == "keyspace":
            assert session.execute("SELECT * FROM system_schema_mcs.tables WHERE keyspace_name = 'o'").one() is None  # nothing of the old one


# ---- kill -9 ----

KILLED = [(word, status) for word in ("table", "type", "keyspace") for status in ("CREATING", "UPDATING", "DELETING")]


@pytest.mark.parametrize("word, status", KILLED)
def test_a_status_survives_kill9_and_goes_on(controlled, word, status):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    kind = KINDS[word]
    bring_to(session, kind, status)
    set_rule(session, "held")
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        again = cluster.connect()
        assert status_now(again, kind) == status
        release_all(again)
        assert status_now(again, kind) == (None if status == "DELETING" else "ACTIVE")
        if word == "table":
            columns = [r.column_name for r in again.execute("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'k' AND table_name = 'o'")]
            assert ("y" in columns) == (status == "UPDATING")
            events = [r.event for r in again.execute("SELECT event FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'")]
            assert events == {"CREATING": ["CREATE"], "UPDATING": ["CREATE", "ALTER"], "DELETING": ["CREATE", "DROP"]}[status]
        if word == "type" and status == "UPDATING":
            assert again.execute("SELECT field_names FROM system_schema.types WHERE keyspace_name = 'k'").one().field_names == ["a", "y"]


CHANGES = [  # kind, statement, what is there when it is done: of a table its columns, of a type its fields, of a keyspace whether it is there
    ("keyspace", "CREATE KEYSPACE x " + NEW, True), ("type", "CREATE TYPE x.u (a int)", ["a"]), ("table", "CREATE TABLE x.t (p int PRIMARY KEY, v frozen<u>)", ["p", "v"]),
    ("type", "ALTER TYPE x.u ADD b int", ["a", "b"]), ("table", "ALTER TABLE x.t ADD w int", ["p", "v", "w"]), ("table", "DROP TABLE x.t", []), ("type", "DROP TYPE x.u", []),
    ("keyspace", "DROP KEYSPACE x", False),
]
LOOK = {"keyspace": "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'x'", "type": "SELECT field_names FROM system_schema.types WHERE keyspace_name = 'x'",
        "table": "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'x'"}


def state_of(session):
    types = session.execute(LOOK["type"]).one()
    return {"keyspace": session.execute(LOOK["keyspace"]).one() is not None, "type": list(types.field_names) if types else [],
            "table": sorted(r.column_name for r in session.execute(LOOK["table"]))}


def states():
    """After none of the changes, after the first, and so on."""
    now = {"keyspace": False, "type": [], "table": []}
    yield dict(now)
    for kind, _, there in CHANGES:
        now[kind] = there
        yield dict(now)


def test_killed_at_any_moment_nothing_acknowledged_is_lost(new_server):
    """Keyspaces, types and tables come, change and go while the server is killed; test_catalog_crash.c kills the catalogue at each of its steps."""
    server = new_server("--ddl-delay", "0..3", "--control", "on")
    rng, after, done = random.Random(11), list(states()), 0
    for _ in range(12):
        stop = threading.Event()
        acknowledged = [done]

        def work():
            try:
                with server.cluster(schema_metadata_enabled=False) as cluster:
                    session = cluster.connect()
                    while not stop.is_set():
                        session.execute(CHANGES[acknowledged[0] % len(CHANGES)][1])
                        acknowledged[0] += 1
                        settle(session)
            except Exception:
                pass  # the server is gone

        thread = threading.Thread(target=work)
        thread.start()
        let_pass(rng.uniform(0.1, 0.5))
        server.kill9()
        stop.set()
        thread.join()
        server.start()
        with server.cluster(schema_metadata_enabled=False) as cluster:
            session = cluster.connect()
            settle(session)
            found = state_of(session)
        # what was under way when it was killed is there wholly or not at all
        steps = [n for n in (acknowledged[0], acknowledged[0] + 1) if after[n % len(CHANGES)] == found or (n and n % len(CHANGES) == 0 and after[-1] == found)]
        assert steps, f"{acknowledged[0]} acknowledged: {found}"
        done = steps[0]
    assert done > 0 and "set aside" not in server.log_tail()


# ---- as applications do it ----

def migrate(session, names):
    """What a migration tool does: creates its tables one after the other, each awaited, then works with all of them."""
    for name in names:
        session.execute(f"CREATE TABLE IF NOT EXISTS app.{name} (p int PRIMARY KEY, v text)")
        await_active(session, "app", name)
    for name in names:
        session.execute(f"ALTER TABLE app.{name} ADD w int")
        await_active(session, "app", name)
        session.execute(f"INSERT INTO app.{name} (p, v, w) VALUES (1, '{name}', 2)")
    assert all(list(session.execute(f"SELECT * FROM app.{name}").one()) == [1, name, 2] for name in names)


@pytest.mark.parametrize("delay, tables", [("none", 60), ("lognormal(15, 0.7, 3)", 20), ("uniform(10, 20, 1)", 20)])
def test_a_migration_tool_finds_its_tables(controlled, delay, tables):
    """uniform(10, 20) is `realistic` a thousand times faster."""
    _, session = controlled("--ddl-delay", delay)
    create_keyspace(session, "app")
    migrate(session, [f"t{i}" for i in range(tables)])


def test_a_migration_tool_at_realistic_delays_on_the_controlled_clock(controlled):
    """10 to 20 s of the server's clock for each statement, which a second thread moves on by a second at a time."""
    _, session = controlled("--ddl-delay", "realistic")
    set_clock(session, state="frozen")
    stop, advanced = threading.Event(), []

    def tick():
        while not stop.is_set():
            set_clock(session, advance_ms=1000)
            advanced.append(1)
            let_pass(0.005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        create_keyspace(session, "app")
        before = len(advanced)
        session.execute("CREATE TABLE app.first (p int PRIMARY KEY)")
        assert await_active(session, "app", "first") == ["CREATING", "ACTIVE"]
        assert len(advanced) - before >= 9  # so many seconds of the server
        migrate(session, ["a", "b", "c"])
    finally:
        stop.set()
        ticker.join()


def test_a_migration_tool_waits_for_what_is_held(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "app")
    set_rule(session, "held", "CREATE TABLE", "app")
    done = threading.Event()

    def work():
        migrate(session, ["a", "b"])
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for name in ("a", "b"):
            eventually(lambda: status_of(session, "app", name) == "CREATING" or done.is_set())  # noqa: B023
            assert not done.is_set()
            session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = 'app' AND kind = 'table' AND name = %s", (name,))
        assert done.wait(20)
    finally:
        thread.join()


def test_drop_and_create_again_as_a_truncate_script_does(controlled):
    """AWS's script for a table that is to be emptied: drop, wait until it has vanished, create, wait until it is ACTIVE."""
    _, session = controlled("--ddl-delay", "uniform(20, 60, 5)")
    create_keyspace(session, "k")
    for round_ in range(3):
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
        assert await_active(session, "k", "t") in (["CREATING", "ACTIVE"], ["ACTIVE"])
        assert session.execute("SELECT * FROM k.t").all() == []
        session.execute("INSERT INTO k.t (p) VALUES (%s)", (round_,))
        session.execute("DROP TABLE k.t")
        eventually(lambda: status_of(session, "k", "t") is None)
    events = [(r.table_name, r.event) for r in session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'")]
    assert events == [("t", "CREATE"), ("t", "DROP")] * 3


def test_drivers_agree_on_the_schema_while_something_is_under_way(controlled):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    version = "SELECT schema_version FROM system.local"
    before = session.execute(version).one()
    set_rule(session, "held", "CREATE TABLE", "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    assert session.execute(version).one() == before  # nothing that a driver shows has changed
    with server.cluster() as cluster:
        other = cluster.connect()
        assert "t" not in cluster.metadata.keyspaces["k"].tables
        release_all(session)
        assert session.execute(version).one() != before
        eventually(lambda: "t" in cluster.metadata.keyspaces["k"].tables)  # an event notifies the driver
        other.execute("INSERT INTO k.t (p) VALUES (1)")


def test_the_history_of_a_table_has_all_its_lives(controlled):
    _, session = controlled("--ddl-delay", "none", "--ddl-rules", "ALTER TABLE k.t = none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("ALTER TABLE k.t WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}")
    session.execute("UPDATE system_control.ddl SET failure = 'no' WHERE statement = 'ALTER TABLE' AND keyspace_name = 'k' AND name = 't'")
    session.execute("ALTER TABLE k.t ADD never int")  # which fails, and so did not happen
    session.execute("UPDATE system_control.ddl SET failure = '' WHERE statement = 'ALTER TABLE' AND keyspace_name = 'k' AND name = 't'")
    await_active(session, "k", "t")
    session.execute("DROP TABLE k.t")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.u (p int PRIMARY KEY)")
    session.execute("DROP KEYSPACE k")
    rows = session.execute("SELECT * FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'").all()
    assert [(r.table_name, r.event) for r in rows] == [("t", "CREATE"), ("t", "ALTER"), ("t", "DROP"), ("t", "CREATE"), ("t", "DROP"), ("u", "CREATE"), ("u", "DROP")]
    assert [("ttl" in r.custom_properties) for r in rows] == [False, True, True, False, False, False, False]
    times = [r.event_time for r in rows if r.table_name == "t"]
    assert times == sorted(set(times)) and rows[0].creation_time == rows[2].creation_time != rows[3].creation_time


def test_the_history_of_one_name_is_bounded_and_pays_for_itself(controlled):
    _, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "k")
    session.execute("CREATE TABLE k.innocent (p int PRIMARY KEY)")
    session.execute("CREATE TABLE k.guilty (p int PRIMARY KEY)")
    for i in range(110):
        session.execute(f"ALTER TABLE k.guilty WITH comment = '{i}'")
    rows = session.execute("SELECT table_name, event FROM system_schema_mcs.tables_history WHERE keyspace_name = 'k'").all()
    guilty = [r.event for r in rows if r.table_name == "guilty"]
    assert guilty == ["ALTER"] * 100
    assert [r.event for r in rows if r.table_name == "innocent"] == ["CREATE"]


def test_a_warning_says_when_what_is_not_ready_can_be_used(new_server):
    """The words of the refusal are the service's own; the warning beside them is Tally's."""
    server = new_server("--ddl-delay", "3600000", "--control", "on")
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()

        def refused(text):
            future = s.execute_async(text)
            with pytest.raises(InvalidRequest) as e:
                future.result()
            return re.search('message="(.*)"', str(e.value))[1], future.warnings

        ready = r"ready in 3(600|5\d\d)\.\d s"
        s.execute(f"CREATE KEYSPACE app {NEW}")
        for text in ("USE app", "SELECT * FROM app.t", "CREATE TABLE app.t (p int PRIMARY KEY)"):
            words, (warning,) = refused(text)
            assert words == "unconfigured keyspace app"
            assert re.fullmatch(f"app is CREATING, {ready}: wait until system_schema_mcs.keyspaces shows it", warning), warning
        release_all(s)
        eventually(lambda: objects(s, "app")["keyspace", "app"].status == "ACTIVE", "app was not created")
        s.execute("CREATE TABLE app.t (p int PRIMARY KEY)")
        words, (warning,) = refused("INSERT INTO app.t (p) VALUES (1)")
        assert words == "unconfigured table app.t"
        assert re.fullmatch(f"app.t is CREATING, {ready}: wait until system_schema_mcs.tables shows it as ACTIVE", warning), warning
        assert refused("SELECT * FROM app.nosuch") == ("unconfigured table app.nosuch", None)
        assert refused("SELECT * FROM nosuch.t") == ("Keyspace nosuch does not exist", None)
