"""tally move: a database goes from a data folder to a pool of a Ceph cluster and back, and every answer stays what it was."""
import fcntl
import json
import re
import subprocess
from pathlib import Path

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.query import SimpleStatement

from ceph_cluster import ceph_do
from tally_server import ROOT, TALLY, Server, await_active, create_keyspace, create_table

FLAGS = ("--mode", "cassandra", "--ddl-delay", "none", "--auth", "password")
TYPES = {"ascii": "'a'", "bigint": "-5", "blob": "0x00ff", "boolean": "true", "date": "'2031-02-03'", "decimal": "-1.250", "double": "1.5", "duration": "1mo2d3h",
         "float": "0.25", "inet": "'::1'", "int": "7", "smallint": "-3", "text": "'ä'", "time": "'01:02:03.000000004'", "timestamp": "'2031-02-03T04:05:06.007Z'",
         "timeuuid": "50554d6e-29bb-11e5-b345-feff819cdc9f", "tinyint": "1", "uuid": "123e4567-e89b-12d3-a456-426655440000", "varint": "-123456789012345678901234567890",
         "list<int>": "[3, 1, 2]", "set<text>": "{'b', 'a'}", "map<text, int>": "{'k': 1, 'l': 2}", "frozen<list<int>>": "[1, 2]", "tuple<int, text>": "(1, 'x')",
         "u": "{a: 1, b: 'x'}", "frozen<u>": "{a: 2, b: null}"}


@pytest.fixture
def pool(ceph, request):
    """A new pool."""
    name = request.node.name.split("[")[0][-40:]
    ceph_do("make-pool", ceph, name)
    return name


def server_of(folder, ceph=None, pool=None):
    folder.mkdir(exist_ok=True)
    return Server(folder, *FLAGS, *(["--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", pool] if pool else []))


def move(ceph, source, destination, *more):
    command = [TALLY, "move", "--from", source, "--to", destination, "--rados-conf", ceph / "ceph.conf", *more]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def login(server, name="cassandra", password="cassandra"):
    return server.cluster(auth_provider=PlainTextAuthProvider(name, password))


def fill(session):
    create_keyspace(session, "m")
    session.execute("CREATE TYPE m.u (a int, b text)")
    columns = {f"c{i}": of for i, of in enumerate(TYPES)}
    create_table(session, "m", "every", "p int, c int, " + ", ".join(f"{name} {of}" for name, of in columns.items()) + ", PRIMARY KEY (p, c)")
    session.execute(f"INSERT INTO m.every (p, c, {', '.join(columns)}) VALUES (1, 1, {', '.join(TYPES.values())}) USING TIMESTAMP 1000")
    session.execute("INSERT INTO m.every (p, c, c10) VALUES (1, 2, 8) USING TIMESTAMP 1001 AND TTL 1000000")
    session.execute("UPDATE m.every USING TIMESTAMP 1002 AND TTL 2000000 SET c19 = c19 + [9], c20 = c20 - {'a'}, c21['m'] = 3, c24.b = 'y' WHERE p = 1 AND c = 1")
    create_table(session, "m", "wide", "p text, c text, s int static, v text, PRIMARY KEY (p, c)")
    insert = session.prepare("INSERT INTO m.wide (p, c, v, s) VALUES (?, ?, ?, ?) USING TIMESTAMP ?")
    for future in [session.execute_async(insert, (f"p{i % 9}", f"c{i:04}", f"v{i}" + "x" * (i % 300), i, 5000 + i)) for i in range(900)]:
        future.result()
    session.execute("DELETE FROM m.wide USING TIMESTAMP 20000 WHERE p = 'p1'")
    session.execute("DELETE FROM m.wide USING TIMESTAMP 20000 WHERE p = 'p2' AND c >= 'c0100' AND c < 'c0300'")
    session.execute("DELETE FROM m.wide USING TIMESTAMP 20000 WHERE p = 'p3' AND c = 'c0003'")
    session.execute("DELETE v FROM m.wide USING TIMESTAMP 20000 WHERE p = 'p4' AND c = 'c0004'")
    session.execute("DELETE s FROM m.wide USING TIMESTAMP 20000 WHERE p = 'p5'")
    remove = session.prepare("DELETE FROM m.wide USING TIMESTAMP ? WHERE p = 'p7' AND c > ? AND c < ?")
    for future in [session.execute_async(remove, (20000 + i, f"c{i:04}a", f"c{i:04}z")) for i in range(400)]:
        future.result()
    session.execute("SELECT v FROM m.wide WHERE p = 'p7' AND c = 'c0007'")  # a local store keeps so many deletions in another form from now on
    assert session.execute("INSERT INTO m.wide (p, c, v) VALUES ('conditional', 'c', 'v') IF NOT EXISTS").one().applied
    create_table(session, "m", "counts", "p int PRIMARY KEY, n counter")
    session.execute("UPDATE m.counts SET n = n + 41 WHERE p = 1")
    create_table(session, "m", "emptied", "p int PRIMARY KEY")
    session.execute("INSERT INTO m.emptied (p) VALUES (1)")
    session.execute("TRUNCATE m.emptied")
    session.execute("ALTER TABLE m.wide WITH comment = 'of the test' AND gc_grace_seconds = 777")
    session.execute("ALTER TABLE m.every DROP c0")
    session.execute("CREATE ROLE app WITH PASSWORD = 'secret' AND LOGIN = true")
    session.execute("GRANT SELECT ON TABLE m.counts TO app")


