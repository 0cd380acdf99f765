"""Requests that arrive in one piece: each is answered, charged, refused and counted as it is alone, in the order in which they came. Random writes in pieces leave the
rows that they leave one by one, while the schema changes."""
import json
import random
import struct
import subprocess
from datetime import datetime, timezone

import pytest

from control import set_clock, set_fault
from tally_server import TALLYD, create_keyspace, create_table
from test_hostile import ERROR, EXECUTE, LOCAL_QUORUM, OPTIONS, OVERLOADED, PREPARE, QUERY, RESULT, Raw, query_body, value

LOCAL_ONE, READ_TIMEOUT, UNPREPARED, INVALID = 10, 0x1200, 0x2500, 0x2200
PAYLOAD = 4
KIB = 1024
SIZES = [0.5, 3, 5, 9, 40, 300]  # KiB of the rows of partition 1
PIECES, ALONE = "pieces", "single"  # keyspaces with names of one length
TABLES = {"wide": "p int, c int, s text static, v text, w int, m map<int, text>, PRIMARY KEY (p, c)", "narrow": "p int, v text, w int, PRIMARY KEY (p)",
          "counts": "p int, c int, n counter, PRIMARY KEY (p, c)"}
BEGIN = datetime(2031, 5, 6, 7, 8, 9)
PARTITIONS, ROWS, ROUNDS = 12, 8, 80
STATIC = "static"


class Pipelined(Raw):
    """Sends several requests in one piece; an answer is its opcode, its body and its charge."""

    def prepare(self, cql):
        opcode, body = self.ask(PREPARE, struct.pack(">I", len(cql)) + cql.encode())
        assert opcode == RESULT, body
        return body[6:22]

    def answer(self):
        _, flags, stream, opcode, n = struct.unpack(">BBhBI", self.read(9))
        body, charge = self.read(n), None
        if flags & PAYLOAD:
            (count,), at = struct.unpack_from(">H", body), 2
            for _ in range(count):
                n, = struct.unpack_from(">H", body, at)
                key, at = body[at + 2:at + 2 + n], at + 2 + n
                n, = struct.unpack_from(">i", body, at)
                if key == b"RequestCharge":
                    charge, = struct.unpack_from(">d", body, at + 4)
                at += 4 + n
            body = body[at:]
        return stream, (opcode, body, charge)

    def together(self, requests):
        """By number; those that were answered on the loop, in the order of their answers."""
        self.send(b"".join(self.envelope(opcode, body, stream) for stream, (opcode, body) in enumerate(requests)))
        answers = [self.answer() for _ in requests]
        assert sorted(stream for stream, _ in answers) == list(range(len(requests)))
        return dict(answers), [stream for stream, _ in answers]

    def alone(self, request):
        self.send(self.envelope(request[0], request[1], 7))
        stream, answer = self.answer()
        assert stream == 7
        return answer


def execute(statement, *values, level=LOCAL_QUORUM, skip=True, page=None):
    flags = 1 | (2 if skip else 0) | (4 if page else 0)
    body = struct.pack(">H", 16) + statement + struct.pack(">HBH", level, flags, len(values)) + b"".join(value(struct.pack(">i", v)) for v in values)
    return EXECUTE, body + (struct.pack(">i", page) if page else b"")


def by_name(statement, **values):
    named = b"".join(struct.pack(">H", len(n)) + n.encode() + value(struct.pack(">i", v)) for n, v in values.items())
    return EXECUTE, struct.pack(">H", 16) + statement + struct.pack(">HBH", LOCAL_QUORUM, 0x41, len(values)) + named


def count_of(body):
    """How many rows a result without metadata has."""
    return struct.unpack_from(">I", body, 12)[0]


def error_of(answer):
    return struct.unpack_from(">I", answer[1])[0] if answer[0] == ERROR else None


def make(session, table):
    create_table(session, "together", table, "pk int, ck int, v blob, PRIMARY KEY (pk, ck)")
    insert = session.prepare(f"INSERT INTO together.{table} (pk, ck, v) VALUES (1, ?, ?)")
    for ck, kib in enumerate(SIZES):
        session.execute(insert, (ck, bytes([ck]) * int(kib * KIB)))


def read_units(session, table):
    row = session.execute("SELECT read_units FROM system_metering.tables WHERE keyspace_name = 'together' AND table_name = %s", (table,)).one()
    return row.read_units if row else 0


