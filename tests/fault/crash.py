#!/usr/bin/env python3
"""Kills a server (SIGKILL) again and again, at random moments under mixed load, and checks every acknowledged effect against what clients have noted.

    build/venv/bin/python tests/fault/crash.py --kills 100 [--seed N] [--threads N]

The load: inserts, updates and deletes, light-weight transactions, logged batches over two tables, counters, DDL, and flushes with the compactions that follow. A client knows
of each key what was acknowledged last and what it has tried since; after the restart one of these stands there, a batch is there whole or not at all, and a counter lies between what was
acknowledged and what was tried. Prints a line for every ten kills and the sums; exits with 1 when an effect is lost.
"""
import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from cassandra.policies import FallthroughRetryPolicy  # noqa: E402
from cassandra.query import BatchStatement, BatchType, SimpleStatement  # noqa: E402

from tally_server import Server  # noqa: E402

KEYS = 40  # of each client
TABLES = ("CREATE TABLE crash.t (p int PRIMARY KEY, v int, pad text)", "CREATE TABLE crash.lwt (p int PRIMARY KEY, v int)", "CREATE TABLE crash.n (p int PRIMARY KEY, n counter)",
          "CREATE TABLE crash.b1 (p int, id int, PRIMARY KEY (p, id))", "CREATE TABLE crash.b2 (p int, id int, PRIMARY KEY (p, id))")


class Lost(Exception):
    pass


class Register:
    """Keys that one client writes, one write at a time: what may stand there is what was acknowledged last, or anything tried since."""

    def __init__(self, initial=None):
        self.initial, self.may = initial, {}

    def tries(self, key, value):
        self.may.setdefault(key, [self.initial]).append(value)

    def acknowledged(self, key, value):
        self.may[key] = [value]

    def check(self, what, found):
        """found: of each key what stands there now, from which the next round begins."""
        for key, may in self.may.items():
            value = found.get(key, self.initial)
            if value not in may:
                raise Lost(f"{what} {key}: found {value!r}, acknowledged or tried: {may}")
            self.may[key] = [value]


