"""What an operator does: looks at the settings and changes them, reads the log, runs the server under systemd, installs it."""
import http.server
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from aws_api import Api
from ports import free_port
from tally_server import HANG, ROOT, TALLY, TALLYD, Server, create_keyspace, create_table, eventually


def run(*flags, **env):
    return subprocess.run([str(TALLYD), *map(str, flags)], capture_output=True, text=True, timeout=300, env={**os.environ, **env})


def test_settings_are_checked_without_a_start(tmp_path):
    folder = tmp_path / "data"
    sound = run("--check-config", "--data-dir", folder, "--port", "0")
    assert (sound.returncode, sound.stdout) == (0, "tallyd: the settings are sound\n")
    bad = run("--check-config", "--data-dir", folder, "--port", "99999")
    assert bad.returncode == 2 and "--port must be a number from 0 to 65535, not '99999'" in bad.stderr
    assert not folder.exists()


def test_printed_settings_read_back_the_same(tmp_path):
    first = run("--print-config", "--cluster-name", "it's: #1", "--mode", "cassandra", TALLY_RACK="r 7")
    assert first.returncode == 0 and "cluster-name: 'it''s: #1'" in first.stdout and "rack: 'r 7'" in first.stdout
    file = tmp_path / "tally.yaml"
    file.write_text(first.stdout)
    assert run("--print-config", "--config", file).stdout == first.stdout
    file.write_text(first.stdout.replace("cluster-name", "cluster-nam"))
    unknown = run("--print-config", "--config", file)
    assert unknown.returncode == 2 and "cluster-nam" in unknown.stderr


def test_systemd_is_told_when_the_server_is_ready_and_when_it_stops(tmp_path, monkeypatch):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        s = Server(tmp_path).start()
        assert listener.recv(100) == b"READY=1"
        s.stop()
        assert listener.recv(100) == b"STOPPING=1"


def test_it_installs_what_it_needs(tmp_path):
    preset = TALLYD.parents[1]
    subprocess.run(["cmake", "--install", str(preset), "--prefix", str(tmp_path / "usr")], check=True, capture_output=True, timeout=300)
    version = subprocess.run([tmp_path / "usr/bin/tallyd", "--version"], capture_output=True, text=True, timeout=300).stdout
    assert version == run("--version").stdout and version.startswith("tallyd 0.")
    assert (tmp_path / "usr/bin/tally").exists()
    unit = (tmp_path / "usr/lib/systemd/system/tallyd.service").read_text()
    assert "Type=notify" in unit and "DynamicUser=yes" in unit
    for name in ("README.md", "LICENSE", "docs/metering.md"):
        assert list((tmp_path / "usr").rglob(name)), name
    (pages,) = (tmp_path / "usr").rglob("doc/tally")
    links = subprocess.run([ROOT / "tools/docs/links.py", "--check", pages], capture_output=True, text=True, timeout=300)
    assert links.returncode == 0, links.stdout
    assert "](testing.md)" in (pages / "docs/index.md").read_text() and "CONTRIBUTING.md" in (pages / "docs/index.md").read_text()
    assert ROOT.joinpath("LICENSE").read_text().lstrip().startswith("Apache License")


# ---- settings by name ----

def test_a_wrong_name_is_told_the_right_one(tmp_path):
    flag = run("--check-config", "--admin-prot", "1")
    assert flag.returncode == 2 and "unknown flag '--admin-prot' (did you mean --admin-port?)" in flag.stderr
    file = tmp_path / "tally.yaml"
    file.write_text("mode: cassandra\nread_timout: 5\n")
    key = run("--check-config", "--config", file)
    assert key.returncode == 2 and f"{file} line 2: unknown setting 'read_timout' (did you mean read-timeout?)" in key.stderr
    far = run("--check-config", "--xyzzy", "1")
    assert "unknown flag '--xyzzy'; see" in far.stderr


