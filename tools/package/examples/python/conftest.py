"""Connects the tests to the Tally at TALLY_ADDRESS (host:port of a container or a CI service), or starts a tallyd."""
import os
import subprocess

import pytest

from orders import connect, create_schema


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """(host, port). The program to start is TALLYD, or tallyd in the PATH."""
    if "TALLY_ADDRESS" in os.environ:
        host, port = os.environ["TALLY_ADDRESS"].rsplit(":", 1)
        yield host, int(port)
        return
    command = [os.environ.get("TALLYD", "tallyd"), "--data-dir", tmp_path_factory.mktemp("tally") / "data"]
    ports = ["--port", "0", "--admin-port", "0", "--api-port", "0"]  # CQL on a free port, the others closed
    with subprocess.Popen(command + ports, stdout=subprocess.PIPE, text=True) as server:
        ready = next(line for line in server.stdout if line.startswith("tallyd ready: "))
        host, port = dict(field.split("=", 1) for field in ready.split() if "=" in field)["cql"].rsplit(":", 1)
        yield host, int(port)
        server.terminate()


@pytest.fixture(scope="session")
def session(address):
    host, port = address
    with connect(host, port, timeout=120) as cluster:
        session = cluster.connect()
        create_schema(session, "shop")
        yield session
