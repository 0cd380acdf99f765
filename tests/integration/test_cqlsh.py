"""Real cqlsh, driven as a person does: cqlsh 6.2.2 in cassandra mode, cqlsh-expansion in keyspaces mode as a newcomer meets it, and each in the other's."""
import subprocess
import sys
from pathlib import Path

import pytest

import stores
from cqlsh_shell import MORE, Shell
from tally_server import ROOT, Server, create_keyspace, eventually

HERE = ROOT / "tests" / "integration"


@pytest.fixture(scope="module")
def cqlsh():
    """Beside this Python: it is in requirements.txt."""
    return Path(sys.executable).parent / "cqlsh"


@pytest.fixture
def shell(cqlsh, cassandra_server, tmp_path):
    s = Shell(cqlsh, cassandra_server, tmp_path)
    yield s
    s.close()


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory):
    """What Amazon Keyspaces refuses is refused: the default of keyspaces mode."""
    s = Server(tmp_path_factory.mktemp("server"), "--compatibility", "strict", "--ddl-delay", "100").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture
def keyspaces_shell(expansion, strict_server, tmp_path):
    s = Shell(expansion, strict_server, tmp_path)
    s.do("CONSISTENCY LOCAL_QUORUM")
    yield s
    s.close()


def keyspace(name):
    return f"CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};"


def make_keyspace(shell, name):
    shell.do(keyspace(name))
    if shell.asynchronous:
        repeat_until(shell, f"SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{name}';", "(1 rows)")
        # its driver forgets what it hears of a table whose keyspace it does not know yet, and asks after either in its own time
        repeat_until(shell, f"DESCRIBE KEYSPACE {name};", "CREATE KEYSPACE")


def repeat_until(shell, line, word):
    out = []
    eventually(lambda: out.append(shell.do(line)) or word in out[-1], lambda: out[-1], interval=0.2)


def fill(shell, name):
    make_keyspace(shell, name)
    shell.do(f"USE {name};")
    shell.do("CREATE TABLE people (town text, name text, age int, tags set<text>, mayor text static, PRIMARY KEY (town, name)) "
             "WITH CLUSTERING ORDER BY (name DESC);")
    await_table(shell, name, "people")
    for i in range(10):
        shell.do(f"INSERT INTO people (town, name, age, tags, mayor) VALUES ('ulm', 'n{i}', {i}, {{'a', 'b'}}, 'm');")


def await_table(shell, keyspace_name, table):
    """In keyspaces mode a table takes its time, and so does what cqlsh itself knows of it."""
    if shell.asynchronous:
        repeat_until(shell, "SELECT status FROM system_schema_mcs.tables "
                            f"WHERE keyspace_name = '{keyspace_name}' AND table_name = '{table}';", "ACTIVE")
        repeat_until(shell, f"DESCRIBE TABLE {keyspace_name}.{table};", "CREATE TABLE")


Shell.asynchronous = False


def rows(output):
    """The cells of a printed result, row by row."""
    lines = [line for line in output.splitlines() if "|" in line]
    return [[cell.strip() for cell in line.split("|")] for line in lines[1:]]


# ---------------------------------------------------------------- cqlsh 6.2.2, cassandra mode

def test_connects_and_leaves(shell):
    assert "Connected to" in shell.greeting
    assert "5.0" in shell.do("SHOW VERSION")
    assert shell.leave() == 0


def test_statement_over_several_lines(shell):
    assert "..." in shell.do("SELECT key", until=r"\.\.\. ") + "..."
    assert "local" in shell.do("FROM system.local;")


def test_describe(shell):
    fill(shell, "described")
    table = shell.do("DESCRIBE TABLE people;")
    for line in ("CREATE TABLE described.people (", "town text,", "tags set<text>,", "mayor text static,",
                 "PRIMARY KEY (town, name)", "CLUSTERING ORDER BY (name DESC)"):
        assert line in table
    assert "people" in shell.do("DESCRIBE TABLES;")
    assert "described" in shell.do("DESCRIBE KEYSPACES;")
    whole = shell.do("DESCRIBE KEYSPACE described;")
    assert "CREATE KEYSPACE described" in whole and "CREATE TABLE described.people" in whole
    assert "CREATE TABLE described.people" in shell.do("DESC SCHEMA;")
    assert "Cluster:" in shell.do("DESCRIBE CLUSTER;")
    assert "not found" in shell.do("DESCRIBE TABLE nosuch;")


def test_what_describe_prints_can_be_run(shell):
    fill(shell, "copied")
    text = shell.do("DESCRIBE TABLE people;")
    statement = text[text.index("CREATE TABLE"):text.index(";", text.index("CREATE TABLE"))].replace("people", "people2")
    shell.do(" ".join(statement.split()) + ";")
    again = shell.do("DESCRIBE TABLE people2;")
    again = again[again.index("CREATE TABLE"):again.index(";", again.index("CREATE TABLE"))]
    assert again.split() == statement.split()


