"""Bytes that clients chose, such as names, texts and aliases, do not control the terminal of the operator who reads them with tally."""
import os
import pty
import re
import subprocess
import threading

import pytest

from ports import free_port
from tally_server import TALLY, Server, create_keyspace

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066\u200f\r\x08\x7f"
LONG = "y" * 20000
PROGRESS = re.compile(rb"\rtally capacity: (day )?\d+ of \d+ [a-z ]+")  # tally's own
LINE_MAX = 4096


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    capture = folder / "c.tcap"
    s = Server(folder, "--mode", "keyspaces", "--ddl-delay", "none", "--admin-port", str(free_port()), "--capture", str(capture), "--compatibility", "report").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "h")
        session.execute(f'CREATE TABLE h.t (p text PRIMARY KEY, "{HOSTILE}" text)')
        session.execute("INSERT INTO h.t (p) VALUES (%s)", (HOSTILE,))
        for alias in (HOSTILE, LONG):
            list(session.execute(f'SELECT p AS "{alias}" FROM h.t'))
            list(session.execute(f'SELECT p AS "{alias}" FROM h.t WHERE p = %s', (HOSTILE,)))
    schema, statements = folder / "schema.cql", folder / "statements.cql"
    schema.write_text(f'CREATE KEYSPACE h WITH replication = {{\'class\': \'SingleRegionStrategy\'}};\nCREATE TABLE h.t (p text PRIMARY KEY, "{HOSTILE}" text);\n')
    statements.write_text(f'-- at most 1 units\nSELECT "{HOSTILE}{LONG}" FROM h.t;\nSELECT p AS "{HOSTILE}{LONG}" FROM h.t;\nSELECT {LONG} FROM h.{HOSTILE};\n')
    yield s, schema, statements, capture
    s.stop()


COMMANDS = {
    "top": lambda s, schema, statements, capture: ["top", "--once", "--server", s],
    "check --server": lambda s, schema, statements, capture: ["check", "--server", s],
    "check --file": lambda s, schema, statements, capture: ["check", "--schema", schema, "--file", statements],
    "explain": lambda s, schema, statements, capture: ["explain", "--server", s, "--statement", f'SELECT p AS "{HOSTILE}" FROM h.t'],
    "explain error": lambda s, schema, statements, capture: ["explain", "--server", s, "--statement", f'SELECT "{HOSTILE}x" FROM h.t'],
    "gate": lambda s, schema, statements, capture: ["gate", "--schema", schema, "--file", statements],
    "capacity --server": lambda s, schema, statements, capture: ["capacity", "--server", s],
    "capture --file": lambda s, schema, statements, capture: ["capture", "--file", capture, "--up-to-damage"],
    "replay --price": lambda s, schema, statements, capture: ["replay", "--file", capture, "--price", "--schema", schema, "--up-to-damage"],
    "cql describe": lambda s, schema, statements, capture: ["cql", *s.split(":"), "-e", "DESCRIBE TABLE h.t"],
    "cql error": lambda s, schema, statements, capture: ["cql", *s.split(":"), "-e", f'SELECT "{HOSTILE}x" FROM h.t'],
    "cql rows": lambda s, schema, statements, capture: ["cql", *s.split(":"), "-e", f'SELECT p AS "{HOSTILE}" FROM h.t'],
    "unknown": lambda s, schema, statements, capture: [HOSTILE],
    "flag": lambda s, schema, statements, capture: ["top", "--" + HOSTILE],
}


def on_terminal(command):
    """What the command prints on a terminal, with newlines as it wrote them."""
    terminal, end = pty.openpty()
    process = subprocess.Popen([str(TALLY), *map(str, command)], stdin=subprocess.DEVNULL, stdout=end, stderr=end)
    os.close(end)
    parts = []

    def read():
        try:
            while part := os.read(terminal, 1 << 16):
                parts.append(part)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    process.wait(300)
    reader.join()
    os.close(terminal)
    return b"".join(parts).replace(b"\r\n", b"\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_byte_of_a_client_controls_a_terminal(hostile, name):
    s, *files = hostile
    command = COMMANDS[name](f"{s.host}:{s.port}", *files)
    piped = subprocess.run([str(TALLY), *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300).stdout
    shown = on_terminal(command)
    for printed in [shown] if name.startswith("cql") else [shown, piped]:
        text = PROGRESS.sub(b"", printed).decode()
        assert text.strip()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text), text
    assert "\\u001b" in shown.decode() or "\\x1b" in shown.decode() or name in ("capacity --server", "check --server"), shown
    if not name.startswith("cql"):
        assert max(map(len, shown.split(b"\n"))) <= LINE_MAX + 100
