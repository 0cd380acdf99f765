"""Two or three servers on one pool of a Ceph cluster, while servers and OSDs are killed, paused and started again and objects split: conditions stay linearisable
over all servers, every read is what one model of CQL holds, and every acknowledged write, batch and count is there at each server at the end.

TALLY_RADOS_EVENTS=N makes so many failures, on three servers and three OSDs with bluestore (tests/rados/run.py --only servers). Without it a few happen to two
servers and one OSD in memory, which can be paused and not killed."""
import itertools
import os
import random
import signal
import threading
import time

import pytest
from cassandra import ConsistencyLevel, DriverException, InvalidRequest, OperationTimedOut, RequestExecutionException, WriteTimeout
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, HostFilterPolicy, RoundRobinPolicy
from cassandra.protocol import OverloadedErrorMessage
from cassandra.query import BatchStatement, SimpleStatement

import page_api
import test_linearizability
import test_model
from ceph_cluster import ceph_do, cluster_in
from tally_server import HANG, Server, create_keyspace, create_table, eventually, free_port, let_pass
from test_linearizability import checker  # noqa: F401  a fixture

EVENTS = int(os.environ.get("TALLY_RADOS_EVENTS", "0"))
SEED = int(os.environ.get("TALLY_RADOS_SEED", "30"))
FRONTS, OSDS = (3, 3) if EVENTS else (2, 1)
PROGRESS = 40  # effects that must be acknowledged between two steps of a failure, so that each meets clients at work
# After these a statement may have been applied. Overloaded: a server that stops says so to what waits.
UNKNOWN = (ConnectionException, OperationTimedOut, NoHostAvailable, RequestExecutionException, DriverException, OverloadedErrorMessage)
PARTITIONS, BATCH_PARTITIONS, COUNTERS = 40, 4, 3


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp("ceph"), "--osds", OSDS, "--store", "bluestore" if EVENTS else "memstore") as folder:
        yield folder


class Front:
    """A server at an address that stays, and a session with it."""

    def __init__(self, folder, ceph):
        folder.mkdir()
        self.server = Server(folder, "--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", "tally", "--rados-split", "80", "--mode", "cassandra",
                             "--port", str(free_port()), "--admin-port", str(free_port()), "--ddl-delay", "none", "--update-workers", "16", "--read-workers", "16")
        self.server.start()
        self.usable, self.splits, self.prepared = True, 0, {}
        this_one = HostFilterPolicy(RoundRobinPolicy(), lambda host: host.endpoint.port == self.server.port)  # the driver hears of the others, too
        profile = ExecutionProfile(load_balancing_policy=this_one, consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                                   serial_consistency_level=ConsistencyLevel.SERIAL, request_timeout=HANG, retry_policy=FallthroughRetryPolicy())
        self.cluster = self.server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile}, idle_heartbeat_interval=0,
                                           reconnection_policy=ConstantReconnectionPolicy(0.1, None), schema_metadata_enabled=False)
        self.session = self.cluster.connect()

    def prepare(self, statement):
        if statement not in self.prepared:
            self.prepared[statement] = self.session.prepare(statement)
        return self.prepared[statement]

    def count_splits(self):
        """Those of the process that runs, before it ends."""
        _, _, text = page_api.ask(self.server, "GET", "/metrics")
        self.splits += next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("tally_store_splits_total "))

    def answers(self):
        try:
            return self.session.execute("SELECT release_version FROM system.local").one()
        except UNKNOWN:
            return None

    def kill(self):
        self.usable = False
        self.count_splits()
        self.server.kill9()

    def stop(self):
        self.usable = False
        self.count_splits()
        self.server.stop()

    def start(self):
        self.server.start()
        eventually(self.answers, "the driver does not come back")
        self.usable = True

    def pause(self):
        self.usable = False
        self.server.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.server.process.send_signal(signal.SIGCONT)
        eventually(self.answers)
        self.usable = True


class Work:
    """What all clients share: the servers, when to stop, what nobody expected, the count of acknowledged effects, and an epoch, which each failure ends."""

    def __init__(self, fronts):
        self.fronts, self.stop, self.wrong, self.acknowledged, self.unknown, self.epoch = fronts, threading.Event(), [], itertools.count(), itertools.count(), 0
        self.history = test_linearizability.History()

    def front(self, rng):
        usable = [f for f in self.fronts if f.usable]
        return rng.choice(usable or self.fronts)

    def counted(self, counter):
        """How often a counter was moved on; count.__reduce__ tells without moving it."""
        return counter.__reduce__()[1][0]

    def done(self):
        return self.counted(self.acknowledged)


