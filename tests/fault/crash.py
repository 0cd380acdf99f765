#!/usr/bin/env python3
"""Kills a server (SIGKILL) again and again, at random moments under mixed load and while it starts, and checks every acknowledged effect against what clients have noted.

    build/venv/bin/python tests/fault/crash.py --kills 100 [--seed N] [--threads N] [--longest SECONDS] [--mode keyspaces] [-- FLAG...]

The load: inserts, updates and deletes of rows, slices and partitions, rows that expire, light-weight transactions, logged batches over two tables, counters, large rows, DDL, tables that are truncated or
dropped and made again, histories (point-in-time recovery) that begin, are restored and end, keyspaces that are
put back, flushes with the compactions that follow, and a table that is dropped, truncated, altered and restored from
while others write to it: of its rows nothing is known but that none is left where no table is. A client knows
of each key what was acknowledged last and what it has tried since; after the restart one of these stands there, a batch is there whole or not at all, and a counter lies between what was
acknowledged and what was tried. What the server says is stored is what is read, and `tally verify` finds nothing in what a kill left. Flags go to the server: `-- --memtables 1` flushes and compacts all the time,
large ones leave logs that go through other memtables at a start. Prints a line for every ten kills and the sums; exits with 1 when an effect is lost.
"""
import argparse
import itertools
import logging
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from cassandra import InvalidRequest  # noqa: E402
from cassandra.concurrent import execute_concurrent_with_args  # noqa: E402
from cassandra.policies import FallthroughRetryPolicy  # noqa: E402
from cassandra.query import BatchStatement, BatchType, SimpleStatement  # noqa: E402

from tally_server import TALLY, Server, create_keyspace, create_table, eventually, status_of  # noqa: E402

KEYS = 40  # of each client
TABLES = (("crash", "t", "p int PRIMARY KEY, v int, pad text"), ("crash", "lwt", "p int PRIMARY KEY, v int"), ("crash", "n", "p int PRIMARY KEY, n counter"),
          ("crash", "b1", "p int, id int, PRIMARY KEY (p, id)"), ("crash", "b2", "p int, id int, PRIMARY KEY (p, id)"), ("crash", "slices", "p int, c int, v int, w int, PRIMARY KEY (p, c)"),
          ("crash", "large", "p int PRIMARY KEY, v int, pad blob"), ("crash", "past", "p int PRIMARY KEY, v int"), ("crash", "emptied", "p int, c int, v int, pad text, PRIMARY KEY (p, c)"),
          ("saved", "t", "p int PRIMARY KEY, v int"),
          ("crash", "contested", "p int, c int, v int, pad text, PRIMARY KEY (p, c)"),
          ("crash", "mortal", "p int PRIMARY KEY, v int"))
EMPTIED, CONTESTED = (f"CREATE TABLE crash.{name} ({columns})" for _, name, columns in (TABLES[8], TABLES[10]))


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

    def tries_all(self, values):
        for key, value in values.items():
            self.tries(key, value)

    def acknowledged_all(self, values):
        for key, value in values.items():
            self.acknowledged(key, value)

    def known(self):
        """What stands there, while no write is under way."""
        return {key: may[-1] for key, may in self.may.items() if may[-1] != self.initial}

    def check(self, what, found):
        """found: of each key what stands there now, from which the next round begins."""
        for key, may in self.may.items():
            value = found.get(key, self.initial)
            if value not in may:
                raise Lost(f"{what} {key}: found {value!r}, acknowledged or tried: {may}")
            self.may[key] = [value]


def define(session, statement, name):
    """DDL on a table; returns when it is done."""
    session.execute(statement)
    eventually(lambda: status_of(session, "crash", name) in (None, "ACTIVE"))


def keep_history(session, status="enabled", name="past"):
    recovery = f"{{'point_in_time_recovery': {{'status': '{status}'}}}}"
    define(session, f"ALTER TABLE crash.{name} WITH CUSTOM_PROPERTIES = {recovery}", name)


