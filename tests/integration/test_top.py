"""tally top: what a server is doing, and logins with an AWS signature."""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import pytest

from tally_server import HANG, TALLYD, Server, create_keyspace, create_table

TALLY = TALLYD.parent / "tally"


def run(*args, code=0, env=None):
    done = subprocess.run([str(TALLY), *(str(a) for a in args)], capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout or done.stderr


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A server with two tables, one of which was asked much, and throttled."""
    server = Server(tmp_path_factory.mktemp("busy"), "--ddl-delay", "none", "--limits", "shadow").start()
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        session.execute("CREATE TYPE shop.address (street text, number int)")
        session.execute("CREATE TYPE shop.person (name text, home frozen<shop.address>)")
        create_table(session, "shop", "orders",
                     'customer int, "Day" int, id int, total int, note text, who frozen<shop.person>, name text static, PRIMARY KEY ((customer), "Day", id)')
        create_table(session, "shop", "quiet", "id int PRIMARY KEY, v text")
        insert = session.prepare('INSERT INTO shop.orders (customer, "Day", id, note) VALUES (?, ?, ?, ?)')
        for i in range(300):
            session.execute(insert, (1 if i % 3 else i, i, i, "x" * 1500))
        list(session.execute("SELECT * FROM shop.orders WHERE customer = 1"))
        session.execute("INSERT INTO shop.quiet (id, v) VALUES (1, 'v')")
    yield server
    server.stop()


def at(server):
    return f"{server.host}:{server.port}"


def test_top_shows_tables_partitions_and_statements_by_units(busy):
    top = json.loads(run("top", "--server", at(busy), "--once", "--json"))
    names = [t["name"] for t in top["tables"]]
    assert names.index("shop.orders") < names.index("shop.quiet")
    orders = top["tables"][names.index("shop.orders")]
    assert orders["units"] > 600 and orders["requests"] >= 300
    hot = top["partitions"][0]
    assert hot["name"] == "shop.orders customer = 1" and hot["units"] > 0.5 * orders["units"]
    insert = next(s for s in top["statements"] if s["name"].startswith("INSERT INTO shop.orders"))
    assert insert["requests"] == 300 and insert["units"] == 600
    assert "latency_mean_ms" in orders and 0 < orders["latency_mean_ms"] <= orders["latency_max_ms"]


def test_top_says_which_minute_its_last_one_is(tmp_path):
    """The last whole minute of the server's clock, which the test holds at nine seconds past."""
    server = Server(tmp_path, "--ddl-delay", "none", "--control", "on").start()
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        create_table(session, "shop", "orders", "id int PRIMARY KEY, v text")
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = '2031-05-06T07:08:09Z' "
                        "WHERE name = 'server'")
        for i in range(5):
            session.execute("INSERT INTO shop.orders (id, v) VALUES (%s, 'v')", (i,))

        def top():
            said = json.loads(run("top", "--server", at(server), "--once", "--json"))
            return said["last_minute"], said["tables"][0]["units_last_minute"]

        assert top() == ("2031-05-06T07:07:00Z", 0)
        session.execute("UPDATE system_control.clock SET advance_ms = 60000 WHERE name = 'server'")
        assert top() == ("2031-05-06T07:08:00Z", 5)
        text = run("top", "--server", at(server), "--once")
        assert "5.0 in the last whole minute, that of 2031-05-06 07:08 UTC" in text and "minute 07:08" in text
    server.stop()


def test_top_for_people_is_a_table_and_a_screen(busy):
    text = run("top", "--server", at(busy), "--once", "--rows", "2")
    assert "units in the last second" in text and "shop.orders" in text and "\x1b" not in text
    rows = [line for line in text.split("\n") if "INSERT INTO shop.orders" in line]
    assert len(rows) == 1
    screen = subprocess.Popen(["script", "-qec", f"{TALLY} top --server {at(busy)}", "/dev/null"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True)
    seen, deadline = b"", time.monotonic() + HANG
    while seen.count(b"\x1b[H\x1b[J") < 2 and time.monotonic() < deadline:
        seen += os.read(screen.stdout.fileno(), 65536)
    os.killpg(screen.pid, signal.SIGTERM)
    screen.wait(timeout=300)
    assert seen.count(b"\x1b[H\x1b[J") >= 2 and b"shop.orders" in seen


def test_a_screen_fits_its_terminal_and_q_ends_it(busy):
    """All lists stay in view on 30 lines of 100 columns; the statements are longer than a line."""
    with busy.cluster() as cluster:
        session = cluster.connect()
        for i in range(9):
            create_table(session, "shop", f"more{i}", 'who text, "Day" int, v text, PRIMARY KEY ((who, "Day"))')
            session.execute(f"INSERT INTO shop.more{i} (who, \"Day\", v) VALUES ('it''s', {i}, '{'x' * 2000}')")
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(terminal)
    top = subprocess.Popen([TALLY, "top", "--server", at(busy)], stdin=terminal, stdout=terminal, stderr=subprocess.PIPE)
    seen, deadline = b"", time.monotonic() + HANG
    while seen.count(b"\x1b[H\x1b[J") < 2 and time.monotonic() < deadline:
        seen += os.read(main, 65536)
    os.write(main, b"q")
    assert top.wait(timeout=HANG) == 0 and termios.tcgetattr(terminal) == before
    screen = seen.split(b"\x1b[H\x1b[J")[1].decode()
    lines = screen.split("\r\n")
    assert len(lines) <= 30 and max(map(len, lines)) == 100 and "\n" not in "".join(lines)
    titles = [line.split()[-1] for line in lines if line.lstrip().startswith("units/s")]
    assert titles == ["table", "partition", "statement"] and len([line for line in lines if " shop." in line]) >= 6
    os.close(main), os.close(terminal)
    said = json.loads(run("top", "--server", at(busy), "--once", "--rows", "30", "--json"))
    assert "shop.more7 who = 'it''s' AND \"Day\" = 7" in [p["name"] for p in said["partitions"]]


def test_top_needs_a_server_that_tells(busy):
    assert "cannot connect" in run("top", "--server", "127.0.0.1:1", "--once", code=1)
    assert "--every" in run("top", "--server", at(busy), "--every", "0", code=2)


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_logs_in_with_an_aws_signature_in_every_version(tmp_path, version):
    credentials = tmp_path / "credentials"
    credentials.write_text("user app secret\nkey AKIDEXAMPLE wJalrXUtnFEMI app\n")
    credentials.chmod(0o600)
    server = Server(tmp_path, "--auth", "sigv4", "--region", "us-west-2", "--credentials", credentials, "--protocol", "5").start()
    keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI"}
    base = ("top", "--server", at(server), "--once", "--json", "--protocol", version)
    assert json.loads(run(*base, "--sigv4", "--region", "us-west-2", env=keys))["ok"]
    assert not json.loads(run(*base, "--sigv4", "--region", "us-west-2", env={**keys, "AWS_SECRET_ACCESS_KEY": "wrong"}, code=1))["ok"]
    assert json.loads(run(*base, "--user", "app", env={"TALLY_PASSWORD": "secret"}))["ok"]
    server.stop()