class Worker(threading.Thread):
    """Does one step after the other until the end. What a step does not expect is a violation."""

    def __init__(self, work, number):
        super().__init__(name=f"{type(self).__name__} {number}")
        self.work, self.number, self.rng = work, number, random.Random(SEED * 1000 + number)

    def run(self):
        while not self.work.stop.is_set():
            try:
                self.step()
            except Exception as e:  # noqa: BLE001
                self.work.wrong.append(f"{self.name}: {type(e).__name__}: {e}")
                return

    def try_once(self, statement, values=None):
        """The rows, once it is acknowledged. None: it may have been applied. False: it says that it was not."""
        front = self.work.front(self.rng)
        try:
            rows = list(front.session.execute(front.prepare(statement), values) if values is not None else front.session.execute(statement))
        except InvalidRequest:
            raise
        except UNKNOWN as e:
            if isinstance(e, WriteTimeout) and "nothing was written" in str(e):
                return False
            next(self.work.unknown)
            let_pass(0.01)
            return None
        next(self.work.acknowledged)
        return rows


class Conditions(Worker):
    """Conditional statements and serial reads, for Porcupine. Every failure brings new keys, so that few statements of a key have an unknown outcome."""
    numbers = itertools.count()

    def __init__(self, work, number):
        super().__init__(work, number)
        self.seen, self.n, self.client = {}, 0, next(self.numbers)

    def step(self):
        key, kind = f"{self.rng.choice('ab')}{self.work.epoch}", self.rng.choice(["read", "cas", "cas", "cas", "insert", "delete"])
        self.n += 1
        to, seen = f"{self.number}.{self.n}", self.seen.get(key) or "nothing"
        statement, values = {"read": (f"SELECT v FROM lin.t WHERE k = '{key}'", {}),
                             "insert": (f"INSERT INTO lin.t (k, v) VALUES ('{key}', '{to}') IF NOT EXISTS", {"to": to}),
                             "delete": (f"DELETE FROM lin.t WHERE k = '{key}' IF EXISTS", {}),
                             "cas": (f"UPDATE lin.t SET v = '{to}' WHERE k = '{key}' IF v = '{seen}'", {"from": seen, "to": to})}[kind]
        call = time.monotonic_ns()
        rows = self.try_once(SimpleStatement(statement, consistency_level=ConsistencyLevel.SERIAL) if kind == "read" else statement)
        if rows is None:
            if kind != "read":
                self.work.history.record(self.client, key, kind, call, None, **values)
            self.client = next(self.numbers)
        elif rows:
            value, applied = getattr(rows[0], "v", None), kind == "read" or rows[0].applied
            self.work.history.record(self.client, key, kind, call, (applied, value), **values)
            self.seen[key] = values.get("to") if applied and kind != "read" else value
        elif kind == "read" and rows is not False:
            self.work.history.record(self.client, key, kind, call, (True, None), **values)
            self.seen[key] = None


class Writes(Worker):
    """Inserts rows and deletes some; rows has the value of each, None if it was deleted, and not those whose last write is unknown."""

    def __init__(self, work, number):
        super().__init__(work, number)
        self.n, self.rows, self.tried = number * 1_000_000, {}, set()

    def partition(self, row):
        return 0 if row % 4 == 0 else row % PARTITIONS

    def step(self):
        action = self.rng.random()
        if action < 0.2 and self.rows:
            self.read(self.rng.choice(list(self.rows)))
        elif action < 0.3 and self.rows:
            row = self.rng.choice(list(self.rows))
            self.write("DELETE FROM crash.rows USING TIMESTAMP 2 WHERE p = ? AND c = ?", row, (self.partition(row), row), None)
        else:
            self.n += 1
            value = f"{self.n} " + "x" * self.rng.randrange(200)
            self.tried.add(self.n)
            self.write("INSERT INTO crash.rows (p, c, v) VALUES (?, ?, ?) USING TIMESTAMP 1", self.n, (self.partition(self.n), self.n, value), value)

    def write(self, statement, row, values, value):
        self.rows.pop(row, None)
        answer = self.try_once(statement, values)
        if answer is False:
            raise AssertionError("a write without a condition met a conflict")
        if answer is not None:
            self.rows[row] = value

    def read(self, row):
        answer = self.try_once("SELECT v FROM crash.rows WHERE p = ? AND c = ?", (self.partition(row), row))
        if answer is not None and [r.v for r in answer] != [v for v in [self.rows[row]] if v is not None]:
            raise AssertionError(f"row {row}: acknowledged {self.rows[row]}, read {answer}")


