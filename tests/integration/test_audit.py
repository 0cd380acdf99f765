"""The audit log: every request and login of every category, how it ended, and nothing of what was in it."""
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import threading

import pytest
from cassandra import AlreadyExists, InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement

from page_api import ask
from ports import free_port
from tally_server import TALLYD, eventually
from test_hostile import QUERY, Raw, query_body

SECRET = "s3cret-value"


def entries(file, server=None):
    """The lines of the file; of a server that runs, after it has written them all and ended."""
    if server:
        server.stop()
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def connect(server, name="cassandra", password="cassandra"):
    cluster = server.cluster(auth_provider=PlainTextAuthProvider(name, password))
    return cluster, cluster.connect()


@pytest.fixture
def audited(new_server, tmp_path):
    file = tmp_path / "audit.log"
    s = new_server("--mode", "cassandra", "--auth", "password", "--audit-log", str(file))
    return s, file


def test_every_category_is_told_with_its_outcome_and_without_values(audited):
    s, file = audited
    cluster, session = connect(s)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v text)")
    session.execute(f"CREATE ROLE alice WITH PASSWORD = '{SECRET}' AND LOGIN = true")
    session.execute(f"INSERT INTO k.t (p, v) VALUES (1, '{SECRET}')")
    insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, ?)")
    session.execute(insert, (2, SECRET))
    batch = BatchStatement()
    batch.add(insert, (3, SECRET))
    session.execute(batch)
    session.execute(f"SELECT v FROM k.t WHERE p = 1 AND v = '{SECRET}' ALLOW FILTERING")
    session.execute("USE k")
    with pytest.raises(InvalidRequest):
        session.execute("SELECT nothing FROM k.t")
    with pytest.raises(SyntaxException):
        session.execute(f"CREATE ROLE bob WITH PASSWORD '{SECRET}'")
    other_cluster, other = connect(s, "alice", SECRET)
    with pytest.raises(Unauthorized):
        other.execute("SELECT * FROM k.t")
    with pytest.raises(NoHostAvailable):
        connect(s, "mallory", SECRET)
    for c in (cluster, other_cluster):
        c.shutdown()
    s.stop()
    assert SECRET not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = [(e["category"], e["type"], e["role"], e.get("table"), e["ok"], e.get("code")) for e in entries(file) if "system" not in e.get("keyspace", "") and "role" in e]
    for expected in [("AUTH", "LOGIN", "cassandra", None, True, None), ("DDL", "CREATE KEYSPACE", "cassandra", None, True, None),
                     ("DDL", "CREATE TABLE", "cassandra", None, True, None), ("DCL", "CREATE ROLE", "cassandra", None, True, None),
                     ("DML", "INSERT", "cassandra", "t", True, None), ("DML", "BATCH", "cassandra", "t", True, None),
                     ("QUERY", "SELECT", "cassandra", "t", True, None), ("OTHER", "USE", "cassandra", None, True, None),
                     ("AUTH", "LOGIN", "alice", None, True, None), ("AUTH", "LOGIN", "mallory", None, False, "0x0100")]:
        assert expected in told, (expected, told)
    assert [t for t in told if t[0] == "PREPARE" and t[4]] and told.count(("DML", "INSERT", "cassandra", "t", True, None)) == 2
    failed = {e["code"]: e for e in entries(file) if not e["ok"]}
    assert set(failed) == {"0x0100", "0x2000", "0x2100", "0x2200"}
    assert failed["0x2100"]["role"] == "alice" and "no SELECT permission" in failed["0x2100"]["error"]
    assert failed["0x2000"]["statement"].startswith("CREATE ROLE bob") and failed["0x2000"]["error"] == "Syntax error"  # its words quote the password
    inserted = {e["statement"] for e in entries(file) if e["category"] == "DML" and e["type"] == "INSERT"}
    assert inserted == {"INSERT INTO k.t (p, v) VALUES (?, ?)", "INSERT INTO k.t(p, v) VALUES(?)"}
    assert all(e["source"] == "127.0.0.1" and e["connection"] for e in entries(file))


