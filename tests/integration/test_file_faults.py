"""Files that fail and power cuts: writes refuse clearly, reads go on, nothing that was acknowledged is lost, and the server recovers by itself where it can.

TALLYTEST_ALL_FAULTS=1 takes every call and every moment instead of some of them."""
import errno
import json
import os
import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.metadata import Murmur3Token
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement

from file_faults import Disk, FaultyServer, build_library
from tally_server import Server, eventually, let_pass

ALL = os.environ.get("TALLYTEST_ALL_FAULTS") == "1"
PERIOD = 10  # seconds, of --durability periodic: engine/front/commit.c, README


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_library(tmp_path_factory.mktemp("library"))


def prepare(session):
    session.execute("CREATE KEYSPACE f WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE f.t (p int PRIMARY KEY, v text)")


def value_of(row):
    """Of some hundred bytes, and some of many sectors."""
    return f"value {row} " + "x" * (200 if row % 4 else 8000)


def insert(session, row):
    session.execute(SimpleStatement("INSERT INTO f.t (p, v) VALUES (%s, %s)", retry_policy=FallthroughRetryPolicy()), (row, value_of(row)))


def save_state(session):
    """Flushes the memtable into a file, makes links, syncs folders."""
    session.execute("INSERT INTO system_control.snapshots (name) VALUES ('s')", timeout=300)


def check(server, acknowledged, refused=()):
    with server.cluster(schema_metadata_enabled=False) as cluster:
        found = {r.p: r.v for r in cluster.connect().execute("SELECT p, v FROM f.t")} if acknowledged else {}
    lost = [row for row in acknowledged if found.get(row) != value_of(row)]
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged rows are lost: {lost[:10]}\n{server.log_tail()}"
    odd = [row for row, value in found.items() if value != value_of(row)]
    assert not odd, f"rows that nobody wrote: {odd[:10]}"


# ---- calls that fail ----

