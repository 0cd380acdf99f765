"""kill -9 in the middle of writes: every acknowledged row, and every acknowledged change of a definition, is there after the restart."""
import random
import subprocess
import threading

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType

from tally_server import TALLY, create_keyspace, create_table, eventually, let_pass

ROUNDS = 4
WRITERS = 8


class Writers:
    """Writes rows from several threads and remembers each one that was acknowledged."""

    def __init__(self, server, first_id):
        self.cluster = server.cluster()
        self.session = self.cluster.connect()
        self.insert = self.session.prepare("INSERT INTO crash.rows (pk, ck, v, st) VALUES (?, ?, ?, ?)")
        self.next_id = first_id
        self.lock = threading.Lock()
        self.acknowledged = {}
        self.stop = False
        self.threads = [threading.Thread(target=self.write) for _ in range(WRITERS)]
        for t in self.threads:
            t.start()

    def write(self):
        while not self.stop:
            with self.lock:
                row, self.next_id = self.next_id, self.next_id + 1
            value = f"value {row} {random.random()}"
            try:
                self.session.execute(self.insert, (row % 97, row, value, row))
            except Exception:  # the server was killed: this row was not acknowledged
                return
            with self.lock:
                self.acknowledged[row] = value

    def finish(self):
        self.stop = True
        for t in self.threads:
            t.join()
        self.cluster.shutdown()
        return self.acknowledged


def read_all(server):
    with server.cluster() as cluster:
        return {r.ck: r.v for r in cluster.connect().execute("SELECT ck, v FROM crash.rows")}


@pytest.mark.parametrize("threads, durability", [(1, "fsync"), (2, "fsync"), (1, "periodic"), (1, "none")])
def test_every_acknowledged_write_survives_kill9(new_server, threads, durability):
    """Whatever the durability: a killed process leaves to the operating system what it has acknowledged."""
    server = new_server("--ddl-delay", "none", "--threads", str(threads), "--durability", durability)
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "rows", "pk int, ck int, v text, st int static, PRIMARY KEY (pk, ck)")
    expected = {}
    for number in range(ROUNDS):
        writers = Writers(server, first_id=number * 1_000_000)
        enough = random.randrange(51, 2000)
        eventually(lambda: len(writers.acknowledged) > enough)
        server.kill9()
        acknowledged = writers.finish()
        assert len(acknowledged) > 50, f"round {number}: only {len(acknowledged)} writes were acknowledged"
        expected.update(acknowledged)
        server.start()
        found = read_all(server)
        lost = [row for row, value in expected.items() if found.get(row) != value]
        assert not lost, f"round {number}: {len(lost)} of {len(expected)} acknowledged rows are lost: {lost[:10]}"
    server.stop()