class Load:
    """Its clients are threads of functions named do_*; each step is one request, which is noted before it is sent and after it is answered."""

    def __init__(self, seed, mode, server):
        self.saves_states = server.has_history
        self.replays_late = server.store.replays_late
        self.has_history = mode == "keyspaces" and server.has_history
        self.random = random.Random(seed)
        self.rows, self.lwt, self.tables, self.columns = Register(), Register(), Register(False), Register(False)
        self.added, self.added_tried = Counter(), Counter()
        self.batches, self.batches_tried = set(), set()
        self.slices, self.mortal, self.large, self.past, self.saved, self.emptied = (Register() for _ in range(6))
        self.restored = {}    # tables of what was restored, and the rows they must have
        self.states = [None]  # what the saved keyspace may hold; None: there may be none
        self.dies = {}        # values of rows that live for a second, and when they are gone
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

    def do_slices(self, session, r):
        """Rows of few partitions, of which a statement changes one, several or all."""
        p, c, self.version = r.randrange(4), r.randrange(10), self.version + 1
        kind = r.choice(["insert", "insert", "insert", "column", "row", "slice", "partition"])
        keys = {"slice": [(p, i) for i in range(c, min(c + 4, 10))], "partition": [(p, i) for i in range(10)]}.get(kind, [(p, c)])
        v, w = self.slices.may.get((p, c), [None])[-1] or (None, None)
        value = {"insert": (self.version, self.version), "column": (self.version, w)}.get(kind)
        if kind == "column" and (v, w) == (None, None):
            return  # an UPDATE alone makes a row that has no marker
        self.slices.tries_all(dict.fromkeys(keys, value))
        if kind == "insert":
            session.execute(self.statements["slice insert"], (p, c, *value))
        elif kind == "column":
            session.execute(self.statements["slice column"], (value[0], p, c))
        else:
            where = {"row": f" AND c = {c}", "slice": f" AND c >= {c} AND c < {c + 4}", "partition": ""}[kind]
            session.execute(f"DELETE FROM crash.slices WHERE p = {p}{where}")
        self.slices.acknowledged_all(dict.fromkeys(keys, value))

    def do_mortal(self, session, r):
        """Half of them live for a second."""
        key, ttl, self.version = r.randrange(KEYS), r.choice([1, 100_000]), self.version + 1
        value = self.version
        if ttl == 1:
            self.dies[value] = float("inf")
            self.mortal.tries(key, None)
        self.mortal.tries(key, value)
        session.execute(self.statements["mortal"], (key, value, ttl))
        self.mortal.acknowledged(key, value)
        if ttl == 1:
            self.dies[value] = time.monotonic() + 2.5
            self.mortal.tries(key, None)

    def do_large(self, session, r):
        """Several at once, so that a log is long when the server is killed."""
        self.version += 1
        rows = {key: self.version for key in r.sample(range(KEYS), 12)}
        self.large.tries_all(rows)
        execute_concurrent_with_args(session, self.statements["large"], [(key, value, bytes(r.randrange(40_000))) for key, value in rows.items()])
        self.large.acknowledged_all(rows)

    def do_emptied(self, session, r):
        """A table that is filled, and truncated or dropped and made again."""
        self.version += 1
        gone, chance = dict.fromkeys(self.emptied.may), r.random()
        if chance < 0.85:
            rows = {(r.randrange(300), c): self.version for c in range(16)}
            self.emptied.tries_all(rows)
            execute_concurrent_with_args(session, session.prepare("INSERT INTO crash.emptied (p, c, v, pad) VALUES (?, ?, ?, ?)"), [(*key, value, "x" * 200) for key, value in rows.items()])
            self.emptied.acknowledged_all(rows)
            return
        self.emptied.tries_all(gone)
        define(session, "TRUNCATE crash.emptied" if chance < 0.93 else "DROP TABLE crash.emptied", "emptied")
        self.emptied.acknowledged_all(gone)
        if chance >= 0.93:
            define(session, EMPTIED, "emptied")

    def do_contested(self, session, r):
        """A table that changes and goes while do_contested_writes writes to it."""
        kind = r.choice(["truncate", "drop", "add", "restore"])
        self.version += 1
        number = self.version  # other clients count on
        if kind == "truncate":
            define(session, "TRUNCATE crash.contested", "contested")
        elif kind == "add":
            define(session, f"ALTER TABLE crash.contested ADD c{number} int", "contested")
            define(session, f"ALTER TABLE crash.contested DROP c{number}", "contested")
        elif kind == "drop" or not self.has_history:
            define(session, "DROP TABLE crash.contested", "contested")
            define(session, CONTESTED, "contested")
        else:
            keep_history(session, name="contested")
            try:
                define(session, f"RESTORE TABLE crash.copy{number} FROM TABLE crash.contested", f"copy{number}")
            except InvalidRequest:  # it has no history yet
                return
            define(session, f"DROP TABLE crash.copy{number}", f"copy{number}")
        time.sleep(r.uniform(0, 0.1))

    def do_contested_writes(self, session, r):
        """Many at once; what is refused because the table is not there is no matter."""
        rows = [(r.randrange(50), c, c, "x" * r.randrange(8000)) for c in range(32)]
        done = execute_concurrent_with_args(session, self.statements["contested"], rows, concurrency=32,
                                            raise_on_first_error=False)
        if not any(ok for ok, _ in done):
            session.execute("SELECT key FROM system.local")  # whether the server was killed

    def do_past(self, session, r):
        """A table with a history, which is restored, ended and begun again."""
        key, chance, self.version = r.randrange(KEYS), r.random(), self.version + 1
        if chance < 0.85 or not self.has_history:
            value = self.version if r.random() < 0.8 else None
            self.past.tries(key, value)
            session.execute(*((self.statements["past"], (key, value)) if value else (f"DELETE FROM crash.past WHERE p = {key}",)))
            self.past.acknowledged(key, value)
        elif chance < 0.95:
            name = f"restored{self.version}"
            self.restored[name] = self.past.known()
            try:
                define(session, f"RESTORE TABLE crash.{name} FROM TABLE crash.past", name)
            except InvalidRequest:  # it has no history yet
                del self.restored[name]
                return
            self._check_restored(session, name)
        else:
            keep_history(session, "disabled")
            keep_history(session)

    def do_saved(self, session, r):
        """A keyspace whose state is saved and put back."""
        key, chance, self.version = r.randrange(KEYS), r.random(), self.version + 1
        if chance < 0.9 or (chance < 0.95 and self.states == [None]) or not self.saves_states:
            value = self.version
            self.saved.tries(key, value)
            session.execute(self.statements["saved"], (key, value))
            self.saved.acknowledged(key, value)
        elif chance < 0.95:
            for state in filter(None, self.states):
                self.saved.tries_all({key: state.get(key) for key in range(KEYS)})
            try:
                session.execute("UPDATE system_control.snapshots SET put_back = true WHERE name = 'keyspace'")
            except InvalidRequest:
                if None not in self.states:
                    raise
                self.states = [None]
                return
            found = {row.p: row.v for row in session.execute("SELECT p, v FROM saved.t")}
            if found not in self.states:
                raise Lost(f"the keyspace that was put back holds {found}, was saved with {self.states}")
            self.states = [found]
            self.saved.acknowledged_all({key: found.get(key) for key in range(KEYS)})
        else:
            self.states.append(self.saved.known())
            session.execute("INSERT INTO system_control.snapshots (name, keyspace_name) VALUES ('keyspace', 'saved')")
            self.states = self.states[-1:]

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
            define(session, f"DROP TABLE crash.{name}", name)
            self.tables.acknowledged(name, False)
        elif there and r.random() < 0.3:
            name = r.choice(there)
            column = (name, f"c{self.table}")
            self.table += 1
            self.columns.tries(column, True)
            define(session, f"ALTER TABLE crash.{name} ADD {column[1]} int", name)
            self.columns.acknowledged(column, True)
        else:
            self.table += 1
            name = f"made{self.table}"
            self.tables.tries(name, True)
            define(session, f"CREATE TABLE crash.{name} (p int PRIMARY KEY)", name)
            self.tables.acknowledged(name, True)

    def do_flushes(self, session, r):
        time.sleep(r.uniform(0, 0.1))
        if not self.saves_states:
            session.execute("SELECT key FROM system.local")  # whether the server was killed
            return
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
            except InvalidRequest as e:
                failures.append(Lost(f"{name} was refused: {e}"))
                return
            except Exception:  # the server was killed
                return

    def run(self, server, seconds):
        cluster = server.cluster(schema_metadata_enabled=False, token_metadata_enabled=False)
        session, stop, failures = cluster.connect(), threading.Event(), []
        texts = {"insert": "INSERT INTO crash.t (p, v, pad) VALUES (?, ?, ?)", "update": "UPDATE crash.t SET v = ? WHERE p = ?", "delete": "DELETE FROM crash.t WHERE p = ?",
                 "count": "UPDATE crash.n SET n = n + 1 WHERE p = ?", "b1": "INSERT INTO crash.b1 (p, id) VALUES (?, ?)", "b2": "INSERT INTO crash.b2 (p, id) VALUES (?, ?)",
                 "slice insert": "INSERT INTO crash.slices (p, c, v, w) VALUES (?, ?, ?, ?)", "slice column": "UPDATE crash.slices SET v = ? WHERE p = ? AND c = ?",
                 "mortal": "INSERT INTO crash.mortal (p, v) VALUES (?, ?) USING TTL ?", "large": "INSERT INTO crash.large (p, v, pad) VALUES (?, ?, ?)",
                 "past": "INSERT INTO crash.past (p, v) VALUES (?, ?)", "saved": "INSERT INTO saved.t (p, v) VALUES (?, ?)",
                 "contested": "INSERT INTO crash.contested (p, c, v, pad) VALUES (?, ?, ?, ?)"}
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
            for name in ("large", "past"):
                getattr(self, name).check(name, {r.p: r.v for r in session.execute(f"SELECT p, v FROM crash.{name}")})
            self.slices.check("row of a slice", {(r.p, r.c): (r.v, r.w) for r in session.execute("SELECT p, c, v, w FROM crash.slices")})
            self._check_mortal(session)
            self.saved.check("row of a keyspace that is put back", {r.p: r.v for r in session.execute("SELECT p, v FROM saved.t")})
            self._check_stored(session)

    def _check_restored(self, session, name):
        """And takes it away."""
        found = {r.p: r.v for r in session.execute(f"SELECT p, v FROM crash.{name}")}
        if found != self.restored[name]:
            raise Lost(f"{name} holds {found}, was restored from {self.restored[name]}")
        define(session, f"DROP TABLE crash.{name}", name)

    def _check_mortal(self, session):
        """What has expired does not come back."""
        found, now = {r.p: r.v for r in session.execute("SELECT p, v FROM crash.mortal")}, time.monotonic()
        self.mortal.check("row that expires", found)
        for key, value in found.items():
            if value in self.dies:
                if now > self.dies[value]:
                    raise Lost(f"row {key} has expired, and is there: {value}")
                self.dies[value] = min(self.dies[value], now + 2.5)
                self.mortal.tries(key, None)

    def _check_stored(self, session):
        """What the server says it stores is what is read."""
        for keyspace, name, _ in TABLES[:-1]:  # of these nothing expires
            said = session.execute("SELECT rows FROM system_metering.storage WHERE keyspace_name = %s AND table_name = %s", (keyspace, name)).one().rows
            found = sum(1 for _ in session.execute(f"SELECT * FROM {keyspace}.{name}"))
            if said != found:
                raise Lost(f"{name} is said to have {said} rows, and has {found}")

    def _check_batches(self, session):
        def read():
            found = Counter(r.id for t in ("b1", "b2") for r in session.execute(f"SELECT id FROM crash.{t}"))
            return found, {number: n for number, n in found.items() if n != 6}

        if self.replays_late:
            eventually(lambda: not read()[1])
        found, torn = read()
        if torn or not self.batches <= found.keys() <= self.batches_tried:
            raise Lost(f"batches: torn {torn}, lost {sorted(self.batches - found.keys())[:5]}, of nobody {sorted(found.keys() - self.batches_tried)[:5]}")
        self.batches = set(found)
        if not self.replays_late:
            self.batches_tried = set(found)

    def _check_schema(self, session):
        eventually(lambda: {r.status for r in session.execute("SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = 'crash'")} == {"ACTIVE"})
        tables = {r.table_name for r in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'crash'")}
        self.tables.check("table", {name: True for name in tables})
        columns = {(r.table_name, r.column_name): True for r in session.execute("SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'crash'")}
        for key in [k for k in self.columns.may if k[0] not in tables]:
            del self.columns.may[key]  # went with its table
        self.columns.check("column", columns)
        if "emptied" not in tables:
            define(session, EMPTIED, "emptied")
        if "contested" not in tables:
            define(session, CONTESTED, "contested")
        for name in [t for t in tables if t.startswith("copy")]:
            tables.remove(name)
            define(session, f"DROP TABLE crash.{name}", name)
        self.emptied.check("row of a table that is emptied", {(r.p, r.c): r.v for r in session.execute("SELECT p, c, v FROM crash.emptied")})
        restored = self.restored.keys() & tables
        for name in restored:
            self._check_restored(session, name)
        for name in tables - restored:
            session.execute(f"SELECT * FROM crash.{name} LIMIT 1")


def start_again(server, r):
    """What the kill left is sound, and of dropped tables nothing is in it but what a start frees; some starts are
    killed, too, while what is in the log is taken in."""
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        server.start_and_kill(r.uniform(0.005, 0.15))
    looked = subprocess.run([TALLY, "verify", *server.place()], capture_output=True, text=True, timeout=120)
    if looked.returncode:
        raise Lost(f"tally verify: {looked.stdout[-1500:]}{looked.stderr}")
    server.start()


def crash(kills, seed, folder, threads=2, say=print, mode="cassandra", flags=(), longest=0.6, kinds=()):
    """Kills a server so often, and more often until something of each of the kinds was acknowledged. Lost: an acknowledged effect is."""
    server = Server(folder, "--mode", mode, "--ddl-delay", "none", "--control", "on", "--threads", str(threads), *flags)
    load = Load(seed, mode, server)
    server.start()
    try:
        with server.cluster(schema_metadata_enabled=False) as cluster:
            session = cluster.connect()
            for keyspace in ("crash", "saved"):
                create_keyspace(session, keyspace)
            for keyspace, name, columns in TABLES:
                create_table(session, keyspace, name, columns)
            if load.has_history:
                keep_history(session)
        for kill in itertools.count(1):
            load.run(server, load.random.uniform(0.02, longest))
            try:
                start_again(server, load.random)
                load.check(server)
            except Lost as e:
                raise Lost(f"after kill {kill} (seed {seed}): {e}\n{server.log_tail()}") from e
            ends = kill == 20 * kills or kill >= kills and all(load.acknowledged[kind] for kind in kinds)
            if kill % 10 == 0 or ends:
                say(f"{kill} kills; acknowledged and found: " + ", ".join(f"{n} {name}" for name, n in sorted(load.acknowledged.items())))
            if ends:
                break
        server.stop()
    finally:
        server.kill9()
    return load.acknowledged


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--longest", type=float, default=0.6, help="seconds of load before a kill, at most")
    parser.add_argument("--mode", default="cassandra", help="keyspaces: with histories")
    parser.add_argument("flags", nargs="*", help="behind --: of the server")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        print(f"seed {args.seed}")
        try:
            crash(args.kills, args.seed, folder, args.threads, lambda text: print(text, flush=True), args.mode, args.flags, args.longest)
        except Lost as e:
            print(f"LOST: {e}")
            return 1
    print(f"{args.kills} kills, nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