@pytest.fixture(scope="module")
def session(server):
    with server.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, "together")
        yield s


@pytest.mark.parametrize("version", [3, 4])
def test_each_is_answered_and_charged_as_it_is_alone(server, session, version):
    """Runs of one statement and what stands among them: other statements, levels, rows that are not there or go in blocks, pages, errors."""
    table, seed = f"mixed{version}", random.Random(version)
    make(session, table)
    before = read_units(session, table)
    with Pipelined(server, version) as c:
        row, other = (c.prepare(f"SELECT {what} FROM together.{table} WHERE pk = ? AND ck = ?") for what in ("*", "ck, pk"))
        part = c.prepare(f"SELECT v FROM together.{table} WHERE pk = ?")
        kinds = {
            "row": lambda: execute(row, 1, seed.randrange(4)),
            "at one": lambda: execute(row, 1, seed.randrange(5), level=LOCAL_ONE),
            "large": lambda: execute(row, 1, 5),
            "missing": lambda: execute(row, 2, 0),
            "with metadata": lambda: execute(row, 1, 1, skip=False),
            "other": lambda: execute(other, 1, seed.randrange(6)),
            "by name": lambda: by_name(row, pk=1, ck=seed.randrange(4)),
            "page": lambda: execute(part, 1, page=2),
            "whole": lambda: execute(part, 1, page=100),
            "too few": lambda: execute(row, 1),
            "unprepared": lambda: execute(bytes(16), 1, 1),
            "text": lambda: (QUERY, query_body(f"SELECT ck FROM together.{table} WHERE pk = 1 AND ck = 3")),
            "options": lambda: (OPTIONS, b""),
        }
        asked, total = set(), 0
        for most in [*kinds, *["row"] * 20]:
            of = [seed.choice(list(kinds)) if seed.random() < 0.15 else most for _ in range(seed.choice([1, 3, 16, 17, 33, 60]))]
            requests = [kinds[k]() for k in of]
            asked.update(of)
            got, _ = c.together(requests)
            for n, kind in enumerate(of):
                assert got[n] == c.alone(requests[n]), (n, kind)
                total += 2 * (got[n][2] or 0)
        assert asked == set(kinds)
        if version >= 4:
            assert read_units(session, table) - before == total


def test_they_are_answered_in_the_order_in_which_they_came(server, session):
    make(session, "ordered")
    with Pipelined(server) as c:
        row = c.prepare("SELECT * FROM together.ordered WHERE pk = ? AND ck = ?")
        other = c.prepare("SELECT ck FROM together.ordered WHERE pk = ? AND ck = ?")
        for ck in range(4):
            for _ in range(2):
                c.alone(execute(row, 1, ck))  # now in the row cache
        for n in (15, 16, 17, 100):
            got, order = c.together([execute(row if i % 7 else other, 1, i % 4) for i in range(n)])
            assert order == list(range(n))
            assert all(got[i][0] == RESULT and count_of(got[i][1]) == 1 for i in range(n))


def test_a_write_among_reads_is_not_seen_before_it(server, session):
    """Those in front of it do not see it, whoever reads when it is answered does, and the writes themselves are answered in their order."""
    create_table(session, "together", "written", "pk int, ck int, PRIMARY KEY (pk, ck)")
    with Pipelined(server) as c:
        row = c.prepare("SELECT ck FROM together.written WHERE pk = ? AND ck = ?")
        insert = c.prepare("INSERT INTO together.written (pk, ck) VALUES (?, ?)")
        for turn in range(20):
            for _ in range(2):
                assert count_of(c.alone(execute(row, 1, turn))[1]) == 0
            got, order = c.together([execute(row, 1, turn)] * 6 + [execute(insert, 1, turn)] + [execute(row, 1, turn)] * 6 + [execute(insert, 2, turn)])
            assert [count_of(got[i][1]) for i in range(6)] == [0] * 6
            assert {got[i][0] for i in got} == {RESULT} and [got[6][2], got[13][2]] == [1, 1]
            assert order.index(6) < order.index(13) and [n for n in order if n < 6] == list(range(6))
            assert count_of(c.alone(execute(row, 1, turn))[1]) == 1