def test_ddl_and_prepared_data_survive_kill9(new_server):
    server = new_server("--ddl-delay", "none")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "t", "pk int PRIMARY KEY, v text")
        session.execute("INSERT INTO crash.t (pk, v) VALUES (1, 'kept')")
        session.execute("ALTER TABLE crash.t ADD extra int")
        create_table(session, "crash", "dropped", "pk int PRIMARY KEY")
        session.execute("DROP TABLE crash.dropped")
    server.kill9()
    server.start()
    with server.cluster() as cluster:
        session = cluster.connect()
        row = session.execute("SELECT * FROM crash.t").one()
        assert (row.pk, row.v, row.extra) == (1, "kept", None)
        tables = {r.table_name for r in session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'crash'")}
        assert tables == {"t"}
    server.stop()


class Changer:
    """Changes definitions while rows are written: of the writers' table, and of tables, types and keyspaces that come and go beside it with writes of their own.
    What was acknowledged is in self.there (None: it is gone); the change that was under way is not in it."""

    def __init__(self, server, seed, there):
        self.cluster, self.rng, self.n, self.there, self.under_way, self.changes = server.cluster(), random.Random(seed), seed * 1000, there, None, 0
        self.session = self.cluster.connect()
        self.thread = threading.Thread(target=self.change)
        self.thread.start()

    def statements(self):
        """(what changes, statement, whether it is there afterwards)."""
        self.n += 1
        n, column, grace = self.n, f"c{self.n}", str(self.rng.randrange(1, 10 ** 6))
        return [(("column", column), f"ALTER TABLE crash.rows ADD {column} int", True),
                (("type", f"u{n}"), f"CREATE TYPE crash.u{n} (f int)", True),
                (("keyspace", f"k{n}"), f"CREATE KEYSPACE k{n} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}", True),
                (("table", f"t{n}"), f"CREATE TABLE crash.t{n} (p int, c int, v frozen<u{n}>, PRIMARY KEY (p, c))", True),
                (("row", f"t{n}"), f"INSERT INTO crash.t{n} (p, c, v) VALUES (1, 2, {{f: {n}}})", True),
                (("grace", "rows"), f"ALTER TABLE crash.rows WITH gc_grace_seconds = {grace}", grace),
                (("row", f"t{n}"), f"TRUNCATE crash.t{n}", False),
                *([(("column", column), f"ALTER TABLE crash.rows DROP {column}", False)] if n % 2 else []),
                *([(("table", f"t{n}"), f"DROP TABLE crash.t{n}", False), (("type", f"u{n}"), f"DROP TYPE crash.u{n}", False),
                   (("keyspace", f"k{n}"), f"DROP KEYSPACE k{n}", False)] if n % 3 else [])]

    def change(self):
        while True:
            for what, statement, value in self.statements():
                self.under_way = what
                try:
                    self.session.execute(statement)
                except Exception:  # the server was killed
                    return
                self.there[what], self.changes = value, self.changes + 1

    def finish(self):
        self.thread.join()
        self.cluster.shutdown()
        return self.under_way


def definitions(session):
    """What Changer changes, as the server has it."""
    where = "WHERE keyspace_name = 'crash'"
    found = {("column", r.column_name): True for r in session.execute(f"SELECT column_name FROM system_schema.columns {where} AND table_name = 'rows'")}
    found |= {("type", r.type_name): True for r in session.execute(f"SELECT type_name FROM system_schema.types {where}")}
    found |= {("keyspace", r.keyspace_name): True for r in session.execute("SELECT keyspace_name FROM system_schema.keyspaces")}
    for r in session.execute(f"SELECT table_name, gc_grace_seconds FROM system_schema.tables {where}"):
        found["table", r.table_name] = True
        if r.table_name == "rows":
            found["grace", "rows"] = str(r.gc_grace_seconds)
        else:
            found["row", r.table_name] = bool(session.execute(f"SELECT v FROM crash.{r.table_name} WHERE p = 1 AND c = 2").one())
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_acknowledged_rows_and_definitions_survive_kill9_together(new_server, threads):
    server = new_server("--mode", "cassandra", "--threads", str(threads))
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "rows", "pk int, ck int, v text, st int static, PRIMARY KEY (pk, ck)")
    rows, there = {}, {}
    for number in range(1, ROUNDS + 1):
        writers, changer = Writers(server, first_id=number * 1_000_000), Changer(server, number, there)
        enough = random.randrange(12, 40)
        eventually(lambda: changer.changes > enough and len(writers.acknowledged) > 50)
        server.kill9()
        rows.update(writers.finish())
        under_way = changer.finish()
        server.start()
        found = read_all(server)
        lost = [row for row, value in rows.items() if found.get(row) != value]
        assert not lost, f"round {number}: {len(lost)} of {len(rows)} acknowledged rows are lost: {lost[:10]}"
        with server.cluster() as cluster:
            defined = definitions(cluster.connect())
        gone = {name for (kind, name), value in there.items() if kind == "table" and not value}
        expected = {what: value and what[1] not in gone and value for what, value in there.items() if what != under_way}
        wrong = {what: (value, defined.get(what, False)) for what, value in expected.items() if defined.get(what, False) != value}
        assert not wrong, f"round {number}: acknowledged, and what is there: {wrong}; under way: {under_way}"
        if under_way in there:
            there[under_way] = defined.get(under_way, False)
    server.stop()
    looked = subprocess.run([TALLY, "verify", *server.place()], capture_output=True, text=True, timeout=300)
    assert looked.returncode == 0, looked.stdout


