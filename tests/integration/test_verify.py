"""tally verify: a data folder is sound, or the damaged file is named; nothing is changed."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tally_server import PRESET, ROOT, TALLY, TALLYD, Server, eventually


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The folder of a stopped server with everything in it that a folder may have; tests take copies."""
    folder = tmp_path_factory.mktemp("verify")
    server = Server(folder, "--mode", "cassandra", "--control", "on", "--auth", "password").start()
    from cassandra.auth import PlainTextAuthProvider
    with server.cluster(schema_metadata_enabled=False, auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        session.execute("INSERT INTO system_control.capture (name) VALUES ('c')")
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TYPE k.u (a int, b text)")
        session.execute("CREATE TABLE k.t (p int, c int, v text, m map<text, int>, u u, st int static, PRIMARY KEY (p, c))")
        session.execute("CREATE ROLE r WITH PASSWORD = 'x'")
        session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES ('CREATE TABLE', 'k', 'x', '5')")
        insert = session.prepare("INSERT INTO k.t (p, c, v, m, st) VALUES (?, ?, ?, ?, ?)")
        for i in range(600):
            session.execute(insert, (i % 7, i, f"value {i} " * 10, {"a": i}, i))
        session.execute("INSERT INTO k.t (p, c, u) VALUES (1, 1, {a: 1, b: 'x'})")
        session.execute("DELETE FROM k.t WHERE p = 3")
        session.execute("DELETE FROM k.t WHERE p = 4 AND c > 10 AND c < 100")
        session.execute("DELETE FROM k.t WHERE p = 5 AND c = 5")
        session.execute("INSERT INTO system_control.snapshots (name) VALUES ('s')")
        for i in range(600, 700):
            session.execute(insert, (i % 7, i, f"value {i}", {"a": i}, i))
        session.execute("DELETE FROM system_control.capture WHERE name = 'c'")
        eventually(lambda: (folder / "data" / "ledger.tally").stat().st_size > 0)
    server.stop()
    return folder / "data"


@pytest.fixture
def data(stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))
    return tmp_path / "data"


