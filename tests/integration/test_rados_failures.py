"""Several servers on one pool of a Ceph cluster, while servers and OSDs are killed, paused and started again: no acknowledged effect is lost, no condition is
violated, no batch is seen in part. The test command runs a short storm on one OSD in memory; `tools/test.sh rados` one of fifty failures on three OSDs
(TALLY_RADOS_EVENTS, TALLY_RADOS_OSDS, TALLY_RADOS_SEED)."""
import os
import random
import signal
import subprocess
import threading
import time

import pytest
from cassandra import WriteTimeout
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.query import BatchStatement, SimpleStatement
from cassandra import ConsistencyLevel

import programs
from tally_server import HANG, Server, eventually
from test_linearizability import History, checker  # noqa: F401  (a fixture)
from test_rados import CLUSTER, SYSTEM_PYTHON, flags

EVENTS = int(os.environ.get("TALLY_RADOS_EVENTS", "4"))
OSDS = int(os.environ.get("TALLY_RADOS_OSDS", "1"))
SEED = int(os.environ.get("TALLY_RADOS_SEED", "30"))
SERVERS, CLIENTS, PARTITIONS = (3 if OSDS > 1 else 2), 6, 4
PROGRESS = 60   # statements that must be acknowledged between two failures, so that each meets clients at work
KEYS = 3        # of conditional statements at a time; the checker's work grows with the unknown outcomes of a key, so each round has keys of its own
TEXT = "x" * 8000  # of a row, so that shards split


def ceph_does(what, folder, *more):
    subprocess.run([SYSTEM_PYTHON, CLUSTER, what, folder, *map(str, more)], check=True)


@pytest.fixture
def pool(tmp_path):
    programs.ceph()
    folder = tmp_path / "ceph"
    ceph_does("start", folder, "--osds", OSDS, "--store", "bluestore" if OSDS > 1 else "memstore")
    yield folder
    ceph_does("wipe", folder)


class Member:
    """A server, and the session of the clients that ask it."""

    def __init__(self, folder, pool):
        folder.mkdir()
        self.server = Server(folder, "--mode", "cassandra", *flags(pool), "--read-timeout", "10000", "--range-timeout", "10000", "--write-timeout", "10000")
        self.cluster = None

    def start(self):
        self.server.start()
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=HANG,
                                   retry_policy=FallthroughRetryPolicy())
        self.cluster = self.server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self.session = self.cluster.connect()
        return self

    def end(self):
        self.cluster.shutdown()
        self.server.stop()

    def kill(self):
        self.server.kill9()
        self.cluster.shutdown()
        self.start()

    def pause(self, seconds):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)  # how long it hangs is no expectation
        self.server.process.send_signal(signal.SIGCONT)


class Record:
    """What was acknowledged, and what may have happened."""

    def __init__(self):
        self.lock = threading.Lock()
        self.history = History()
        self.rows, self.batches, self.added, self.maybe_added, self.said, self.round = set(), set(), 0, 0, 0, 0

    def acknowledge(self, kind=None, what=None):
        with self.lock:
            self.said += 1
            if kind:
                getattr(self, kind).add(what)


class Client(threading.Thread):
    """Sends random statements to random servers. An outcome that is not known ends a client of the history: another one goes on."""

    def __init__(self, number, members, record, stop):
        super().__init__()
        self.number, self.members, self.record, self.stop = number, members, record, stop
        self.rng, self.n, self.life, self.seen = random.Random(f"{SEED} {number}"), 0, 0, {}

    def run(self):
        while not self.stop.is_set():
            self.n += 1
            session = self.rng.choice(self.members).session
            self.rng.choice([self.condition, self.condition, self.condition, self.row, self.row, self.batch, self.count])(session)

    def condition(self, session):
        key, value = f"{self.record.round}.{self.rng.randrange(KEYS)}", f"{self.number}.{self.n}"
        kind, serial = self.rng.choice(["read", "cas", "cas", "insert", "delete"]), ConsistencyLevel.SERIAL
        seen, values = self.seen.get(key) or "nothing", {}
        if kind == "read":
            statement = SimpleStatement(f"SELECT v FROM lin.t WHERE k = '{key}'", consistency_level=serial)
        elif kind == "insert":
            values, statement = {"to": value}, f"INSERT INTO lin.t (k, v) VALUES ('{key}', '{value}') IF NOT EXISTS"
        elif kind == "delete":
            statement = f"DELETE FROM lin.t WHERE k = '{key}' IF EXISTS"
        else:
            values, statement = {"from": seen, "to": value}, f"UPDATE lin.t SET v = '{value}' WHERE k = '{key}' IF v = '{seen}'"
        call, client = time.monotonic_ns(), self.number * 100000 + self.life
        try:
            row = session.execute(statement).one()
        except WriteTimeout as e:
            if "nothing was written" in str(e):  # another server was faster: the statement had no effect
                return
            self.lost(client, key, kind, call, values)
            return
        except Exception:  # the server was killed, or the store did not answer: who knows
            self.lost(client, key, kind, call, values)
            return
        there = getattr(row, "v", None) if row else None
        applied = kind == "read" or row.applied
        self.record.history.record(client, key, kind, call, (applied, there), **values)
        self.seen[key] = values.get("to") if applied and kind != "read" else there
        self.record.acknowledge()

    def lost(self, client, key, kind, call, values):
        self.life += 1
        if kind != "read":
            self.record.history.record(client, key, kind, call, None, **values)

    def row(self, session):
        at = (self.rng.randrange(PARTITIONS), self.number * 1000000 + self.n)
        try:
            session.execute("INSERT INTO lin.rows (p, c, v) VALUES (%s, %s, %s)", (*at, TEXT))
        except Exception:
            return
        self.record.acknowledge("rows", at)

    def batch(self, session):
        at = self.number * 1000000 + self.n
        batch = BatchStatement()
        for p in (100, 101):
            batch.add("INSERT INTO lin.rows (p, c, v) VALUES (%s, %s, %s)", (p, at, "batch"))
        try:
            session.execute(batch)
        except Exception:
            return
        self.record.acknowledge("batches", at)

    def count(self, session):
        try:
            session.execute("UPDATE lin.counts SET n = n + 1 WHERE p = 1")
        except WriteTimeout as e:
            if "nothing was written" in str(e):
                return
            with self.record.lock:
                self.record.maybe_added += 1
            return
        except Exception:
            with self.record.lock:
                self.record.maybe_added += 1
            return
        with self.record.lock:
            self.record.added += 1
            self.record.said += 1