def test_the_ledger_among_reads_has_those_in_front_of_it(server, session):
    make(session, "told")
    with Pipelined(server) as c:
        row = c.prepare("SELECT ck FROM together.told WHERE pk = ? AND ck = ?")
        ledger = c.prepare("SELECT read_units FROM system_metering.tables WHERE keyspace_name = 'together' AND table_name = 'told'")
        units = [struct.unpack_from(">d", got[n][1], 20)[0] for got, _ in [c.together(([execute(row, 1, 0)] * 5 + [execute(ledger)]) * 4)] for n in (5, 11, 17, 23)]
        assert units == [5, 10, 15, 20]


def test_limits_refuse_whoever_comes_when_they_are_reached(new_server):
    server = new_server("--ddl-delay", "none", "--control", "on", "--limits", "enforce", "--limit-values", "table-read=10,on-demand-read=10")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "together")
        create_table(session, "together", "limited", "pk int, ck int, PRIMARY KEY (pk, ck)")
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = %s WHERE name = 'server'", (datetime(2026, 5, 6, 12),))
        with Pipelined(server) as c:
            row = c.prepare("SELECT * FROM together.limited WHERE pk = ? AND ck = ?")
            got, order = c.together([execute(row, 1, i) for i in range(40)])
        assert order == list(range(40))
        assert [error_of(got[i]) for i in range(40)] == [None] * 10 + [READ_TIMEOUT] * 30
        assert [got[i][2] for i in range(40)] == [1] * 10 + [0] * 30


def test_faults_hit_whom_they_are_to_hit(controlled):
    server, session = controlled("--ddl-delay", "none")
    create_keyspace(session, "together")
    create_table(session, "together", "faulty", "pk int, ck int, PRIMARY KEY (pk, ck)")
    with Pipelined(server) as c:
        row = c.prepare("SELECT * FROM together.faulty WHERE pk = ? AND ck = ?")
        requests = [execute(row, 1, i) for i in range(40)]
        assert {a[0] for a in c.together(requests)[0].values()} == {RESULT}
        set_fault(session, "third", statement="SELECT", keyspace_name="together", table_name="faulty", every=3, error="Overloaded")
        got, _ = c.together(requests)
        assert [error_of(got[i]) for i in range(40)] == [OVERLOADED if i % 3 == 2 else None for i in range(40)]
        assert [got[i][2] for i in range(40)] == [0 if i % 3 == 2 else 1 for i in range(40)]
        session.execute("DELETE FROM system_control.faults WHERE name = 'third'")
        assert {a[0] for a in c.together(requests)[0].values()} == {RESULT}
        set_fault(session, "cut", statement="SELECT", keyspace_name="together", table_name="faulty", nth=20, close=True)
        with pytest.raises(ConnectionError):
            c.together(requests)
    assert session.execute("SELECT hits FROM system_control.faults WHERE name = 'cut'").one().hits == 1


def test_a_change_of_the_table_among_reads_is_told(server, session):
    """A statement whose table was dropped meanwhile is not known any more; those that came before have their rows."""
    create_table(session, "together", "dropped", "pk int, ck int, PRIMARY KEY (pk, ck)")
    with Pipelined(server) as c:
        row = c.prepare("SELECT * FROM together.dropped WHERE pk = ? AND ck = ?")
        assert {a[0] for a in c.together([execute(row, 1, 1)] * 20)[0].values()} == {RESULT}
        session.execute("DROP TABLE together.dropped")
        assert {error_of(a) for a in c.together([execute(row, 1, 1)] * 20)[0].values()} <= {UNPREPARED, INVALID}


def test_each_is_counted_in_its_own_partition(new_server):
    """Of a key of several columns, which is put together for the read."""
    server = new_server("--ddl-delay", "none")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "together")
        create_table(session, "together", "parted", "a int, b int, ck int, PRIMARY KEY ((a, b), ck)")
        with Pipelined(server) as c:
            row = c.prepare("SELECT * FROM together.parted WHERE a = ? AND b = ? AND ck = ?")
            c.together([execute(row, 1, i % 5, 1) for i in range(50)])
        counted = {r.partition_key: r.read_units for r in session.execute("SELECT partition_key, read_units, table_name FROM system_metering.partitions WHERE keyspace_name = 'together'")}
    assert counted == {b"".join(struct.pack(">HiB", 4, v, 0) for v in (1, i)): 10 for i in range(5)}


