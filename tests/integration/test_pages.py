"""The pages that a newcomer reads first: their examples run as they stand, on a server whose ports are put in, and their links lead somewhere."""
import json
import re
import shlex
import subprocess
from datetime import datetime, timezone

import pytest
from cassandra import InvalidRequest
from cassandra.auth import PlainTextAuthProvider

from cqlsh_shell import Shell
from ports import free_port
from tally_server import HANG, ROOT, TALLY, TALLYD, Server, await_active, create_keyspace, create_table, eventually

PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


@pytest.fixture
def ports(new_server):
    """What the pages' ports are on a server of the test's own."""
    api = free_port()
    server = new_server("--api-port", str(api), "--compatibility", "strict")
    return server, {"9042": str(server.port), "9181": str(api)}


def with_ports(text, ports):
    for shown, real in ports.items():
        text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{real}")
    return text.replace('Cluster(["127.0.0.1"],', f'Cluster(["127.0.0.1"], port={ports["9042"]},')


@pytest.mark.parametrize("page", ["README.md", "docs/connecting.md"])
def test_python_examples_run(ports, page):
    _, numbers = ports
    found = blocks(page, "python")
    assert found
    for block in found:
        names = {}
        exec(with_ports(block, numbers), names)  # pylint: disable=exec-used
        if "session" in names:
            assert names["session"].execute("SELECT release_version FROM system.local").one().release_version == "3.11.2"
            names["session"].cluster.shutdown()
        if "keyspaces" in names:
            eventually(lambda: "mykeyspace" in [k["keyspaceName"] for k in names["keyspaces"].list_keyspaces()["keyspaces"]])


def test_the_first_statements_of_the_readme_run_in_cqlsh(ports, expansion, tmp_path):
    """The table is that of the README's first block, which test_demo.py runs."""
    server, _ = ports
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "app")
        create_table(session, "app", "users", "id int PRIMARY KEY, name text")
    shell = Shell(expansion, server, tmp_path)
    shown = [shell.do(line) for line in blocks("README.md", "sql")[0].strip().splitlines()]
    assert len(shown) == 3 and "Error" not in str(shown) and "Grace" in shown[-1], shown
    assert shell.leave() == 0


# docs/testing.md, "What cassandra mode lacks"
LACKS = {
    "CREATE INDEX ON app.t (v)": "CREATE INDEX is not yet supported",
    "CREATE CUSTOM INDEX ON app.t (v) USING 'StorageAttachedIndex'": "CREATE INDEX is not yet supported",
    "CREATE CUSTOM INDEX ON app.t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'": "CREATE INDEX is not yet supported",
    "SELECT * FROM app.t WHERE v LIKE 'x%' ALLOW FILTERING": "LIKE restriction is only supported on properly indexed columns",
    "SELECT * FROM app.t ORDER BY e ANN OF [1, 2] LIMIT 1": "ANN ordering is not yet supported",
    "CREATE MATERIALIZED VIEW app.m AS SELECT * FROM app.t WHERE v IS NOT NULL AND p IS NOT NULL PRIMARY KEY (v, p)": "CREATE MATERIALIZED VIEW is not yet supported",
    "CREATE TRIGGER r ON app.t USING 'x'": "CREATE TRIGGER is not yet supported",
    "CREATE TABLE app.c (p int PRIMARY KEY, v int) WITH COMPACT STORAGE": "COMPACT STORAGE is not yet supported",
    "CREATE FUNCTION app.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'": "User-defined functions are disabled",
    "CREATE TABLE app.d (p int PRIMARY KEY, v text MASKED WITH DEFAULT)": "dynamic data masking is not enabled",
}


def test_cassandra_mode_lacks_what_its_page_says(new_server):
    with new_server("--mode", "cassandra").cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE app.t (p int PRIMARY KEY, v text, e vector<float, 2>)")
        for statement, words in LACKS.items():
            with pytest.raises(InvalidRequest, match=words):
                session.execute(statement)
        assert session.execute("SELECT * FROM app.t WHERE v = 'x' ALLOW FILTERING").one() is None
        assert not list(session.execute("SELECT * FROM system.peers"))


