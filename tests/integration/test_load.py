"""Load held: 10,000 idle connections in 400 MiB, which own no buffer whatever they did before, and 1,000 active ones beside them, none with an error."""
import contextlib
import json
import os
import resource
import subprocess
import urllib.request

import pytest

from ports import free_port
from tally_server import OPTIMISED, TALLY, Server, eventually
from test_hostile import OPTIONS, SUPPORTED, Raw, status

IDLE, ACTIVE = 10_000, 1_000
RESIDENT = 400 << 20
IDLE_EACH = 8192  # bytes, of the server's memory; the kernel's are not its own
FILES_BESIDE = 1000  # of the server: its store's and those of its loops
LARGE = 256 << 10


@pytest.fixture
def many_files():
    """As many open files as 11,000 connections need, here and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = IDLE + ACTIVE + FILES_BESIDE
    if hard != resource.RLIM_INFINITY and hard < needed:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"not run: {IDLE} connections need ulimit -n {needed}, and it is {hard} at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def server(many_files, tmp_path):
    s = Server(tmp_path, "--mode", "cassandra", "--admin-port", str(free_port()), "--max-connections", IDLE + ACTIVE + 100, "--max-connections-per-address", IDLE + ACTIVE + 100).start()
    with Raw(s) as c:
        c.must("CREATE KEYSPACE load WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.must("CREATE TABLE load.t (p int PRIMARY KEY, v blob)")
        c.must("INSERT INTO load.t (p, v) VALUES (1, ?)", [os.urandom(LARGE)])
    yield s
    s.stop()


def metric(server, name):
    with urllib.request.urlopen(f"http://{server.admin}/metrics", timeout=300) as answer:
        return next(int(line.rsplit(" ", 1)[1]) for line in answer.read().decode().splitlines() if line.startswith(name + " "))


def connect_all(server, held):
    """Half of them in v4, half in v5; every twentieth sends a large request and takes a large answer before it rests."""
    for i in range(IDLE):
        c = held.enter_context(Raw(server, version=4 + i % 2))
        if i % 20 == 0:
            c.must("DELETE FROM load.t WHERE p = 1 IF v = ?", [bytes(LARGE)])  # is not: the answer has the value that is there
        yield c


def all_answer(connections):
    for c in connections:
        if c.version == 4:
            c.send(c.envelope(OPTIONS, b""))
    for c in connections:
        if c.version == 4:
            assert c.receive()[0] == SUPPORTED


def drive(server, seconds):
    command = [TALLY, "stress", "--server", f"{server.host}:{server.port}", "--profile", "uniform", "--connections", ACTIVE, "--in-flight", 2, "--seconds", seconds, "--json"]
    return subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_10000_idle_connections_and_1000_active_ones(server):
    before = status(server, "VmRSS")
    with contextlib.ExitStack() as held:
        idle = list(connect_all(server, held))
        assert metric(server, "tally_connections") >= IDLE
        grown = (status(server, "VmRSS") - before) // IDLE
        active = drive(server, 4)
        eventually(lambda: active.poll() is not None or metric(server, "tally_connections") >= IDLE + ACTIVE)
        out, errors = active.communicate(timeout=300)
        report = json.loads(out)
        all_answer(idle)
        peak = status(server, "VmHWM")
        print(f"{grown} bytes an idle connection, at most {peak >> 20} MiB resident, {report['requests']} requests of {ACTIVE} connections")
    assert active.returncode == 0 and not report["failed"] and not report["unanswered"] and not report["throttled"], (report, errors)
    assert report["requests"] > ACTIVE
    if OPTIMISED:
        assert grown < IDLE_EACH
        assert peak < RESIDENT, f"{peak >> 20} MiB"