def test_tab_completion(shell):
    fill(shell, "tabbed")
    shell.complete("SELECT * FROM peo", "people")
    shell.complete("SELECT * FROM people WHERE ", "town", "TOKEN(", tabs=3)
    shell.complete("DESCRIBE TABLE tabbed.pe", "tabbed.people")
    shell.complete("USE tabb", "USE tabbed")


def test_select_prints_rows(shell):
    fill(shell, "printed")
    out = shell.do("SELECT name, age, tags, mayor FROM people WHERE town = 'ulm' AND name > 'n7';")
    assert rows(out) == [["n9", "9", "{'a', 'b'}", "m"], ["n8", "8", "{'a', 'b'}", "m"]]
    assert "(2 rows)" in out
    assert "@ Row 1" in shell.do("EXPAND ON") + shell.do("SELECT * FROM people LIMIT 1;")


def test_paging(shell):
    fill(shell, "paged")
    shell.do("PAGING 4")
    out = shell.do("SELECT name FROM people;", until=MORE)
    assert "n9" in out and "n6" in out and "n5" not in out
    shell.child.sendline("")
    out = shell.read(until=MORE)
    assert "n5" in out and "n2" in out
    shell.child.sendline("")
    out = shell.read()
    assert "n1" in out and "n0" in out and "(10 rows)" in out


def test_tracing(shell):
    fill(shell, "traced")
    assert "set to ON" in shell.do("TRACING ON")
    out = shell.do("SELECT name FROM people WHERE town = 'ulm' LIMIT 1;")
    assert "Tracing session:" in out and "Request complete" in out
    at = [out.find(step) for step in ("Execute CQL3 query", "Parsing SELECT name FROM people", "Read ", "Charged 0.5 read units", "Admitted by the limits", "Request complete")]
    assert -1 not in at and at == sorted(at), out
    written = shell.do("INSERT INTO people (town, name) VALUES ('ulm', 'traced');")
    at = [written.find(step) for step in ("Parsing INSERT INTO people", "Charged", "Applied", stores.in_use.last_step, "Request complete")]
    assert -1 not in at and at == sorted(at), written
    assert "set to OFF" in shell.do("TRACING OFF")


def test_copy_to_and_from(shell, tmp_path):
    fill(shell, "moved")
    out = shell.do(f"COPY people (town, name, age, tags) TO '{tmp_path}/people.csv' WITH HEADER = true;")
    assert "10 rows exported to 1 files" in out
    lines = (tmp_path / "people.csv").read_text().splitlines()
    assert lines[0] == "town,name,age,tags" and len(lines) == 11
    shell.do("CREATE TABLE people2 (town text, name text, age int, tags set<text>, PRIMARY KEY (town, name));")
    out = shell.do(f"COPY people2 (town, name, age, tags) FROM '{tmp_path}/people.csv' WITH HEADER = true;")
    assert "10 rows imported from 1 files" in out
    assert len(rows(shell.do("SELECT name, age FROM people2;"))) == 10


TYPED = "(id int PRIMARY KEY, who frozen<person>, home address, places map<text, frozen<address>>)"
ADA = "{name: 'Ada', homes: [{street: 'here', zip: 1}, {street: 'there', zip: null}]}"


def make_types(shell, name):
    """Two types, a table of them, and a row."""
    make_keyspace(shell, name)
    shell.do(f"USE {name};")
    for type_, fields in (("address", "street text, zip int"), ("person", "name text, homes list<frozen<address>>")):
        shell.do(f"CREATE TYPE {type_} ({fields});")
        if shell.asynchronous:
            repeat_until(shell, f"SELECT status FROM system_schema_mcs.types WHERE keyspace_name = '{name}' AND type_name = '{type_}';", "ACTIVE")
    make_typed(shell, name, "people")
    shell.do(f"INSERT INTO people (id, who, home, places) VALUES (1, {ADA.replace(', zip: null', '')}, {{zip: 7}}, {{'x': {{street: 'there', zip: 2}}}});")


def make_typed(shell, name, table):
    shell.do(f"CREATE TABLE {table} {TYPED};")
    await_table(shell, name, table)


