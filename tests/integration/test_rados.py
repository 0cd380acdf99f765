"""Several servers on one pool of a Ceph cluster (--store rados), with one OSD in memory: the same rows and the same schema at each of them."""
import json
import subprocess
import threading
from datetime import datetime, timedelta

import pytest
from cassandra import InvalidRequest, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import BatchStatement, BatchType, SimpleStatement

import page_api
import test_model
from ceph_cluster import ceph_do
from ports import free_port
from tally_server import TALLYD, Server, create_keyspace, eventually


@pytest.fixture(scope="module")
def servers(ceph, tmp_path_factory):
    """Two of them, and a session with each. No other server has their addresses: drivers take one that went for any at its address."""
    made = [Server(tmp_path_factory.mktemp("server"), *flags(ceph), "--listen", f"127.0.0.{i}", "--admin-port", str(free_port())).start() for i in (11, 12)]
    clusters = [s.cluster() for s in made]
    yield made, [c.connect() for c in clusters]
    for c in clusters:
        c.shutdown()
    for s in made:
        assert s.alive(), f"tallyd died:\n{s.log_tail()}"
        s.stop()


def flags(ceph):
    return ["--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", "tally", "--ddl-delay", "none", "--update-workers", "32", "--read-workers", "32"]


@pytest.fixture(scope="module")
def sessions(servers):
    a, b = servers[1]
    create_keyspace(a, "ks")
    table(a, b, "t", "p int, c int, v text, s text static, PRIMARY KEY (p, c)")
    return a, b


def knows(session, name):
    try:
        session.execute(f"SELECT * FROM ks.{name} LIMIT 1")
        return True
    except InvalidRequest:
        return False


def table(a, b, name, columns):
    """Made at one server; returns when both have it."""
    a.execute(f"CREATE TABLE ks.{name} ({columns})")
    for session in (a, b):
        eventually(lambda: knows(session, name), f"{name} is not known")