def contents(folder):
    return {p: p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def verify(data):
    """(exit code, what it says as an object); it writes nothing."""
    before = contents(data)
    done = subprocess.run([TALLY, "verify", "--data-dir", data, "--json"], capture_output=True, text=True, timeout=300)
    assert contents(data) == before, set(contents(data)) ^ set(before)
    return done.returncode, json.loads(done.stdout)


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[int(at * len(content)) if isinstance(at, float) else at] ^= 0x10
    path.write_bytes(content)


def the_one(data, pattern):
    return max(data.glob(pattern), key=lambda p: p.stat().st_size)


def damaged(data, path):
    code, said = verify(data)
    name = str(path.relative_to(data))
    assert code == 1 and not said["ok"], said
    assert any(str(path) in words for words in said["damage"]), said["damage"]
    assert not path.exists() or name in {f["file"] for f in said["files"] if not f["sound"]}, said
    return said


def test_a_sound_folder_is_sound(data):
    code, said = verify(data)
    assert code == 0 and said["ok"] and said["damage"] == [], said
    files = {f["file"]: f for f in said["files"]}
    assert {"tally.stamp", "ledger.tally", "captures/c.tcap", "rows/CURRENT", "rows/IDENTITY"} <= files.keys() and all(f["sound"] for f in files.values())
    assert any(f.startswith("states/s/") and f.endswith(".sst") for f in files) and said["rows"] > 600 and said["records"] > 5
    text = subprocess.run([TALLY, "verify", "--data-dir", data], capture_output=True, text=True, timeout=300)
    assert text.returncode == 0 and text.stdout.splitlines()[0].split() == ["file", "bytes", "state"] and text.stdout.splitlines()[-1].endswith(": sound")


@pytest.mark.parametrize("pattern, at", [
    ("rows/*.sst", 100), ("rows/*.sst", 0.5), ("rows/*.sst", -60), ("rows/*.sst", -5), ("rows/MANIFEST-*", 0.5), ("tally.stamp", 40), ("ledger.tally", 0.5),
    ("captures/*.tcap", 0.5), ("states/s/*.sst", 100), ("rows/*.log", 0.5)])
def test_a_flipped_bit_is_found_and_its_file_named(data, pattern, at):
    path = the_one(data, pattern)
    if not path.stat().st_size:
        pytest.fail(f"{path} is empty")
    flip(path, at)
    damaged(data, path)


@pytest.mark.parametrize("pattern", ["rows/*.sst", "rows/*.log", "rows/IDENTITY", "rows/CURRENT", "tally.stamp"])
def test_a_missing_file_is_found(data, pattern):
    path = the_one(data, pattern)
    path.unlink()
    code, said = verify(data)
    assert code == 1 and any(path.stem in words for words in said["damage"]), said


def test_two_damaged_files_are_both_named(data):
    for pattern in ("rows/*.sst", "states/s/*.sst"):
        flip(the_one(data, pattern), 100)
    said = damaged(data, the_one(data, "rows/*.sst"))
    assert any("states/s" in words for words in said["damage"])


def test_a_torn_tail_of_the_log_is_sound_and_left_alone(data):
    """As a crash leaves it: what never was known to be on disk."""
    log = the_one(data, "rows/*.log")
    with open(log, "ab") as f:
        f.write(bytes(5000))
    code, said = verify(data)
    assert code == 0, said


def test_what_it_is_not_for(data, tmp_path):
    for folder in (tmp_path / "nowhere", None):
        done = subprocess.run([TALLY, "verify", *(["--data-dir", folder] if folder else [])], capture_output=True, text=True, timeout=300)
        assert done.returncode == 2 and "data folder" in done.stderr
    server = Server(tmp_path, "--mode", "cassandra").start()
    try:
        done = subprocess.run([TALLY, "verify", "--data-dir", data], capture_output=True, text=True, timeout=300)
        assert done.returncode == 2 and "a server uses the data folder" in done.stderr
    finally:
        server.kill9()
    code, said = verify(data)
    assert code == 0, said


if PRESET == "release-source":  # tools/test.sh source; the other one is Debian's
    @pytest.mark.parametrize("end", ["stop", "kill9"])
    def test_a_folder_goes_from_one_rocksdb_to_the_other_and_back(new_server, end):
        """Table files, the log and the MANIFEST of each are read by the other, and by its verify, with rows that were merged, deleted one by one and by ranges."""
        programs = [TALLYD, ROOT / "build" / "release" / "bin" / "tallyd"]
        assert len({subprocess.run([p, "--version"], capture_output=True, text=True).stdout.split()[-1] for p in programs}) == 2, "both are the same RocksDB"
        server = new_server("--mode", "cassandra", "--ddl-delay", "none", "--memtables", "16")
        expected = {}
        for turn in range(4):
            with server.cluster() as cluster:
                session = cluster.connect()
                if not turn:
                    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
                    session.execute("CREATE TABLE k.t (p int, c int, v text, w int, PRIMARY KEY (p, c))")
                assert {(r.p, r.c): (r.v, r.w) for r in session.execute("SELECT p, c, v, w FROM k.t")} == expected
                insert, update = (session.prepare(q) for q in ("INSERT INTO k.t (p, c, v) VALUES (?, ?, ?)", "UPDATE k.t SET w = ? WHERE p = ? AND c = ?"))
                for c in range(turn * 300, turn * 300 + 600):
                    key = (c % 5, c)
                    session.execute(insert, (*key, f"{turn}-{c}-" + "x" * 5000))
                    expected[key] = (f"{turn}-{c}-" + "x" * 5000, expected.get(key, (None, None))[1])
                    if c % 3 == 0:
                        session.execute(update, (turn, *key))
                        expected[key] = (expected[key][0], turn)
                session.execute("DELETE FROM k.t WHERE p = 2 AND c > %s AND c < %s", (turn * 300, turn * 300 + 100))
                session.execute("DELETE FROM k.t WHERE p = 3 AND c = %s", (turn * 300 + 3,))
                expected = {(p, c): row for (p, c), row in expected.items() if not (p == 2 and turn * 300 < c < turn * 300 + 100) and (p, c) != (3, turn * 300 + 3)}
            getattr(server, end)()
            server.binary = programs[(turn + 1) % 2]
            other = server.binary.parent / "tally"
            assert subprocess.run([other, "verify", *server.place()], capture_output=True).returncode == 0
            server.start()
        with server.cluster() as cluster:
            assert {(r.p, r.c): (r.v, r.w) for r in cluster.connect().execute("SELECT p, c, v, w FROM k.t")} == expected
