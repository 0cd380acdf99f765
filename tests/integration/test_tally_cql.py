"""tally cql: what scripts see is what cqlsh prints, and a person at a terminal can work with it."""
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import stores
from cqlsh_shell import MORE, Shell
from ports import free_port
from tally_server import HANG, TALLY, Server, certificates, create_keyspace, eventually

SCHEMA = """
CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TYPE IF NOT EXISTS shop.address (street text, number int);
CREATE TABLE IF NOT EXISTS shop.orders (customer int, id int, name text, paid boolean, total double, part float,
  at timestamp,
  day date, hour time, ref uuid, host inet, tags list<text>, codes set<int>, sums map<text, frozen<list<double>>>,
  pair tuple<int, text>, home frozen<address>, span duration, price decimal, big varint, raw blob,
  PRIMARY KEY (customer, id));
"""
ROWS = r"""
INSERT INTO shop.orders (customer, id, name, paid, total, part, at, day, hour, ref, host, tags, codes,
  sums, pair, home, span, price, big, raw) VALUES (1, 1, 'it''s \ two
lines, ü漢', true, 123456.789, 1.23456789, '2020-02-03T04:05:06.789Z', '2020-02-03', '08:12:54.123456789',
  123e4567-e89b-12d3-a456-426614174000, '10.0.0.1', ['x', 'it''s', '漢'], {3, 1, 2}, {'k': [1.5, 2], 'a': [3]},
  (1, 'b'),
  {street: 'High', number: null}, 1y2mo3d4h5us, 1.50, -12345678901234567890, 0xcafe);
INSERT INTO shop.orders (customer, id, total, part, name) VALUES (1, 2, 1e20, 1e-10, '');
INSERT INTO shop.orders (customer, id, total, part, at) VALUES (1, 3, -Infinity, NaN, '1969-12-31T23:59:59.999Z');
INSERT INTO shop.orders (customer, id, total, part) VALUES (2, 1, 0.0001, 12345.678);
"""
NUMBERS = """
INSERT INTO shop.orders (customer, id, price, host) VALUES (2, 2, 1e3, '2001:db8::1');
INSERT INTO shop.orders (customer, id, price, host) VALUES (2, 3, -1.25e-7, '::1');
INSERT INTO shop.orders (customer, id, price, host) VALUES (2, 4, 0.000001, '2001:db8:0:0:1:0:0:1');
INSERT INTO shop.orders (customer, id, price, host) VALUES (2, 5, 0e9, '::');
INSERT INTO shop.orders (customer, id, price) VALUES (2, 6, -1234567.0000001);
"""
QUERIES = """
SELECT * FROM shop.orders;
USE shop;
SELECT customer, name FROM orders WHERE customer = 9;
SELECT JSON customer, id FROM orders;
SELECT count(*) FROM orders WHERE customer = 1;
SELECT customer AS "The customer", id FROM orders LIMIT 1; SELECT id FROM orders LIMIT 2;
INSERT INTO orders (customer, id) VALUES (1, 3) IF NOT EXISTS;
INSERT INTO orders (customer, id) VALUES (1, 4) IF NOT EXISTS;
-- a remark; with a semicolon
BEGIN BATCH
  INSERT INTO orders (customer, id) VALUES (3, 1);
  INSERT INTO orders (customer, id) VALUES (3, 2);
APPLY BATCH;
CONSISTENCY
CONSISTENCY QUORUM;
SERIAL CONSISTENCY
SERIAL CONSISTENCY LOCAL_SERIAL
EXPAND
EXPAND ON
SELECT customer, id, name FROM orders LIMIT 2;
EXPAND OFF
TRACING
PAGING 2
SELECT customer, id FROM orders;
DESCRIBE TABLE orders
DESCRIBE TYPE address;
SHOW HOST
SELECT nothing FROM orders;
SELEC 1;
CREATE TABLE orders (p int PRIMARY KEY);
CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
DROP TABLE nothing;
SELECT customer FROM orders WHERE customer = 3 LIMIT 1;
EXIT
SELECT id FROM orders;
"""


def cql(server, *arguments, stdin="", **options):
    command = [str(TALLY), "cql", server.host, str(server.port), "--request-timeout", str(HANG),
               "--connect-timeout", str(HANG), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=HANG, **options)