def count_until_killed(session, batches):
    """Counter batches, each adding one to every counter of one partition. Returns how many were acknowledged."""
    done = 0
    while True:
        try:
            session.execute(batches[done % len(batches)])
        except Exception:  # the server was killed
            return done
        done += 1


def test_a_counter_batch_survives_kill9_whole_or_not_at_all(new_server):
    counters, partitions, writers = 150, 3, 6
    server = new_server("--ddl-delay", "none", "--threads", "2")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "n", "p int, c int, a counter, PRIMARY KEY (p, c)")
    acknowledged = 0
    for number in range(ROUNDS):
        cluster = server.cluster()
        session = cluster.connect()
        update = session.prepare("UPDATE crash.n SET a = a + 1 WHERE p = ? AND c = ?")
        batches = []
        for p in range(partitions):
            batches.append(BatchStatement(BatchType.COUNTER))
            for c in range(counters):
                batches[p].add(update, (p, c))
        totals = []
        threads = [threading.Thread(target=lambda: totals.append(count_until_killed(session, batches))) for _ in range(writers)]
        for t in threads:
            t.start()
        let_pass(random.uniform(0.3, 0.8))
        server.kill9()
        for t in threads:
            t.join()
        cluster.shutdown()
        acknowledged += sum(totals)
        server.start()
        with server.cluster() as again:
            found = {(r.p, r.c): r.a for r in again.connect().execute("SELECT p, c, a FROM crash.n")}
        for p in range(partitions):
            values = {found.get((p, c), 0) for c in range(counters)}  # none yet where the kill came first
            assert len(values) == 1, f"round {number}: half a batch in partition {p}: {found}"
        total = sum(found.get((p, 0), 0) for p in range(partitions))
        assert acknowledged <= total <= acknowledged + writers * (number + 1)
    server.stop()


BATCH_TABLES, BATCH_PARTITIONS = 2, 4


def write_batches(session, inserts, first, acknowledged, stop):
    """Logged batches, each a row in every partition of every table; those that were answered go to acknowledged."""
    n = first
    while not stop.is_set():
        n += 1
        batch = BatchStatement(BatchType.LOGGED)
        for insert in inserts:
            for p in range(BATCH_PARTITIONS):
                batch.add(insert, (p, n, "x" * 200))
        try:
            session.execute(batch)
        except Exception:  # the server was killed
            return
        acknowledged.add(n)


def rows_of_batches(server):
    """How many rows there are of each batch."""
    found = {}
    with server.cluster() as cluster:
        session = cluster.connect()
        for t in range(BATCH_TABLES):
            for row in session.execute(f"SELECT id FROM crash.batch{t}"):
                found[row.id] = found.get(row.id, 0) + 1
    return found


def torn_batches(found):
    return {i: n for i, n in found.items() if n != BATCH_TABLES * BATCH_PARTITIONS}