def test_links_lead_to_files_and_headings():
    wrong = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?:|mailto:", target):
                continue
            name, _, heading = target.partition("#")
            file = (ROOT / page).parent / name if name else ROOT / page
            anchors = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)", file.read_text(), re.M)] if heading and file.is_file() else []
            if not file.exists() or (heading and heading not in anchors):
                wrong.append((page, target))
    assert not wrong


APP = ["CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"]
KS = ["CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"]
ORDERS = "CREATE TABLE app.orders (id int PRIMARY KEY)"
# A page's SQL: flags of the server, what the page takes to be there already, and statements that somebody who follows the page runs before one of its own.
SQL = {
    "docs/access.md": (["--mode", "cassandra", "--auth", "password"], ["CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                                                "CREATE TABLE shop.orders (id int PRIMARY KEY)"], {}),
    "docs/connecting.md": ([], [], {}),
    "docs/ddl.md": (["--control", "on"], APP, {"UPDATE system_control.ddl SET failure": [ORDERS]}),
    "docs/faults.md": (["--control", "on"], [*APP, ORDERS], {}),
    "docs/restore.md": (["--control", "on"], [*KS, *APP], {}),
    "docs/system_tables.md": ([], [], {}),
    "docs/types.md": (["--mode", "cassandra"], APP, {}),
}


def statements_of(page):
    for block in blocks(page, "sql"):
        text = re.sub(r"--.*", "", block)
        for statement in filter(None, (s.strip() for s in text.split(";"))):
            yield statement.replace("(…)", "(pk int PRIMARY KEY)").replace("?", "uuid()").replace("'2026-01-02T03:04:05+0000'", f"'{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "+0000'")


def test_no_page_with_sql_is_left_out():
    with_sql = {p for p in PAGES if blocks(p, "sql") and not p.startswith("docs/tally/")}
    assert with_sql == {"README.md", *SQL}


@pytest.mark.parametrize("page", SQL)
def test_the_statements_of_a_page_run(new_server, page):
    flags, before, between = SQL[page]
    server = new_server("--ddl-delay", "none", *flags)
    login = {"auth_provider": PlainTextAuthProvider("cassandra", "cassandra")} if "--auth" in flags else {}
    with server.cluster(schema_metadata_enabled=False, **login) as cluster:
        session = cluster.connect()
        for statement in before:
            session.execute(statement)
        unused = set(between)
        for statement in statements_of(page):
            for start in [b for b in between if statement.startswith(b)]:
                unused.discard(start)
                for s in between[start]:
                    session.execute(s)
            session.execute(statement)
        assert not unused


SHOP = ("docs/tally/explain.md", 0), ("docs/tally/explain.md", 1)  # schema and data of the examples


@pytest.fixture
def folder_of_examples(tmp_path):
    """The files that the pages of `tally` show, under the names that they give them."""
    folder = tmp_path / "examples"
    folder.mkdir()
    for name, (page, n) in {"schema.cql": SHOP[0], "data.cql": SHOP[1], "app.cql": ("docs/tally/check.md", 0), "gate.cql": ("docs/tally/gate.md", 0)}.items():
        (folder / name).write_text(blocks(page, "sql")[n])
    (folder / "workload.yaml").write_text(blocks("docs/tally/capacity.md", "yaml")[0])
    (folder / "orders.csv").write_text(blocks("docs/tally/capacity.md", "csv")[0])
    return folder


def commands_of(page):
    """Pairs of a command and the output that the page shows below it."""
    for block in blocks(page, ""):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


# What these print is the same on every machine and at every time.
EXACT = [(page, command) for page in ("docs/tally/explain.md", "docs/tally/check.md", "docs/tally/gate.md", "docs/tally/capacity.md")
         for command, _ in commands_of(page)]


@pytest.mark.parametrize("page, command", EXACT)
def test_a_command_prints_what_its_page_shows(ports, folder_of_examples, page, command):
    server, numbers = ports
    shown = dict(commands_of(page))[command]
    if "--server" in command:
        with server.cluster(schema_metadata_enabled=False) as cluster:
            session = cluster.connect()
            create_keyspace(session, "shop")
            table, data = ((folder_of_examples / name).read_text() for name in ("schema.cql", "data.cql"))
            create_table(session, "shop", "orders", re.search(r"orders \((.*)\);", table)[1])
            for insert in filter(None, map(str.strip, data.replace("INTO orders", "INTO shop.orders").split(";"))):
                session.execute(insert)
    tally, _, arguments = with_ports(command, numbers).partition(" ")
    assert tally == "tally"
    done = subprocess.run([str(TALLY), *shlex.split(arguments)], cwd=folder_of_examples, capture_output=True, text=True, timeout=HANG)
    aged = lambda text: re.sub(r"\d+ days old", "N days old", text)  # prices
    assert aged(done.stdout + done.stderr) == aged(shown)


def repeatable(report):
    """The lines of a report on a capture, without times and without the number of requests on system tables, which depends on the driver."""
    lines = [" ".join(line.split()) for line in report.splitlines() if not re.match(r"begun |\d+\.\d+ s, ", line) and not line.endswith("  on system tables")]
    return [re.sub(r"^[\d ]+ (?=\d+\.)", "", line) if line.endswith(" all") else line for line in lines]


def test_the_pages_on_captures_can_be_followed(tmp_path, folder_of_examples):
    """Records a server's requests, reads, prices and replays the recording, with the commands of the two pages."""
    server, other = (Server(tmp_path / name, "--control", "on", "--ddl-delay", "none", "--compatibility", "strict") for name in ("one", "two"))
    for s in (server, other):
        s.folder.mkdir()
        s.start()
    numbers = {"9042": str(server.port), "9043": str(other.port)}

    def run(command):
        words = shlex.split(with_ports(command, numbers))
        assert words[0] == "tally"
        return subprocess.run([str(TALLY), *words[1:]], cwd=folder_of_examples, capture_output=True, text=True, timeout=HANG)

    def works(command):
        done = run(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    (begin, _), (stop, _), (show, contents), (cut, _) = commands_of("docs/tally/capture.md")
    assert "running incident" in works(begin)
    with server.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        # Frozen before the table exists: the capacity that a table has not used since then counts when the recording is priced.
        session.execute("UPDATE system_control.clock SET state = 'frozen' WHERE name = 'server'")
        create_keyspace(session, "shop")
        create_table(session, "shop", "orders", "customer int, day int, id int, total int, note text, name text static, PRIMARY KEY ((customer), day, id)")
        insert = session.prepare("INSERT INTO shop.orders (customer, day, id, total, note) VALUES (?, ?, ?, ?, ?)")
        select = session.prepare("SELECT * FROM shop.orders WHERE customer = ?")
        for i in range(200):
            session.execute(insert, (i % 10, 1, i, 5, "x" * 14 * i))
        session.execute("UPDATE system_control.clock SET advance_ms = 1000 WHERE name = 'server'")
        for i in range(20):
            session.execute(select, (i % 10,))
        session.execute("UPDATE shop.orders SET total = 6 WHERE customer = 1 AND day = 1 AND id = 1 IF total = 5")
        with pytest.raises(InvalidRequest):
            session.execute("SELECT sum(total) FROM shop.orders WHERE customer = 1")
    assert "ended incident" in works(stop)
    recording = (server.folder / "data" / "captures" / "incident.tcap").read_bytes()
    (folder_of_examples / "incident.tcap").write_bytes(recording)
    (folder_of_examples / "cut.tcap").write_bytes(recording[:-100])
    assert run(cut).returncode == 1
    for command, shown in [(show, contents), *commands_of("docs/tally/replay.md")]:
        done = run(command)
        assert repeatable(done.stdout) == repeatable(shown), (command, done.stderr)
        differ = int(re.search(r"(\d+)  all$", done.stdout, re.M)[1])
        assert done.returncode == (1 if differ and command != show else 0), (command, done.stdout)
    with other.cluster(schema_metadata_enabled=False) as cluster:
        assert len(list(cluster.connect().execute("SELECT id FROM shop.orders"))) == 200
    for s in (server, other):
        s.stop()


def test_flags_that_pages_name_are_there():
    """Those of tallyd, and those of tally beside its command."""
    def flags(*program):
        out = subprocess.run([*map(str, program), "--help=json"], capture_output=True, text=True, check=True).stdout
        return {f["name"] for line in out.splitlines() for f in json.loads(line).get("flags", [])}

    known = flags(TALLYD) | flags(TALLY) | {"help"}
    wrong = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for line in re.findall(r"(?:^\$? ?|`)(tallyd? [^`\n]*)", text, re.M):
            wrong += [(page, line, f) for f in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", line) if f not in known]
    assert not wrong
