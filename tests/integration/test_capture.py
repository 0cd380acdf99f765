"""tally capture and tally replay: what is recorded, what it comes to when it is sent or priced again, and what is said of a recording that is damaged."""
import json
import random
import socket
import struct
import subprocess

import pytest
from cassandra import InvalidRequest, ReadTimeout, WriteTimeout
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from tally_server import TALLYD, Server, create_keyspace, create_table

TALLY = TALLYD.parent / "tally"


def tally(*args, code=0):
    """What it prints; its exit code must be this."""
    run = subprocess.run([str(TALLY), *(str(a) for a in args)], capture_output=True, text=True, timeout=300)
    assert run.returncode == code, (run.returncode, run.stdout[-3000:], run.stderr[-3000:])
    return run.stdout if code == 0 or run.stdout else run.stderr


def make_schema(session):
    create_keyspace(session, "shop")
    create_table(session, "shop", "orders", "customer int, day int, id int, total int, note text, name text static, PRIMARY KEY ((customer), day, id)")
    create_table(session, "shop", "visits", "page text PRIMARY KEY, n counter")
    create_table(session, "shop", "notes", "id int PRIMARY KEY, tags set<text>, names map<text, int>, body text")


def refuse(session, statement, *values):
    with pytest.raises((InvalidRequest, ReadTimeout, WriteTimeout)):
        session.execute(statement, *values)


class Workload:
    """A random one of everything that a client may ask; one request after the other."""

    def __init__(self, session, seed):
        self.session, self.random = session, random.Random(seed)
        prepare = session.prepare
        self.insert = prepare("INSERT INTO shop.orders (customer, day, id, total, note) VALUES (?, ?, ?, ?, ?)")
        self.insert_static = prepare("INSERT INTO shop.orders (customer, day, id, name, note) VALUES (?, ?, ?, ?, ?)")
        self.update_if = prepare("UPDATE shop.orders SET total = ? WHERE customer = ? AND day = ? AND id = ? IF total = ?")
        self.range = prepare("SELECT * FROM shop.orders WHERE customer = ? AND day >= ?")
        self.one = prepare("SELECT total FROM shop.orders WHERE customer = ? AND day = ? AND id = ?")
        self.count = prepare("UPDATE shop.visits SET n = n + ? WHERE page = ?")
        self.tag = prepare("UPDATE shop.notes SET tags = tags + ?, names = ? WHERE id = ?")
        self.delete = prepare("DELETE FROM shop.orders WHERE customer = ? AND day = ?")

    def key(self):
        return self.random.randrange(6), self.random.randrange(4), self.random.randrange(8)

    def text(self, most):
        return "x" * self.random.randrange(most)

    def batch(self):
        b = BatchStatement(batch_type=self.random.choice([BatchType.LOGGED, BatchType.UNLOGGED]))
        customer = self.random.randrange(6)
        for i in range(self.random.randrange(1, 5)):
            b.add(self.insert, (customer, 1, i, i, self.text(2000)))
        b.add(SimpleStatement("INSERT INTO shop.orders (customer, day, id, total) VALUES (%s, 9, 9, 1)"), (customer,))
        self.session.execute(b)

    def pages(self):
        self.range.fetch_size = self.random.choice([1, 3, 100])
        list(self.session.execute(self.range, (self.random.randrange(6), 0)))

    def scan(self):
        list(self.session.execute(SimpleStatement("SELECT * FROM shop.orders WHERE total > 3 ALLOW FILTERING", fetch_size=self.random.choice([2, 50]))))

    def refused(self):
        refuse(self.session, "SELECT * FROM shop.nothing")
        refuse(self.session, f"INSERT INTO shop.orders (customer, day) VALUES ({self.random.randrange(9)}, 1)")
        refuse(self.session, "SELECT sum(total) FROM shop.orders WHERE customer = 1")

    def step(self):
        execute, (customer, day, order) = self.session.execute, self.key()
        self.random.choice([
            lambda: execute(self.insert, (customer, day, order, self.random.randrange(9), self.text(5000))),
            lambda: execute(self.insert_static, (customer, day, order, self.text(3000), self.text(30))),
            lambda: execute(self.update_if, (5, customer, day, order, self.random.randrange(9))),
            lambda: execute(self.one, (customer, day, order)),
            lambda: execute(self.count, (self.random.randrange(1, 9), self.random.choice("ab"))),
            lambda: execute(self.tag, ({self.text(50)}, {"k": order}, order)),
            lambda: execute(f"UPDATE shop.orders SET note = '{self.text(900)}' WHERE customer = {customer} AND day = {day} AND id = {order}"),
            lambda: execute(f"INSERT INTO shop.orders (customer, day, id) VALUES ({customer}, {day}, {order}) IF NOT EXISTS"),
            lambda: execute(self.delete, (customer, day)),
            self.batch, self.pages, self.scan, self.refused])()