class Batches(Worker):
    """Logged batches over partitions."""

    def __init__(self, work, number):
        super().__init__(work, number)
        self.n, self.whole = number * 1_000_000, set()

    def step(self):
        self.n += 1
        batch = BatchStatement()
        for p in range(BATCH_PARTITIONS):
            batch.add(SimpleStatement(f"INSERT INTO crash.batches (p, id) VALUES ({p}, {self.n})"))
        if self.try_once(batch) is not None:
            self.whole.add(self.n)


class Counts(Worker):
    """Adds to counters: each ends between what was acknowledged and that with what is unknown."""

    def __init__(self, work, number):
        super().__init__(work, number)
        self.least, self.most = [0] * COUNTERS, [0] * COUNTERS

    def step(self):
        c, by = self.rng.randrange(COUNTERS), self.rng.randrange(1, 5)
        answer = self.try_once(f"UPDATE crash.counts SET n = n + {by} WHERE p = {c}")
        self.least[c] += by if answer not in (None, False) else 0
        self.most[c] += by if answer is not False else 0


class OfAllServers(test_model.Run):
    """The model's statements, each sent to any server until it is acknowledged: their timestamps make that the same as once. No time passes, and conditions
    and counts, which may not be sent twice, are the other clients'."""
    DISTURBANCES = ["alter"]

    def __init__(self, work, seed):
        self.work = work
        super().__init__(None, seed)
        self.times = self.rng.sample(range(1, 10 ** 9), 10 ** 6)  # a long run needs many

    def connect(self):
        self.session = self.work.fronts[0].session

    def clock(self, seconds):
        pass

    def ttl(self):
        return 0

    def execute(self, statement, size=None, bound=None):
        self.history.append(statement)
        while True:
            front = self.work.front(self.rng)
            try:
                query = SimpleStatement(statement) if bound is None else front.prepare(statement).bind(bound)
                query.fetch_size = size
                rows = list(front.session.execute(query))
                next(self.work.acknowledged)
                return rows
            except InvalidRequest as e:
                if not statement.startswith("ALTER") or "already exists" not in str(e) and "conflicts with an existing column" not in str(e):
                    raise
                return []
            except UNKNOWN:
                next(self.work.unknown)
                let_pass(0.01)

    def read_by_page(self):
        self.read_rows()

    def step(self):
        kinds = [self.insert, self.insert_json, self.update, self.delete, self.batch, self.read, self.disturb]
        self.rng.choices(kinds, [14, 3, 14, 10, 3, 45, 1])[0]()


class Model(Worker):
    def __init__(self, work, number):
        super().__init__(work, number)
        self.model = OfAllServers(work, SEED * 100 + number)

    def step(self):
        try:
            self.model.step()
        except test_model.Difference as e:
            raise AssertionError(f"{e}\n" + "\n".join(h for h in self.model.history if not h.startswith("SELECT"))) from None


class Failures:
    """Makes failures, one or two at a time, each between clients that get on with their work."""

    def __init__(self, work, ceph):
        self.work, self.ceph, self.rng, self.events = work, ceph, random.Random(SEED), 0

    def await_progress(self):
        goal = self.work.done() + PROGRESS
        eventually(lambda: self.work.wrong or self.work.done() >= goal, "no write is acknowledged")
        assert not self.work.wrong, self.work.wrong

    def front(self):
        front, how = self.rng.choice(self.work.fronts), self.rng.choice(["kill", "kill", "pause", "stop"])
        print(f"event {self.events + 1}: {how} server {self.work.fronts.index(front)}, {self.work.done()} acknowledged", flush=True)
        getattr(front, how)()
        self.await_progress()
        front.resume() if how == "pause" else front.start()
        self.events += 1

    def osd(self):
        osd, how = self.rng.randrange(OSDS), "pause" if OSDS == 1 or self.rng.random() < 0.4 else "kill"
        print(f"event {self.events + 1}: {how} OSD {osd}, {self.work.done()} acknowledged", flush=True)
        ceph_do(how, self.ceph, osd)
        if OSDS > 1:
            self.await_progress()
            if self.rng.random() < 0.4:  # a server fails meanwhile
                self.front()
        ceph_do("start-osd" if how == "kill" else "resume", self.ceph, osd)
        ceph_do("wait-up", self.ceph)
        self.events += 1

    def run(self, events):
        while self.events < events:
            self.await_progress()
            self.osd() if self.events % 2 else self.front()
            self.work.epoch += 1
        self.await_progress()


