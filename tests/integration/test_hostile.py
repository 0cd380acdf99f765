"""Clients that mean harm, or fail badly: the server answers or closes, lives, stays within its memory, and serves the others meanwhile."""
import contextlib
import os
import random
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import pytest

import stores
from tally_server import OPTIMISED, SLOWER, TALLYD, Server, let_pass

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "replay"))
from replay import SEGMENT_MAX, segment, string  # noqa: E402

ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, BATCH = 0, 1, 2, 5, 6, 7, 8, 9, 10, 13
ROWS, VOID = 2, 1
LOCAL_QUORUM = 6
INVALID, SYNTAX, SERVER, PROTOCOL, OVERLOADED = 0x2200, 0x2000, 0x0000, 0x000A, 0x1001

MEMORY = 344  # MB, the least, --memory of all servers here
RESIDENT_BESIDE = stores.in_use.resident_beside
SERVED_WITHIN = 5.0 * SLOWER  # seconds for a point read of somebody else, on a loaded machine
LOOPS_SHARE = 1 / 8 if OPTIMISED else 1 / 2  # of the CPU time of statements that others run, at most: it reads them, and sends what comes of them; a sanitizer makes large blocks dear


class Raw:
    """A connection without a driver's manners."""

    def __init__(self, server, version=4, startup=True, receive_buffer=None, source=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(30 * SLOWER)
        if source:
            self.sock.bind((source, 0))
        self.sock.connect((server.host, server.port))
        self.version = version
        if startup:
            self.send(self.envelope(STARTUP, struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0")))
            assert self.receive()[0] == READY

    def envelope(self, opcode, body, stream=0, length=None):
        return struct.pack(">BBhBI", self.version, 0, stream, opcode, len(body) if length is None else length) + body

    def send(self, data):
        self.sock.sendall(data)

    def read(self, n):
        parts = []
        while n:
            part = self.sock.recv(min(n, 1 << 20))
            if not part:
                raise ConnectionError("closed")
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def receive(self):
        """(opcode, stream, body) of one envelope; not for v5 after STARTUP."""
        _, flags, stream, opcode, n = struct.unpack(">BBhBI", self.read(9))
        body = self.read(n)
        if flags & 4:  # custom payload
            at, (count,) = 2, struct.unpack_from(">H", body)
            for _ in range(count):
                at += 2 + struct.unpack_from(">H", body, at)[0]
                at += 4 + max(struct.unpack_from(">i", body, at)[0], 0)
            body = body[at:]
        return opcode, stream, body

    def ask(self, opcode, body):
        self.send(self.envelope(opcode, body))
        answer, _, body = self.receive()
        return answer, body

    def query(self, cql, values=None, page_size=None, state=None):
        return self.ask(QUERY, query_body(cql, values, page_size, state))

    def error_of(self, cql, values=None, **options):
        """The code of the error that the statement must get."""
        opcode, body = self.query(cql, values, **options)
        assert opcode == ERROR, f"no error for {cql[:80]}"
        return struct.unpack_from(">I", body)[0]

    def must(self, cql, values=None, **options):
        opcode, body = self.query(cql, values, **options)
        assert opcode == RESULT, (cql[:80], body[:200])
        return body

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def value(v):
    return struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v


def query_body(cql, values=None, page_size=None, state=None):
    text = cql.encode()
    flags = (1 if values is not None else 0) | (4 if page_size else 0) | (8 if state is not None else 0)
    body = struct.pack(">I", len(text)) + text + struct.pack(">HB", LOCAL_QUORUM, flags)
    if values is not None:
        body += struct.pack(">H", len(values)) + b"".join(value(v) for v in values)
    if page_size:
        body += struct.pack(">i", page_size)
    if state is not None:
        body += value(state)
    return body


def status(server, field):
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(field)


def stayed_within(server, memory, beside=RESIDENT_BESIDE):
    peak = status(server, "VmHWM") >> 20
    print(f"peak of memory: {peak} MiB")
    assert not OPTIMISED or peak < memory + beside, f"{peak} MiB"


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp("server"), "--mode", "cassandra", "--threads", "2", "--memory", str(MEMORY)).start()
    with Raw(s) as c:
        c.must("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.must("CREATE TABLE h.t (pk int, ck int, v text, PRIMARY KEY (pk, ck))")
        c.must("CREATE TABLE h.big (pk int, ck int, v blob, PRIMARY KEY (pk, ck))")
        c.must("CREATE TABLE h.c (pk int PRIMARY KEY, l list<int>, s set<text>, m map<int, text>, fl frozen<list<frozen<map<int, text>>>>, "
               "tu tuple<int, text>, ve vector<float, 3>, d decimal, i inet, u uuid)")
        for ck in range(200):
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (1, ?, 'x')", [struct.pack(">i", ck)])
    yield s
    s.stop()


@pytest.fixture
def server(target):
    """The module's server; after the test it lives, answers and is within its bound."""
    yield target
    assert target.alive(), target.log_tail()
    with Raw(target) as c:
        c.must("SELECT * FROM h.t WHERE pk = 1 AND ck = 1")
    stayed_within(target, MEMORY)


@contextlib.contextmanager
def others_served(server):
    """Gives a check to call in the middle of the harm: another client's point read in time."""
    with Raw(server) as other:
        def check():
            t0 = time.monotonic()
            other.must("SELECT * FROM h.t WHERE pk = 1 AND ck = 1")
            assert time.monotonic() - t0 < SERVED_WITHIN

        check()
        yield check
        check()


def send_until_full(c, data, times):
    """Sends as often as the server takes it; True when it took everything."""
    c.sock.settimeout(1)
    try:
        for _ in range(times):
            c.send(data)
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("cql", ["SELECT * FROM h.big WHERE pk = 1", "SELECT * FROM h.big", "SELECT * FROM h.big WHERE pk = 1 AND ck = 1"])
def test_client_that_never_reads_is_held_back(server, cql):
    with Raw(server) as c:
        for ck in range(40):
            c.must("INSERT INTO h.big (pk, ck, v) VALUES (1, ?, ?)", [struct.pack(">i", ck), bytes(100_000)])
    slow = []
    with others_served(server) as check:
        for _ in range(4):  # 4 x 1000 results of 4 MB, or of 100 kB
            slow.append(Raw(server, receive_buffer=4096))
            send_until_full(slow[-1], slow[-1].envelope(QUERY, query_body(cql)), 1000)
            check()
    for c in slow:
        c.close()


def test_slow_reader_gets_everything_in_the_end(server):
    with Raw(server, receive_buffer=4096) as c:
        for stream in range(100):
            c.send(c.envelope(QUERY, query_body("SELECT * FROM h.t WHERE pk = 1 AND ck = 1"), stream))
        seen = set()
        for _ in range(100):
            opcode, stream, _ = c.receive()
            assert opcode == RESULT
            seen.add(stream)
        assert seen == set(range(100))


@pytest.mark.parametrize("cql", [
    "INSERT INTO h.t (pk, ck, v) VALUES (7, 7, 'a') IF NOT EXISTS",
    "UPDATE h.t SET v = 'b' WHERE pk = 7 AND ck = 7 IF EXISTS",
    "SELECT count(*) FROM h.t",
    "INSERT INTO h.t (pk, ck, v) VALUES (7, 8, 'a')",
])
def test_connections_closed_while_their_requests_run(server, cql):
    with others_served(server) as check:
        for i in range(60):
            c = Raw(server)
            c.send(b"".join(c.envelope(QUERY, query_body(cql), s) for s in range(50)))
            if i % 2:  # a reset instead of a clean end
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.close()
            if i % 20 == 0:
                check()


def test_connection_without_startup_is_closed_after_the_timeout(new_server):
    s = new_server("--mode", "cassandra", "--handshake-timeout", "1")
    with Raw(s, startup=False) as mute, Raw(s) as ready:
        assert mute.sock.recv(1) == b""
        ready.must("SELECT key FROM system.local")
    s.stop()


@pytest.mark.parametrize("version", [3, 4, 5])
def test_half_sent_frames_are_kept_cheaply(server, version):
    half = []
    with others_served(server) as check:
        for i in range(300):
            c = Raw(server, version)
            whole = c.envelope(QUERY, b"x" * 60_000, length=15 << 20)
            if version == 5:
                whole = b"".join(segment(whole[at:at + SEGMENT_MAX], False) for at in range(0, len(whole), SEGMENT_MAX))[:-7]
            c.send(whole[:random.randrange(1, len(whole))])
            half.append(c)
            if i % 100 == 0:
                check()
    for c in half:
        c.close()


def drain(c):
    """Whatever comes, until the server closes or waits for more."""
    c.sock.settimeout(0.2)
    with contextlib.suppress(OSError):
        while c.sock.recv(1 << 16):
            pass
    c.close()


@pytest.mark.parametrize("startup", [False, True])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_random_garbage(server, version, startup):
    rng = random.Random(version)
    with others_served(server) as check:
        for i in range(40):
            c = Raw(server, version, startup=startup)
            data = rng.randbytes(rng.randrange(1, 4000))
            if i % 2:  # a header that is believed, then garbage
                data = c.envelope(rng.choice([STARTUP, OPTIONS, QUERY, PREPARE, EXECUTE, BATCH, rng.randrange(256)]), data)
                if version == 5 and startup:
                    data = segment(data)
            with contextlib.suppress(OSError):
                c.send(data)
                c.sock.shutdown(socket.SHUT_WR)
            drain(c)
        check()


def test_flipped_bits_in_segments(server):
    rng = random.Random(5)
    with others_served(server):
        for _ in range(60):
            c = Raw(server, 5)
            text = b"SELECT * FROM h.t WHERE pk = 1 AND ck = 1"
            body = struct.pack(">I", len(text)) + text + struct.pack(">HI", LOCAL_QUORUM, 0)
            good = segment(c.envelope(QUERY, body))
            bad = bytearray(good)
            bit = rng.randrange(len(bad) * 8)
            bad[bit // 8] ^= 1 << bit % 8
            with contextlib.suppress(OSError):
                c.send(good + bytes(bad))
            drain(c)


def collection(count, *items):
    return struct.pack(">i", count) + b"".join(items)


@pytest.mark.parametrize("column, lie", [
    ("l", collection(0x7fffffff)),
    ("l", collection(-1, value(b"\0\0\0\1"))),
    ("l", collection(1 << 24, value(b"\0\0\0\1"))),
    ("l", collection(1, struct.pack(">i", 0x7fffffff))),
    ("l", collection(2, value(b"\0\0\0\1"))),
    ("l", collection(1, value(None))),
    ("l", b"\0\0"),
    ("s", collection(0x7fffffff, value(b"a"))),
    ("s", collection(1, value(b"\xff\xfe"))),
    ("m", collection(1, value(b"\0\0\0\1"))),
    ("m", collection(0x40000000, value(b"\0\0\0\1"), value(b"a"))),
    ("m", collection(-(1 << 31), value(b"\0\0\0\1"), value(b"a"))),
    ("fl", collection(1, value(collection(0x7fffffff)))),
    ("fl", collection(0x7fffffff, value(collection(0)))),
    ("tu", struct.pack(">i", 0x7fffffff)),
    ("tu", value(b"\0\0\0\1") * 3),
    ("ve", bytes(11)),
    ("ve", bytes(1000)),
    ("d", b"\0\0\0"),
    ("i", bytes(5)),
    ("u", bytes(15)),
])
def test_lying_values_are_refused(server, column, lie):
    with Raw(server) as c:
        assert c.error_of(f"INSERT INTO h.c (pk, {column}) VALUES (1, ?)", [lie]) in (INVALID, PROTOCOL, SERVER)
        assert c.error_of(f"UPDATE h.c SET {column} = ? WHERE pk = 1", [lie]) in (INVALID, PROTOCOL, SERVER)
        c.must("SELECT * FROM h.c WHERE pk = 1")


DEEP = 100_000


@pytest.mark.parametrize("cql", [
    "SELECT * FROM h.t WHERE " + "(" * DEEP + "pk" + ")" * DEEP + " = 1",
    "SELECT " + "(" * DEEP + "pk" + ")" * DEEP + " FROM h.t",
    "SELECT " + "(int)" * DEEP + "pk FROM h.t",
    "SELECT " + "-" * 1 + "(" * DEEP + "1 FROM h.t",
    "SELECT " + "token(" * DEEP + "pk" + ")" * DEEP + " FROM h.t",
    "SELECT " + "pk+" * DEEP + "pk FROM h.t",
    "INSERT INTO h.c (pk, l) VALUES (1, " + "[" * DEEP + "]" * DEEP + ")",
    "INSERT INTO h.c (pk, l) VALUES (1, " + "{" * DEEP,
    "INSERT INTO h.c (pk, m) VALUES (1, " + "{1:" * DEEP,
    "INSERT INTO h.c (pk, tu) VALUES (1, " + "(" * DEEP + "1" + ")" * DEEP + ")",
    "CREATE TABLE h.deep (pk int PRIMARY KEY, v " + "frozen<list<" * DEEP + "int" + ">>" * DEEP + ")",
    "CREATE TABLE h.deep (pk int PRIMARY KEY, v " + "frozen<list<" * 200 + "int" + ">>" * 200 + ")",
    "CREATE TABLE h.deep (pk int PRIMARY KEY, v 'org.apache.cassandra.db.marshal." + "ListType(" * DEEP + "')",
    "INSERT INTO h.c JSON '{\"pk\": 1, \"fl\": " + "[" * DEEP + "]" * DEEP + "}'",
    "INSERT INTO h.c JSON '" + '{"a":' * DEEP + "'",
    "SELECT fromJson('" + "[" * DEEP + "') FROM h.c",
    "BEGIN " * DEEP,
    "/*" * DEEP,
    "$$" * DEEP + "$",
    "'" * (DEEP + 1),
], ids=lambda cql: cql[:48])
def test_deep_nesting_is_an_error(server, cql):
    with Raw(server) as c:
        assert c.error_of(cql) in (SYNTAX, INVALID, SERVER, PROTOCOL)
        opcode, body = c.ask(PREPARE, struct.pack(">I", len(cql)) + cql.encode())
        if opcode == RESULT:  # JSON, and the types of a table, are looked at when the statement runs
            n = struct.unpack_from(">H", body, 4)[0]
            opcode, _ = c.ask(EXECUTE, body[4:6 + n] + struct.pack(">HB", LOCAL_QUORUM, 0))
        assert opcode == ERROR


def test_long_where_clauses_are_answered(server):
    with Raw(server) as c, others_served(server) as check:
        for cql in ("SELECT * FROM h.t WHERE pk = 1" + " AND ck > 1" * 100_000,
                    "SELECT * FROM h.t WHERE pk IN (" + "1," * 500_000 + "1)",
                    "SELECT * FROM h.t WHERE pk = 1 AND ck IN (" + "1," * 500_000 + "1)",
                    "SELECT " + "pk," * 300_000 + "pk FROM h.t"):
            opcode, _ = c.query(cql)
            assert opcode in (ERROR, RESULT)
            check()


def test_huge_batches_are_answered(server):
    row = b"INSERT INTO h.t (pk, ck, v) VALUES (9, 9, 'x')"
    item = struct.pack(">BI", 0, len(row)) + row + struct.pack(">H", 0)
    with Raw(server) as c, others_served(server) as check:
        for n in (65535, 20_000):
            opcode, _ = c.ask(BATCH, struct.pack(">BH", 1, n) + item * n + struct.pack(">HB", LOCAL_QUORUM, 0))
            assert opcode in (ERROR, RESULT)
            check()
        opcode, _ = c.ask(BATCH, struct.pack(">BH", 1, 65535) + item * 3 + struct.pack(">HB", LOCAL_QUORUM, 0))
        assert opcode == ERROR
        opcode, _ = c.query("BEGIN UNLOGGED BATCH " + row.decode() * 100_000 + " APPLY BATCH")
        assert opcode in (ERROR, RESULT)


def test_flood_of_prepared_statements_is_bounded(server):
    before = status(server, "VmRSS")
    with Raw(server) as c, others_served(server) as check:
        for start in range(0, 20_000, 100):
            queries = [f"SELECT pk, ck, v FROM h.t WHERE pk = ? AND ck = {n} /* {'x' * 2000} */" for n in range(start, start + 100)]
            c.send(b"".join(c.envelope(PREPARE, struct.pack(">I", len(q)) + q.encode()) for q in queries))
            for _ in queries:
                opcode, _, body = c.receive()
                assert opcode == RESULT
        check()
        n = struct.unpack_from(">H", body, 4)[0]
        newest = body[6:6 + n]
        opcode, _ = c.ask(EXECUTE, struct.pack(">H", n) + newest + struct.pack(">HBH", LOCAL_QUORUM, 1, 1) + value(struct.pack(">i", 1)))
        assert opcode == RESULT
    grown = status(server, "VmRSS") - before
    assert not OPTIMISED or grown < 160 << 20, f"{grown >> 20} MiB"


def paging_state(body):
    kind, flags = struct.unpack_from(">II", body)
    assert kind == ROWS and flags & 2, "there is no further page"
    n = struct.unpack_from(">I", body, 12)[0]
    return body[16:16 + n]


@pytest.mark.parametrize("cql", ["SELECT * FROM h.t WHERE pk = 1", "SELECT * FROM h.t", "SELECT * FROM h.t WHERE pk IN (1, 2)"])
def test_forged_paging_states_are_refused(server, cql):
    rng = random.Random(3)
    with Raw(server) as c:
        state = paging_state(c.must(cql, page_size=10))
        assert paging_state(c.must(cql, page_size=10, state=state)) != state
        for bit in range(len(state) * 8):
            forged = bytearray(state)
            forged[bit // 8] ^= 1 << bit % 8
            assert c.error_of(cql, page_size=10, state=bytes(forged)) == PROTOCOL
        for forged in (b"", b"\0", state[:-1], state + b"\0", bytes(len(state)), bytes(1 << 20), rng.randbytes(60)):
            if forged or not state:
                assert c.error_of(cql, page_size=10, state=forged) == PROTOCOL
        assert c.error_of("SELECT pk FROM h.t WHERE pk = 1 AND ck > 5", page_size=10, state=state) == PROTOCOL


def test_values_of_ten_megabytes(server):
    big = os.urandom(10 << 20)
    with Raw(server) as c, others_served(server) as check:
        for ck in range(3):
            c.must("INSERT INTO h.big (pk, ck, v) VALUES (2, ?, ?)", [struct.pack(">i", ck), big])
            check()
        body = c.must("SELECT v FROM h.big WHERE pk = 2 AND ck = 1")
        assert body.endswith(big)
        page = c.must("SELECT v FROM h.big WHERE pk = 2", page_size=1000)
        assert len(page) < 25 << 20 and paging_state(page)
        c.must("DELETE FROM h.big WHERE pk = 2")


def test_row_does_not_outgrow_its_bound(server):
    """At 344 MB the bound of a row is 21 MB. Writes that do not read the row are refused once it is reached; others' rows are written."""
    bound, entry = (MEMORY // 16) << 20, 2 << 20
    with Raw(server) as c, others_served(server) as check:
        c.must("CREATE TABLE h.wide (pk int PRIMARY KEY, m map<int, blob>)")
        written = 0
        while (answer := c.query("UPDATE h.wide SET m[?] = ? WHERE pk = 1", [struct.pack(">i", written), bytes(entry)]))[0] == RESULT:
            written += 1
            assert written * entry <= bound + bound // 4
            c.must("UPDATE h.wide SET m[?] = ? WHERE pk = 2", [struct.pack(">i", written % 4), bytes(entry)])
        assert struct.unpack_from(">I", answer[1])[0] == INVALID and b"Guardrail row_size violated: Row of h.wide has size " in answer[1]
        check()
        for _ in range(3):
            c.must("SELECT m[0] FROM h.wide WHERE pk = 1")
        c.must("DELETE m FROM h.wide WHERE pk = 1")
        c.must("UPDATE h.wide SET m[?] = ? WHERE pk = 1", [struct.pack(">i", 0), bytes(entry)])
        c.must("DROP TABLE h.wide")


def test_requests_over_the_frame_limit_are_refused_and_the_connection_goes_on(server):
    with Raw(server) as c:
        opcode, _ = c.ask(QUERY, query_body("INSERT INTO h.big (pk, ck, v) VALUES (3, 3, ?)", [bytes(17 << 20)]))
        assert opcode == ERROR
        c.must("SELECT * FROM h.t WHERE pk = 1 AND ck = 1")


# ---- bounds on what clients hold, each with an innocent client beside the guilty one ----


@contextlib.contextmanager
def background(work):
    """Runs work() again and again on a thread; gives the list of what went wrong."""
    wrong, ended = [], threading.Event()

    def loop():
        while not ended.is_set():
            try:
                work()
            except Exception as e:  # noqa: BLE001: whatever it is, the test tells it
                wrong.append(e)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield wrong
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def new_server(new_server):
    """That of all tests; those that live at the end of the test have stayed within their memory."""
    made = []

    def make(*flags, memory=MEMORY, beside=RESIDENT_BESIDE):
        made.append((new_server("--memory", str(memory), *flags), memory, beside))
        return made[-1][0]

    yield make
    for s, memory, beside in made:
        if s.alive():
            stayed_within(s, memory, beside)


def own_server(new_server, *flags, **more):
    s = new_server("--mode", "cassandra", "--threads", "2", *flags, **more)
    with Raw(s) as c:
        c.must("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.must("CREATE TABLE h.t (pk int, ck int, v blob, PRIMARY KEY (pk, ck))")
    return s


def test_a_row_larger_than_what_a_request_may_take_is_read_and_written_by_its_key(new_server):
    """120 MB in one row: 24 elements of 5 MB. While RocksDB merges them it holds the row several times over."""
    s = own_server(new_server, "--max-row-size", "0", beside=RESIDENT_BESIDE + 5 * 120)
    with Raw(s) as c, others_served(s) as check:
        c.must("CREATE TABLE h.large (pk int PRIMARY KEY, m map<int, blob>, v int)")
        for i in range(24):
            c.must("UPDATE h.large SET m[?] = ?, v = 7 WHERE pk = 1", [struct.pack(">i", i), os.urandom(5 << 20)])
        check()
        for cql in ("SELECT v FROM h.large WHERE pk = 1", "SELECT v FROM h.large WHERE pk IN (0, 1, 2)", "SELECT v FROM h.large"):
            assert c.must(cql).endswith(struct.pack(">iii", 1, 4, 7)), cql
        for cql in ("SELECT * FROM h.large WHERE pk = 1", "SELECT m FROM h.large"):
            assert c.error_of(cql) == 0, cql  # a server error, with words
            assert b"The value of column m is larger than what one request may take of memory" in c.ask(QUERY, query_body(cql))[1]
        check()
        assert c.must("UPDATE h.large SET v = 8 WHERE pk = 1 IF v = 9").endswith(b"\0" + struct.pack(">ii", 4, 7))
        c.must("UPDATE h.large SET v = 8 WHERE pk = 1 IF v = 7")
        assert c.must("SELECT v FROM h.large WHERE pk = 1").endswith(struct.pack(">iii", 1, 4, 8))
        c.must("DELETE FROM h.large WHERE pk = 1")
        assert c.must("SELECT v FROM h.large WHERE pk = 1").endswith(struct.pack(">i", 0))
        check()


def test_requests_that_need_much_memory_are_overloaded_and_small_ones_served(new_server):
    """Together requests may hold 8 MB here: a row of 20 MB is too much, whoever asks for a small one beside it gets it, and one of 4 MB comes through in the end."""
    s = own_server(new_server, "--queue-bytes", str(4 << 20), "--max-work-bytes", str(4 << 20), "--max-row-size", "0")
    with Raw(s) as c, Raw(s) as slow, others_served(s) as check:
        c.must("CREATE TABLE h.large (pk int PRIMARY KEY, m map<int, blob>)")
        for i in range(10):
            c.must("UPDATE h.large SET m[?] = ? WHERE pk = 1", [struct.pack(">i", i), os.urandom(2 << 20)])
        c.must("UPDATE h.large SET m[1] = ? WHERE pk = 2", [os.urandom(3 << 20)])
        for _ in range(5):
            slow.send(slow.envelope(QUERY, query_body("SELECT m FROM h.large WHERE pk = 1")))
            check()
            opcode, _, body = slow.receive()
            assert opcode == ERROR and struct.unpack_from(">i", body)[0] == OVERLOADED and b"--max-work-bytes" in body, body[:200]
        assert len(c.must("SELECT m FROM h.large WHERE pk = 2")) > 3 << 20
        check()


def is_closed(c, seconds):
    """Whether the server ends the connection in that time, whatever it still says."""
    c.sock.settimeout(seconds)
    with contextlib.suppress(ConnectionError):
        try:
            while c.sock.recv(1 << 16):
                pass
        except TimeoutError:
            return False
    return True


def test_connections_that_hold_the_most_of_unfinished_requests_are_closed_and_no_other(new_server):
    s = own_server(new_server, "--max-unfinished-bytes", str(64 << 20), memory=384)
    begun = Raw(s).envelope(QUERY, bytes(15 << 20), length=16 << 20)
    innocents = [Raw(s) for _ in range(4)]

    def insert():
        for n, c in enumerate(innocents):  # large enough to come in many pieces
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (1, ?, ?)", [struct.pack(">i", n), bytes(500_000)])

    def harm():
        guilty = []
        for _ in range(12):
            guilty.append(Raw(s, source="127.0.0.2"))
            with contextlib.suppress(OSError):
                guilty[-1].send(begun)
        assert any(is_closed(c, 0.1) for c in guilty)
        for c in guilty:
            c.close()

    with background(insert) as wrong:
        for _ in range(5):
            harm()
    assert not wrong, wrong[:3]
    assert not OPTIMISED or status(s, "VmHWM") < 300 << 20
    s.stop()


def unfinished(c):
    whole = c.envelope(QUERY, query_body("SELECT key FROM system.local"))
    if c.version == 5:
        whole = segment(whole)
    return whole


@pytest.mark.parametrize("version", [4, 5])
def test_unfinished_requests_time_out(new_server, version):
    s = own_server(new_server, "--request-timeout", "1")
    guilty, dripping, patient, slow = (Raw(s, version) for _ in range(4))
    parts = [c.envelope(QUERY, bytes(200_000), length=1 << 20) for c in (guilty,)]
    if version == 5:  # whole segments, of an envelope that does not end
        parts = [segment(parts[0][at:at + SEGMENT_MAX], False) for at in range(0, len(parts[0]), SEGMENT_MAX)]
    for part in parts:
        guilty.send(part)
    whole = unfinished(slow)
    took = []  # how long slow's requests were on their way, which is the machine's doing where it pauses
    for i in range(12):  # six seconds; slow needs half a second for each of its requests, dripping would need long for its one
        began = time.monotonic()
        with contextlib.suppress(OSError) if max(took, default=0) > 1 else contextlib.nullcontext():
            slow.send(whole[:20] if i % 2 == 0 else whole[20:])
        with contextlib.suppress(OSError):
            dripping.send(unfinished(dripping)[i:i + 1])
        let_pass(0.5)
        took.append(time.monotonic() - began)
    assert is_closed(guilty, 30) and is_closed(dripping, 30)
    assert not is_closed(patient, 0.1)  # it has sent nothing
    slow.sock.settimeout(30)
    if max(took[::2]) < 1:
        assert len(slow.read(6 * 20)) == 120  # and has its answers
    s.stop()


def test_one_address_cannot_take_all_connections(new_server):
    s = own_server(new_server, "--max-connections", "40", "--max-connections-per-address", "25")
    taken = []
    for _ in range(35):
        c = Raw(s, startup=False, source="127.0.0.2")
        taken.append(c)
    closed = [c for c in taken if is_closed(c, 0.05)]
    assert len(closed) == 10
    for _ in range(3):
        with Raw(s) as c:
            c.must("SELECT key FROM system.local")
    for c in taken:
        c.close()
    with background(lambda: Raw(s).close()):
        let_pass(0.5)
    deadline = time.monotonic() + SERVED_WITHIN
    while time.monotonic() < deadline:  # who left makes room
        with contextlib.suppress(OSError), Raw(s, source="127.0.0.2") as c:
            c.must("SELECT key FROM system.local")
            break
    else:
        raise AssertionError("no connection from an address that has closed all of its own")
    s.stop()


def test_connections_leave_the_store_its_files(tmp_path):
    few = tmp_path / "few-files"
    few.write_text(f'#!/bin/sh\nulimit -n 200\nexec {TALLYD} "$@"\n')
    few.chmod(0o755)
    s = Server(tmp_path, "--mode", "cassandra", "--threads", "2", binary=few).start()
    with Raw(s) as c:
        flood = []
        for i in range(300):
            with contextlib.suppress(OSError):
                flood.append(Raw(s, startup=False, source=f"127.0.0.{i % 5 + 2}"))
        c.must("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.must("CREATE TABLE h.t (pk int, ck int, v blob, PRIMARY KEY (pk, ck))")
        for ck in range(200):  # enough for flushes, which open files
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (1, ?, ?)", [struct.pack(">i", ck), os.urandom(1_000_000)])
        open_files = len(os.listdir(f"/proc/{s.process.pid}/fd"))
        assert open_files < 190, open_files
        assert sum(not is_closed(f, 0.01) for f in flood) < 110
        for f in flood:
            f.close()
    s.stop()
    assert "cannot accept" not in s.log_tail()


def test_client_that_takes_nothing_is_closed_after_the_write_timeout(new_server):
    s = own_server(new_server, "--send-timeout", "1")
    with Raw(s) as c:
        for ck in range(20):
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (1, ?, ?)", [struct.pack(">i", ck), bytes(500_000)])
    stuck, steady = Raw(s, receive_buffer=4096), Raw(s, receive_buffer=4096)
    ask = stuck.envelope(QUERY, query_body("SELECT * FROM h.t WHERE pk = 1"))
    stuck.send(ask)
    steady.send(ask)
    (whole,) = struct.unpack_from(">I", steady.read(9), 5)
    for _ in range(100):  # slower than the server, but never still for long
        steady.read(1000)
        let_pass(0.05)
    steady.read(whole - 100 * 1000)
    stuck.sock.settimeout(30)
    got = 0
    with contextlib.suppress(ConnectionError):
        while part := stuck.sock.recv(1 << 20):
            got += len(part)
    assert got < 20 * 500_000
    s.stop()


def unread_server(new_server, *flags, **more):
    """With 55 MB in partition 1, and 1 MB in partition 2."""
    s = own_server(new_server, *flags, **more)
    with Raw(s) as c:
        for ck in range(55):
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (1, ?, ?)", [struct.pack(">i", ck), bytes(1_000_000)])
        for ck in range(10):
            c.must("INSERT INTO h.t (pk, ck, v) VALUES (2, ?, ?)", [struct.pack(">i", ck), bytes(100_000)])
    return s


LARGE, MEDIUM = "SELECT * FROM h.t WHERE pk = 1", "SELECT * FROM h.t WHERE pk = 2"


@pytest.mark.parametrize("version", [4, 5])
def test_results_that_nobody_reads_cost_those_who_do_not_read_them(new_server, version):
    s = unread_server(new_server, "--max-unread-bytes", str(192 << 20))
    before = status(s, "VmRSS")
    readers = [Raw(s) for _ in range(20)]

    def read():
        for c in readers:  # each has an answer of 1 MB on its way while the others are read
            c.send(c.envelope(QUERY, query_body(MEDIUM)))
        for c in readers:
            opcode, _, body = c.receive()
            assert opcode == RESULT and len(body) > 1_000_000, body[:200]

    guilty = []
    with background(read) as wrong:
        for _ in range(100):
            guilty.append(Raw(s, version, source="127.0.0.2", receive_buffer=4096))
            ask = guilty[-1].envelope(QUERY, query_body(LARGE))
            if version == 5:
                ask = segment(guilty[-1].envelope(QUERY, query_body(LARGE)[:-1] + bytes(4)))
            guilty[-1].send(ask)
        let_pass(8)
    assert not wrong, wrong[:3]
    grown = status(s, "VmHWM") - before
    print(f"grown by {grown >> 20} MiB")
    assert not OPTIMISED or grown < 400 << 20, f"{grown >> 20} MiB"
    for c in guilty:
        c.close()
    with Raw(s) as c:  # and what they held is there again for who reads
        assert len(c.must(LARGE)) > 55_000_000
    s.stop()


def test_results_of_one_connection_are_made_as_it_reads_them(new_server):
    s = unread_server(new_server)
    before = status(s, "VmRSS")
    with Raw(s, receive_buffer=4096) as c, others_served(s) as check:
        c.send(b"".join(c.envelope(QUERY, query_body(LARGE), stream) for stream in range(10)))
        for _ in range(8):
            let_pass(1)
            check()
        grown = status(s, "VmHWM") - before
        assert not OPTIMISED or grown < 220 << 20, f"{grown >> 20} MiB"
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        seen = set()
        for _ in range(10):  # that it was slow is no reason to let its requests run out of time
            opcode, stream, body = c.receive()
            assert opcode == RESULT and len(body) > 55_000_000, body[:200]
            seen.add(stream)
        assert seen == set(range(10))
    s.stop()


def test_slow_but_steady_reader_is_held_what_it_has_not_read_not_all_it_was_ever_sent(new_server):
    s = unread_server(new_server)
    with Raw(s) as c:
        ask = c.envelope(QUERY, query_body(MEDIUM))
        c.send(ask * 4)
        c.receive()
        before = status(s, "VmRSS")
        for _ in range(200):  # 200 MB, of which some always wait
            c.send(ask)
            opcode, _, body = c.receive()
            assert opcode == RESULT and len(body) > 1_000_000
            let_pass(0.01)
        grown = status(s, "VmHWM") - before
        assert not OPTIMISED or grown < 48 << 20, f"{grown >> 20} MiB"
    s.stop()


def http_get(port, path):
    with socket.create_connection(("127.0.0.1", port), timeout=300) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := s.recv(1 << 16):
            answer += part
    return answer.split(b"\r\n")[0].decode()


@pytest.mark.parametrize("begun", [b"", b"GET /ready HTTP/1.1\r\nHost"])
def test_half_open_connections_do_not_hold_up_the_admin_port(new_server, begun):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    s = new_server("--mode", "cassandra", "--admin-port", str(port))
    half_open = []
    for n in range(600):
        half_open.append(socket.create_connection(("127.0.0.1", port)))
        half_open[-1].sendall(begun)
        if n % 50 == 49:
            for path in ("/ready", "/metrics"):
                t0 = time.monotonic()
                assert http_get(port, path) == "HTTP/1.1 200 OK"
                assert time.monotonic() - t0 < SERVED_WITHIN
    assert len(os.listdir(f"/proc/{s.process.pid}/fd")) < 300
    for c in half_open:
        c.close()
    s.stop()


def test_connections_are_kept_alive(server):
    """What is idle is asked by TCP, so that who vanished without a word does not stay for ever."""
    with Raw(server) as c:
        port = c.sock.getsockname()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{server.port:04X}") and fields[2].endswith(f":{port:04X}"):
                assert fields[5].split(":")[0] == "02", line
                return
    raise AssertionError("the connection is not in /proc/net/tcp")

LONG_STATEMENTS = {
    "assignments": "UPDATE h.t SET " + ", ".join(f"a{i} = 1" for i in range(30_000)) + " WHERE pk = 1 AND ck = 1",
    "columns": "INSERT INTO h.t (pk, ck, " + ", ".join(f"a{i}" for i in range(40_000)) + ") VALUES (" + "1, " * 40_001 + "1)",
    "declarations": "CREATE TABLE h.wide (pk int PRIMARY KEY, " + ", ".join(f"a{i} int" for i in range(30_000)) + ", pk int)",
    "options": "CREATE TABLE h.wide (pk int PRIMARY KEY) WITH compaction = {" + ", ".join(f"'a{i}': '1'" for i in range(30_000)) + "}",
    "properties": "CREATE TABLE h.wide (pk int PRIMARY KEY) WITH " + " AND ".join(f"a{i} = 1" for i in range(30_000)),
    "list": "INSERT INTO h.c (pk, l) VALUES (1, [" + "1, " * 100_000 + "1])",
}


def cpu_of_threads(server):
    """Nanoseconds of CPU time that each thread has had: what a thread does takes them however busy the machine is."""
    spent = {}
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            spent[thread.name] = int((thread / "schedstat").read_text().split()[0])
    return spent


def cpu_of(server, work):
    """What each thread spends meanwhile."""
    before = cpu_of_threads(server)
    work()
    return {thread: spent - before.get(thread, 0) for thread, spent in cpu_of_threads(server).items()}


def holds_up_nobody(server, harm, innocent, plain=None):
    """The harm is done by others than the loop, of which there is one, and who reads beside it is served. plain: a request as large, which the loop answers itself."""
    def read():
        innocent.must("SELECT * FROM h.t WHERE pk = 1 AND ck = 1")

    alone = cpu_of(server, lambda: [read() for _ in range(200)])
    loop = max(alone, key=alone.get)  # who answers reads of what is in memory
    anyway = cpu_of(server, lambda: [plain() for _ in range(3)])[loop] if plain else 0
    spent = cpu_of(server, lambda: [harm() for _ in range(3)])
    told = f"{spent[loop] / 3e6:.2f} ms of {sum(spent.values()) / 3e6:.2f} on the loop each time, {anyway / 3e6:.2f} anyway"
    print(told)
    assert spent[loop] < max(sum(spent.values()) * LOOPS_SHARE, 2 * anyway), told
    with background(harm) as wrong:
        let_pass(0.2)
        for _ in range(100):
            read()
    assert not wrong


@pytest.mark.parametrize("shape", LONG_STATEMENTS)
def test_long_statements_do_not_hold_up_their_loop(new_server, shape):
    """One loop, one client whose statements of 350 KB and more never end, and one who reads beside it."""
    s = own_server(new_server, "--threads", "1")
    with Raw(s) as guilty, Raw(s) as innocent:
        guilty.must("CREATE TABLE h.c (pk int PRIMARY KEY, l list<int>)")
        holds_up_nobody(s, lambda: guilty.query(LONG_STATEMENTS[shape]), innocent)


HUGE = b"\x7f" * (1 << 20)
DIGITS = b"7" * (2 << 20)
HUGE_NUMBERS = {
    "stored varint": ("SELECT CAST(v AS text), toJson(v) FROM h.n WHERE pk = 1", None),
    "stored decimal": ("SELECT JSON d FROM h.n WHERE pk = 1", None),
    "filter": ("SELECT pk FROM h.n WHERE pk = 1 AND d > 1 ALLOW FILTERING", None),
    "bound": ("INSERT INTO h.n (pk, t) VALUES (2, toJson((varint)?))", [HUGE]),
    "JSON": ("INSERT INTO h.n JSON ?", [b'{"pk": 3, "v": ' + DIGITS + b"}"]),
}


@pytest.mark.parametrize("shape", HUGE_NUMBERS)
def test_digits_of_huge_numbers_do_not_hold_up_their_loop(new_server, shape):
    """A number of 1 MB takes some tenths of a second to be printed or read; who reads on the same loop meanwhile is not kept waiting."""
    s = own_server(new_server, "--threads", "1")
    with Raw(s) as guilty, Raw(s) as innocent:
        guilty.must("CREATE TABLE h.n (pk int PRIMARY KEY, v varint, d decimal, t text)")
        guilty.must("INSERT INTO h.n (pk, v, d) VALUES (1, ?, ?)", [HUGE, bytes(4) + HUGE])
        holds_up_nobody(s, lambda: guilty.must(*HUGE_NUMBERS[shape]), innocent, plain=lambda: guilty.must("SELECT v, d FROM h.n WHERE pk = 1"))