@pytest.mark.parametrize("text, words", [
    ("[" * 400_000, "settings are pairs of a key and a plain value"), ("{a: " * 100_000, "settings are pairs of a key and a plain value"),
    ("mode: {x: 1}\n", "settings are pairs of a key and a plain value"), ("mode: [cassandra]\n", "settings are pairs of a key and a plain value"),
    ("cassandra\n", "settings are pairs of a key and a plain value"), ("#" * (1 << 21), "has more than 1048576 bytes"), ("mode: 'x\n", "line")],
    ids=["sequences", "mappings", "mapping", "sequence", "scalar", "long", "quote"])
def test_a_file_of_settings_that_is_none_is_refused_at_once(tmp_path, text, words):
    file = tmp_path / "tally.yaml"
    file.write_text(text)
    refused = run("--check-config", "--config", file)
    assert refused.returncode == 2 and f"{file}" in refused.stderr and words in refused.stderr
    assert len(refused.stderr) < 1000


def test_an_unknown_variable_is_an_error_and_those_of_others_are_ignored():
    for name, meant in (("TALLY_PROT", " (did you mean --port?)"), ("TALLY_CLUSTER_NAMES", " (did you mean --cluster-name?)"), ("TALLY_NONSENSE", "")):
        done = run("--check-config", **{name: "1"})
        assert done.returncode == 2 and f"the environment has {name}, which is no setting{meant}; see tallyd --help" in done.stderr, done
    # of the command tally, and as Kubernetes sets them for a Service of the name tally
    others = {"TALLY_PASSWORD": "x", "TALLY_CQL_WAIT": "on", "TALLY_SERVICE_HOST": "10.0.0.1", "TALLY_PORT": "tcp://10.0.0.1:9042", "TALLY_PORT_9042_TCP_ADDR": "10.0.0.1"}
    assert run("--check-config", **others).returncode == 0
    assert run("--check-config", TALLY_PORT="no number").returncode == 2


# ---- the log ----

def test_the_log_is_read_by_programs_and_moved_away(new_server, tmp_path):
    log = tmp_path / "tally.log"
    s = new_server("--log-file", str(log), "--log-format", "json", "--ddl-delay", "none")

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    eventually(lambda: any(line["room"] == "server/main" and line["text"].startswith("metering: ") for line in lines()))
    assert all(set(line) == {"time", "level", "room", "text"} for line in lines())
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    log.rename(tmp_path / "tally.log.1")
    s.process.send_signal(signal.SIGHUP)
    eventually(log.exists)
    s.stop()
    assert json.loads(log.read_text().splitlines()[-1])["text"] == "stopping: SIGTERM"


def test_after_a_rotation_every_message_of_a_reload_is_in_the_new_file(new_server, tmp_path):
    log, moved, file, audit = (tmp_path / name for name in ("tally.log", "tally.log.1", "tally.yaml", "audit.log"))
    file.write_text("rack: one\n")
    s = new_server("--config", str(file), "--log-file", str(log), "--audit-log", str(audit), "--ddl-delay", "none")
    log.rename(moved)
    audit.unlink()
    audit.mkdir()  # the audit log cannot be opened again
    file.write_text("rack: [1]\n")  # the settings cannot be read
    s.process.send_signal(signal.SIGHUP)
    eventually(lambda: log.exists() and "the settings stay as they were" in log.read_text())
    assert str(audit) in log.read_text()
    assert str(audit) not in moved.read_text() and "stay as they were" not in moved.read_text()
    s.stop()


def test_a_reload_that_names_another_log_file_writes_what_has_changed_there(new_server, tmp_path):
    log, other, file = tmp_path / "tally.log", tmp_path / "other.log", tmp_path / "tally.yaml"
    file.write_text(f"log-file: {log}\nrack: one\nlog-level: info\n")
    s = new_server("--config", str(file), "--ddl-delay", "none")
    file.write_text(f"log-file: {other}\nrack: two\nlog-level: debug\n")
    s.process.send_signal(signal.SIGHUP)
    eventually(lambda: other.exists() and "--rack is 'two' now" in other.read_text() and "--log-level is 'debug' now" in other.read_text())
    assert "is 'two' now" not in log.read_text() and "is 'debug' now" not in log.read_text()
    s.stop()