def record(folder, *flags, version=4, steps=250, seed=1):
    """A capture of a random workload from a server's first moment on; and what the server charged for it."""
    folder.mkdir(exist_ok=True)
    path = folder / "all.tcap"
    server = Server(folder, "--ddl-delay", "100", "--capture", path, "--compatibility", "strict",
                    "--protocol", "5", *flags).start()  # workloads of v4 and of v5 are captured
    with server.cluster(protocol_version=version) as cluster:
        session = cluster.connect()
        make_schema(session)
        session.execute("USE shop")
        work = Workload(session, seed)
        for _ in range(steps):
            work.step()
        rows = list(session.execute("SELECT read_units, write_units, static_write_units FROM system_metering.tables"))
        charged = [sum(row[i] for row in rows) for i in range(3)]
    server.stop()
    return path, charged


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    return record(tmp_path_factory.mktemp("capture"))[0]


def fresh(folder, *flags):
    folder.mkdir(exist_ok=True)
    return Server(folder, "--ddl-delay", "100", "--compatibility", "strict", "--protocol", "5", *flags).start()


@pytest.mark.parametrize("version, speed", [(3, "max"), (4, "max"), (5, "max"), (4, "10")])
def test_replay_charges_the_same_to_the_unit(tmp_path, version, speed):
    path, _ = record(tmp_path / "a", version=version, seed=version, steps=120)
    server = fresh(tmp_path / "b")
    answer = json.loads(tally("replay", "--file", path, "--server", f"{server.host}:{server.port}", "--speed", speed, "--json"))
    server.stop()
    assert answer["ok"] and answer["differing"] == 0
    assert answer["refused"] == answer["refused_again"] > 5
    assert answer["units"] == answer["units_again"] > 200
    for s in answer["statements"]:
        assert s["units"] == s["units_again"], s
    words = " ".join(s["statement"] for s in answer["statements"])
    for part in ("BATCH of", "IF total", "n = n +", "ALLOW FILTERING", "IF NOT EXISTS", "DELETE FROM"):
        assert part in words, part


def test_price_is_what_was_charged(capture):
    answer = json.loads(tally("replay", "--file", capture, "--price", "--json"))
    assert answer["ok"] and answer["differing"] == 0 and answer["units"] == answer["units_again"] > 200
    assert answer["peak_write_units"] > 0
    reads = [json.loads(tally("capture", "--file", capture, "--json"))["read_units"]][0]
    dollars = reads * 0.000000125 + (answer["units"] - reads) * 0.000000625
    assert answer["dollars"] == answer["dollars_again"] == pytest.approx(dollars) and (answer["region"], answer["prices_date"]) == ("us-east-1", "2025-11-05")
    assert sum(s["dollars"] for s in answer["statements"]) == pytest.approx(dollars)
    text = tally("replay", "--file", capture, "--price")
    assert f"on demand: {dollars:.6f} US dollars as captured, {dollars:.6f} now (+0.000000), in us-east-1 at the prices of 2025-11-05\n" in text
    elsewhere = json.loads(tally("replay", "--file", capture, "--price", "--region", "sa-east-1", "--json"))
    assert elsewhere["dollars"] == pytest.approx(1.5 * dollars)
    assert "has no prices of the Region 'atlantis-1'" in tally("replay", "--file", capture, "--price", "--region", "atlantis-1", code=2)


def test_capture_says_what_the_ledger_says(tmp_path):
    """The file's sums and the server's own book are of the same requests."""
    path, charged = record(tmp_path, steps=80)
    answer = json.loads(tally("capture", "--file", path, "--json"))
    assert [answer["read_units"], answer["write_units"] + answer["static_write_units"], answer["static_write_units"]] == charged
    assert answer["refused"] > 0 and answer["dropped"] == 0


