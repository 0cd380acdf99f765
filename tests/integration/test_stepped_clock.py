"""A wall clock that steps: time-outs, delays and periods of the server follow the monotonic clock (tests/fault/stepped_clock.c)."""
import mmap
import os
import socket
import struct
import subprocess

import pytest

from ports import free_port
from tally_server import PRESET, ROOT, TALLYD, Server, create_keyspace, eventually

HOUR = 3600 * 1_000_000


class SteppedServer(Server):
    def __init__(self, folder, *flags):
        super().__init__(folder, *flags)
        self.folder.mkdir(parents=True, exist_ok=True)
        library, ahead, wrapper = (self.folder / name for name in ("stepped_clock.so", "ahead", "tallyd"))
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(ROOT / "tests/fault/stepped_clock.c"), "-ldl"], check=True)
        ahead.write_bytes(bytes(8))
        with open(ahead, "r+b") as f:
            self.ahead = mmap.mmap(f.fileno(), 8)
        wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD="{library}" STEPPED_CLOCK="{ahead}" exec "{TALLYD}" "$@"\n')
        os.chmod(wrapper, 0o755)
        self.binary = wrapper

    def step(self, us):
        self.ahead[:] = struct.pack("=q", struct.unpack("=q", self.ahead[:])[0] + us)


@pytest.fixture
def server(tmp_path):
    port = free_port()
    s = SteppedServer(tmp_path, "--mode", "keyspaces", "--ddl-delay", "2000", "--request-timeout", "2", "--api-port", str(port))
    s.api_port = port
    s.start()
    yield s
    s.stop()


def status_of(session, table):
    row = session.execute("SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = 'k' AND table_name = %s", (table,)).one()
    return row and row.status


def is_closed(client):
    """Sends one more byte of a header, so that the connection never counts as idle."""
    try:
        client.send(b"a")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.skipif(PRESET in ("asan", "tsan"), reason="the sanitizer's runtime replaces the same functions")
@pytest.mark.parametrize("us", [-HOUR, HOUR])
def test_delays_and_deadlines_hold_when_the_wall_clock_steps(server, us):
    with server.cluster() as cluster, socket.create_connection(("127.0.0.1", server.api_port), timeout=0.2) as slow:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute("CREATE TABLE k.before (pk int PRIMARY KEY, v int)")
        slow.send(b"POST / HTTP/1.1\r\nx: ")
        assert status_of(session, "before") in ("CREATING", "ACTIVE")
        server.step(us)
        eventually(lambda: status_of(session, "before") == "ACTIVE", "the table that was being created stays CREATING")
        session.execute("CREATE TABLE k.after (pk int PRIMARY KEY, v int)")
        eventually(lambda: status_of(session, "after") == "ACTIVE", "a table created after the step stays CREATING")
        eventually(lambda: is_closed(slow), "an HTTP request that is never complete is not ended")
        for v in range(3):
            session.execute("INSERT INTO k.before (pk, v) VALUES (1, %s)", (v,))
            assert session.execute("SELECT v FROM k.before WHERE pk = 1").one().v == v
            server.step(-us if v == 1 else us)