class Load:
    """Its clients are threads of functions named do_*; each step is one request, which is noted before it is sent and after it is answered."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rows, self.lwt, self.tables, self.columns = Register(), Register(), Register(False), Register(False)
        self.added, self.added_tried = Counter(), Counter()
        self.batches, self.batches_tried = set(), set()
        self.version = self.batch = self.table = 0
        self.acknowledged, self.flushes = Counter(), 0

    # ---- clients: one request each

    def do_rows(self, session, r):
        key = r.randrange(KEYS)
        self.version += 1
        value = None if self.version % 7 == 0 else self.version
        self.rows.tries(key, value)
        if value is None:
            session.execute(self.statements["delete"], (key,))
        elif self.version % 2:
            session.execute(self.statements["insert"], (key, value, "x" * r.randrange(2000)))
        else:
            session.execute(self.statements["update"], (value, key))
        self.rows.acknowledged(key, value)

    def do_lwt(self, session, r):
        key = r.randrange(KEYS)
        now = self.lwt.may.get(key, [None])[-1]
        value = (now or 0) + 1
        self.lwt.tries(key, value)
        text = "INSERT INTO crash.lwt (p, v) VALUES (%s, %s) IF NOT EXISTS" if now is None else f"UPDATE crash.lwt SET v = {value} WHERE p = {key} IF v = {now}"
        if not session.execute(SimpleStatement(text, retry_policy=FallthroughRetryPolicy()), (key, value) if now is None else None).one()[0]:
            raise Lost(f"the condition of {text} does not hold")
        self.lwt.acknowledged(key, value)

    def do_counters(self, session, r):
        key = r.randrange(KEYS)
        self.added_tried[key] += 1
        session.execute(self.statements["count"], (key,))
        self.added[key] += 1

    def do_batches(self, session, r):
        self.batch += 1
        number, batch = self.batch, BatchStatement(BatchType.LOGGED, retry_policy=FallthroughRetryPolicy())
        for p in range(3):
            batch.add(self.statements["b1"], (p, number))
            batch.add(self.statements["b2"], (p, number))
        self.batches_tried.add(number)
        session.execute(batch)
        self.batches.add(number)

    def do_ddl(self, session, r):
        there = [t for t, may in self.tables.may.items() if may == [True]]
        if there and r.random() < 0.5:
            name = r.choice(there)
            self.tables.tries(name, False)
            session.execute(f"DROP TABLE crash.{name}")
            self.tables.acknowledged(name, False)
        elif there and r.random() < 0.3:
            name = r.choice(there)
            column = (name, f"c{self.table}")
            self.table += 1
            self.columns.tries(column, True)
            session.execute(f"ALTER TABLE crash.{name} ADD {column[1]} int")
            self.columns.acknowledged(column, True)
        else:
            self.table += 1
            name = f"made{self.table}"
            self.tables.tries(name, True)
            session.execute(f"CREATE TABLE crash.{name} (p int PRIMARY KEY)")
            self.tables.acknowledged(name, True)

    def do_flushes(self, session, r):
        time.sleep(r.uniform(0, 0.1))
        session.execute("INSERT INTO system_control.snapshots (name) VALUES ('crash')")
        self.flushes += 1

    # ---- a round

    def _client(self, name, session, seed, stop, failures):
        step, r = getattr(self, name), random.Random(seed)
        while not stop.is_set():
            try:
                step(session, r)
                self.acknowledged[name[3:]] += 1
            except Lost as e:
                failures.append(e)
                return
            except Exception:  # the server was killed
                return

    def run(self, server, seconds):
        cluster = server.cluster(schema_metadata_enabled=False, token_metadata_enabled=False)
        session, stop, failures = cluster.connect(), threading.Event(), []
        texts = {"insert": "INSERT INTO crash.t (p, v, pad) VALUES (?, ?, ?)", "update": "UPDATE crash.t SET v = ? WHERE p = ?", "delete": "DELETE FROM crash.t WHERE p = ?",
                 "count": "UPDATE crash.n SET n = n + 1 WHERE p = ?", "b1": "INSERT INTO crash.b1 (p, id) VALUES (?, ?)", "b2": "INSERT INTO crash.b2 (p, id) VALUES (?, ?)"}
        self.statements = {name: session.prepare(text) for name, text in texts.items()}
        for s in self.statements.values():
            s.retry_policy = FallthroughRetryPolicy()
        names = [n for n in dir(self) if n.startswith("do_")]
        clients = [threading.Thread(target=self._client, args=(n, session, self.random.random(), stop, failures)) for n in names]
        for c in clients:
            c.start()
        time.sleep(seconds)
        server.kill9()
        stop.set()
        for c in clients:
            c.join()
        cluster.shutdown()
        if failures:
            raise failures[0]

    def check(self, server):
        with server.cluster(schema_metadata_enabled=False, token_metadata_enabled=False) as cluster:
            session = cluster.connect()
            session.default_fetch_size = 5000
            self.rows.check("row", {r.p: r.v for r in session.execute("SELECT p, v FROM crash.t")})
            self.lwt.check("condition", {r.p: r.v for r in session.execute("SELECT p, v FROM crash.lwt")})
            for row in session.execute("SELECT p, n FROM crash.n"):
                if not self.added[row.p] <= row.n <= self.added_tried[row.p]:
                    raise Lost(f"counter {row.p} is {row.n}; acknowledged {self.added[row.p]}, tried {self.added_tried[row.p]}")
                self.added[row.p] = self.added_tried[row.p] = row.n
            self._check_batches(session)
            self._check_schema(session)

    def _check_batches(self, session):
        found = Counter(r.id for t in ("b1", "b2") for r in session.execute(f"SELECT id FROM crash.{t}"))
        torn = {number: n for number, n in found.items() if n != 6}
        if torn or not self.batches <= found.keys() <= self.batches_tried:
            raise Lost(f"batches: torn {torn}, lost {sorted(self.batches - found.keys())[:5]}, of nobody {sorted(found.keys() - self.batches_tried)[:5]}")
        self.batches = set(found)
        self.batches_tried = set(found)

    def _check_schema(self, session):
        tables = {r.table_name for r in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'crash'")}
        self.tables.check("table", {name: True for name in tables})
        columns = {(r.table_name, r.column_name): True for r in session.execute("SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'crash'")}
        for key in [k for k in self.columns.may if k[0] not in tables]:
            del self.columns.may[key]  # went with its table
        self.columns.check("column", columns)
        for name in tables:
            session.execute(f"SELECT * FROM crash.{name} LIMIT 1")


def crash(kills, seed, folder, threads=2, say=print):
    """Kills a server so often. Lost: an acknowledged effect is."""
    server, load = Server(folder, "--mode", "cassandra", "--control", "on", "--threads", str(threads)), Load(seed)
    server.start()
    try:
        with server.cluster(schema_metadata_enabled=False) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            for table in TABLES:
                session.execute(table)
        for kill in range(1, kills + 1):
            load.run(server, load.random.uniform(0.02, 0.6))
            server.start()
            try:
                load.check(server)
            except Lost as e:
                raise Lost(f"after kill {kill} (seed {seed}): {e}\n{server.log_tail()}") from e
            if kill % 10 == 0 or kill == kills:
                say(f"{kill} kills; acknowledged and found: " + ", ".join(f"{n} {name}" for name, n in sorted(load.acknowledged.items())))
        server.stop()
    finally:
        server.kill9()
    return load.acknowledged


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        print(f"seed {args.seed}")
        try:
            crash(args.kills, args.seed, folder, args.threads, lambda text: print(text, flush=True))
        except Lost as e:
            print(f"LOST: {e}")
            return 1
    print(f"{args.kills} kills, nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