def test_another_size_model_page_size_schema_and_capacity_mode_cost_something_else(capture, tmp_path):
    plain = json.loads(tally("replay", "--file", capture, "--price", "--json"))
    current = json.loads(tally("replay", "--file", capture, "--price", "--size-model", "current", "--json", code=1))
    assert current["units_again"] != plain["units_again"] == current["units"]
    paged = json.loads(tally("replay", "--file", capture, "--price", "--page-size", "1", "--json", code=1))
    assert paged["units_again"] > plain["units_again"]  # each page rounds up
    tight = json.loads(tally("replay", "--file", capture, "--price", "--capacity-mode", "provisioned:1:1", "--json", code=1))
    assert tight["throttled_again"] > 20
    assert json.loads(tally("replay", "--file", capture, "--price", "--capacity-mode", "on-demand", "--json"))["throttled_again"] == 0
    schema = tmp_path / "wide.cql"
    schema.write_text("CREATE KEYSPACE shop WITH replication = {'class': 'SingleRegionStrategy'};\n"
                      "CREATE TABLE shop.orders (customer int, day int, id int, total int, note text, name text, PRIMARY KEY ((customer), day, id));\n"
                      "CREATE TABLE shop.visits (page text PRIMARY KEY, n counter);\n"
                      "CREATE TABLE shop.notes (id int PRIMARY KEY, tags set<text>, names map<text, int>, body text);\n")
    other = json.loads(tally("replay", "--file", capture, "--price", "--schema", schema, "--json", code=1))
    assert other["units_again"] != plain["units_again"]  # the name is no longer static