def test_changes_of_the_schema_that_were_prepared_are_told_with_their_text(audited):
    s, file = audited
    cluster, session = connect(s)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    text = "CREATE TABLE k.t (p int PRIMARY KEY)"
    create = session.prepare(text)
    session.execute(create)
    with pytest.raises(AlreadyExists):
        session.execute(create)
    cluster.shutdown()
    told = [(e["statement"], e["ok"]) for e in entries(file, s) if e["category"] == "DDL" and e["type"] == "CREATE TABLE"]
    assert told == [(text, True), (text, False)]


def test_only_the_categories_that_were_asked_for_are_told(new_server, tmp_path):
    file = tmp_path / "audit.log"
    s = new_server("--mode", "cassandra", "--audit-log", str(file), "--audit-categories", "DDL,ERROR")
    with s.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("SELECT key FROM system.local")
        with pytest.raises(InvalidRequest):
            session.execute("SELECT * FROM k.t")
    assert {(e["category"], e["ok"]) for e in entries(file, s)} == {("DDL", True), ("QUERY", False)}


def test_names_that_are_no_text_do_not_break_a_line(audited):
    s, file = audited
    with socket.create_connection((s.host, s.port), timeout=300) as c:
        def ask(opcode, body):
            c.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)
            return c.recv(4096)
        ask(1, struct.pack(">HH", 1, 11) + b"CQL_VERSION" + struct.pack(">H", 5) + b"3.0.0")
        token = b"\0\xff\xfe\"\n\0" + SECRET.encode()
        ask(15, struct.pack(">i", len(token)) + token)
    (entry,) = entries(file, s)
    assert (entry["category"], entry["ok"], entry["role"]) == ("AUTH", False, "??\"\n")


def test_a_file_that_was_moved_away_is_made_again(audited, tmp_path):
    s, file = audited
    cluster, session = connect(s)
    file.rename(tmp_path / "audit.log.1")
    s.process.send_signal(signal.SIGHUP)
    eventually(file.exists)
    session.execute("SELECT cluster_name FROM system.local")
    cluster.shutdown()
    assert any("cluster_name" in e.get("statement", "") for e in entries(file, s))


def test_lines_are_written_without_a_further_request_or_an_orderly_end(audited):
    s, file = audited
    cluster, session = connect(s)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO k.t (p, v) VALUES (?, ?)")
    for i in range(50):
        session.execute(insert, (i, SECRET))
    eventually(lambda: file.read_text().count('"category":"DML","type":"INSERT"') == 50)
    s.kill9()
    cluster.shutdown()
    assert sum(e["category"] == "DML" and e["ok"] for e in entries(file)) == 50


def test_a_statement_is_cut_between_two_characters(audited):
    """The cut within a character made the text invalid, and every other character beyond ASCII became a question mark."""
    s, file = audited
    cluster, session = connect(s)
    for shift in range(4):
        with pytest.raises(InvalidRequest):
            session.execute('SELECT "' + "x" * shift + "\N{GRINNING FACE}" * 2000 + '" FROM system.local')
    cluster.shutdown()
    cut = [e["statement"] for e in entries(file, s) if not e["ok"]]
    assert len(cut) == 4
    for text in cut:
        assert "?" not in text and 4093 <= len(text.encode()) <= 4096, text


