"""Clients of several servers on one pool of a Ceph cluster, under whatever happens to the servers: the servers, what their clients share, and a client as a thread."""
import itertools
import random
import signal
import threading
import time

from cassandra import AlreadyExists, ConsistencyLevel, DriverException, InvalidRequest, OperationTimedOut, RequestExecutionException, WriteTimeout
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, HostFilterPolicy, RoundRobinPolicy
from cassandra.protocol import OverloadedErrorMessage, ServerError
from cassandra.query import SimpleStatement

import page_api
import test_linearizability
from ports import free_port
from tally_server import HANG, Server, eventually, let_pass

# After these a statement may have been applied. Overloaded: a server that stops says so to what waits.
UNKNOWN = (ConnectionException, OperationTimedOut, NoHostAvailable, RequestExecutionException, DriverException, OverloadedErrorMessage)

FLAGS = {"cassandra": ["--ddl-delay", "none", "--auth", "password"], "keyspaces": ["--ddl-delay", "50..500"]}
# What keyspaces mode refuses, even with --compatibility off, and clients leave out there.
LEFT_OUT = {"roles": "they come from the credentials file"}


class Front:
    """A server at an address that stays, and a session with it."""

    def __init__(self, folder, ceph, mode):
        folder.mkdir()
        self.server = Server(folder, "--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", mode, "--rados-split", "80", "--mode", mode, *FLAGS[mode],
                             "--port", str(free_port()), "--admin-port", str(free_port()), "--update-workers", "16", "--read-workers", "16")
        self.server.start()
        self.mode, self.usable, self.splits, self.prepared = mode, True, 0, {}
        this_one = HostFilterPolicy(RoundRobinPolicy(), lambda host: host.endpoint.port == self.server.port)  # the driver hears of the others, too
        profile = ExecutionProfile(load_balancing_policy=this_one, consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                                   serial_consistency_level=ConsistencyLevel.SERIAL, request_timeout=HANG, retry_policy=FallthroughRetryPolicy())
        self.cluster = self.server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile}, idle_heartbeat_interval=0, auth_provider=PlainTextAuthProvider("cassandra", "cassandra"),
                                           reconnection_policy=ConstantReconnectionPolicy(0.1, None), schema_metadata_enabled=False,
                                           max_schema_agreement_wait=0)  # a client waits itself where it needs that
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

    def attempt(self, statement):
        """Its rows; None: it failed or was refused."""
        try:
            return list(self.session.execute(statement))
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

    def close(self):
        self.cluster.shutdown()
        if self.server.alive():
            self.server.kill9()


class Work:
    """What all clients share: the servers and their mode, when to stop, what nobody expected, the count of acknowledged effects, and an epoch, which each failure ends."""

    def __init__(self, fronts):
        self.mode, self.fronts, self.stop, self.wrong, self.acknowledged, self.unknown, self.epoch = fronts[0].mode, fronts, threading.Event(), [], itertools.count(), itertools.count(), 0
        self.history = test_linearizability.History()

    def front(self, rng):
        usable = [f for f in self.fronts if f.usable]
        return rng.choice(usable or self.fronts)

    def counted(self, counter):
        """How often a counter was moved on; count.__reduce__ tells without moving it."""
        return counter.__reduce__()[1][0]

    def done(self):
        return self.counted(self.acknowledged)

    def await_progress(self, effects):
        goal = self.done() + effects
        eventually(lambda: self.wrong or self.done() >= goal, "no write is acknowledged")
        assert not self.wrong, "\n".join(self.wrong)

    def leaves_out(self, what):
        assert what in LEFT_OUT
        return self.mode == "keyspaces"

    def await_active(self, name):
        """In keyspaces mode a change of a table is answered before it takes place. False: the clients are to stop."""
        keyspace, table = name.split(".")
        query = f"SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
        return self.mode == "cassandra" or self.everywhere(lambda f: [r.status for r in f.attempt(query) or []] == ["ACTIVE"], lambda: f"{name} is not ACTIVE everywhere")

    def everywhere(self, holds, otherwise):
        """Waits until it holds at each server; one that is down is waited for. False: the clients are to stop."""
        for f in self.fronts:
            eventually(lambda: self.stop.is_set() or holds(f), otherwise)
        return not self.stop.is_set()


class Worker(threading.Thread):
    """Does one step after the other until the end. What a step does not expect is a violation."""

    def __init__(self, work, number, seed):
        super().__init__(name=f"{type(self).__name__} {number}")
        self.work, self.number, self.seed, self.rng, self.steps = work, number, seed, random.Random(seed * 1000 + number), 0

    def run(self):
        while not self.work.stop.is_set():
            try:
                self.step()
                self.steps += 1
            except Exception as e:  # noqa: BLE001
                self.work.wrong.append(f"{self.name}: {type(e).__name__}: {e}")
                return

    def try_once(self, statement, values=None, size=None, front=None):
        """The rows, once it is acknowledged. None: it may have been applied. False: it says that it was not."""
        front = front or self.work.front(self.rng)
        try:
            query = statement if values is None else front.prepare(statement).bind(values)
            if size:
                query = SimpleStatement(query) if isinstance(query, str) else query
                query.fetch_size = size
            rows = list(front.session.execute(query))
        except (InvalidRequest, AlreadyExists):
            raise
        except (*UNKNOWN, ServerError) as e:
            if isinstance(e, ServerError) and "The server is stopping" not in str(e):
                raise
            if isinstance(e, WriteTimeout) and "nothing was written" in str(e):
                return False
            next(self.work.unknown)
            let_pass(0.01)
            return None
        next(self.work.acknowledged)
        return rows


def read_all(front, statement):
    """Once the cluster answers all of it."""
    def answer():
        try:
            return [list(front.session.execute(SimpleStatement(statement, fetch_size=500)))]
        except UNKNOWN:
            return None
    return eventually(answer)[0]


def run_all(work, workers, meanwhile):
    """Lets the workers work while it calls the function."""
    for w in workers:
        w.start()
    try:
        meanwhile()
    finally:
        work.stop.set()
        for w in workers:
            w.join()
    assert not work.wrong, "\n".join(work.wrong)


def now():
    return time.monotonic()