def answers(server):
    """Everything that a client can ask, and of what runs out how long it still lasts."""
    with login(server) as cluster:
        session = cluster.connect()
        got = [[tuple(row) for row in session.execute(SimpleStatement(text, fetch_size=100))] for text in (
            "SELECT * FROM m.every", "SELECT * FROM m.wide", "SELECT p, c, WRITETIME(v), WRITETIME(s) FROM m.wide", "SELECT c, WRITETIME(c10), WRITETIME(c12) FROM m.every",
            "SELECT JSON * FROM m.every", "SELECT * FROM m.counts", "SELECT * FROM m.emptied", "SELECT c FROM m.wide WHERE p = 'p6' ORDER BY c DESC LIMIT 7",
            "DESCRIBE KEYSPACE m", "SELECT id, table_name FROM system_schema.tables WHERE keyspace_name = 'm'", "LIST ALL PERMISSIONS OF app")]
        ttls = [row.ttl for row in session.execute("SELECT TTL(c10) AS ttl FROM m.every WHERE p = 1 AND c = 2")]
    with login(server, "app", "secret") as cluster:
        assert cluster.connect().execute("SELECT n FROM m.counts WHERE p = 1").one().n == 41
    return got, ttls


def compare(server, expected):
    (got, ttls), (wanted, before) = answers(server), expected
    assert got == wanted
    assert len(ttls) == len(before) == 1 and 0 < ttls[0] <= before[0]


def check_deletions(session):
    """What is older than a deletion stays hidden, as the deletions were moved, too; conditions and counters go on."""
    for p, c in (("p1", "c0001"), ("p2", "c0101"), ("p3", "c0003"), ("p7", "c0003b"), ("p7", "c0399b")):
        session.execute("INSERT INTO m.wide (p, c, v) VALUES (%s, %s, 'late') USING TIMESTAMP 19999", (p, c))
        assert not session.execute("SELECT v FROM m.wide WHERE p = %s AND c = %s", (p, c)).one(), (p, c)
    assert not session.execute("INSERT INTO m.wide (p, c, v) VALUES ('conditional', 'c', 'w') IF NOT EXISTS").one().applied
    session.execute("UPDATE m.counts SET n = n + 1 WHERE p = 1")
    assert session.execute("SELECT n FROM m.counts WHERE p = 1").one().n == 42
    session.execute("UPDATE m.counts SET n = n - 1 WHERE p = 1")
    create_table(session, "m", "later", "p int PRIMARY KEY")
    session.execute("INSERT INTO m.later (p) VALUES (1)")
    assert len(list(session.execute("SELECT p FROM m.later"))) == 1 and not list(session.execute("SELECT p FROM m.emptied"))
    session.execute("DROP TABLE m.later")


def test_every_answer_stays_what_it_was_on_the_way_to_a_pool_and_back(ceph, pool, tmp_path):
    source = server_of(tmp_path / "source").start()
    with login(source) as cluster:
        fill(cluster.connect())
    expected = answers(source)
    used = move(ceph, source.folder / "data", f"rados:{pool}")
    assert used.returncode == 2 and "in use by another tallyd" in used.stderr
    source.stop()
    there = move(ceph, source.folder / "data", f"rados:{pool}")
    assert there.returncode == 0, there.stderr
    assert "Not moved" in there.stderr and "moved and verified" in there.stdout
    on_pool = server_of(tmp_path / "front", ceph, pool).start()
    compare(on_pool, expected)
    again = move(ceph, f"rados:{pool}", tmp_path / "back" / "data")
    assert again.returncode == 1 and "a server uses pool" in again.stderr
    with login(on_pool) as cluster:
        check_deletions(cluster.connect())
    on_pool.stop()
    back = move(ceph, f"rados:{pool}", tmp_path / "back" / "data", "--json")
    assert back.returncode == 0, back.stdout + back.stderr
    told = json.loads(back.stdout)
    assert told["ok"] and {t["table"]: t["records"] > 0 for t in told["tables"]} == {"m.every": True, "m.wide": True, "m.counts": True, "m.emptied": False}
    home = server_of(tmp_path / "back").start()
    compare(home, expected)
    with login(home) as cluster:
        check_deletions(cluster.connect())
    home.stop()
    verified = subprocess.run([TALLY, "verify", "--data-dir", home.folder / "data"], capture_output=True, text=True, timeout=300)
    assert verified.returncode == 0, verified.stdout
    full = move(ceph, f"rados:{pool}", home.folder / "data")
    assert full.returncode == 1 and "is not empty" in full.stderr