@pytest.fixture
def cqlsh(tmp_path):
    """The program under the name that it has in the image."""
    link = tmp_path / "bin" / "cqlsh"
    link.parent.mkdir()
    link.symlink_to(TALLY)
    return link


def test_output_is_that_of_cqlsh(cassandra_server, tmp_path):
    done = cql(cassandra_server, "-e", SCHEMA)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    script = tmp_path / "queries.cql"
    script.write_text(QUERIES)
    real = [str(Path(sys.executable).parent / "cqlsh"), cassandra_server.host, str(cassandra_server.port),
            "--request-timeout", str(HANG)]
    answers = []
    for run in (lambda: cql(cassandra_server, "-f", str(script)),
                lambda: subprocess.run([*real, "-f", str(script)], capture_output=True, text=True, timeout=HANG)):
        assert cql(cassandra_server, "-e", "TRUNCATE shop.orders;" + ROWS + NUMBERS).stderr == ""
        answers.append(run())
    ours, theirs = answers
    assert ours.stdout == theirs.stdout
    # the real one counts a line more when a statement has ended; ours names the line where it begins
    without_line = [[line.split(":", 2)[2] for line in a.stderr.splitlines()] for a in (ours, theirs)]
    assert without_line[0] == without_line[1] and len(without_line[0]) == 5
    assert ours.returncode == theirs.returncode == 2
    line = QUERIES.splitlines().index("SELEC 1;") + 1
    assert f"{script}:{line}:SyntaxException: line 1:0 no viable alternative" in ours.stderr


def test_exit_codes_are_those_of_cqlsh(cassandra_server, tmp_path):
    missing = tmp_path / "missing.cql"
    script = tmp_path / "script.cql"
    script.write_text("SELECT key FROM system.local;")
    for arguments, code, words in [
            (["-e", "SELECT key FROM system.local"], 0, ""),
            (["--execute=SELECT key FROM system.local;", "--no-color"], 0, ""),
            (["--file", str(script)], 0, ""),
            (["-e", "SELEC 1; SELECT key FROM system.local"], 2, "<stdin>:1:SyntaxException: line 1:0"),
            (["-e", "EXPAND SIDEWAYS"], 2, "Improper EXPAND command"),
            (["-f", str(missing)], 1, f"cannot read {missing}"),
            (["-k", "nowhere", "-e", "SELECT key FROM system.local"], 1,
             "Connection error: Keyspace 'nowhere' does not exist"),
            (["-e", "SELECT 1", "-f", str(script)], 2, "--execute and --file cannot be given together"),
            (["--sideways"], 2, "unknown flag '--sideways'"),
            (["-x"], 2, "unexpected argument '-x'"),
            (["--password", "p", "-e", ""], 2, "--password needs --username"),
            (["--version"], 0, "")]:
        done = cql(cassandra_server, *arguments)
        assert done.returncode == code and words in done.stderr, (arguments, done)
    nobody = subprocess.run([str(TALLY), "cql", "127.0.0.1", str(free_port()), "-e", "SELECT 1"],
                            capture_output=True, text=True, timeout=HANG)
    named = subprocess.run([str(TALLY), "cql", f"{cassandra_server.host}:{cassandra_server.port}", "-e", "SELECT key FROM system.local"],
                           capture_output=True, text=True, timeout=HANG)
    assert named.returncode == 0 and "(1 rows)" in named.stdout, named.stderr
    shown = subprocess.run([str(TALLY), "cql", "--help"], capture_output=True, text=True, timeout=HANG).stdout
    assert "1 there is no connection to the server, 2 a statement failed" in shown
    assert nobody.returncode == 1 and nobody.stderr.startswith("Connection error: ") and "refused" in nobody.stderr
    after = cql(cassandra_server, "-e", "SELEC 1; SELECT key FROM system.local").stdout
    assert "(1 rows)" in after  # those behind a statement that failed are run
    assert "(1 rows)" in cql(cassandra_server, stdin="SELECT key FROM system.local;\n").stdout


