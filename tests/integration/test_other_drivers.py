"""Tally through the Node, Go, Java, Rust and C++ drivers: each a program of its own folder (programs.py) that prints "ok NAME" per check."""
import os
import re
import subprocess

import pytest

from tally_server import SLOWER, Server, certificates

FLAGS = {
    "keyspaces": ["--mode", "keyspaces", "--ddl-delay", "100", "--peers", "127.0.0.250"],  # which does not answer
    "strict": ["--mode", "keyspaces", "--ddl-delay", "100", "--compatibility", "strict", "--peers", "keyspaces"],  # nine, which do
    "cassandra": ["--mode", "cassandra", "--datacenter", "us-east-1"],
    "tls": ["--mode", "cassandra", "--tls-only", "on", "--tls-port", "0", "--auth", "password", "--datacenter", "us-east-1"],
}


@pytest.fixture(scope="module", params=FLAGS)
def either_server(request, tmp_path_factory):
    folder, ca = tmp_path_factory.mktemp("server"), None
    flags = FLAGS[request.param]
    if request.param == "tls":
        ca, more = certificates(folder / "certificates")
        flags = flags + more
    s = Server(folder, *flags).start()
    s.compatibility, s.ca = request.param, ca
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


def run(server, *command):
    env = {**os.environ, **({"TALLY_CA": str(server.ca)} if server.ca else {})}
    command = [*command, server.host, server.port, server.compatibility]
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=300 * SLOWER, check=False)
    print(done.stdout)
    totals = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    assert totals, done.stdout + done.stderr
    assert done.returncode == 0 and totals[2] == "0" and int(totals[1]) >= 7, done.stdout + done.stderr


@pytest.mark.parametrize("driver", ["node", "go", "rust", "cpp", "java-4.19.3", "java-4.13.0"])
def test_driver(either_server, driver, program):
    run(either_server, *program(driver))