def check_types(shell, name, tmp_path):
    """Described, read, copied out and in again."""
    if not shell.asynchronous:  # cqlsh-expansion falls over its own DESCRIBE TYPES: "cannot use a string pattern on a bytes-like object"
        assert "person" in shell.do("DESCRIBE TYPES;")
    assert f"CREATE TYPE {name}.address (street text,zip int);" in "".join(line.strip() for line in shell.do("DESCRIBE TYPE address;").splitlines())
    whole = shell.do(f"DESCRIBE KEYSPACE {name};")
    assert whole.index(f"CREATE TYPE {name}.address") < whole.index(f"CREATE TYPE {name}.person") < whole.index(f"CREATE TABLE {name}.people")
    assert "who frozen<person>" in shell.do("DESCRIBE TABLE people;")
    row = ["1", "{street: null, zip: 7}", "{'x': {street: 'there', zip: 2}}", ADA]
    assert rows(shell.do("SELECT * FROM people;")) == [row]
    assert "1 rows exported" in shell.do(f"COPY people (id, who, home, places) TO '{tmp_path}/typed.csv';")
    make_typed(shell, name, "copied")
    assert "1 rows imported" in shell.do(f"COPY copied (id, who, home, places) FROM '{tmp_path}/typed.csv';")
    assert rows(shell.do("SELECT * FROM copied;")) == [row]


def test_user_types_from_creation_to_copies_and_changes(shell, tmp_path):
    make_types(shell, "typed")
    check_types(shell, "typed", tmp_path)
    shell.do("ALTER TYPE address ADD city text;")
    shell.do("ALTER TYPE address RENAME zip TO code;")
    assert "code int,city text" in "".join(line.strip() for line in shell.do("DESCRIBE TYPE address;").splitlines())
    assert rows(shell.do("SELECT home FROM people;")) == []  # of one column there is no bar
    assert "{street: null, code: 7, city: null}" in shell.do("SELECT home FROM people;")
    shell.do("UPDATE people SET home.city = 'ulm' WHERE id = 1;")
    assert "{street: null, code: 7, city: 'ulm'}" in shell.do("SELECT home FROM people;")
    shell.do("ALTER TABLE people DROP places;")
    shell.do("ALTER TABLE people RENAME id TO number;")
    assert "places" not in shell.do("DESCRIBE TABLE people;") and "number int PRIMARY KEY" in shell.do("DESCRIBE TABLE people;")
    assert "Cannot drop user type 'typed.address' as it is still used by user types person" in shell.do("DROP TYPE address;")


def test_errors_are_shown(shell):
    assert "SyntaxException: line 1:0 no viable alternative at input 'SELEC'" in shell.do("SELEC 1;")
    assert "table nosuch does not exist" in shell.do("SELECT * FROM system.nosuch;")
    assert "Undefined column name nosuch" in shell.do("SELECT nosuch FROM system.local;")


def test_consistency_and_json(shell):
    fill(shell, "levels")
    assert "LOCAL_QUORUM" in shell.do("CONSISTENCY LOCAL_QUORUM")
    assert '"name": "n0"' in shell.do("SELECT JSON name, age FROM people WHERE town = 'ulm' AND name = 'n0';")
    out = shell.do("BEGIN BATCH INSERT INTO people (town, name) VALUES ('x', 'y'); DELETE FROM people WHERE town = 'ulm'; APPLY BATCH;")
    assert out.strip() == ""
    assert rows(shell.do("SELECT town, name FROM people;")) == [["x", "y"]]


def test_one_command_from_the_command_line(cqlsh, cassandra_server, tmp_path):
    def run(statement):
        return subprocess.run([cqlsh, cassandra_server.host, str(cassandra_server.port), "-e", statement],
                              env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=300)
    good = run("SELECT key FROM system.local")
    assert good.returncode == 0 and "local" in good.stdout
    assert run("SELECT nosuch FROM system.local").returncode == 2


# ---------------------------------------------------------------- cqlsh-expansion, keyspaces mode

@pytest.fixture(autouse=True)
def waits_for_tables(request, monkeypatch):
    monkeypatch.setattr(Shell, "asynchronous", "keyspaces_shell" in request.fixturenames)


def test_expansion_connects_and_leaves(keyspaces_shell):
    assert "Connected to" in keyspaces_shell.greeting
    assert "3.11.2" in keyspaces_shell.do("SHOW VERSION")
    assert keyspaces_shell.leave() == 0


def test_expansion_describes(keyspaces_shell):
    fill(keyspaces_shell, "described")
    table = keyspaces_shell.do("DESCRIBE TABLE described.people;")
    for line in ("CREATE TABLE described.people (", "mayor text static,", "PRIMARY KEY (town, name)", "CLUSTERING ORDER BY (name DESC)"):
        assert line in table
    assert "people" in keyspaces_shell.do("DESCRIBE TABLES;")
    assert "described" in keyspaces_shell.do("DESCRIBE KEYSPACES;")
    assert "CREATE KEYSPACE described" in keyspaces_shell.do("DESCRIBE KEYSPACE described;")


