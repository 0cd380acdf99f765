"""Conditional statements are linearisable for each partition: histories of concurrent IF statements and serial reads, while the table is altered and others are
made and dropped beside it, with kill -9 in between, are checked by Porcupine (porcupine/main.go). The checker is shown to find what is wrong: in histories that were forged, and in one of a client that checks and then writes."""
import json
import os
import random
import shutil
import subprocess
import threading
import time

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.query import SimpleStatement

from tally_server import ROOT, eventually, let_pass

FOLDER = ROOT / "tests" / "integration" / "porcupine"
BUILD = ROOT / "build" / "drivers" / "porcupine"
CLIENTS = 8
KEYS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def checker():
    if shutil.which("go") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not run: no go on this machine")
    shutil.copytree(FOLDER, BUILD, dirs_exist_ok=True)
    program = BUILD / "check"
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=BUILD, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr

    def check(history):
        lines = "".join(json.dumps(op) + "\n" for op in history)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout.strip()
    return check


class History:
    """What clients did and when, as they saw it."""

    def __init__(self):
        self.lock, self.operations = threading.Lock(), []

    def record(self, client, key, kind, call, result=None, **values):
        """result: (applied, value), or None when the outcome is not known."""
        op = {"client": client, "key": key, "kind": kind, "call": call, "return": time.monotonic_ns() if result else None, **values}
        if result:
            op["applied"], op["value"] = result
        with self.lock:
            self.operations.append(op)


def connect(server):
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=300,
                               retry_policy=FallthroughRetryPolicy())
    return server.cluster(execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=300)


class Client(threading.Thread):
    """Sends random statements until it is told to stop or the server goes."""

    def __init__(self, session, number, seed, history, stop):
        super().__init__()
        self.session, self.number, self.rng, self.history, self.stop, self.n = session, number, random.Random(seed), history, stop, 0
        self.seed = seed

    def new_value(self):
        self.n += 1
        return f"{self.seed}.{self.n}"

    def statement(self):
        """A statement, what it is to the checker, and whether it reads."""
        key, kind, to = self.rng.choice(KEYS), self.rng.choice(["read", "cas", "cas", "cas", "insert", "delete"]), self.new_value()
        if kind == "read":
            return key, kind, {}, SimpleStatement(f"SELECT v FROM lin.t WHERE k = '{key}'", consistency_level=ConsistencyLevel.SERIAL)
        if kind == "insert":
            return key, kind, {"to": to}, SimpleStatement(f"INSERT INTO lin.t (k, v) VALUES ('{key}', '{to}') IF NOT EXISTS")
        if kind == "delete":
            return key, kind, {}, SimpleStatement(f"DELETE FROM lin.t WHERE k = '{key}' IF EXISTS")
        seen = self.seen.get(key) or "nothing"
        return key, kind, {"from": seen, "to": to}, SimpleStatement(f"UPDATE lin.t SET v = '{to}' WHERE k = '{key}' IF v = '{seen}'")

    def run(self):
        self.seen = {}
        while not self.stop.is_set():
            key, kind, values, statement = self.statement()
            call = time.monotonic_ns()
            try:
                row = self.session.execute(statement).one()
            except Exception:  # the server was killed: who knows
                self.history.record(self.number, key, kind, call, None, **values)
                return
            value = getattr(row, "v", None) if row else None
            applied = kind == "read" or row.applied
            self.history.record(self.number, key, kind, call, (applied, value), **values)
            self.seen[key] = values.get("to") if applied and kind != "read" else value


class Changer(threading.Thread):
    """Changes the clients' table, and makes and drops one beside it, until it is told to stop or the server goes."""

    def __init__(self, session, seed, stop):
        super().__init__()
        self.session, self.rng, self.stop, self.n, self.changes = session, random.Random(seed), stop, seed * 1000, 0

    def statements(self):
        self.n += 1
        yield from [f"ALTER TABLE lin.t ADD c{self.n} text", f"CREATE TABLE lin.t{self.n} (k text PRIMARY KEY, v text)",
                    f"INSERT INTO lin.t{self.n} (k, v) VALUES ('a', 'b') IF NOT EXISTS",
                    f"ALTER TABLE lin.t WITH gc_grace_seconds = {self.rng.randrange(1, 1000)}",
                    f"ALTER TABLE lin.t DROP c{self.n}", f"DROP TABLE lin.t{self.n}"]

    def run(self):
        while True:
            for statement in self.statements():
                if self.stop.is_set():
                    return
                try:
                    self.session.execute(statement)
                except Exception:  # the server was killed
                    return
                self.changes += 1