def test_a_damaged_capture_names_file_offset_and_reason(capture, tmp_path):
    content = capture.read_bytes()
    cut, flipped, other, empty = (tmp_path / n for n in ("cut", "flipped", "other", "empty"))
    cut.write_bytes(content[:len(content) // 2])
    flipped.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    other.write_bytes(b"something else")
    empty.write_bytes(b"")
    assert f"{cut}: offset " in tally("capture", "--file", cut, code=1) and "cut off" in tally("capture", "--file", cut, code=1)
    assert "checksum does not match" in tally("replay", "--file", flipped, "--price", code=1)
    assert f"{other}: offset 0: this is no capture" in tally("capture", "--file", other, code=1)
    assert f"{empty}: offset 0" in tally("capture", "--file", empty, code=1)
    before = json.loads(tally("capture", "--file", flipped, "--up-to-damage", "--json"))
    whole = json.loads(tally("capture", "--file", capture, "--json"))
    assert 0 < before["requests"] < whole["requests"] and "offset" in before["damage"]
    priced = json.loads(tally("replay", "--file", cut, "--price", "--up-to-damage", "--json"))
    assert priced["differing"] == 0 and priced["requests"] > 20 and "cut off" in priced["damage"]


def test_hashed_values_do_not_stand_in_the_file(tmp_path):
    path = tmp_path / "h.tcap"
    server = Server(tmp_path, "--ddl-delay", "100", "--capture", path, "--capture-values", "hashed").start()
    with server.cluster() as cluster:
        session = cluster.connect()
        make_schema(session)
        insert = session.prepare("INSERT INTO shop.orders (customer, day, id, note) VALUES (?, 1, 1, ?)")
        session.execute(insert, (1, "a secret that is bound"))
        session.execute(session.prepare("INSERT INTO shop.orders (customer, day, id, note) "
                                        "VALUES (?, 1, 3, 'a secret that is prepared')"), (1,))
        session.execute("INSERT INTO shop.orders (customer, day, id, note) VALUES (1, 1, 2, 'a secret that is written')")
        batch = BatchStatement()
        batch.add(insert, (1, "a secret in a batch"))
        session.execute(batch)
    server.stop()
    content = path.read_bytes()
    assert b"secret" not in content and b"INSERT INTO shop.orders" in content
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(tally("capture", "--file", path, "--json"))["hashed"]
    assert "values are hashed" in tally("replay", "--file", path, "--price", code=1)


def test_hashed_values_that_the_client_names_stand_in_the_order_of_the_markers(tmp_path):
    path = tmp_path / "n.tcap"
    text = b"INSERT INTO shop.orders (customer, day, id, total) VALUES (:c, :d, 1, 1)"

    def query(stream, names, values):
        body = struct.pack(">I", len(text)) + text + struct.pack(">HBH", 6, 0x41 if names else 0x01, len(values))
        for name, value in zip(names or [None] * len(values), values):
            body += (struct.pack(">H", len(name)) + name if name else b"") + struct.pack(">ii", 4, value)
        return struct.pack(">BBhBI", 4, 0, stream, 7, len(body)) + body

    server = Server(tmp_path, "--ddl-delay", "none", "--capture", path, "--capture-values", "hashed").start()
    with server.cluster() as cluster:
        make_schema(cluster.connect())
    with socket.create_connection((server.host, server.port), timeout=300) as s:
        answers = s.makefile("rb")
        startup = struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0"
        s.sendall(struct.pack(">BBhBI", 4, 0, 0, 1, len(startup)) + startup)
        assert answers.read(9)[4] == 2  # READY
        for stream, request in enumerate([query(1, None, [11, 22]), query(2, [b"d", b"c"], [22, 11])], 1):
            s.sendall(request)
            head = answers.read(9)
            body = answers.read(struct.unpack(">I", head[5:])[0])
            assert head[4] == 8, body  # RESULT
    server.stop()
    digests = path.read_bytes().split(b"VALUES(: c, : d, ?)")[1:]
    assert len(digests) == 2
    values = [d[:2 + 2 * 12] for d in digests]  # their number, and length and hash of each
    assert values[0] == values[1] and values[0][:2] == b"\0\x02" and values[0][2:14] != values[0][14:]


def test_passwords_do_not_stand_in_the_file(tmp_path):
    path = tmp_path / "p.tcap"
    server = Server(tmp_path, "--mode", "cassandra", "--auth", "password", "--capture", path).start()
    from cassandra.auth import PlainTextAuthProvider
    with server.cluster(auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        session.execute("CREATE ROLE bob WITH PASSWORD = 'opensesame' AND LOGIN = true")
        with pytest.raises(Exception):
            session.execute("ALTER ROLE bob WITH PASSWORD 'opensesame'")
    server.stop()
    assert b"opensesame" not in path.read_bytes() and b"CREATE ROLE bob" in path.read_bytes()


def test_begins_and_ends_at_run_time(tmp_path):
    server = Server(tmp_path, "--ddl-delay", "100", "--control", "on").start()
    at = f"{server.host}:{server.port}"
    with server.cluster() as cluster:
        session = cluster.connect()
        make_schema(session)
        before = session.prepare("INSERT INTO shop.orders (customer, day, id) VALUES (?, 1, 1)")  # known before the capture is
        assert "no capture" in tally("capture", "--server", at, "--status")
        assert "running one" in tally("capture", "--server", at, "--start", "one")
        assert "already" in tally("capture", "--server", at, "--start", "two", code=1)
        for i in range(10):
            session.execute(before, (i,))
        assert "ended one" in tally("capture", "--server", at, "--stop", "one")
        assert "No capture" in tally("capture", "--server", at, "--stop", "one", code=1)
        assert "is there already" in tally("capture", "--server", at, "--start", "one", code=1)
        session.execute(before, (99,))
        refuse(session, "INSERT INTO system_control.capture (name) VALUES ('../../etc/x')")
        refuse(session, "UPDATE system_control.capture SET path = 'x' WHERE name = 'one'")
    path = tmp_path / "data" / "captures" / "one.tcap"
    (inserts,) = [s for s in json.loads(tally("capture", "--file", path, "--json"))["statements"] if s["statement"].startswith("INSERT INTO shop.orders")]
    assert (inserts["requests"], inserts["write_units"]) == (10, 10)
    assert path.stat().st_mode & 0o777 == 0o600
    server.stop()


def test_the_bound_of_a_file_ends_it_or_turns_it_over(tmp_path):
    for mode in ("stop", "rotate"):
        folder = tmp_path / mode
        folder.mkdir()
        path = folder / "c.tcap"
        server = Server(folder, "--ddl-delay", "100", "--control", "on", "--capture", path, "--capture-max", "1", "--capture-full", mode).start()
        with server.cluster() as cluster:
            session = cluster.connect()
            make_schema(session)
            insert = session.prepare("INSERT INTO shop.orders (customer, day, id, note) VALUES (?, 1, 1, ?)")
            for i in range(400):
                session.execute(insert, (i, "x" * 10000))
            row = session.execute("SELECT running, dropped, part, reason FROM system_control.capture").one()
        server.stop()
        files = sorted(folder.glob("c.tcap*"))
        assert sum(f.stat().st_size for f in files) <= 1 << 20
        answer = json.loads(tally("capture", "--file", path, "--json"))
        if mode == "stop":
            assert not row.running and "bound of 1048576 bytes" in row.reason and len(files) == 1
        else:
            assert row.running and row.part >= 2 and len(files) == 2 and answer["parts_gone"] >= 1
        (inserts,) = [s for s in answer["statements"] if s["statement"].startswith("INSERT INTO shop.orders")]
        assert inserts["requests"] > 20  # of a prepared statement that each file says anew


def test_wrong_words_are_told(tmp_path):
    assert "--file is needed" in tally("replay", code=2)
    assert "--server or --price is needed" in tally("replay", "--file", "x", code=2)
    assert "cannot read" in tally("replay", "--file", tmp_path / "none", "--price", code=1)
    assert "one of --start" in tally("capture", code=2)
    assert "is no HOST:PORT" in tally("capture", "--status", "--server", "host:x", code=1)
    assert "cannot connect" in tally("capture", "--status", "--server", "127.0.0.1:1", code=1)