def told_by_audit(file):
    entries = [e for e in map(json.loads, file.read_text().splitlines()) if e.get("table") == "watched" and e["type"] == "SELECT"]
    assert all(e["ok"] for e in entries)
    return len(entries)


def told_by_capture(file):
    run = subprocess.run([TALLYD.parent / "tally", "capture", "--file", file, "--json"], capture_output=True, text=True, check=True, timeout=300)
    return sum(s["requests"] for s in json.loads(run.stdout)["statements"] if s["statement"].startswith("SELECT v FROM together.watched"))


@pytest.mark.parametrize("option, told", [("--audit-log", told_by_audit), ("--capture", told_by_capture)])
def test_who_watches_is_told_of_each(new_server, tmp_path, option, told):
    file = tmp_path / "watch"
    server = new_server("--ddl-delay", "none", option, str(file))
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "together")
        make(session, "watched")
    with Pipelined(server) as c:
        row = c.prepare("SELECT v FROM together.watched WHERE pk = ? AND ck = ?")
        c.together([execute(row, 1, i % 3) for i in range(50)])
    server.stop()
    assert told(file) == 50


class Writes:
    """Random statements of a piece. Those that name a time of writing name one of their own, so that the rows do not depend on their order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.us = 0  # of the clock, since BEGIN
        self.n = 0

    def time(self):
        """Not after the next piece begins, and sometimes before the last one."""
        self.n += 1
        age = self.random.choice([0, 0, 0, 1, 2]) * 1_000_000
        return f"USING TIMESTAMP {int(BEGIN.replace(tzinfo=timezone.utc).timestamp()) * 1_000_000 + self.us - age + 100_000 + self.n}"

    def statement(self):
        """The text, with the keyspace as %, and the rows that it reads or writes."""
        r, at, n = self.random, self.time(), self.random.randrange(1000)
        p, c, long = r.randrange(PARTITIONS), r.randrange(ROWS), str(n) * r.choice([1, 1, 400])
        row, partition, key = {("wide", p, c)}, {("wide", p, i) for i in [STATIC, *range(ROWS)]}, f"p = {p} AND c = {c}"
        return r.choice([
            (f"INSERT INTO %.wide (p, c, v, w) VALUES ({p}, {c}, '{long}', {n}) {at}", row),
            (f"INSERT INTO %.wide (p, c, v, w) VALUES ({p}, {c}, '{long}', {n}) {at} AND TTL {n % 9 + 1}", row),
            (f"INSERT INTO %.wide (p, c, m) VALUES ({p}, {c}, {{1: 'one', {n}: 'n'}}) {at}", row),
            (f"INSERT INTO %.wide (p, s) VALUES ({p}, 'static {long}') {at}", {("wide", p, STATIC)}),
            (f"INSERT INTO %.narrow (p, v, w) VALUES ({p}, '{long}', {n}) {at}", {("narrow", p, 0)}),
            (f"UPDATE %.wide {at} SET w = {n} WHERE {key}", row),
            (f"UPDATE %.wide {at} SET m[{n % 3}] = '{long}' WHERE {key}", row),
            (f"UPDATE %.wide {at} SET s = null, v = 'both' WHERE {key}", row | {("wide", p, STATIC)}),
            (f"UPDATE %.narrow {at} AND TTL 4 SET v = '{n}' WHERE p = {p}", {("narrow", p, 0)}),
            (f"DELETE FROM %.wide {at} WHERE {key}", row),
            (f"DELETE w, m[1] FROM %.wide {at} WHERE {key}", row),
            (f"DELETE FROM %.wide {at} WHERE p = {p} AND c > 2 AND c < 6", partition),
            (f"DELETE FROM %.wide {at} WHERE p = {p}", partition),
            (f"BEGIN BATCH {at} INSERT INTO %.wide (p, c, v) VALUES ({p}, {c}, 'a'); UPDATE %.wide SET s = 'b' WHERE p = {p}; INSERT INTO %.narrow (p, v) VALUES ({p}, 'c'); APPLY BATCH",
             row | {("wide", p, STATIC), ("narrow", p, 0)}),
            (f"BEGIN UNLOGGED BATCH {at} DELETE FROM %.wide WHERE {key}; INSERT INTO %.wide (p, c, w) VALUES ({p}, {c}, {n}); APPLY BATCH", row),
            (f"UPDATE %.counts SET n = n + {n} WHERE {key}", {("counts", p, c)}),
            (f"UPDATE %.wide SET w = {n} WHERE {key} IF w < 500", row | {("wide", p, STATIC)}),
            (f"INSERT INTO %.narrow (p, w) VALUES ({p}, {n}) IF NOT EXISTS", {("narrow", p, 0)}),
            (f"SELECT * FROM %.wide WHERE p = {p}", partition),
            (f"INSERT INTO %.wide (p, v) VALUES ({p}, 'no clustering key')", set()),
            (f"INSERT INTO %.wide (p, c, w) VALUES ({p}, {c}, 'no number')", set())])

    def piece(self, size, apart):
        """apart: no statement reads or writes what another one writes, so that each answer is known. Otherwise none has a condition, whose result follows the order."""
        texts, touched = [], set()
        for _ in range(size):
            text, rows = self.statement()
            if not rows & touched if apart else " IF " not in text:
                texts.append(text)
                touched |= rows
        return texts


class Keyspace:
    """Asks for statements in one keyspace, as text or prepared. Sums up what they are charged."""

    def __init__(self, connection, name):
        self.connection, self.name, self.charges = connection, name, 0

    def request(self, text, prepare=False):
        cql = text.replace("%", self.name)
        if not prepare:
            return QUERY, query_body(cql)
        opcode, body = self.connection.ask(PREPARE, struct.pack(">I", len(cql)) + cql.encode())
        return execute(body[6:22], skip=False) if opcode == RESULT else (QUERY, query_body(cql))

    def answered(self, answer):
        opcode, body, charge = answer
        self.charges += charge or 0
        return opcode, body.replace(self.name.encode(), b"%"), charge

    def rows(self):
        return [self.connection.alone(self.request(f"SELECT * FROM %.{table}"))[:2] for table in TABLES]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_writes_in_pieces_leave_what_they_leave_one_by_one(controlled, seed):
    """Every other piece holds several writes of one row. Meanwhile another client creates and drops a table, or alters the one that is written to."""
    server, session = controlled("--ddl-delay", "none")
    set_clock(session, state="frozen", now=BEGIN)
    for keyspace in (PIECES, ALONE):
        create_keyspace(session, keyspace)
        for table, definition in TABLES.items():
            create_table(session, keyspace, table, definition)
    writes, asked = Writes(seed), 0
    with Pipelined(server) as first, Pipelined(server) as second:
        pieces, alone = Keyspace(first, PIECES), Keyspace(second, ALONE)
        for i in range(ROUNDS):
            apart, texts = i % 2 == 0, writes.piece(writes.random.choice([1, 7, 8, 9, 16, 40]), i % 2 == 0)
            change = {1: "CREATE TABLE %.aside (p int PRIMARY KEY)", 5: "ALTER TABLE %.wide ADD added int", 11: "DROP TABLE %.aside", 17: "ALTER TABLE %.wide DROP added"}.get(i % 20)
            prepare = i % 3 == 0 and not change  # a change makes a client prepare anew
            requests = [pieces.request(text, prepare) for text in texts]
            changes = session.execute_async(change.replace("%", PIECES)) if change else None
            got, _ = first.together(requests)
            if change:
                changes.result()
                session.execute(change.replace("%", ALONE))
            for n, text in enumerate(texts):
                answers = pieces.answered(got[n]), alone.answered(second.alone(alone.request(text, prepare)))
                assert answers[0] == answers[1] if apart and not change else answers[0][0] == answers[1][0], (i, text)
                asked += 1
            if i % 40 == 39:
                for keyspace in (PIECES, ALONE):
                    session.execute(f"TRUNCATE {keyspace}.narrow")
            assert [(o, b.replace(PIECES.encode(), ALONE.encode())) for o, b in pieces.rows()] == alone.rows(), (i, texts)
            set_clock(session, advance_ms=1000)
            writes.us += 1_000_000
    assert asked > 5 * ROUNDS
    for keyspace in (pieces, alone):
        units = [r.read_units + r.write_units for r in session.execute("SELECT * FROM system_metering.tables WHERE keyspace_name = %s", (keyspace.name,)) if r.table_name in TABLES]
        assert len(units) == len(TABLES) and sum(units) > keyspace.charges > asked  # the rest is for reading all rows