def known(operations):
    return [op for op in operations if op["return"]]


def applied(operations):
    return [op for op in known(operations) if op["kind"] == "cas" and op["applied"]]


def run_clients(server, history, seed, seconds, kill):
    with connect(server) as cluster:
        session, stop = cluster.connect(), threading.Event()
        clients = [Client(session, seed * CLIENTS + i, seed * CLIENTS + i, history, stop) for i in range(CLIENTS)]
        changer = Changer(session, seed, stop)
        before = len(history.operations)
        for c in [*clients, changer]:
            c.start()
        let_pass(seconds)
        eventually(lambda: len(history.operations) > before + 80 and len(applied(history.operations[before:])) > 6 and changer.changes > 6)
        if kill:
            server.kill9()
        stop.set()
        for c in [*clients, changer]:
            c.join()


@pytest.mark.parametrize("durability", ["fsync", "periodic"])
def test_concurrent_conditions_are_linearisable_across_kill9(new_server, checker, durability):
    server = new_server("--mode", "cassandra", "--durability", durability)
    history = History()
    with server.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE lin WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE lin.t (k text PRIMARY KEY, v text)")
    for seed in range(1, 5):
        run_clients(server, history, seed, 0.7, kill=seed < 4)
        if seed < 4:
            server.start()
    said = len(known(history.operations))
    assert said > 200 and len(applied(history.operations)) > 20 and len(history.operations) > said, "the history says too little"
    assert checker(history.operations) == "linearisable"


def test_client_that_checks_and_then_writes_is_found_out(new_server, checker):
    """The same checker, where a condition is broken on purpose: two clients read, and then both write."""
    server = new_server("--mode", "cassandra")
    history, both = History(), threading.Barrier(2)
    with server.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE lin WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE lin.t (k text PRIMARY KEY, v text)")
        session.execute("INSERT INTO lin.t (k, v) VALUES ('a', 'first') IF NOT EXISTS")
        history.record(0, "a", "insert", 0, (True, None), to="first")

        def compare_and_set(number):
            call = time.monotonic_ns()
            seen = session.execute("SELECT v FROM lin.t WHERE k = 'a'").one().v
            both.wait()
            session.execute(f"UPDATE lin.t SET v = 'of {number}' WHERE k = 'a'")
            history.record(number, "a", "cas", call, (True, None), **{"from": seen, "to": f"of {number}"})
        threads = [threading.Thread(target=compare_and_set, args=(i,)) for i in (1, 2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert checker(history.operations).startswith("not linearisable: a")


def op(client, kind, call, end, applied=True, value=None, **values):
    return {"client": client, "key": "k", "kind": kind, "call": call, "return": end, "applied": applied, "value": value, **values}


SOUND = [op(1, "insert", 1, 2, to="a"), op(2, "cas", 3, 6, to="b", **{"from": "a"}), op(3, "cas", 4, 7, applied=False, value="b", to="c", **{"from": "a"}),
         op(1, "read", 8, 9, value="b")]


@pytest.mark.parametrize("forged", [
    {3: {"value": "a"}},                                  # reads what was there before
    {3: {"value": None}},                                 # reads that nothing is there
    {2: {"applied": True, "value": None}},                # two conditions on one value held
    {1: {"applied": False, "value": "z"}},                # was told of a value that nobody wrote
    {1: {"return": None}, 3: {"value": "z"}},             # whatever became of the second, this was never there
], ids=["stale", "lost", "twice", "invented", "unknown"])
def test_forged_history_is_rejected(checker, forged):
    assert checker(SOUND) == "linearisable"
    history = [{**o, **forged.get(i, {})} for i, o in enumerate(SOUND)]
    assert checker(history).startswith("not linearisable: k")


def test_outcome_that_nobody_knows_may_be_either(checker):
    unknown = {**SOUND[1], "return": None}
    for value in ("a", "b"):
        assert checker([SOUND[0], unknown, op(1, "read", 8, 9, value=value)]) == "linearisable"