def test_the_log_names_who_changed_the_schema(new_server, tmp_path):
    log = tmp_path / "tally.log"
    s = new_server("--log-file", str(log), "--ddl-delay", "none")
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, v text")
        session.execute("CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)")  # changes nothing
        session.execute("ALTER TABLE k.t ADD w int")
        session.execute("DROP TABLE k.t")
    lines = re.findall(r" INFO  (.* accepted: .*)", log.read_text())
    assert lines == [f"{change} accepted: role anonymous, from 127.0.0.1" for change in
                     ("CREATE KEYSPACE k", "CREATE TABLE k.t", "ALTER TABLE k.t", "DROP TABLE k.t")]
    s.stop()


def test_the_log_says_when_an_asynchronous_change_has_ended_and_how(new_server):
    s = new_server("--ddl-delay", "1", "--ddl-rules", "DROP TABLE * = 1 fail no capacity")
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, v text")
        session.execute("DROP TABLE k.t")
        eventually(lambda: "DROP TABLE k.t failed" in s.log.read_text())
    assert re.findall(r" INFO  (\w+ (?:KEYSPACE k|TABLE k\.t) (?!accepted).*)", s.log.read_text()) == ["CREATE KEYSPACE k done", "CREATE TABLE k.t done", "DROP TABLE k.t failed: no capacity"]


def test_the_log_names_the_client_of_the_api_that_changed_the_schema(tmp_path):
    log = tmp_path / "tally.log"
    with Api(tmp_path, "--log-file", str(log), "--ddl-delay", "none") as api:
        api.client().create_keyspace(keyspaceName="k")
    assert re.findall(r" INFO  (.* accepted: .*)", log.read_text()) == ["CREATE KEYSPACE k accepted: role none, from 127.0.0.1"]


def test_sighup_takes_what_can_change_and_names_what_cannot(new_server, tmp_path):
    file = tmp_path / "tally.yaml"
    file.write_text("slow-statement: 0\nrack: one\n")
    s = new_server("--config", str(file), "--ddl-delay", "none")
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, v text")
        session.execute("INSERT INTO k.t (p, v) VALUES (1, 'a secret')")
        assert "slow: " not in s.log.read_text()
        file.write_text("slow-statement: 1\nrack: two\nlog-format: logfmt\n")
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: "--rack is 'two' now, which needs a restart" in s.log.read_text())
        assert "--slow-statement is '1' now" in s.log.read_text()

        def told():
            session.execute(f"INSERT INTO k.t (p, v) VALUES (2, '{'a secret' * 100000}')")  # read, sized and written: sooner or later that takes a millisecond
            return "slow: " in s.log.read_text()
        eventually(told)
        assert re.search(r'level=warn room=native_protocol text="slow: [0-9.]+ ms, 0 read units, 782 write units, 0 static write units, answered, role anonymous, '
                         r'from 127.0.0.1: INSERT INTO k.t', s.log.read_text())
        assert "a secret" not in s.log.read_text()
        file.write_text("rack: [1]\n")
        s.process.send_signal(signal.SIGHUP)
        eventually(lambda: "the settings stay as they were" in s.log.read_text())
        assert session.execute("SELECT rack FROM system.local").one().rack == "one"


def test_a_pipe_in_place_of_the_settings_holds_nothing_up(new_server, tmp_path):
    file = tmp_path / "tally.yaml"
    file.write_text("rack: one\n")
    s = new_server("--config", str(file))
    file.unlink()
    os.mkfifo(file)
    s.process.send_signal(signal.SIGHUP)
    told = f"cannot read {file}: it is not a regular file; the settings stay as they were"
    eventually(lambda: told in s.log.read_text())
    s.stop()


@pytest.mark.parametrize("flag", ["--log-file", "--audit-log"])
def test_a_pipe_that_nobody_reads_in_place_of_a_log_holds_nothing_up(new_server, tmp_path, flag):
    log = tmp_path / "moved"
    s = new_server(flag, str(log), "--ddl-delay", "none")
    log.rename(tmp_path / "moved.1")
    os.mkfifo(log)
    s.process.send_signal(signal.SIGHUP)
    told = tmp_path / "moved.1" if flag == "--log-file" else s.log
    eventually(lambda: f"{log}: no process reads from it" in told.read_text())
    s.stop()


# ---- the admin port ----