def test_an_interrupted_move_goes_on(ceph, pool, tmp_path):
    """A move that cannot write its progress waits: its pipe holds less than the lines of all tables."""
    tables = 120
    source = server_of(tmp_path / "source").start()
    with login(source) as cluster:
        session = cluster.connect()
        create_keyspace(session, "m")
        for t in range(tables):
            session.execute(f"CREATE TABLE m.a_table_with_a_long_name_{t} (p int PRIMARY KEY, v int)")
            session.execute(f"INSERT INTO m.a_table_with_a_long_name_{t} (p, v) VALUES (1, {t})")
    source.stop()
    command = [TALLY, "move", "--from", source.folder / "data", "--to", f"rados:{pool}", "--rados-conf", ceph / "ceph.conf"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0)
    fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
    shown = b""
    while b", all" not in shown:
        shown += process.stderr.read(64)
    process.kill()
    process.wait()
    front = server_of(tmp_path / "front", ceph, pool)
    with pytest.raises(AssertionError, match="is not complete; run tally move again"):
        front.start()
    front.process.wait()
    other = server_of(tmp_path / "other").start()
    other.stop()
    wrong = move(ceph, other.folder / "data", f"rados:{pool}")
    assert wrong.returncode == 1 and "is not complete: continue that one" in wrong.stderr
    rest = move(ceph, source.folder / "data", f"rados:{pool}")
    assert rest.returncode == 0, rest.stderr
    assert f"continuing to move {tables} tables" in rest.stderr and rest.stderr.count(", all") < tables
    front.start()
    with login(front) as cluster:
        session = cluster.connect()
        for t in range(tables):
            assert session.execute(f"SELECT v FROM m.a_table_with_a_long_name_{t} WHERE p = 1").one().v == t
    front.stop()


def test_a_table_whose_history_would_be_lost_is_named(ceph, pool, tmp_path):
    source = Server(tmp_path, "--ddl-delay", "none").start()
    with source.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "m")
        create_table(session, "m", "t", "p int PRIMARY KEY")
        session.execute("ALTER TABLE m.t WITH custom_properties = {'point_in_time_recovery': {'status': 'enabled'}}")
        await_active(session, "m", "t")
    source.stop()
    refused = move(ceph, source.folder / "data", f"rados:{pool}")
    assert refused.returncode == 1 and "m.t has point-in-time recovery" in refused.stderr


@pytest.mark.parametrize("source, words", [("nowhere", "there is no data folder"), ("empty", "is not the data folder of a database")])
def test_a_source_that_is_none_is_named(ceph, tmp_path, source, words):
    (tmp_path / "empty").mkdir()
    done = move(ceph, tmp_path / source, tmp_path / "to")
    assert done.returncode == 2 and words in done.stderr


def test_the_commands_of_the_documentation_move_a_database(ceph, tmp_path):
    """Those of docs/scale.md, in their order; /var/lib and the pool are the test's."""
    pool = "documented"
    ceph_do("make-pool", ceph, pool)
    source = Server(tmp_path / "tally", *FLAGS)
    source.folder.mkdir()
    source.start()
    with login(source) as cluster:
        fill(cluster.connect())
    expected = answers(source)
    source.stop()
    text = (ROOT / "docs" / "scale.md").read_text()
    section = text[text.index("## From one machine to a cluster and back"):text.index("## What it does not offer")]
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S) for line in block.splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == ["tally", "tallyd"] * 2
    for line in lines:
        program, *words = line.replace("/var/lib/tally", str(tmp_path / "tally")).replace("rados:tally", f"rados:{pool}").split()
        if program == "tally":
            words = [w + "/data" if w.startswith(str(tmp_path)) else w for w in words]
            done = subprocess.run([TALLY, *words, "--rados-conf", ceph / "ceph.conf"], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
        else:
            at = words.index("--data-dir")
            folder, flags = Path(words[at + 1]), [w if w != "tally" else pool for w in words[:at]]
            folder.mkdir(exist_ok=True)
            server = Server(folder, *FLAGS, *flags, *(["--rados-conf", ceph / "ceph.conf"] if flags else [])).start()
            compare(server, expected)
            server.stop()