@pytest.mark.parametrize("mode", ["keyspaces", "cassandra"])
def test_logged_batch_over_partitions_and_tables_is_whole_or_nothing_after_kill9(new_server, mode):
    server = new_server("--mode", mode, "--ddl-delay", "none", "--threads", "2")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        for t in range(BATCH_TABLES):
            create_table(session, "crash", f"batch{t}", "p int, id int, v text, PRIMARY KEY (p, id)")
    acknowledged, first = set(), 0
    for _ in range(3):
        cluster, stop = server.cluster(), threading.Event()
        session = cluster.connect()
        inserts = [session.prepare(f"INSERT INTO crash.batch{t} (p, id, v) VALUES (?, ?, ?)") for t in range(BATCH_TABLES)]
        writers = [threading.Thread(target=write_batches, args=(session, inserts, first + 1_000_000 * i, acknowledged, stop)) for i in range(WRITERS)]
        for w in writers:
            w.start()
        before = len(acknowledged)
        enough = before + random.randrange(21, 200)
        eventually(lambda: len(acknowledged) > enough)
        server.kill9()
        stop.set()
        for w in writers:
            w.join()
        cluster.shutdown()
        server.start()
        first += 100_000
        if server.store.replays_late:
            eventually(lambda: not torn_batches(rows_of_batches(server)))
        found = rows_of_batches(server)
        torn = torn_batches(found)
        assert not torn, f"batches that are neither there nor gone: {torn}"
        assert acknowledged <= found.keys()
    assert len(acknowledged) > 50


def test_a_server_at_rest_leaves_little_to_read_again(new_server):
    """Rows of the log are read one by one when a server starts after it was killed; those of one that rests are in table files by then."""
    server = new_server("--ddl-delay", "none", "--memtables", "64")
    rows, value = 400, "x" * 10_000
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "rows", "pk int, ck int, v text, st int static, PRIMARY KEY (pk, ck)")
        insert = session.prepare("INSERT INTO crash.rows (pk, ck, v, st) VALUES (?, ?, ?, ?)")
        execute_concurrent_with_args(session, insert, [(row % 7, row, value, row) for row in range(rows)], concurrency=32)

    def logged():
        return sum(f.stat().st_size for f in (server.folder / "data" / "rows").glob("*.log"))
    assert logged() > rows * len(value) // 2
    eventually(lambda: logged() < 100_000)
    server.kill9()
    server.start()
    assert set(read_all(server)) == set(range(rows))


# A server at rest leaves an eighth of a memtable in the log: 8 MB. A log that makes several files is longer than that, and stays only if nothing is synced.
@pytest.mark.parametrize("memtables, durability", [(256, "fsync"), (32, "none")])
def test_rows_of_a_long_log_are_there_after_kill9(new_server, memtables, durability):
    """A log of more than 2 MB is taken into table files before the store is opened: rows that were written, added to and deleted are what they were, and none of it is taken from the log again."""
    server = new_server("--mode", "cassandra", "--memtables", str(memtables), "--durability", durability)
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "crash")
        create_table(session, "crash", "kept", "p int, c int, v text, w int, n set<int>, PRIMARY KEY (p, c)")
        insert = session.prepare("INSERT INTO crash.kept (p, c, v) VALUES (?, ?, ?)")
        execute_concurrent_with_args(session, insert, [(i % 7, i, f"{i} " + "x" * 3000) for i in range(1500)])
        add = session.prepare("UPDATE crash.kept SET w = ?, n = n + ? WHERE p = ? AND c = ?")
        for turn in range(3):
            execute_concurrent_with_args(session, add, [(i + turn, {i, turn}, i % 7, i) for i in range(0, 1500, 2)])
        execute_concurrent_with_args(session, session.prepare("DELETE FROM crash.kept WHERE p = ? AND c = ?"), [(i % 7, i) for i in range(0, 1500, 5)])
        session.execute("DELETE FROM crash.kept WHERE p = 6")
        session.execute("DELETE FROM crash.kept WHERE p = 5 AND c > 700")
        session.execute("INSERT INTO crash.kept (p, c, v) VALUES (6, 6, 'again')")
        before = sorted(session.execute("SELECT p, c, v, w, n, writetime(v) FROM crash.kept"))
    assert len(before) > 500 and sum(f.stat().st_size for f in server.folder.glob("data/rows/*.log")) > 3 << 20
    for kill in range(2):
        server.kill9()
        server.start()
        with server.cluster() as cluster:
            assert sorted(cluster.connect().execute("SELECT p, c, v, w, n, writetime(v) FROM crash.kept")) == before
        assert server.log.read_text().count("of the log are in table files") == 1, kill
    server.stop()