def test_readiness_commands_of_test_containers(cqlsh, cassandra_server, tmp_path):
    """As Testcontainers runs them in the container: its Java module with a login,
    its Go module with a look at the answer."""
    env = {**os.environ, "CQLSH_HOST": cassandra_server.host, "CQLSH_PORT": str(cassandra_server.port)}
    script = tmp_path / "init.cql"
    script.write_text("CREATE KEYSPACE keySpaceTest "
                      "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n"
                      "USE keySpaceTest;\n\nCREATE TABLE catalog_category (\n"
                      "    id bigint primary key,\n    name text\n);\n"
                      "INSERT INTO catalog_category (id, name) VALUES (1, 'test_category');")

    def run(*arguments):
        return subprocess.run([str(cqlsh), *arguments], env=env, capture_output=True, text=True, timeout=HANG)
    ready = run("-u", "cassandra", "-p", "cassandra", "-e", "SELECT release_version FROM system.local")
    assert ready.returncode == 0 and ready.stderr == ""
    made = run("-u", "cassandra", "-p", "cassandra", "-f", str(script))
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert "test_category" in run("-e", "SELECT name FROM keyspacetest.catalog_category").stdout
    ready = run("-e", "SELECT bootstrapped FROM system.local")
    assert ready.stdout == "\n bootstrapped\n--------------\n    COMPLETED\n\n(1 rows)\n"