def fail_once(rng, members, pool, progress):
    """One failure, which lasts until the others serve the clients again."""
    osd, member = rng.randrange(OSDS), rng.choice(members)
    what = rng.choice(["kill", "kill", "pause", "pause OSD", *(["kill OSD", "kill OSD"] if OSDS > 1 else [])])
    if what == "kill":
        member.kill()
    elif what == "pause":
        member.pause(rng.random() * 3)
    else:
        ceph_does(what.split()[0], pool, osd)
        if OSDS > 1:
            progress()
        else:
            time.sleep(1)  # one OSD in memory that is stopped for longer never answers again
        ceph_does("start-osd" if what == "kill OSD" else "resume", pool, osd)
    return what


def everything(session, cql):
    """Asks until the store has recovered from the last failure."""
    def ask():
        try:
            return [list(session.execute(SimpleStatement(cql, fetch_size=200)))]
        except Exception:
            return None
    return eventually(ask)[0]


def test_nothing_acknowledged_is_lost_and_no_condition_violated_while_servers_and_osds_fail(pool, checker, tmp_path):  # noqa: F811
    rng, record, stop = random.Random(SEED), Record(), threading.Event()
    members = [Member(tmp_path / f"server{i}", pool).start() for i in range(SERVERS)]
    first = members[0].session
    first.execute("CREATE KEYSPACE lin WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for table in ("t (k text PRIMARY KEY, v text)", "rows (p int, c int, v text, PRIMARY KEY (p, c))", "counts (p int PRIMARY KEY, n counter)"):
        first.execute(f"CREATE TABLE lin.{table}")
    for m in members:
        eventually(lambda: {"t", "rows", "counts"} <= {r.table_name for r in m.session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'lin'")})
    clients = [Client(i, members, record, stop) for i in range(CLIENTS)]

    def progress():
        goal = record.said + PROGRESS
        eventually(lambda: record.said >= goal, lambda: f"{record.said} statements were acknowledged, {goal} expected")

    for c in clients:
        c.start()
    for event in range(EVENTS):
        progress()
        what = fail_once(rng, members, pool, progress)
        progress()
        record.round += 1
        print(f"{event + 1} of {EVENTS}: {what}; {record.said} statements acknowledged", flush=True)
    stop.set()
    for c in clients:
        c.join()
    print(f"{len(record.rows)} rows, {len(record.batches)} batches, {record.added} to {record.added + record.maybe_added} additions, "
          f"{len(record.history.operations)} conditional statements and reads, {sum(op['return'] is None for op in record.history.operations)} of them with an unknown outcome")
    for m in members:
        rows = {(r.p, r.c) for r in everything(m.session, "SELECT p, c FROM lin.rows")}
        assert record.rows <= rows, sorted(record.rows - rows)[:5]
        eventually(lambda: len(everything(m.session, "SELECT c FROM lin.rows WHERE p = 100")) == len(everything(m.session, "SELECT c FROM lin.rows WHERE p = 101")))
        halves = [{r.c for r in everything(m.session, f"SELECT c FROM lin.rows WHERE p = {p}")} for p in (100, 101)]
        assert halves[0] == halves[1] and record.batches <= halves[0]
        n = everything(m.session, "SELECT n FROM lin.counts WHERE p = 1")[0].n
        assert record.added <= n <= record.added + record.maybe_added
    assert checker(record.history.operations) == "linearisable"
    for m in members:
        m.end()
