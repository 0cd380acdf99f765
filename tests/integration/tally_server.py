"""A tallyd of its own for a test: a scratch data folder, a free port, a log; start, stop, kill -9, start again."""
import os
import signal
import subprocess
import time
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

import stores

ROOT = Path(__file__).resolve().parents[2]
PRESET = os.environ.get("TALLYTEST_PRESET", "release")
SLOWER = {"asan": 4, "tsan": 10}.get(PRESET, 1)  # what a sanitizer costs, for bounds of time
OPTIMISED = PRESET.startswith("release")  # and not sanitised: it is held to the bounds of memory
TALLYD = ROOT / "build" / PRESET / "bin" / "tallyd"
TALLY = ROOT / "build" / PRESET / "bin" / "tally"
# Time-outs are for hangs only: a result never depends on how busy the machine is.
HANG = 120 * SLOWER  # seconds after which a condition that did not come true never will
TIMEOUTS = {"--read-timeout": 1000 * HANG, "--range-timeout": 1000 * HANG, "--write-timeout": 1000 * HANG, "--handshake-timeout": min(HANG, 600)}


def patient(flags):
    """The server's own time-outs, unless a test sets them."""
    return [f for flag, timeout in TIMEOUTS.items() if flag not in flags for f in (flag, str(timeout))]


class Server:
    """flags go to tallyd as they are: Server(folder, "--mode", "cassandra"). What Keyspaces refuses is allowed unless a test asks for --compatibility."""

    def __init__(self, folder, *flags, binary=TALLYD):
        self.binary = Path(binary)
        self.folder = Path(folder)
        self.flags = (*patient(flags), *(() if "--compatibility" in flags else ("--compatibility", "off")), *flags)
        self.data = self.folder / "data"
        self.store = stores.Local() if "--store" in flags or ":memory:" in flags else stores.in_use
        self.has_history = self.store.has_history and "rados" not in flags
        self.log = self.folder / "tallyd.log"
        self.process = None
        self.host = self.port = self.admin = None
        self.ready = {}  # fields of the ready line

    def _begin(self):
        command = [self.binary, "--data-dir", self.data, *self.store.flags(self.data, self.flags), "--listen", "127.0.0.1", "--admin-port", "0", "--api-port", "0", *self.flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=log, text=True)

    def start_and_kill(self, seconds):
        """Kills it so long after it was begun, whether it is ready or not."""
        self._begin()
        let_pass(seconds)
        self.kill9()

    def start(self):
        self._begin()
        for line in self.process.stdout:
            if line.startswith("tallyd ready: "):
                fields = dict(f.split("=", 1) for f in line[len("tallyd ready: "):].split())
                self.ready = fields
                self.host, port = fields["tls" if fields["cql"] == "off" else "cql"].rsplit(":", 1)
                self.port = int(port)
                self.admin = fields["admin"]
                assert int(fields["pid"]) == self.process.pid
                return self
        raise AssertionError(f"tallyd did not become ready:\n{self.log_tail()}")

    def place(self):
        """How `tally verify` is told where the rows are."""
        return self.store.place(self.data)

    def log_tail(self):
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self):
        """A clean stop; the exit status must be 0."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(timeout=HANG)
            assert status == 0, f"tallyd ended with {status}:\n{self.log_tail()}"

    def kill9(self):
        self.process.kill()
        self.process.wait(timeout=HANG)

    def alive(self):
        return self.process.poll() is None

    def bytes_on_disk(self):
        """Of the data folder."""
        total = 0
        for folder, _, files in os.walk(self.folder / "data"):
            for f in files:
                try:
                    total += os.stat(os.path.join(folder, f)).st_blocks * 512
                except FileNotFoundError:  # the store has taken it away
                    pass
        return total

    def cluster(self, contact=None, **options):
        """A Cluster of the Python driver at LOCAL_QUORUM; options are the driver's. contact: another address of the server than its first."""
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=HANG)
        options.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: profile})
        options.setdefault("connect_timeout", HANG)
        options.setdefault("control_connection_timeout", HANG)  # the driver's are two seconds
        return Cluster([contact or self.host], port=self.port, **options)


def eventually(condition, otherwise="it did not come true", interval=0.02, within=HANG):
    """Waits until the condition holds, and returns its value. otherwise: the message, or a function that makes it. within: seconds, for what takes minutes by itself."""
    end = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < end, otherwise() if callable(otherwise) else otherwise
        time.sleep(interval)
    return value


def let_pass(seconds):
    """For tests of what the passing of time does: afterwards at least so much has passed, and the test may rely on nothing else."""
    time.sleep(seconds)


def certificates(folder, *flags):
    """What `tally cert` makes: (ca.pem, the flags of a server that uses it)."""
    subprocess.run([str(TALLY), "cert", "--to", str(folder), *flags], check=True, capture_output=True)
    return folder / "ca.pem", ["--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server-key.pem")]


def create_keyspace(session, name):
    """Returns when the keyspace may be used: on Keyspaces that, too, is a moment after the answer."""
    session.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    eventually(lambda: session.execute("SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = %s", (name,)).one(),
               f"keyspace {name} was not created")


def status_of(session, keyspace, table):
    row = session.execute(
        "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = %s AND table_name = %s", (keyspace, table)).one()
    return row.status if row else None


def await_active(session, keyspace, table):
    """As an application on Keyspaces does it; returns the statuses seen, in order."""
    seen = []

    def is_active():
        status = status_of(session, keyspace, table)
        if seen[-1:] != [status]:
            seen.append(status)
        return status == "ACTIVE"

    eventually(is_active, lambda: f"{keyspace}.{table} did not become ACTIVE: {seen}")
    return seen


def create_table(session, keyspace, name, definition):
    session.execute(f"CREATE TABLE {keyspace}.{name} ({definition})")
    return await_active(session, keyspace, name)