def test_what_expansion_describes_can_be_run_where_refusals_are_strict(keyspaces_shell):
    def described(table):
        text = keyspaces_shell.do(f"DESCRIBE TABLE {table};")
        return text[text.index("CREATE TABLE"):text.index(";", text.index("CREATE TABLE"))]

    fill(keyspaces_shell, "pasted")
    statement = described("pasted.people").replace("people", "people2")
    assert "read_repair_chance" in statement and "read_repair =" not in statement
    keyspaces_shell.do(" ".join(statement.split()) + ";")
    await_table(keyspaces_shell, "pasted", "people2")
    assert described("pasted.people2").split() == statement.split()


def test_expansion_completes(keyspaces_shell):
    fill(keyspaces_shell, "tabbed")
    keyspaces_shell.complete("SELECT * FROM peo", "people")
    keyspaces_shell.complete("SELECT * FROM people WHERE ", "town", tabs=3)


def test_expansion_pages_and_traces(keyspaces_shell):
    fill(keyspaces_shell, "paged")
    keyspaces_shell.do("PAGING 6")
    out = keyspaces_shell.do("SELECT name FROM people;", until=MORE)
    assert "n9" in out and "n4" in out and "n3" not in out
    keyspaces_shell.child.sendline("")
    assert "(10 rows)" in keyspaces_shell.read()
    keyspaces_shell.do("TRACING ON")
    assert "Tracing session:" in keyspaces_shell.do("SELECT name FROM people LIMIT 1;")


def test_expansion_copies(keyspaces_shell, tmp_path):
    fill(keyspaces_shell, "moved")
    keyspaces_shell.do("CONSISTENCY LOCAL_QUORUM")
    assert "10 rows exported" in keyspaces_shell.do(f"COPY people (town, name, age, tags) TO '{tmp_path}/people.csv';")
    keyspaces_shell.do("CREATE TABLE people2 (town text, name text, age int, tags set<text>, PRIMARY KEY (town, name));")
    await_table(keyspaces_shell, "moved", "people2")
    assert "10 rows imported" in keyspaces_shell.do(f"COPY people2 (town, name, age, tags) FROM '{tmp_path}/people.csv';")
    assert len(rows(keyspaces_shell.do("SELECT name, age FROM people2;"))) == 10


def test_expansion_knows_user_types(keyspaces_shell, tmp_path):
    make_types(keyspaces_shell, "typed")
    check_types(keyspaces_shell, "typed", tmp_path)
    assert "ALTER TYPE is not yet supported" in keyspaces_shell.do("ALTER TYPE address ADD city text;")


def test_expansion_words_an_unknown_table_as_keyspaces_does(keyspaces_shell):
    make_keyspace(keyspaces_shell, "early")
    keyspaces_shell.do("CREATE TABLE early.t (k int PRIMARY KEY);")
    assert "unconfigured table early.nosuch" in keyspaces_shell.do("SELECT * FROM early.nosuch;")
    await_table(keyspaces_shell, "early", "t")
    assert "(0 rows)" in keyspaces_shell.do("SELECT * FROM early.t;")


def test_expansion_is_told_what_keyspaces_refuses(keyspaces_shell):
    fill(keyspaces_shell, "shell_refusals")
    out = keyspaces_shell.do("SELECT COUNT(*) FROM people;")
    assert "countRows is not yet supported." in out
    assert "TTL is not yet supported. Turn it on for the table: ALTER TABLE" in keyspaces_shell.do("UPDATE people USING TTL 60 SET age = 1 WHERE town = 'ulm' AND name = 'n1';")
    keyspaces_shell.do("CONSISTENCY ONE")
    out = keyspaces_shell.do("INSERT INTO people (town, name) VALUES ('x', 'y');")
    assert "Consistency level ONE is not supported for this operation. Supported consistency levels are: LOCAL_QUORUM" in out
    assert keyspaces_shell.leave() == 0


def test_cassandras_cqlsh_works_where_refusals_are_strict(cqlsh, strict_server, tmp_path):
    """It sends DESCRIBE to servers of release 4 and later only."""
    with strict_server.cluster() as cluster:
        create_keyspace(cluster.connect(), "shell_strict")  # before cqlsh is there, which cannot be asked here whether it knows it (make_keyspace)
    s = Shell(cqlsh, strict_server, tmp_path)
    s.do("CONSISTENCY LOCAL_QUORUM")
    s.do("CREATE TABLE shell_strict.t (p int PRIMARY KEY, v text);")
    repeat_until(s, "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = 'shell_strict' AND table_name = 't';", "ACTIVE")
    s.do("INSERT INTO shell_strict.t (p, v) VALUES (1, 'x');")
    repeat_until(s, "SELECT * FROM shell_strict.t;", "(1 rows)")  # cqlsh itself hears of the table a moment later
    assert "DISTINCT is not yet supported." in s.do("SELECT DISTINCT p FROM shell_strict.t;")
    assert s.leave() == 0
