"""A full disk: writes get errors, reads go on, nothing that was acknowledged is lost, and a restart with room works again."""
import subprocess
import urllib.error
import urllib.request

import pytest
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ServerError
from cassandra.query import BatchStatement, BatchType

from ports import free_port
from tally_server import TALLYD, Server, eventually, let_pass
from test_linearizability import connect

ROWS_MAX = 4000
ROW_BYTES = 20_000
ROW_UNITS = 20


def file_limit(folder, kib):
    """A tallyd whose files may grow to so much: the kernel refuses the write, as on a full disk."""
    script = folder / "limited"
    script.write_text(f'#!/bin/bash\nulimit -f {kib}\nexec "{TALLYD}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def small_disk(tmp_path):
    """A folder of 24 MiB, where this machine lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def value_of(row):
    return bytes([row % 251]) * ROW_BYTES


def check_account(server, acknowledged, errors):
    """What was refused is counted once, as that, and costs nothing."""
    with urllib.request.urlopen(f"http://{server.admin}/metrics") as answer:
        metrics = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))
    executed = {outcome: int(metrics[f'tally_requests_total{{opcode="EXECUTE",outcome="{outcome}"}}']) for outcome in ("ok", "refused", "throttled", "failed")}
    assert executed == {"ok": acknowledged, "refused": 0, "throttled": 0, "failed": errors}
    assert float(metrics["tally_write_units_total"]) == acknowledged * ROW_UNITS


def write_until_errors(server):
    """The rows that were acknowledged; writes go on for a while after the first error."""
    acknowledged, errors = [], 0
    with connect(server) as cluster:  # its policy sends nothing twice, so that each answer is seen
        session = cluster.connect()
        session.execute("CREATE KEYSPACE disk WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE disk.t (pk int PRIMARY KEY, v blob)")
        insert = session.prepare("INSERT INTO disk.t (pk, v) VALUES (?, ?)")
        for row in range(ROWS_MAX):
            try:
                session.execute(insert, (row, value_of(row)))
                acknowledged.append(row)
            except NoHostAvailable as e:  # it sent nothing: it takes its only host for down at this moment
                assert not e.errors and server.alive(), (e, server.log_tail())
                let_pass(0.1)
            except ServerError:
                errors += 1
                if errors == 30:
                    break
        assert errors, "the disk was never full"
        assert acknowledged, "nothing was written at all"
        assert server.alive(), server.log_tail()
        check_account(server, len(acknowledged), errors)
        system = [r for r in session.execute("SELECT * FROM system_metering.metrics WHERE metric_name = 'SystemErrors'")]
        assert sum(r.sum for r in system) == errors and {(r.keyspace_name, r.table_name, r.operation, r.unit) for r in system} == {("disk", "t", "INSERT", "Count")}
        charged = session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = 'disk'").one()
        assert (charged.write_units, charged.requests, charged.entities) == (len(acknowledged) * ROW_UNITS, len(acknowledged), len(acknowledged) * ROW_UNITS), "what failed is free"  # an entity is 1 KiB, as a unit is
        for row in acknowledged[:: max(len(acknowledged) // 50, 1)]:
            assert session.execute(f"SELECT v FROM disk.t WHERE pk = {row}").one().v == value_of(row)
        session.execute("SELECT key FROM system.local")
    return acknowledged


def check_all(server, acknowledged):
    with server.cluster() as cluster:
        session = cluster.connect()
        lost = [row for row in acknowledged if (got := session.execute(f"SELECT v FROM disk.t WHERE pk = {row}").one()) is None or got.v != value_of(row)]
        assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged rows are lost: {lost[:10]}"
        session.execute("INSERT INTO disk.t (pk, v) VALUES (-1, 0x01)")
        assert session.execute("SELECT v FROM disk.t WHERE pk = -1").one().v == b"\x01"


@pytest.mark.parametrize("kib", [512, 8192])
@pytest.mark.parametrize("end", ["kill9", "stop"])
def test_file_size_limit(tmp_path, kib, end):
    server = Server(tmp_path, "--mode", "cassandra", "--admin-port", str(free_port()), binary=file_limit(tmp_path, kib)).start()
    try:
        acknowledged = write_until_errors(server)
        getattr(server, end)()
        server.binary = TALLYD
        server.start()
        check_all(server, acknowledged)
        server.stop()
    finally:
        server.kill9()


BATCH_VALUE = bytes(10_000)
BATCH_UNITS = 2 * 10  # of each of its rows: it is logged


def write_batches_until_errors(session):
    """Batches over three tables until some failed: how many were acknowledged, and how many failed."""
    inserts = [session.prepare(f"INSERT INTO disk.t{i} (pk, v) VALUES (?, ?)") for i in range(3)]
    acknowledged = errors = 0
    for row in range(ROWS_MAX):
        batch = BatchStatement(BatchType.LOGGED)
        for insert in inserts:
            batch.add(insert, (row, BATCH_VALUE))
        try:
            session.execute(batch)
            acknowledged += 1
        except NoHostAvailable as e:
            assert "Server error" in str(e), e
            errors += 1
            if errors == 10:
                break
    assert acknowledged and errors, (acknowledged, errors)
    return acknowledged, errors


def test_a_batch_over_tables_that_fails_is_free_on_all_of_them(tmp_path):
    """What was posted before the commit failed is taken back from every table and partition, from statement, connection and role; an innocent table keeps what is its own."""
    server = Server(tmp_path, "--mode", "cassandra", binary=file_limit(tmp_path, 512)).start()
    try:
        with server.cluster() as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE disk WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            for name in ("innocent", "t0", "t1", "t2"):
                session.execute(f"CREATE TABLE disk.{name} (pk int PRIMARY KEY, v blob)")
            session.execute("INSERT INTO disk.innocent (pk, v) VALUES (1, 0x01)")
            n, errors = write_batches_until_errors(session)
            tables = {r.table_name: r for r in session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = 'disk'")}
            assert {name: (t.write_units, t.entities) for name, t in tables.items() if name.startswith("t")} == {f"t{i}": (n * BATCH_UNITS, n * BATCH_UNITS // 2) for i in range(3)}
            assert (tables["innocent"].write_units, tables["innocent"].requests) == (1, 1)
            partitions = [r for r in session.execute("SELECT * FROM system_metering.partitions") if r.table_name.startswith("t")]
            assert {r.write_units for r in partitions} == {0, BATCH_UNITS}, "a partition was written once, or its only write failed"
            assert all(r.load - r.load_error <= r.write_units * 3 <= r.load for r in partitions)
            statement = next(r for r in session.execute("SELECT * FROM system_metering.statements") if r.statement.startswith("BATCH of 3"))
            assert statement.write_units == 3 * n * BATCH_UNITS
            for table in ("connections", "roles"):
                assert sum(r.write_units for r in session.execute(f"SELECT * FROM system_metering.{table}")) == 3 * n * BATCH_UNITS + 1, table
            failed = [r for r in session.execute("SELECT * FROM system_metering.metrics WHERE metric_name = 'SystemErrors'")]
            assert [(r.operation, r.sum) for r in failed] == [("BATCH", errors)]
        server.stop()
    finally:
        server.kill9()


def test_full_disk(tmp_path, small_disk):
    server = Server(small_disk, "--mode", "cassandra", "--admin-port", str(free_port()))
    server.log = tmp_path / "tallyd.log"
    server.start()
    try:
        acknowledged = write_until_errors(server)
        server.kill9()
        subprocess.run(["mount", "-o", "remount,size=256m", small_disk], check=True)
        server.start()
        check_all(server, acknowledged)
        server.stop()
    finally:
        server.kill9()


def until_written(server):
    """A write is taken again, without a restart."""
    with server.cluster() as cluster:
        session = cluster.connect()

        def is_taken():
            try:
                session.execute("INSERT INTO disk.t (pk, v) VALUES (-2, 0x02)")
                return True
            except NoHostAvailable:
                return False

        eventually(is_taken, lambda: f"writes are still refused:\n{server.log_tail()}", interval=0.2)


def ready(server):
    try:
        with urllib.request.urlopen(f"http://{server.admin}/ready", timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


@pytest.mark.parametrize("durability", ["fsync", "periodic"])
def test_writes_resume_when_there_is_space_again(tmp_path, small_disk, durability):
    server = Server(small_disk, "--mode", "cassandra", "--durability", durability, "--admin-port", str(free_port()))
    server.log = tmp_path / "tallyd.log"
    server.start()
    try:
        acknowledged = write_until_errors(server)
        status, text = ready(server)
        assert status == 503, text
        subprocess.run(["mount", "-o", "remount,size=256m", small_disk], check=True)
        until_written(server)
        status, text = ready(server)
        assert status == 200, text
        check_all(server, acknowledged)
        server.kill9()
        server.start()
        check_all(server, acknowledged)
        server.stop()
    finally:
        server.kill9()