def test_the_admin_port_says_that_it_lives_and_what_it_is(new_server):
    s = new_server("--admin-port", str(free_port()))

    def get(path):
        with urllib.request.urlopen(f"http://{s.admin}{path}", timeout=300) as answer:
            return answer.status, answer.read().decode()
    assert get("/live") == (200, "live\n")
    status, text = get("/version")
    version = json.loads(text)
    assert run("--version").stdout == f"tallyd {version['version']} ({version['commit']}), RocksDB {version['rocksdb']}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+", version["rocksdb"])
    with pytest.raises(urllib.error.HTTPError) as e:
        get("/else")
    assert e.value.read().decode() == "/health /live /ready /metrics /version\n"


def ready(*arguments):
    """tally ready: exit code, standard output, standard error."""
    done = subprocess.run([TALLY, "ready", *arguments], capture_output=True, text=True, timeout=HANG)
    return done.returncode, done.stdout, done.stderr


def test_tally_ready_tells_whether_a_server_takes_requests(new_server):
    port = free_port()
    assert ready(f"127.0.0.1:{port}") == (1, "", f"tally ready: cannot connect to 127.0.0.1:{port}: Connection refused\n")
    waiting = subprocess.Popen([TALLY, "ready", "--wait", str(HANG), f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
    s = new_server("--admin-port", str(port), "--admin-listen", "0.0.0.0")
    assert s.admin == f"0.0.0.0:{port}"
    assert (waiting.communicate(timeout=HANG)[0], waiting.returncode) == ("ready\n", 0)
    assert ready(f"127.0.0.1:{port}") == (0, "ready\n", "")
    assert ready("--json", f"localhost:{port}") == (0, '{"ok":true}\n', "")
    assert ready("--wait", str(HANG), f"127.0.0.1:{s.port}") == (
        1, "", f"tally ready: 127.0.0.1:{s.port} does not speak HTTP; name the server's admin port (--admin-port, 9180)\n")
    assert ready("127.0.0.1:port")[0] == 2 and "unexpected argument" in ready("127.0.0.1", "9180")[2]


def test_tally_ready_gives_the_servers_reason():
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = (503, b"a sync of the log has failed\n") if self.path == "/ready" and failed else (404, b"no such page\n")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"127.0.0.1:{server.server_port}"
        failed = True
        assert ready(at) == (1, "", "tally ready: the server is not ready: a sync of the log has failed\n")
        failed = False
        assert ready("--wait", str(HANG), at) == (1, "", f"tally ready: {at} is not the admin port of a tallyd: /ready is answered with status 404\n")
        server.shutdown()


def metrics(server, query=""):
    """name{labels} -> value"""
    with urllib.request.urlopen(f"http://{server.admin}/metrics{query}", timeout=300) as answer:
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))}


def test_every_request_is_in_one_histogram(new_server):
    """Reads that are timed together, writes that wait for the disk, statements of workers, PREPARE and what fails: the sum of the counts is that of the requests."""
    s = new_server("--admin-port", str(free_port()), "--ddl-delay", "none")
    # sends no statements of its own, not even some time after an event of the schema
    quiet = {f"{event}_event_refresh_window": -1 for event in ("schema", "topology", "status")}
    with s.cluster(schema_metadata_enabled=False, token_metadata_enabled=False, **quiet) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, n int")
        insert, read = session.prepare("INSERT INTO k.t (p, n) VALUES (?, ?)"), session.prepare("SELECT n FROM k.t WHERE p = ?")
        before = metrics(s)
        execute_concurrent_with_args(session, insert, [(i, i) for i in range(100)])
        execute_concurrent_with_args(session, read, [(i,) for i in range(200)])
        session.execute("UPDATE k.t SET n = 1 WHERE p = 1 IF n = 1")
        session.execute("BEGIN UNLOGGED BATCH INSERT INTO k.t (p, n) VALUES (1, 1); DELETE FROM k.t WHERE p = 2; APPLY BATCH")
        session.execute("DROP TABLE IF EXISTS k.none")
        with pytest.raises(Exception, match="no viable alternative|unconfigured table|line 1"):
            session.execute("SELECT FROM nothing")
        session.prepare("SELECT p FROM k.t WHERE p = ?")
        after = metrics(s)
    grown = {name: value - before.get(name, 0) for name, value in after.items()}

    def count(operation):
        return grown[f'tally_request_seconds_count{{operation="{operation}"}}']
    assert [count(o) for o in ("SELECT", "INSERT", "UPDATE", "DELETE", "BATCH", "DDL", "PREPARE")] == [200, 100, 1, 0, 1, 1, 1]
    requests = sum(value for name, value in grown.items() if re.match(r'tally_requests_total\{opcode="(QUERY|EXECUTE|BATCH|PREPARE)"', name))
    assert sum(value for name, value in grown.items() if name.startswith("tally_request_seconds_count")) == requests
    for operation in ("SELECT", "INSERT"):
        buckets = [value for name, value in after.items() if name.startswith(f'tally_request_seconds_bucket{{operation="{operation}"')]
        assert len(buckets) == 20 and buckets == sorted(buckets) and buckets[-1] == after[f'tally_request_seconds_count{{operation="{operation}"}}']
        assert after[f'tally_request_seconds_sum{{operation="{operation}"}}'] > 0