class Workload:
    """One client that writes, flushes now and then, and reads what it has written."""

    def __init__(self, session):
        self.session, self.row = session, 0
        self.acknowledged, self.refusals = [], []

    def write(self):
        self.row += 1
        try:
            insert(self.session, self.row)
            self.acknowledged.append(self.row)
            return True
        except Exception as e:
            self.refusals.append(e)
            return False

    def flush(self):
        try:
            save_state(self.session)
        except Exception as e:
            self.refusals.append(e)

    def read(self):
        row = self.acknowledged[len(self.acknowledged) // 2]
        assert self.session.execute(f"SELECT v FROM f.t WHERE p = {row}").one().v == value_of(row)

    def check_refusals(self):
        """Each is the protocol's error with words of what is wrong, and the connection stays."""
        for e in self.refusals:
            text = str(e)
            assert not isinstance(e, NoHostAvailable) or "Connection" not in text, text
            assert any(word in text for word in ("store", "storage", "log", "state", "disk", "synced", "No space", "I/O error")), text


def calls_of(server, work, call):
    """How many such calls a round of the workload makes."""
    before = server.calls(call)
    round_of(work)
    return server.calls(call) - before


def round_of(work):
    for i in range(8):
        work.write()
    work.flush()
    for i in range(4):
        work.write()
    if work.acknowledged:
        work.read()


def heals(work, seconds):
    """Writes are taken again without a restart."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if work.write():
            return True
        work.read()
        let_pass(0.1)
    return False


FAILING = [("write", errno.EIO, 1), ("write", errno.ENOSPC, 3), ("sync", errno.EIO, 1), ("sync", errno.ENOSPC, 2), ("open", errno.EIO, 1), ("rename", errno.EIO, 1)]


def test_nth_call_fails(library, tmp_path):
    """Side by side: what takes time is that servers wait before they try again."""
    with ThreadPoolExecutor(len(FAILING)) as pool:
        runs = [pool.submit(fail_each, library, tmp_path / f"{call}{error}", call, error, times) for call, error, times in FAILING]
    for run in runs:
        print(run.result())


def fail_each(library, folder, call, error, times):
    """The nth such call of a round of the workload fails, one n after the other."""
    folder.mkdir()
    server = FaultyServer(folder, library, "--mode", "cassandra", "--control", "on").start()
    healed = restarted = tripped = 0
    cluster = server.cluster(schema_metadata_enabled=False)
    work = Workload(cluster.connect())
    try:
        prepare(work.session)
        n = calls_of(server, work, call)
        assert n > 0 and not work.refusals, (n, work.refusals)
        for nth in range(1, n + 1, 1 if ALL else max(1, n // 2)):
            server.fail(call, nth, times, error)
            round_of(work)
            tripped += server.failed(call) > 0
            server.heal()
            assert server.alive(), server.log_tail()
            if heals(work, 30 if error == errno.ENOSPC else 2.5):
                healed += 1
                continue
            assert error != errno.ENOSPC, "a disk that was full for a moment needs no restart"
            restarted += 1
            cluster.shutdown()
            server.stop()
            server.start()
            cluster = server.cluster(schema_metadata_enabled=False)
            work.session = cluster.connect()
        assert tripped, "no call failed"
        work.check_refusals()
        cluster.shutdown()
        server.kill9()
        server.start(faulty=False)
        check(server, work.acknowledged)
        return f"{call} {errno.errorcode[error]}: {n} calls in a round, {tripped} rounds with a failure, {len(work.refusals)} refusals, {healed} healed, {restarted} started anew"
    finally:
        cluster.shutdown()
        server.kill9()


@pytest.mark.parametrize("error", (errno.EIO, errno.ENOSPC))
def test_after_one_failed_sync_of_the_log_writes_are_taken_again(library, tmp_path, error):
    """RocksDB does not hear of it: it would refuse writes after EIO until a restart, and after ENOSPC, too, when a write met the log before it had noted the error."""
    server = FaultyServer(tmp_path, library, "--mode", "cassandra").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        work = Workload(cluster.connect())
        prepare(work.session)

        def is_refused():
            """The sync that fails may be one of another file."""
            server.fail("sync", 1, 1, error)
            return not work.write()

        eventually(is_refused)
        server.heal()
        eventually(work.write)
    server.kill9()
    server.start(faulty=False)
    check(server, work.acknowledged)
    server.kill9()


# ---- reads that fail ----

ROWS, WIDE, ROW_BYTES = 400, 8, 8 << 10  # 25 MB in all, and 8 MB of them in memory
TRIES = 6  # until a statement meets what is not in memory
VALUES = {}  # what is in f.rows, by key


def content(p, c):
    if (p, c) not in VALUES:
        VALUES[p, c] = os.urandom(ROW_BYTES)
    return VALUES[p, c]


def fill(session):
    prepare(session)
    session.execute("CREATE TABLE f.rows (p int, c int, v blob, l list<int>, PRIMARY KEY (p, c))")
    session.execute("CREATE TABLE f.counts (p int PRIMARY KEY, n counter)")
    insert = session.prepare("INSERT INTO f.rows (p, c, v, l) VALUES (?, ?, ?, [1, 2])")
    for c in range(WIDE):
        execute_concurrent_with_args(session, insert, [(p, c, content(p, c)) for p in range(ROWS)])
        session.execute("UPDATE f.counts SET n = n + 1 WHERE p = 0")
        if c in (2, 5, 7):
            save_state(session)  # three files that lie over each other, too few to be compacted


class Reader:
    """Statements that read, each of partitions that are not in memory; an answer is the whole truth, or an error that says what is wrong."""

    def __init__(self, session):
        self.session, self.p, self.at = session, 0, 0
        self.errors = []

    def next(self):
        self.p = (self.p + 1) % (ROWS - 1)
        return self.p

    def ask(self, cql, *args):
        """The rows, or None: an error."""
        try:
            return list(self.session.execute(SimpleStatement(cql, fetch_size=100, retry_policy=FallthroughRetryPolicy()), args))
        except Exception as e:
            assert "the store cannot be read" in str(e), f"{cql}: {e}"
            self.errors.append(e)
            return None

    def row(self):
        p = self.next()
        got = self.ask("SELECT v FROM f.rows WHERE p = %s AND c = 3", p)
        assert got is None or [r.v for r in got] == [content(p, 3)]

    def partition(self, order="ASC"):
        p = self.next()
        got = self.ask(f"SELECT c, v FROM f.rows WHERE p = %s ORDER BY c {order}", p)
        clusterings = range(WIDE) if order == "ASC" else reversed(range(WIDE))
        assert got is None or [(r.c, r.v) for r in got] == [(c, content(p, c)) for c in clusterings]

    def backwards(self):
        self.partition("DESC")

    def several(self):
        p = self.next()
        got = self.ask("SELECT p, v FROM f.rows WHERE p IN (%s, %s) AND c = 7", p, p + 1)
        assert got is None or {r.p: r.v for r in got} == {q: content(q, 7) for q in (p, p + 1)}

    def arc(self):
        """A sixteenth of all tokens, and the partitions there."""
        self.at = (self.at + 1) % 16
        low, high = -(1 << 63) + (self.at << 60), -(1 << 63) + ((self.at + 1) << 60) - 1
        return low, high, [p for p in range(ROWS) if low < Murmur3Token.hash_fn(p.to_bytes(4, "big")) <= high]

    def counted(self):
        low, high, there = self.arc()
        got = self.ask("SELECT count(*) AS n FROM f.rows WHERE token(p) > %s AND token(p) <= %s AND c > 3 ALLOW FILTERING", low, high)
        assert got is None or got[0].n == len(there) * (WIDE - 4)

    def paged(self):
        low, high, there = self.arc()
        got = self.ask("SELECT p, c FROM f.rows WHERE token(p) > %s AND token(p) <= %s", low, high)
        assert got is None or sorted((r.p, r.c) for r in got) == [(p, c) for p in there for c in range(WIDE)]

    def condition(self):
        p = self.next()
        got = self.ask("UPDATE f.rows SET v = 0x00 WHERE p = %s AND c = 1 IF v = 0x01", p)
        assert got is None or (not got[0].applied and got[0].v == content(p, 1))
        got = self.ask("INSERT INTO f.rows (p, c, v) VALUES (%s, 1, 0x00) IF NOT EXISTS", p)
        assert got is None or (not got[0].applied and got[0].v == content(p, 1))

    def element(self):
        """An error may leave the list as it was, or changed: not as something else."""
        p = self.next()
        self.ask("UPDATE f.rows SET l[1] = 2 WHERE p = %s AND c = 2", p)
        got = self.ask("SELECT l FROM f.rows WHERE p = %s AND c = 2", p)
        assert got is None or got[0].l == [1, 2]

    def size(self):
        """In keyspaces mode a write is charged by the row that it makes, so it is read."""
        p = self.next()
        self.ask("UPDATE f.rows SET l = [1, 2] WHERE p = %s AND c = 4", p)


STATEMENTS = [Reader.row, Reader.partition, Reader.backwards, Reader.several, Reader.counted, Reader.paged, Reader.condition, Reader.element, Reader.size]


def fails_once(server, reader, statement, nth, times):
    """Whether the n-th read came; what was not answered is answered the next time."""
    server.fail("read", nth, times, errno.EIO)
    statement(reader)
    tripped = server.failed("read") > 0
    server.heal()
    assert server.alive(), server.log_tail()
    errors = len(reader.errors)
    statement(reader)
    assert len(reader.errors) == errors, f"{statement.__name__}, read {nth}: {reader.errors[-1]}"
    return tripped


def fail_reads(server, reader, statement, times):
    """The first read of the statement fails, then the second, and so on (of many some), until there are no more. Returns how many rounds had a failure."""
    nth, rounds = 1, 0
    while any(fails_once(server, reader, statement, nth, times) for _ in range(TRIES)):
        nth += 1 if ALL else 1 + nth // 2
        rounds += 1
    return rounds


def test_nth_read_fails(library, tmp_path):
    server = FaultyServer(tmp_path, library, "--mode", "keyspaces", "--ddl-delay", "none", "--control", "on", "--block-cache", "8", "--durability", "none").start()
    try:
        with server.cluster(schema_metadata_enabled=False) as cluster:
            reader = Reader(cluster.connect())
            fill(reader.session)
            for statement in STATEMENTS:
                errors = len(reader.errors)
                rounds = [fail_reads(server, reader, statement, times) for times in (1, 1000)]
                assert all(rounds) and len(reader.errors) > errors, f"{statement.__name__}: no read failed"
                print(f"{statement.__name__}: {rounds} rounds with a failure, {len(reader.errors) - errors} errors")
    finally:
        server.kill9()


def start_or_say_why(server):
    """Whether it has started; if not, it ended by itself and said which file it was."""
    try:
        server.start()
        return True
    except AssertionError as e:
        assert server.process.wait(timeout=300) > 0, e
        words = str(e).strip().splitlines()[-1]
        assert words.startswith("tallyd: ") and str(server.folder / "data") in words, words
        return False


def test_nth_read_fails_at_the_start(library, tmp_path):
    """A server that cannot read its files does not start, or has everything: nothing that could not be read is taken for not there, or thrown away."""
    server = FaultyServer(tmp_path, library, "--mode", "cassandra", "--control", "on").start()
    nth, row, started, reads = 1, 0, [], None
    try:
        with server.cluster(schema_metadata_enabled=False) as cluster:
            prepare(cluster.connect())
            save_state(cluster.connect())
        while reads is None or nth <= reads:
            with server.cluster(schema_metadata_enabled=False) as cluster:  # rows that only the log has
                session = cluster.connect()
                insert(session, row := row + 1)
            server.kill9()
            before = server.calls("read")
            server.fail("read", nth, 1, errno.EIO)
            started.append(start_or_say_why(server))
            server.heal()
            if started[-1]:
                server.kill9()
            before = server.calls("read")
            server.start()
            reads = server.calls("read") - before
            check(server, list(range(1, row + 1)))
            nth += 1 if ALL else 1 + nth // 2
        assert not all(started), "no read failed"
        print(f"{reads} reads at a start, {len(started)} rounds with a failure, {sum(started)} of them started")
    finally:
        server.kill9()


# ---- power cuts ----

class Writers:
    """Clients that write until they are stopped, and note when each row was acknowledged."""

    def __init__(self, server, n, pause=0.0):
        self.cluster, self.stop, self.acknowledged = server.cluster(schema_metadata_enabled=False), threading.Event(), []
        self.session = self.cluster.connect()
        self.threads = [threading.Thread(target=self._write, args=(i * 1_000_000, pause)) for i in range(n)]
        for t in self.threads:
            t.start()

    def _write(self, row, pause):
        while not self.stop.is_set():
            row += 1
            try:
                insert(self.session, row)
            except Exception:  # the server was killed
                return
            self.acknowledged.append((time.monotonic(), row))
            let_pass(pause)

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()
        self.cluster.shutdown()


def start_from(disk, index, folder):
    server = Server(folder, "--mode", "cassandra", "--control", "on")
    disk.build(index, folder / "data")
    return server.start()


def cut_power(disk, index, acknowledged, folder, window=0.0, luck=None):
    """Behind the record everything that was acknowledged before it (a window before it) is there; what is there is whole. Returns what Disk.build does."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    server = Server(folder, "--mode", "cassandra", "--control", "on")
    holes = disk.build(index, folder / "data", luck)
    try:
        server.start()
        moment = disk.moment(index) - window
        check(server, [row for at, row in acknowledged if at <= moment])
    except AssertionError as e:
        raise AssertionError(f"power cut behind record {index} of {len(disk.records)}, {disk.records[index]}: {e}") from e
    finally:
        if server.process:
            server.kill9()
    return holes


def some_of(candidates, n):
    return candidates if ALL else candidates[:: max(1, len(candidates) // n)]


@pytest.fixture(scope="module")
def periodic(library, tmp_path_factory):
    """Writes while the other tests run."""
    server = FaultyServer(tmp_path_factory.mktemp("periodic"), library, "--mode", "cassandra", "--control", "on", "--durability", "periodic").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        prepare(cluster.connect())
    writers = Writers(server, 1, pause=0.05)
    yield server, writers
    writers.end()
    server.kill9()


@pytest.fixture(scope="module")
def flushed(library, tmp_path_factory, periodic):
    """The disk of a server with flushes and a compaction under writes, its records behind the first statement, and what was acknowledged."""
    server = FaultyServer(tmp_path_factory.mktemp("flushed"), library, "--mode", "cassandra", "--control", "on").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        prepare(session)
        created = time.monotonic()
        writers = Writers(server, 3)
        for _ in range(6):  # more than four files of level 0: they are compacted
            let_pass(0.1)
            save_state(session)
        eventually(lambda: any(line.endswith(".sst") and " U " in line for line in (server.state / "journal").read_text().splitlines()))
        let_pass(0.2)
        eventually(lambda: len(writers.acknowledged) > 50)
        server.kill9()
        writers.end()
    disk = Disk(server)
    return disk, range(disk.first_after(created), len(disk.records)), writers.acknowledged


def of_log(record):
    return ".log" in record[-1]


def test_power_cuts_at_many_points_of_flushes_and_a_compaction(flushed, tmp_path):
    disk, there, acknowledged = flushed
    structural = [i for i in there if disk.records[i][1] not in "SW" or disk.records[i][1] == "S" and not of_log(disk.records[i])]
    synced = [i for i in there if disk.records[i][1] == "S" and of_log(disk.records[i])]
    assert len(acknowledged) > 50 and len(structural) > 50, (len(acknowledged), len(structural))
    points = some_of(structural, 8) + some_of(synced, 2)
    for index in points:
        cut_power(disk, index, acknowledged, tmp_path / "cut")
    print(f"{len(points)} power cuts in {len(disk.records)} records, {len(acknowledged)} acknowledged rows")


def test_power_cuts_with_sectors_that_came_out_of_order(flushed, tmp_path):
    """Of what was not synced some sectors are there, and others in front of them are not; names may have come, too. The server starts, and has what was acknowledged."""
    disk, there, acknowledged = flushed
    written = [i for i in there if disk.records[i][1] == "W"]
    points = some_of([i for i in written if not of_log(disk.records[i])], 5) + some_of([i for i in written if of_log(disk.records[i])], 5)
    holes = sum(cut_power(disk, index, acknowledged, tmp_path / "cut", luck=random.Random(index)) for index in points)
    assert holes > 0, "all sectors came in order"
    print(f"{len(points)} power cuts, {holes} sectors missing in front of others")


def test_periodic_loses_at_most_its_window(periodic, tmp_path):
    """And loses that, or the test would show nothing."""
    server, writers = periodic
    eventually(lambda: writers.acknowledged)  # when this test runs alone
    began = writers.acknowledged[0][0]
    eventually(lambda: time.monotonic() - began > PERIOD + 4)
    server.kill9()
    writers.end()
    disk = Disk(server)
    end = len(disk.records) - 1
    late = list(range(disk.first_after(max(began + PERIOD, disk.moment(end) - 2 * PERIOD)), end))  # all that a window can be, however long the other tests took
    for index in some_of(late, 1)[:1] + [end]:
        cut_power(disk, index, writers.acknowledged, tmp_path / "cut", window=PERIOD + 2)
    holes = sum(cut_power(disk, index, writers.acknowledged, tmp_path / "cut", window=PERIOD + 2, luck=random.Random(index)) for index in some_of(late, 4))
    assert holes > 0, "all sectors of the log came in order"
    again = start_from(disk, end, tmp_path / "all")
    try:
        with again.cluster(schema_metadata_enabled=False) as cluster:
            lost = len(writers.acknowledged) - len(list(cluster.connect().execute("SELECT p FROM f.t")))
    finally:
        again.kill9()
    assert lost > 0, "nothing was lost: what was not synced was not cut off"


# ---- what a write that fails is charged ----

@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS"])
def test_what_a_write_took_of_its_limits_comes_back_when_it_fails(library, tmp_path, condition):
    """Of 10 units in the second at which the clock stands still: 4 that are written, 6 that fail and are free, 6 that are written, and then none is left."""
    server = FaultyServer(tmp_path, library, "--ddl-delay", "none", "--control", "on", "--limits", "enforce", "--limit-values", "on-demand-write=10").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        prepare(session)
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = '2026-05-06 12:00:00+0000' WHERE name = 'server'")

        def write(p, units):
            text = f"INSERT INTO f.t (p, v) VALUES (%s, %s) {condition}"
            session.execute(SimpleStatement(text, retry_policy=FallthroughRetryPolicy()), (p, "x" * (1024 * (units - 1) + 800)))

        def is_written(p, units):
            """Else the disk has failed, and no limit has refused it."""
            try:
                write(p, units)
            except Exception as e:
                assert "on-demand-write" not in str(e), e
                return False
            return True

        write(1, 4)
        server.fail("write", 1, 1000, errno.ENOSPC)
        assert not is_written(2, 6)
        server.heal()
        eventually(lambda: is_written(3, 6))
        with pytest.raises(WriteTimeout, match="on-demand-write"):
            write(4, 1)
    server.stop()


def random_write(luck):
    """A statement, with a condition or without, or a batch."""
    def one():
        p, text = luck.randint(0, 40), "x" * luck.randint(0, 2500)
        return luck.choice((f"INSERT INTO f.t (p, v) VALUES ({p}, '{text}')", f"UPDATE f.t SET v = '{text}' WHERE p = {p}", f"DELETE FROM f.t WHERE p = {p}"))

    if luck.random() < 0.3:
        return f"BEGIN {luck.choice(('', 'UNLOGGED '))}BATCH {'; '.join(one() for _ in range(luck.randint(2, 5)))}; APPLY BATCH"
    statement = one()
    return statement + luck.choice((" IF NOT EXISTS", "")) if statement.startswith("INSERT") else statement


class Meter:
    """How many units were applied, as the answers say."""

    def __init__(self, session):
        self.session, self.applied, self.failed = session, 0, 0

    def run(self, texts):
        """All at once; whether each was taken."""
        futures = [self.session.execute_async(SimpleStatement(text, retry_policy=FallthroughRetryPolicy())) for text in texts]
        return [self.is_taken(future) for future in futures]

    def is_taken(self, future):
        try:
            future.result()
        except Exception as e:
            assert "-write:" not in str(e), f"a limit refused it: {e}"
            self.failed += 1
            return False
        cost = json.loads(future.custom_payload["capacity"])
        self.applied += cost["write_units"]
        return True


def test_random_faults_leave_of_the_limits_what_was_not_applied(library, tmp_path):
    """The clock stands still, so no bucket fills: what is left of the table's 2,000 units is what no acknowledged write took, to the unit; and the ledger says the same."""
    budget, luck = 2000, random.Random(os.environ.get("TALLYTEST_SEED", "41"))
    server = FaultyServer(tmp_path, library, "--ddl-delay", "none", "--control", "on", "--capacity-payload", "full", "--limits", "enforce", "--limit-values",
                          f"on-demand-write={budget},partition-write={budget},connection=1000000").start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        prepare(session)
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = '2026-05-06 12:00:00+0000' WHERE name = 'server'")
        meter, hit = Meter(session), 0
        for _ in range(40 if ALL else 8):
            server.fail(luck.choice(("write", "sync")), luck.randint(1, 10), luck.randint(1, 3), errno.ENOSPC)
            before = meter.failed
            for _ in range(4):
                meter.run(random_write(luck) for _ in range(8))
            hit += meter.failed > before
            server.heal()
            eventually(lambda: all(meter.run([random_write(luck)])))
        assert hit >= 2 and meter.applied > 20, (hit, meter.applied)
        left = budget - meter.applied
        text = "INSERT INTO f.t (p, v) VALUES (%s, %s)"
        with pytest.raises(WriteTimeout, match="on-demand-write"):
            session.execute(SimpleStatement(text, retry_policy=FallthroughRetryPolicy()), (50, "x" * (1024 * left + 800)))
        session.execute(text, (50, "x" * (1024 * (left - 1) + 800)))
        charged = session.execute("SELECT write_units FROM system_metering.tables WHERE keyspace_name = 'f' AND table_name = 't'").one().write_units
        assert charged == budget
    server.stop()
