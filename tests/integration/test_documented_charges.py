"""documented_charges.txt asked of a server of each size model: every documented example and sentence is a case."""
import re
import time
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, BatchType, SimpleStatement

from control import set_clock
from tally_server import HANG, ROOT, Server, eventually
from test_metering import Charge

CASES = Path(__file__).with_name("documented_charges.txt")
MODELS = {"2022": "documented-2022", "current": "current"}
LEVELS = {"ONE": ConsistencyLevel.ONE, "LOCAL_ONE": ConsistencyLevel.LOCAL_ONE}
BATCHES = {"logged": BatchType.LOGGED, "unlogged": BatchType.UNLOGGED, "counter": BatchType.COUNTER}
FIELDS = {"units": None, "read": "read_units", "write": "write_units", "static": "static_write_units", "row": "row_bytes",
          "static_bytes": "static_bytes", "rows": "rows_read"}
KEYSPACE = "documented"


class Case:
    def __init__(self, page, sentence, line):
        self.page, self.sentence, self.line, self.steps = page, sentence, line, []


def read_cases():
    page, cases = None, []
    for number, line in enumerate(CASES.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("== "):
            page = line[3:]
            assert re.search(r", https://\S+$", page), f"line {number}: a page has a title and an address"
        elif line.startswith("-- "):
            cases.append(Case(page, line[3:], number))
        else:
            cases[-1].steps.append((number, line))
    return cases


def name(case):
    return re.sub(r"\W+", "-", case.sentence)[:60]


def literals(text):
    text = re.sub(r"values\((\d+), (\d+)\)", lambda m: ", ".join(["'" + "x" * int(m[2]) + "'"] * int(m[1])), text)
    text = re.sub(r"texts\((\d+)\)", lambda m: ", ".join(f"t{i}" for i in range(int(m[1]))), text)
    text = re.sub(r"blob\((\d+)\)", lambda m: "0x" + "00" * int(m[1]), text)
    return re.sub(r"text\((\d+)\)", lambda m: "'" + "x" * int(m[1]) + "'", text)


def definition(text):
    text = re.sub(r"texts\((\d+)\)", lambda m: ", ".join(f"t{i} text" for i in range(int(m[1]))), text)
    text = re.sub(r"columns\((\d+)\)", lambda m: ", ".join(f"c{i} int" for i in range(int(m[1]))), text)
    text = re.sub(r"fields\((\d+)\)", lambda m: ", ".join(f"f{i} int" for i in range(int(m[1]))), text)
    columns, _, options = text.partition(" WITH ")
    return columns, f" WITH {options}" if options else ""


@pytest.fixture(scope="module", params=MODELS)
def served(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp(request.param), "--ddl-delay", "none", "--control", "on", "--size-model", MODELS[request.param]).start()
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}")
        yield session, request.param
    server.stop()