def test_the_time_of_a_request_includes_its_wait(new_server):
    s = new_server("--admin-port", str(free_port()), "--ddl-delay", "none", "--slow-statement", "500", "--control", "on")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        create_table(session, "k", "t", "p int PRIMARY KEY, n int")
        session.execute("INSERT INTO system_control.faults (name, keyspace_name, table_name, delay_ms) VALUES ('late', 'k', 't', 600)")
        session.execute("SELECT n FROM k.t WHERE p = 1", custom_payload={"traceparent": trace.encode()})
        session.execute("SELECT n FROM k.t WHERE p = 2", custom_payload={"traceparent": b"x\nINFO forged " * 100})
        after = metrics(s)
    assert after['tally_request_seconds_sum{operation="SELECT"}'] >= 1.2
    slow = re.findall(r"slow: (\S+) ms, .* from 127.0.0.1(.*): SELECT", s.log.read_text())
    assert [trace for _, trace in slow] == [f", trace {trace}", ""] and all(float(ms) >= 600 for ms, _ in slow)
    assert "forged" not in s.log.read_text()


def test_metrics_name_the_program_and_what_it_uses(new_server):
    s = new_server("--admin-port", str(free_port()), "--ddl-delay", "held", "--memory", "400")
    with s.cluster() as cluster:
        cluster.connect().execute("CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'}")
        found = metrics(s)
    with urllib.request.urlopen(f"http://{s.admin}/version", timeout=300) as answer:
        version = json.loads(answer.read())
    assert found["tally_build_info{" + ",".join(f'{name}="{version[name]}"' for name in ("version", "commit", "rocksdb")) + "}"] == 1
    proc = Path(f"/proc/{s.process.pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    assert found["process_resident_memory_bytes"] / 1024 == pytest.approx(int(status["VmRSS"].split()[0]), rel=0.2)
    assert found["process_threads"] == int(status["Threads"])
    assert 0 < found["process_open_fds"] < found["process_max_fds"]
    assert found["process_start_time_seconds"] == pytest.approx(proc.stat().st_ctime, abs=60)
    assert found["tally_memory_limit_bytes"] == 400 << 20
    assert found["tally_ready"] == 1 and found["tally_schema_changes_in_progress"] == 1 and found["tally_schema_change_age_seconds"] > 0
    used = subprocess.run(["du", "-s", "--block-size=1", s.data], capture_output=True, text=True, check=True).stdout.split()[0]
    assert sum(value for name, value in found.items() if name.startswith("tally_disk_used_bytes")) == pytest.approx(int(used), rel=0.2)
    assert found['tally_disk_used_bytes{part="log"}'] > 0
    assert 0 < found["tally_disk_free_bytes"] < found["tally_disk_size_bytes"]


def test_systemds_watchdog_hears_from_it_while_it_lives(tmp_path, monkeypatch):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        s = Server(tmp_path).start()
        assert [listener.recv(100) for _ in range(4)] == [b"READY=1"] + [b"WATCHDOG=1"] * 3
        s.stop()