def test_rows_written_at_one_server_are_read_at_the_other(sessions):
    a, b = sessions
    insert = a.prepare("INSERT INTO ks.t (p, c, v) VALUES (?, ?, ?)")
    for future in [a.execute_async(insert, (i % 20, i // 20, f"v{i}")) for i in range(600)]:
        future.result()
    assert [r.c for r in b.execute("SELECT c FROM ks.t WHERE p = 7")] == list(range(30))
    assert [r.c for r in b.execute("SELECT c FROM ks.t WHERE p = 7 AND c >= 10 AND c < 20 ORDER BY c DESC")] == list(range(19, 9, -1))
    b.default_fetch_size = 100
    assert len({(r.p, r.c) for r in b.execute("SELECT * FROM ks.t")}) == 600


def test_deletions_and_static_rows_are_seen_at_the_other(sessions):
    a, b = sessions
    for c in range(30):
        a.execute("INSERT INTO ks.t (p, c, v) VALUES (100, %s, 'x')", (c,))
    a.execute("UPDATE ks.t SET s = 'static' WHERE p = 100")
    b.execute("DELETE FROM ks.t WHERE p = 100 AND c >= 10 AND c < 20")
    b.execute("DELETE FROM ks.t WHERE p = 100 AND c = 25")
    rows = list(a.execute("SELECT c, s FROM ks.t WHERE p = 100"))
    assert [r.c for r in rows] == [c for c in range(30) if not 10 <= c < 20 and c != 25]
    assert {r.s for r in rows} == {"static"}
    a.execute("DELETE FROM ks.t WHERE p = 100")
    assert not list(b.execute("SELECT c FROM ks.t WHERE p = 100"))


def test_a_condition_holds_at_every_server(sessions):
    a, b = sessions
    assert a.execute("INSERT INTO ks.t (p, c, v) VALUES (200, 1, 'x') IF NOT EXISTS").one().applied
    refused = b.execute("INSERT INTO ks.t (p, c, v) VALUES (200, 1, 'y') IF NOT EXISTS").one()
    assert not refused.applied and refused.v == "x"
    assert b.execute("UPDATE ks.t SET v = 'z' WHERE p = 200 AND c = 1 IF v = 'x'").one().applied
    assert not a.execute("UPDATE ks.t SET v = 'w' WHERE p = 200 AND c = 1 IF v = 'x'").one().applied
    assert a.execute("SELECT v FROM ks.t WHERE p = 200 AND c = 1").one().v == "z"


def at_both(work, a, b):
    """At the same time. No error is lost."""
    failures = []

    def run(session):
        try:
            work(session)
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=run, args=(s,)) for s in (a, b)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_of_writers_at_two_servers_one_wins(sessions):
    """Each adds one to a number; what was acknowledged is in it once."""
    a, b = sessions
    a.execute("INSERT INTO ks.t (p, c, v) VALUES (300, 1, '0')")
    added = []

    def add(session):
        for _ in range(40):
            now = int(session.execute("SELECT v FROM ks.t WHERE p = 300 AND c = 1").one().v)
            if session.execute("UPDATE ks.t SET v = %s WHERE p = 300 AND c = 1 IF v = %s", (str(now + 1), str(now))).one().applied:
                added.append(now + 1)

    at_both(add, a, b)
    assert sorted(added) == list(range(1, len(added) + 1))
    assert int(a.execute("SELECT v FROM ks.t WHERE p = 300 AND c = 1").one().v) == len(added) >= 40


def test_counts_of_two_servers_add_up(sessions):
    """A count that meets the other server's begins anew, and no client sees that."""
    a, b = sessions
    table(a, b, "counters", "p int PRIMARY KEY, n counter")

    def count(session):
        one = session.prepare("UPDATE ks.counters SET n = n + 1 WHERE p = ?")
        for future in [session.execute_async(one, (i % 2,)) for i in range(100)]:
            future.result()

    at_both(count, a, b)
    assert {r.p: r.n for r in b.execute("SELECT p, n FROM ks.counters")} == {0: 100, 1: 100}


def test_counts_of_batches_over_partitions_add_up(sessions):
    """What a batch has written before it meets the other server's is not written again."""
    a, b = sessions
    table(a, b, "spread", "p int PRIMARY KEY, n counter")

    def count(session):
        one = session.prepare("UPDATE ks.spread SET n = n + 1 WHERE p = ?")
        for _ in range(30):
            batch = BatchStatement(BatchType.COUNTER)
            for p in range(5):
                batch.add(one, (p,))
            session.execute(batch)

    at_both(count, a, b)
    assert {r.p: r.n for r in a.execute("SELECT p, n FROM ks.spread")} == {p: 60 for p in range(5)}


def test_lists_changed_by_index_at_two_servers_keep_both_changes(sessions):
    a, b = sessions
    table(a, b, "lists", "p int PRIMARY KEY, l list<int>")
    a.execute("INSERT INTO ks.lists (p, l) VALUES (1, [0, 0])")

    def change(session):
        for i in range(1, 31):
            session.execute(f"UPDATE ks.lists SET l[{0 if session is a else 1}] = {i} WHERE p = 1")

    at_both(change, a, b)
    assert a.execute("SELECT l FROM ks.lists WHERE p = 1").one().l == [30, 30]


def test_a_logged_batch_over_partitions_is_whole(sessions):
    a, b = sessions
    batch = BatchStatement()
    insert = a.prepare("INSERT INTO ks.t (p, c, v) VALUES (?, 1, 'batch')")
    for p in range(400, 410):
        batch.add(insert, (p,))
    a.execute(batch)
    for p in range(400, 410):
        assert b.execute("SELECT v FROM ks.t WHERE p = %s AND c = 1", (p,)).one().v == "batch"


def test_a_write_after_a_truncate_at_another_server_is_there_or_refused(sessions):
    """The other server may not know yet that the table has new objects."""
    a, b = sessions
    table(a, b, "emptied", "p int PRIMARY KEY")
    table(a, b, "innocent", "p int PRIMARY KEY")
    for p in range(25):
        a.execute("TRUNCATE ks.emptied")
        try:
            b.execute("INSERT INTO ks.emptied (p) VALUES (%s)", (p,))
            expected = [p]
        except (InvalidRequest, NoHostAvailable) as e:  # the driver's word for a server error
            assert "dropped or" in str(e)
            expected = []
        b.execute("INSERT INTO ks.innocent (p) VALUES (%s)", (p,))
        assert [r.p for r in a.execute("SELECT p FROM ks.emptied")] == expected
    assert len(list(a.execute("SELECT p FROM ks.innocent"))) == 25


WIDE = 9000  # rows, more than twice what an object takes before it splits


def test_a_wide_partition_is_as_any_other(sessions, servers):
    """Its rows lie in several objects. Both servers write to it, in batches and on conditions, delete from it and read it."""
    a, b = sessions
    table(a, b, "wide", "p int, c int, v text, s text static, PRIMARY KEY (p, c)")
    a.execute("INSERT INTO ks.wide (p, c, v) VALUES (1, 1, 'a neighbour')")

    def write(session):
        insert = session.prepare("INSERT INTO ks.wide (p, c, v, s) VALUES (0, ?, ?, ?)")
        own = range(0, WIDE, 2) if session is a else range(1, WIDE, 2)
        for start in range(0, len(own), 30):
            batch = BatchStatement(batch_type=BatchType.UNLOGGED)
            for c in own[start:start + 30]:
                batch.add(insert, (c, f"v{c}", "static"))
            session.execute(batch)
        for c in own[:20]:
            assert session.execute("UPDATE ks.wide SET v = %s WHERE p = 0 AND c = %s IF v = %s", (f"w{c}", c, f"v{c}")).one().applied

    at_both(write, a, b)
    eventually(lambda: sum(metrics(s)["tally_store_moves_total"] for s in servers[0]) > 0, "no row was moved")
    for session in (a, b):
        rows = list(session.execute(SimpleStatement("SELECT c, v, s FROM ks.wide WHERE p = 0", fetch_size=1000)))
        assert [(r.c, r.v, r.s) for r in rows] == [(c, f"{'w' if c < 40 else 'v'}{c}", "static") for c in range(WIDE)]
        assert [r.c for r in session.execute("SELECT c FROM ks.wide WHERE p = 0 AND c >= 4990 AND c < 5010 ORDER BY c DESC")] == list(range(5009, 4989, -1))
        assert session.execute("SELECT v FROM ks.wide WHERE p = 0 AND c = 8765").one().v == "v8765"
        assert not session.execute("UPDATE ks.wide SET v = 'x' WHERE p = 0 AND c = 8765 IF v = 'x'").one().applied
        assert len(list(session.execute("SELECT c FROM ks.wide"))) == WIDE + 1
    b.execute("DELETE FROM ks.wide WHERE p = 0 AND c >= 100 AND c < 8900")
    a.execute("DELETE FROM ks.wide WHERE p = 0 AND c = 8950")
    assert [r.c for r in a.execute("SELECT c FROM ks.wide WHERE p = 0")] == [c for c in range(WIDE) if not 100 <= c < 8900 and c != 8950]
    a.execute("DELETE FROM ks.wide WHERE p = 0")
    b.execute("INSERT INTO ks.wide (p, c, v) VALUES (0, 5, 'again')")
    for session in (a, b):
        assert [(r.p, r.c, r.v, r.s) for r in session.execute("SELECT p, c, v, s FROM ks.wide WHERE p = 0")] == [(0, 5, "again", None)]


def test_the_schema_changes_at_both(sessions):
    a, b = sessions
    table(b, a, "changing", "p int PRIMARY KEY, v int")
    b.execute("ALTER TABLE ks.changing ADD w int")
    eventually(lambda: a.execute("SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 'changing' AND column_name = 'w'").one())
    a.execute("INSERT INTO ks.changing (p, v, w) VALUES (1, 2, 3)")
    assert b.execute("SELECT w FROM ks.changing WHERE p = 1").one().w == 3
    a.execute("DROP TABLE ks.changing")
    eventually(lambda: not knows(b, "changing"))


def test_a_third_server_starts_with_everything_and_a_killed_one_is_not_missed(sessions, servers, ceph, tmp_path):
    a, _ = sessions
    a.execute("INSERT INTO ks.t (p, c, v) VALUES (500, 1, 'kept')")
    third = Server(tmp_path, *flags(ceph)).start()
    with third.cluster() as cluster:
        session = cluster.connect()
        assert session.execute("SELECT v FROM ks.t WHERE p = 500 AND c = 1").one().v == "kept"
        session.execute("INSERT INTO ks.t (p, c, v) VALUES (500, 2, 'of the third')")
        third.kill9()
    assert a.execute("SELECT v FROM ks.t WHERE p = 500 AND c = 2").one().v == "of the third"
    a.execute("INSERT INTO ks.t (p, c, v) VALUES (500, 3, 'after')")
    third.start()
    with third.cluster() as cluster:
        assert [r.c for r in cluster.connect().execute("SELECT c FROM ks.t WHERE p = 500")] == [1, 2, 3]
    third.stop()


def test_an_osd_that_hangs_delays_writes_and_loses_none(sessions, ceph):
    a, b = sessions
    insert = a.prepare("INSERT INTO ks.t (p, c, v) VALUES (?, 1, 'delayed')")
    ceph_do("pause", ceph, "0")
    try:
        futures = [a.execute_async(insert, (p,)) for p in range(600, 650)]
        assert b.execute("SELECT release_version FROM system.local").one()  # what needs no cluster is answered
        assert a.execute("SELECT release_version FROM system.local").one()
    finally:
        ceph_do("resume", ceph, "0")
    for future in futures:
        future.result()
    for p in range(600, 650):
        assert b.execute("SELECT v FROM ks.t WHERE p = %s AND c = 1", (p,)).one().v == "delayed"


def metrics(server):
    """What /metrics shows, by name; of rows with labels the name has them."""
    status, _, text = page_api.ask(server, "GET", "/metrics")
    assert status == 200
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


def test_metrics_show_the_store(sessions, servers):
    a, _ = sessions
    before = metrics(servers[0][0])
    for c in range(20):
        a.execute("INSERT INTO ks.t (p, c, v) VALUES (700, %s, 'x')", (c,))
        a.execute("SELECT v FROM ks.t WHERE p = 700 AND c = %s", (c,))
    after = metrics(servers[0][0])
    for name in ("reads_total", "writes_total", "groups_total", 'seconds_count{use="read"}', 'seconds_bucket{use="write",le="+Inf"}'):
        assert after[f"tally_store_{name}"] >= before[f"tally_store_{name}"] + 20, name
    assert after["tally_store_shards"] > 0 and after["tally_store_shard_keys"] >= 20
    assert after["tally_store_shard_bytes"] >= after["tally_store_shard_keys"]


def charged(session, table):
    row = session.execute("SELECT requests, write_units FROM system_metering.tables WHERE keyspace_name = 'ks' AND table_name = %s", (table,)).one()
    return row.requests, row.write_units


def test_each_server_knows_what_all_have_charged(sessions, ceph, tmp_path):
    a, b = sessions
    table(a, b, "charged", "p int PRIMARY KEY, v text")
    known = sum(charged(s, "charged")[0] for s in (a, b))  # the reads that looked for the table
    for p in range(7):
        a.execute("INSERT INTO ks.charged (p, v) VALUES (%s, 'x')", (p,))
    for p in range(5):
        b.execute("INSERT INTO ks.charged (p, v) VALUES (%s, %s)", (p, "x" * 1500))  # of two units
    third = Server(tmp_path, *flags(ceph)).start()
    with third.cluster() as cluster:
        c = cluster.connect()
        c.execute("INSERT INTO ks.charged (p, v) VALUES (1, 'x')")
        for s in (a, b, c):
            eventually(lambda: charged(s, "charged") == (known + 13, 18), f"{charged(s, 'charged')} instead of {known + 13, 18}")
        third.kill9()
    a.execute("INSERT INTO ks.charged (p, v) VALUES (1, 'x')")
    eventually(lambda: charged(b, "charged") == (known + 14, 19))
    third.start()
    with third.cluster() as cluster:
        assert charged(cluster.connect(), "charged") == (known + 14, 19)
    third.stop()


NOON = datetime(2026, 5, 6, 12)


class Limited:
    """A server whose clock stands still, and which refuses what a table's capacity does not allow."""

    def __init__(self, folder, ceph):
        self.server = Server(folder, *flags(ceph), "--control", "on", "--limits", "enforce", "--limit-values", "burst=1").start()
        self.cluster = self.server.cluster(protocol_version=4)
        self.session = self.cluster.connect()

    def at(self, seconds):
        self.session.execute("UPDATE system_control.clock SET state = 'frozen', now = %s WHERE name = 'server'", (NOON + timedelta(seconds=seconds),))

    def admitted(self, requests):
        """How many of so many writes of a unit are not refused, at this moment of the clock."""
        insert = SimpleStatement("INSERT INTO ks.limited (p) VALUES (%s)", retry_policy=FallthroughRetryPolicy())
        done = 0
        for future in [self.session.execute_async(insert, (i,)) for i in range(requests)]:
            try:
                future.result()
                done += 1
            except WriteTimeout as e:
                assert "write capacity of table ks.limited is exceeded" in str(e)
        return done

    def stop(self):
        self.cluster.shutdown()
        self.server.stop()


def test_servers_hold_a_tables_capacity_together(sessions, ceph, tmp_path_factory):
    """In each second of their clocks two servers get more than the table may have. Their rounds are of real time, so the seconds are repeated until they hold."""
    a, b = sessions
    a.execute("CREATE TABLE ks.limited (p int PRIMARY KEY) WITH custom_properties = {'capacity_mode': {'throughput_mode': 'PROVISIONED', "
              "'read_capacity_units': 20, 'write_capacity_units': 20}}")
    limited = [Limited(tmp_path_factory.mktemp("limited"), ceph) for _ in range(2)]
    seconds = iter(range(1, 100000))

    def second(loads):
        now = next(seconds)
        for server in limited:
            server.at(now)
        return [server.admitted(n) for server, n in zip(limited, loads)]

    def holds(loads, wanted):
        """Three seconds in a row in which they are admitted the capacity together, and each what is wanted of it."""
        return all(18 <= sum(got) <= 22 and wanted(got) for got in (second(loads) for _ in range(3)))

    try:
        eventually(lambda: holds((30, 30), lambda got: abs(got[0] - got[1]) <= 6))
        eventually(lambda: holds((5, 60), lambda got: got[1] >= 14))  # fractions follow the traffic
        limited[1].server.kill9()
        limited[1:] = []
        eventually(lambda: holds((30,), lambda got: True))
    finally:
        for server in limited:
            server.stop()


def test_tally_verify_finds_a_pool_sound_beside_its_servers(sessions, ceph):
    a, _ = sessions
    futures = [a.execute_async("INSERT INTO ks.t (p, c, v) VALUES (%s, 1, 'verified')", (p,)) for p in range(800, 900)]
    done = subprocess.run([TALLYD.with_name("tally"), "verify", "--rados-pool", "tally", "--rados-conf", ceph / "ceph.conf", "--json"], capture_output=True, text=True)
    result = json.loads(done.stdout)
    assert (done.returncode, result["ok"], result["damage"]) == (0, True, []), done.stderr
    assert result["objects"] > 0 and result["records"] > 0 and result["rows"] > 0
    for future in futures:
        future.result()


def test_a_server_whose_cluster_is_silent_is_not_ready_and_says_why(sessions, servers, ceph):
    server = servers[0][0]
    assert page_api.ask(server, "GET", "/ready")[::2] == (200, "ready\n")
    ceph_do("pause", ceph, "0")
    try:
        eventually(lambda: page_api.ask(server, "GET", "/ready")[0] == 503)
        _, _, text = page_api.ask(server, "GET", "/ready")
        assert "the Ceph cluster has answered nothing for" in text
        assert page_api.ask(server, "GET", "/health")[0] == page_api.ask(server, "GET", "/live")[0] == 200
        assert metrics(server)["tally_store_operations_in_flight"] > 0
    finally:
        ceph_do("resume", ceph, "0")
    eventually(lambda: page_api.ask(server, "GET", "/ready")[0] == 200)


@pytest.mark.parametrize("mode, seed", [("cassandra", 21), ("keyspaces", 22)])
def test_the_cluster_holds_what_the_model_holds(servers, ceph, tmp_path, mode, seed):
    """Random statements of every kind, faults, pages, changes of the schema and kills, as test_model.py has them, beside two other servers."""
    server = Server(tmp_path, "--mode", mode, *test_model.FLAGS, *flags(ceph)).start()
    try:
        test_model.run(server, seed, 300)
    finally:
        server.kill9()


def test_what_the_store_does_not_offer_is_refused(sessions):
    a, _ = sessions
    a.execute("CREATE TABLE ks.recoverable (p int PRIMARY KEY)")
    with pytest.raises(Exception, match="not available on a Ceph cluster"):
        a.execute("ALTER TABLE ks.recoverable WITH custom_properties = {'point_in_time_recovery': {'status': 'enabled'}}")


@pytest.mark.parametrize("more, words", [(["--rados-conf", "/nowhere/ceph.conf"], "cannot read Ceph's configuration /nowhere/ceph.conf"),
                                         (["--rados-pool", "no-such-pool"], "cannot open pool 'no-such-pool'"),
                                         (["--listen", "0.0.0.0"], "needs --broadcast-address")])
def test_a_server_that_cannot_use_the_store_says_why(ceph, tmp_path, more, words):
    server = Server(tmp_path, "--store", "rados", "--rados-conf", ceph / "ceph.conf", *more)
    with pytest.raises(AssertionError):
        server.start()
    server.process.wait()
    assert words in server.log.read_text()


def test_the_benchmark_measures_servers_of_one_pool(ceph):
    ceph_do("make-pool", ceph, "benchmark")
    done = subprocess.run([TALLYD.with_name("tally-bench"), "--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", "benchmark", "--tallyd", TALLYD,
                           "--servers", "1,2", "--workload", "counter", "--seconds", "0.2", "--wide", "0", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["workloads"]
    assert [(m["workload"], m["servers"], m["failed"]) for m in measured] == [("counter", 1, 0), ("counter", 2, 0)]
    assert all(m["per_second"] > 0 and m["server_us"] > 0 for m in measured)