def read_all(front, statement):
    """Once the cluster answers all of it."""
    def answer():
        try:
            return [list(front.session.execute(SimpleStatement(statement, fetch_size=500)))]
        except UNKNOWN:
            return None
    return eventually(answer)[0]


def verify(front, writes, batches, counts):
    found = {r.c: r.v for r in read_all(front, "SELECT c, v FROM crash.rows")}
    expected = {row: value for w in writes for row, value in w.rows.items()}
    lost = [row for row, value in expected.items() if found.get(row) != value]
    assert not lost, f"{len(lost)} of {len(expected)} acknowledged writes are lost: {lost[:10]}"
    assert found.keys() <= set().union(*(w.tried for w in writes)), "rows that nobody wrote"

    def torn():
        parts = {}
        for row in read_all(front, "SELECT id FROM crash.batches"):
            parts[row.id] = parts.get(row.id, 0) + 1
        missing = set().union(*(b.whole for b in batches)) - parts.keys()
        assert not missing, f"acknowledged batches are lost: {missing}"
        return {n: count for n, count in parts.items() if count != BATCH_PARTITIONS}
    eventually(lambda: not torn(), lambda: f"batches that are neither there nor gone: {torn()}")  # a server applies what a dead one has left
    totals = {r.p: r.n for r in read_all(front, "SELECT p, n FROM crash.counts")}
    for c in range(COUNTERS):
        least, most = sum(w.least[c] for w in counts), sum(w.most[c] for w in counts)
        assert least <= totals.get(c, 0) <= most, f"counter {c}: {totals.get(c, 0)}, acknowledged {least}, at most {most}"


def make_tables(session):
    for keyspace in ("lin", "crash"):
        create_keyspace(session, keyspace)
    create_table(session, "lin", "t", "k text PRIMARY KEY, v text")
    create_table(session, "crash", "rows", "p int, c int, v text, PRIMARY KEY (p, c)")
    create_table(session, "crash", "batches", "p int, id int, PRIMARY KEY (p, id)")
    create_table(session, "crash", "counts", "p int PRIMARY KEY, n counter")


def test_nothing_acknowledged_is_lost_and_conditions_hold_whatever_fails(ceph, tmp_path, checker):  # noqa: F811
    fronts = [Front(tmp_path / f"server{i}", ceph) for i in range(FRONTS)]
    try:
        make_tables(fronts[0].session)
        work = Work(fronts)
        model = Model(work, 1)
        conditions, writes = [Conditions(work, 10 + i) for i in range(6)], [Writes(work, 20 + i) for i in range(5)]
        batches, counts = [Batches(work, 30 + i) for i in range(2)], [Counts(work, 40 + i) for i in range(2)]
        for f in fronts:  # each knows all tables
            for table in ("lin.t", "crash.rows", "crash.batches", "crash.counts", model.model.name, model.model.name.replace(".t", ".n")):
                eventually(lambda: not isinstance(attempt(f, f"SELECT * FROM {table} LIMIT 1"), InvalidRequest))
        workers = [model, *conditions, *writes, *batches, *counts]
        for w in workers:
            w.start()
        failures = Failures(work, ceph)
        try:
            failures.run(EVENTS or 4)
        finally:
            work.stop.set()
            for w in workers:
                w.join()
        assert not work.wrong, "\n".join(work.wrong)
        for f in fronts:
            verify(f, writes, batches, counts)
        splits = sum(f.splits for f in fronts if not f.count_splits())
        said = test_linearizability.known(work.history.operations)
        print(f"{failures.events} failures, {work.done()} acknowledged, {work.counted(work.unknown)} unknown, {splits} splits, {len(said)} of "
              f"{len(work.history.operations)} operations of conditions known, {len(model.model.history)} statements of the model", flush=True)
        assert len(test_linearizability.applied(work.history.operations)) > 20 and splits > 3, "the run says too little"
        assert checker(work.history.operations) == "linearisable"
    finally:
        for f in fronts:
            f.cluster.shutdown()
            if f.server.alive():
                f.server.kill9()


def attempt(front, statement):
    try:
        return front.session.execute(statement)
    except InvalidRequest as e:
        return e