def test_login_and_tls(tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("user app secret\n")
    credentials.chmod(0o600)
    ca, tls = certificates(tmp_path / "certificates", "--host", "127.0.0.1")
    server = Server(tmp_path, "--auth", "password", "--credentials", str(credentials), "--tls-port", "0", *tls).start()
    try:
        ask = ["-e", "SELECT key FROM system.local"]
        assert cql(server, "-u", "app", "-p", "secret", *ask).returncode == 0
        wrong = cql(server, "-u", "app", "-p", "guess", *ask)
        assert wrong.returncode == 1 and wrong.stderr.startswith("Connection error: ")
        none = cql(server, *ask)
        assert none.returncode == 1 and "asks for a login" in none.stderr
        again = cql(server, "-u", "app", "-p", "secret", "-e",
                    "LOGIN app 'guess'; LOGIN app 'secret'; SELECT key FROM system.local")
        assert again.returncode == 2 and "LOGIN failed: " in again.stderr and "(1 rows)" in again.stdout
        server.port = int(server.ready["tls"].rsplit(":", 1)[1])
        assert cql(server, "--ssl", "--ca", str(ca), "-u", "app", "-p", "secret", *ask).returncode == 0
        assert cql(server, "--ssl", "-u", "app", "-p", "secret", *ask,
                   env={**os.environ, "SSL_CERTFILE": str(ca)}).returncode == 0
        stranger = cql(server, "--ssl", "-u", "app", "-p", "secret", *ask)
        assert stranger.returncode == 1 and "no TLS with" in stranger.stderr
    finally:
        server.kill9()


def test_keyspaces_schema_script_runs_as_it_is_with_wait(server, tmp_path):
    script = tmp_path / "schema.cql"
    script.write_text("CREATE KEYSPACE waited WITH replication = {'class': 'SingleRegionStrategy'};\n"
                      "CREATE TABLE waited.t (p int PRIMARY KEY, v text);\nALTER TABLE waited.t ADD w text;\n"
                      "INSERT INTO waited.t (p, v, w) VALUES (1, 'a', 'b');\nSELECT * FROM waited.t WHERE p = 1;\n"
                      "DROP TABLE waited.t;\nCREATE TABLE waited.t (p int PRIMARY KEY);\nDROP KEYSPACE waited;\n"
                      "CREATE KEYSPACE waited WITH replication = {'class': 'SingleRegionStrategy'};\n")
    done = cql(server, "--wait", "--charge", "-f", str(script))
    assert (done.returncode, done.stderr) == (0, "")
    assert " p | v | w\n---+---+---\n 1 | a | b\n\n(1 rows)\n1 RU  0 WU\n" in done.stdout
    assert "0 RU  1 WU" in done.stdout
    script.write_text("CREATE KEYSPACE hasty WITH replication = {'class': 'SingleRegionStrategy'};\n"
                      "CREATE TABLE hasty.t (p int PRIMARY KEY);\n")
    hasty = cql(server, "-f", str(script))
    assert hasty.returncode == 2 and "hasty" in hasty.stderr  # the keyspace is not there yet


def test_keyspaces_describe_is_made_of_the_system_tables(server):
    with server.cluster() as cluster:
        create_keyspace(cluster.connect(), "described")
    assert cql(server, "--wait", "-e", 'CREATE TYPE described.u (a int, "B" text); '
               'CREATE TABLE described.t (p int, "C" int, v frozen<u>, s text static, '
               'PRIMARY KEY (p, "C")) WITH CLUSTERING ORDER BY ("C" DESC) AND CUSTOM_PROPERTIES = {'
               "'point_in_time_recovery': {'status': '" + stores.in_use.recovery + "'}, 'encryption_specification': {'encryption_type': 'AWS_OWNED_KMS_KEY'}, "
               "'client_side_timestamps': {'status': 'enabled'}};").stderr == ""
    told = cql(server, "-e", "DESCRIBE KEYSPACE described").stdout
    assert 'CREATE TABLE described.t (\n    "C" int,\n    p int,\n    s text static,\n    v frozen<u>,\n' \
           '    PRIMARY KEY ((p), "C")\n)' in told
    assert 'CREATE TYPE described.u (\n    a int,\n    "B" text\n);' in told
    assert "CREATE KEYSPACE described WITH" in told
    # what only the server sets is not in it: the earliest moment that can be restored
    assert re.search(r"AND CUSTOM_PROPERTIES = \{.*'client_side_timestamps': \{'status': 'enabled'\}.*'encryption_specification': .*"
                     r"'point_in_time_recovery': \{'status': '" + stores.in_use.recovery + r"'\}", told) and "timestamp'" not in told
    again = told.replace("described", "described_again")
    assert cql(server, "--wait", "-e", again).stderr == ""
    assert cql(server, "-e", "DESCRIBE KEYSPACE described_again").stdout == again
    inside = cql(server, "-k", "described", "-e",
                 "DESCRIBE TABLES; DESCRIBE TYPES; DESCRIBE TABLE t; DESC t; DESC TYPE u").stdout
    assert inside.startswith("\nt\n\n\nu\n\n")
    assert inside.count("CREATE TABLE described.t") == 2 and inside.count("CREATE TYPE") == 1
    assert "system_schema_mcs" in cql(server, "-e", "DESCRIBE KEYSPACES").stdout
    assert "Cluster: Amazon Keyspaces" in cql(server, "-e", "DESCRIBE CLUSTER").stdout
    missing = cql(server, "-e", "DESCRIBE TABLE described.nothing")
    assert missing.returncode == 2 and "'nothing' not found in keyspace 'described'" in missing.stderr


def test_source_and_capture(cassandra_server, tmp_path):
    inner, captured = tmp_path / "inner.cql", tmp_path / "captured.txt"
    inner.write_text("SELECT key FROM system.local;\nSELEC 1;\n")
    done = cql(cassandra_server, "-e",
               f"CAPTURE '{captured}'\nSOURCE '{inner}'\nCAPTURE OFF\nSELECT key FROM system.local;")
    assert done.returncode == 2 and f"{inner}:2:SyntaxException" in done.stderr
    assert captured.read_text() == "\n key\n-------\n local\n\n(1 rows)\n" and done.stdout.count("(1 rows)") == 1
    inner.write_text(f"SOURCE '{inner}'")
    endless = cql(cassandra_server, "-e", f"SOURCE '{inner}'")
    assert endless.returncode == 2 and "files within each other" in endless.stderr


@pytest.fixture
def terminal(cqlsh, cassandra_server, tmp_path):
    shells = []

    def make(server=cassandra_server, *arguments):
        shells.append(Shell(cqlsh, server, tmp_path, *arguments))
        return shells[-1]
    yield make
    for s in shells:
        s.child.close(force=True)


def test_a_session_at_a_terminal(terminal, cassandra_server, tmp_path):
    assert cql(cassandra_server, "-e", SCHEMA + "TRUNCATE shop.orders;" + ROWS).stderr == ""
    shell = terminal()
    assert f"Connected to Test Cluster at {cassandra_server.host}:{cassandra_server.port}" in shell.greeting
    # a statement of three lines, its rows and its charge
    shell.child.sendline("SELECT customer, id")
    shell.child.expect_exact("   ... ")
    shell.child.sendline("FROM shop.orders")
    shell.child.expect_exact("   ... ")
    shell.child.sendline("WHERE customer = 2;")
    out = shell.read()
    assert " customer | id\n" in out and "(1 rows)\n0.5 RU  0 WU\n" in out
    # an error leaves the prompt
    refused = shell.do("SELECT nothing FROM shop.orders;")
    assert "InvalidRequest: Error from server: code=2200 [Invalid query] message=\"Undefined column name" in refused
    # pages wait for Enter
    shell.do("PAGING 3")
    assert "2 |" not in shell.do("SELECT id FROM shop.orders;", MORE)
    assert "(4 rows)" in shell.do("")
    # Ctrl-C at a page gives the prompt; so it does in a statement that is not finished, which is forgotten
    shell.do("SELECT id FROM shop.orders;", MORE)
    shell.child.send("\x03")
    assert "not read" in shell.read()
    shell.child.sendline("SELECT id")
    shell.child.expect_exact("   ... ")
    shell.child.send("\x03")
    shell.read()
    assert "ON" in shell.do("EXPAND ON") and "@ Row 1\n" in shell.do("SELECT id FROM shop.orders LIMIT 1;")
    assert shell.do("USE shop;") is not None
    assert "cqlsh:shop> " in shell.child.after
    assert shell.leave() == 0


def test_a_terminal_remembers_all_but_passwords(terminal, tmp_path):
    shell = terminal()
    shell.do("SELECT key FROM system.local;")
    shell.do("CREATE ROLE somebody WITH PASSWORD = 'hidden';")
    shell.do("LOGIN somebody 'hidden'")
    shell.do("CONSISTENCY ONE")
    assert shell.leave() == 0
    history = tmp_path / ".tally_cql_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "hidden" not in history.read_text() and "CONSISTENCY" in history.read_text()
    shell = terminal()
    shell.child.send("\x1b[A\x1b[A\x1b[A")  # the third line from the end: EXIT, CONSISTENCY ONE, SELECT
    shell.child.send("\r")
    assert "(1 rows)" in shell.read()


def test_a_terminal_completes_words(terminal, cassandra_server):
    assert cql(cassandra_server, "-e", SCHEMA).stderr == ""
    assert cql(cassandra_server, "-e", "TRUNCATE shop.orders;" + ROWS).stderr == ""
    shell = terminal()
    # what TAB makes of a line shows in what the line does
    assert "(1 rows)" in shell.do("SEL\tid FROM sho\tord\tWHERE custome\t= 2;")
    assert "Consistency level set to LOCAL_QUORUM." in shell.do("cons\tLOCAL_Q\t")
    shell.do("USE system_tr\t;")
    assert "cqlsh:system_traces> " in shell.child.after
    # more than one: what they have in common, then a list of them
    shell.child.send("DES\t\t")
    shell.child.expect("DESC +DESCRIBE")
    shell.child.send("\x03")
    shell.child.expect_exact("^C")
    shell.read()
    assert "(1 rows)" in shell.do("SELECT key FROM system.loc\t;")


def test_ctrl_c_cancels_the_request_that_is_under_way(terminal, new_server):
    server = new_server("--mode", "cassandra", "--control", "on")
    shell = terminal(server)
    shell.do("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};")
    shell.do("CREATE TABLE k.t (p int PRIMARY KEY);")
    shell.do("USE k;")
    assert cql(server, "-e", "INSERT INTO system_control.faults (name, statement, keyspace_name, table_name, delay_ms) "
               "VALUES ('slow', 'SELECT', 'k', 't', 600000)").stderr == ""
    shell.child.sendline("SELECT * FROM t;")
    eventually(lambda: "\n    1\n" in cql(server, "-e", "SELECT hits FROM system_control.faults").stdout)
    shell.child.send("\x03")
    assert "The request was cancelled" in shell.read()
    assert cql(server, "-e", "DELETE FROM system_control.faults WHERE name = 'slow'").stderr == ""
    assert "(0 rows)" in shell.do("SELECT * FROM t;")  # a new connection, in the same keyspace