@pytest.mark.parametrize("full, requests", [("wait", 24000), ("drop", 8000)])
def test_a_file_that_takes_no_bytes_stops_no_event_loop(new_server, tmp_path, full, requests):
    """A FIFO whose reader does not read. 24,000 lines have more bytes than the queue may ever have, 8,000 more than its bound. With wait all are written once the
    reader reads; with drop all requests are answered before that, and the lost lines are counted."""
    fifo, lines = tmp_path / "audit", []
    os.mkfifo(fifo)
    reader = open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb")
    os.set_blocking(reader.fileno(), True)
    s = new_server("--mode", "cassandra", "--threads", "1", "--audit-log", fifo, "--audit-full", full, "--audit-categories", "ERROR", "--admin-port", str(free_port()))
    guilty = Raw(s)
    piece = guilty.envelope(QUERY, query_body("SELECT " + "a" * 3000 + " FROM nowhere.nothing")) * 100
    sender = threading.Thread(target=lambda: [guilty.send(piece) for _ in range(requests // 100)])
    receiver = threading.Thread(target=lambda: [guilty.receive() for _ in range(requests)])
    drain = threading.Thread(target=lambda: lines.extend(reader))
    sender.start()
    receiver.start()

    def metric(name):
        return next(int(line.split()[1]) for line in ask(s, "GET", "/metrics")[2].splitlines() if line.startswith(name))

    def refused():
        return metric('tally_requests_total{opcode="QUERY",outcome="refused"}')

    if full == "drop":
        receiver.join()
        assert metric("tally_audit_lost_total") > 1000
    eventually(lambda: refused() > 5000)
    innocent = Raw(s, startup=False)  # of the same event loop
    eventually(lambda: metric("tally_connections ") == 2)
    innocent.sock.close()
    eventually(lambda: metric("tally_connections ") == 1)
    assert (refused() < requests) == (full == "wait")
    drain.start()
    sender.join()
    receiver.join()
    lost = metric("tally_audit_lost_total")
    guilty.sock.close()
    s.stop()
    drain.join()
    assert len(lines) == requests - lost and (lost > 0) == (full == "drop")
    assert all(json.loads(line)["code"] == "0x2200" for line in lines)
    assert ("it accepts no lines, and the queue is full" in s.log.read_text()) == (full == "drop")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="not run: no /dev/full on this machine")
def test_a_log_that_cannot_be_written_is_counted_and_nobody_is_refused(new_server):
    s = new_server("--mode", "cassandra", "--audit-log", "/dev/full")
    with s.cluster() as cluster:
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"
    s.stop()
    assert s.log.read_text().count("the audit log /dev/full cannot be written: No space left on device") == 1


def test_a_line_that_was_torn_does_not_spoil_the_next_one(new_server, tmp_path):
    """The limit of file size cuts a line; the file is larger than any other of the server."""
    file, room = tmp_path / "audit.log", 40
    with open(file, "w") as f:
        f.truncate(1 << 28)
    before = file.stat().st_size
    s = new_server("--mode", "cassandra", "--audit-log", file)
    with s.cluster() as cluster:
        session = cluster.connect()
        session.execute("SELECT host_id FROM system.local")

        def written():
            with open(file, "rb") as f:
                f.seek(before)
                return f.read()

        eventually(lambda: b"SELECT host_id FROM system.local" in written())
        soft, hard = resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (file.stat().st_size + room, hard))
        session.execute("SELECT cluster_name FROM system.local")
        eventually(lambda: "cannot be written: File too large" in s.log.read_text())
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        session.execute("SELECT rack FROM system.local")
    s.stop()
    lines = written().decode().splitlines()
    torn = [i for i, line in enumerate(lines) if not line.endswith("}")]
    assert len(torn) == 1 and len(lines[torn[0]]) == room, lines
    assert "rack" in json.loads(lines[torn[0] + 1])["statement"]
    assert s.log.read_text().count("cannot be written: File too large") == 1


@pytest.mark.parametrize("flags, words", [(["--audit-log", "/nowhere/at/all"], "cannot write the audit log to /nowhere/at/all"),
                                          (["--audit-categories", "DDL,DUL"], "--audit-categories must be all, or some of QUERY")])
def test_wrong_settings_are_refused(tmp_path, flags, words):
    done = subprocess.run([str(TALLYD), "--data-dir", str(tmp_path / "data"), "--port", "0", "--admin-port", "0", "--api-port", "0", *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and words in done.stderr