class Run:
    def __init__(self, session, model, case):
        self.session, self.model, self.case = session, model, case
        self.keyspace, self.charge, self.batch = KEYSPACE, None, None

    def table(self, which=""):
        return f"{self.keyspace}.case_{self.case.line}{'_' + which if which else ''}"

    def statement(self, text):
        return literals(re.sub(r"\{t(\d?)\}", lambda m: self.table(m[1]), text))

    def execute(self, text):
        return self.session.execute(self.statement(text))

    def create(self, which, text):
        columns, options = definition(text)
        self.session.execute(f"CREATE TABLE {self.table(which)} ({columns}){options}")

    def regions(self, names):
        self.keyspace = f"{KEYSPACE}_{self.case.line}"
        factors = ", ".join(f"'{n.strip()}': 3" for n in names.split(","))
        self.session.execute(f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', {factors}}}")

    def wait(self, text):
        deadline = time.monotonic() + HANG
        while self.execute(text).one():
            assert time.monotonic() < deadline

    def advance(self, seconds):
        set_clock(self.session, advance_ms=int(seconds) * 1000)

    def run(self, text):
        level, page = ConsistencyLevel.LOCAL_QUORUM, 5000
        while m := re.match(r"@(\w+) |page=(\d+) ", text):
            level, page, text = LEVELS.get(m[1], level), int(m[2] or page), text[m.end():]
        self.charge = Charge(self.session, SimpleStatement(self.statement(text), fetch_size=page), level=level)

    def flush(self):
        if self.batch:
            self.charge, self.batch = Charge(self.session, self.batch), None

    def expect(self, number, text):
        self.flush()
        for key, wanted in re.findall(r"(\w+)=(\S+)", text):
            where = f"{CASES.name}:{number}: {key}"
            if key == "stored":
                keyspace, table = self.table().split(".")
                query = "SELECT billable_bytes FROM system_metering.storage WHERE keyspace_name = %s AND table_name = %s"
                assert self.session.execute(query, (keyspace, table)).one()[0] == int(wanted), where
            elif key == "ttl_deletes":
                self.await_ttl_deletes(int(wanted), where)
            elif key == "rules":
                assert set(wanted.split(",")) <= self.charge.rules, where
            elif key == "not":
                assert not set(wanted.split(",")) & self.charge.rules, where
            else:
                got = self.charge.units if key == "units" else self.charge[FIELDS[key]]
                assert got == float(wanted), where

    def await_ttl_deletes(self, wanted, where):
        """The reclaimer comes by in its own time: on a cluster once a minute, and it removes what has been dead for a minute."""
        keyspace, table = self.table().split(".")
        select = "SELECT ttl_deletes FROM system_metering.tables WHERE keyspace_name = %s AND table_name = %s"
        eventually(lambda: self.session.execute(select, (keyspace, table)).one()[0] >= wanted, where, interval=0.3, within=120 + HANG)
        assert self.session.execute(select, (keyspace, table)).one()[0] == wanted, where

    def step(self, number, line):
        word, _, rest = line.partition(" ")
        if m := re.match(r"table(\d?)$", word):
            self.create(m[1], rest)
        elif word == "type":
            self.session.execute(f"CREATE TYPE {self.keyspace}.{definition(rest)[0]}")
        elif word in ("regions", "wait", "run", "advance"):
            getattr(self, word)(rest)
        elif word == "do":
            self.execute(rest)
        elif word == "batch":
            self.batch = BatchStatement(batch_type=BATCHES[rest], consistency_level=ConsistencyLevel.LOCAL_QUORUM)
        elif word == "fill":
            n, _, text = rest.partition(" ")
            for i in range(int(n)):
                self.execute(text.replace("{i}", str(i)))
        elif m := re.match(r"in(\d*)$", word):
            for i in range(int(m[1] or 1)):
                self.batch.add(SimpleStatement(self.statement(rest.replace("{i}", str(i)))))
        elif m := re.match(r"(2022|current): ", line):
            if m[1] == self.model:
                self.expect(number, line[m.end():])
            else:
                self.flush()
        else:
            assert re.fullmatch(r"(\w+=\S+ ?)+", line), f"{CASES.name}:{number}: {line}"
            self.expect(number, line)


@pytest.mark.parametrize("case", read_cases(), ids=name)
def test_case(served, case):
    run = Run(*served, case)
    for number, line in case.steps:
        run.step(number, line)


def test_the_cases_name_rules_that_there_are():
    rules = set(re.findall(r'^RULE\(\w+, "([^"]+)"', (ROOT / "metering" / "rule.def").read_text(), re.M))
    named = {r for case in read_cases() for _, line in case.steps for m in re.findall(r"(?:rules|not)=(\S+)", line) for r in m.split(",")}
    assert named <= rules
    assert rules - named <= {"read-4k", "read-minimum", "write-1k", "write-static", "update-written-columns", "delete-key-columns", "size-documented-2022"}
