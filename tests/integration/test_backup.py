"""`tally backup` of a server that is written to, and `tally restore` into an empty folder: every acknowledged row is there, and damage is refused by name."""
import json
import os
import pathlib
import random
import resource
import shutil
import socket
import stat
import subprocess
import threading

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from tally_server import TALLY, Server, create_keyspace, create_table, eventually, let_pass


def tally(*args, code=0):
    done = subprocess.run([str(TALLY), *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"tally {args} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def as_json(*args, code=0):
    return json.loads(tally(*args, "--json", code=code).stdout)


class Writers:
    """Inserts and updates from several threads; remembers what was acknowledged, per row, in order."""

    def __init__(self, server, threads=4):
        self.cluster = server.cluster()
        self.session = self.cluster.connect()
        self.insert = self.session.prepare("INSERT INTO bak.rows (pk, ck, v) VALUES (?, ?, ?)")
        self.acknowledged = {}
        self.stop = False
        self.threads = [threading.Thread(target=self.write, args=(n, threads)) for n in range(threads)]
        for t in self.threads:
            t.start()

    def write(self, n, step):
        row = n
        while not self.stop:
            self.session.execute(self.insert, (row % 31, row, f"value {row}"))
            self.acknowledged[row] = f"value {row}"
            row += step

    def finish(self):
        self.stop = True
        for t in self.threads:
            t.join()
        self.cluster.shutdown()


def start(new_server, *flags):
    server = new_server("--ddl-delay", "none", *flags)
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "bak")
        create_table(session, "bak", "rows", "pk int, ck int, v text, PRIMARY KEY (pk, ck)")
    return server


def rows_of(folder, data):
    """What a server finds in a data folder."""
    os.makedirs(folder)
    os.rename(data, folder / "data")
    server = Server(folder, "--ddl-delay", "none").start()
    try:
        with server.cluster() as cluster:
            found = {r.ck: r.v for r in cluster.connect().execute("SELECT ck, v FROM bak.rows")}
    finally:
        server.stop()
    os.rename(folder / "data", data)
    return found


def flip_a_bit(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


def test_a_backup_under_load_holds_every_row_acknowledged_before_it(new_server, tmp_path):
    server = start(new_server)
    writers = Writers(server)
    backups, snapshots = tmp_path / "backups", []
    try:
        for _ in range(3):
            enough = len(writers.acknowledged) + 100
            eventually(lambda n=enough: len(writers.acknowledged) >= n)
            before = dict(writers.acknowledged)
            made = as_json("backup", "--data-dir", tmp_path / "data", "--to", backups)
            snapshots.append((made["backup"], before))
    finally:
        writers.finish()
    server.stop()
    for number, before in snapshots:
        as_json("restore", "--from", backups, "--backup", number, "--data-dir", tmp_path / f"data-{number}")
        found = rows_of(tmp_path / f"server-{number}", tmp_path / f"data-{number}")
        lost = [row for row, value in before.items() if found.get(row) != value]
        assert not lost, f"backup {number}: {len(lost)} of {len(before)} rows are lost: {lost[:5]}"
        assert all(v == f"value {row}" for row, v in found.items())


def test_a_second_backup_adds_only_what_is_new(new_server, tmp_path):
    server = start(new_server)
    with server.cluster() as cluster:
        session = cluster.connect()
        insert = session.prepare("INSERT INTO bak.rows (pk, ck, v) VALUES (?, ?, ?)")
        for futures in range(20):
            for f in [session.execute_async(insert, (0, futures * 100 + i, random.randbytes(5000).hex())) for i in range(100)]:
                f.result()
        tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
        size = disk_bytes(tmp_path / "b")
        assert size > 10_000_000

        def adds_little():
            """A compaction of the new file with the old one may end before the backup is taken, which then has all rows in a new file."""
            before = disk_bytes(tmp_path / "b")
            session.execute(insert, (1, 1, "one row more"))
            tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
            return disk_bytes(tmp_path / "b") - before < size / 20

        eventually(adds_little)


def disk_bytes(folder):
    return sum(os.path.getsize(os.path.join(d, n)) for d, _, names in os.walk(folder) for n in names)


def test_backups_and_what_is_restored_are_nobody_elses_to_read(new_server, tmp_path):
    server = start(new_server)
    assert stat.S_IMODE((tmp_path / "data" / "tallyd.sock").stat().st_mode) == 0o600
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
    server.stop()
    tally("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "new")
    for top in (tmp_path / "b", tmp_path / "new"):
        assert stat.S_IMODE(os.stat(top).st_mode) == 0o700
        for folder, folders, names in os.walk(top):
            for name in folders + names:
                mode = stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode)
                assert mode & 0o077 == 0, f"{folder}/{name} has mode {mode:o}"


def test_the_local_socket_pauses_while_no_descriptor_is_free(new_server, tmp_path):
    """Its thread sleeps between two attempts to accept: a thread that spins gives up its processor only when it must."""
    server = start(new_server)
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task")
    (thread,) = [t for t in tasks.iterdir() if (t / "comm").read_text() == "local-socket\n"]

    def slept():
        return int(next(line for line in (thread / "status").read_text().splitlines() if line.startswith("voluntary_ctxt")).split()[1])

    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, hard))  # standard input, output and error
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / "data" / "tallyd.sock"))
        before = slept()
        eventually(lambda: slept() > before + 5)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")


def test_a_damaged_backup_is_refused_by_the_name_of_its_file(new_server, tmp_path):
    server = start(new_server)
    with server.cluster() as cluster:
        session = cluster.connect()
        for i in range(200):
            session.execute("INSERT INTO bak.rows (pk, ck, v) VALUES (1, %s, %s)", (i, "x" * 100))
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
    server.stop()
    table_file = max((tmp_path / "b" / "shared_checksum").iterdir(), key=os.path.getsize)
    flip_a_bit(table_file, os.path.getsize(table_file) // 2)
    refused = tally("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "new", code=1)
    assert table_file.name in refused.stderr and "damaged" in refused.stderr, refused.stderr
    assert not (tmp_path / "new").exists()
    listed = as_json("restore", "--from", tmp_path / "b", "--list", code=1)
    assert listed["backups"][0]["whole"] is False and table_file.name in listed["backups"][0]["error"]
    table_file.unlink()
    refused = as_json("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "new", code=1)
    assert refused["ok"] is False


@pytest.mark.parametrize("damage", [b"", b"no number\n", b"1\n2\n1\nprivate/1/CURRENT crc32 1\n"])
def test_a_backup_whose_description_is_damaged_is_told(new_server, tmp_path, damage):
    s = start(new_server)
    backups, data = tmp_path / "backups", tmp_path / "restored"
    for _ in range(2):
        tally("backup", "--data-dir", s.folder / "data", "--to", backups)
    s.stop()
    (backups / "meta" / "2").write_bytes(damage)
    listed = as_json("restore", "--from", backups, "--list", code=1)["backups"]
    assert [(b["backup"], b["whole"]) for b in listed] == [(1, True), (2, False)]
    assert "backup 2 is not whole" in listed[1]["error"]
    refused = tally("restore", "--from", backups, "--data-dir", data, code=1).stderr  # and no older one in its place
    assert "backup 2 is not whole" in refused and not data.exists()
    (backups / "meta" / "1").write_bytes(damage)
    assert "backup 2 is not whole" in tally("restore", "--from", backups, "--data-dir", data, code=1).stderr
    assert "backup 1 is not whole" in tally("restore", "--from", backups, "--data-dir", data, "--backup", 1,
                                            code=1).stderr


@pytest.mark.parametrize("pattern, words", [
    ("meta/*", "is not a regular file"), ("shared_checksum/*", "it is not a regular file"),
    ("private/1/CURRENT", "it is not a regular file")])
def test_a_pipe_in_a_folder_of_backups_holds_nothing_up(new_server, tmp_path, pattern, words):
    s = start(new_server)
    backups = tmp_path / "backups"
    tally("backup", "--data-dir", s.folder / "data", "--to", backups)
    one = next(backups.glob(pattern))
    one.unlink()
    os.mkfifo(one)
    refused = tally("restore", "--from", backups, "--data-dir", tmp_path / "restored", code=1).stderr
    assert one.name in refused and words in refused
    if pattern == "meta/*":
        assert words in tally("backup", "--data-dir", s.folder / "data", "--to", backups, code=1).stderr
        assert words in tally("restore", "--from", backups, "--list", code=1).stderr
    s.stop()


def test_a_huge_description_in_a_folder_of_backups_holds_nothing_up(new_server, tmp_path):
    s = start(new_server)
    backups, words = tmp_path / "backups", "has more than"
    tally("backup", "--data-dir", s.folder / "data", "--to", backups)
    os.truncate(next(backups.glob("meta/*")), 1 << 38)  # sparse
    assert words in tally("restore", "--from", backups, "--data-dir", tmp_path / "restored", code=1).stderr
    assert words in tally("restore", "--from", backups, "--list", code=1).stderr
    assert words in tally("backup", "--data-dir", s.folder / "data", "--to", backups, code=1).stderr
    s.stop()


def test_a_sparse_file_of_a_backup_holds_nothing_up(new_server, tmp_path):
    s = start(new_server)
    backups = tmp_path / "backups"
    tally("backup", "--data-dir", s.folder / "data", "--to", backups)
    one = next(backups.glob("shared_checksum/*"))
    os.truncate(one, 1 << 38)
    refused = tally("restore", "--from", backups, "--data-dir", tmp_path / "restored", code=1).stderr
    assert one.name in refused and "it is sparse" in refused
    s.stop()


def test_a_backup_or_a_restore_within_the_data_folder_is_refused(new_server, tmp_path):
    s = start(new_server)
    data = s.folder / "data"
    (tmp_path / "link").symlink_to(data, target_is_directory=True)
    (data / "made").mkdir()
    for target in (data, data / "states", data / "made", data / "made" / "new", tmp_path / "link" / "states/", tmp_path / "link" / ".." / "data" / "x"):
        refused = tally("backup", "--data-dir", data, "--to", target, code=1).stderr
        assert f"is within the data folder {data.resolve()}" in refused
    tally("backup", "--data-dir", data, "--to", tmp_path / "data-backups")
    for target in (data / "states", data / "made" / "new", tmp_path / "link" / "states"):
        refused = tally("restore", "--from", tmp_path / "data-backups", "--data-dir", target, code=1).stderr
        assert f"is within the data folder {data.resolve()}" in refused
    (data / "made").rmdir()
    s.stop()
    s.start()


def test_only_the_newest_are_kept_when_asked(new_server, tmp_path):
    start(new_server)
    for _ in range(4):
        tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b", "--keep", 2)
    assert [b["backup"] for b in as_json("restore", "--from", tmp_path / "b", "--list")["backups"]] == [3, 4]


def test_bad_calls_are_refused_in_words(new_server, tmp_path):
    assert "no server answers" in tally("backup", "--data-dir", tmp_path, "--to", tmp_path / "b", code=1).stderr
    assert "cannot open" in tally("backup", "--data-dir", tmp_path / "nowhere", "--to", tmp_path / "b", code=1).stderr
    assert "--to" in tally("backup", code=2).stderr
    assert "unknown flag" in tally("backup", "--wrong", code=2).stderr
    assert "sub-command" in tally("nonsense", code=2).stderr
    assert "usage: tally backup" in tally("backup", "--help").stdout
    assert "there are no backups" in tally("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "x", code=1).stderr
    start(new_server)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("something else")
    assert "something else than backups" in tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "other", code=1).stderr
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
    assert "is there already" in tally("restore", "--from", tmp_path / "b", "--data-dir", tmp_path / "data", code=1).stderr
    assert "no backup 9" in tally("restore", "--from", tmp_path / "b", "--backup", 9, "--data-dir", tmp_path / "x", code=1).stderr

# ---- cut off ----

def fill(server, rows=400, size=20_000):
    with server.cluster() as cluster:
        session = cluster.connect()
        insert = session.prepare("INSERT INTO bak.rows (pk, ck, v) VALUES (?, ?, ?)")
        execute_concurrent_with_args(session, insert, [(i % 7, i, random.randbytes(size // 2).hex()) for i in range(rows)], concurrency=32)


def whole_backups(folder):
    listed = as_json("restore", "--from", folder, "--list")["backups"]
    assert all(b["whole"] for b in listed), listed
    return [b["backup"] for b in listed]


def test_a_backup_that_kill9_cuts_off_is_not_there_and_those_before_and_after_it_are_whole(new_server, tmp_path):
    server = start(new_server)
    backups = tmp_path / "b"
    fill(server)
    tally("backup", "--data-dir", tmp_path / "data", "--to", backups)
    made = 1
    for turn, kill in enumerate((server.kill9, None, server.kill9)):
        fill(server, rows=100)
        running = subprocess.Popen([str(TALLY), "backup", "--data-dir", str(tmp_path / "data"), "--to", str(backups)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        let_pass(0.01 + 0.02 * turn)
        if kill:
            kill()
            done = running.wait(timeout=300) == 0
            server.start()
        else:  # the server goes on with what it was asked for
            running.kill()
            running.wait()
            done = False
        there = whole_backups(backups)
        assert len(there) >= made + done, f"turn {turn}: {there}, {made} were told of"
        assert as_json("backup", "--data-dir", tmp_path / "data", "--to", backups)["backup"] > there[-1]
        made = len(whole_backups(backups))
    with server.cluster() as cluster:
        before = {r.ck: r.v for r in cluster.connect().execute("SELECT ck, v FROM bak.rows")}
    as_json("backup", "--data-dir", tmp_path / "data", "--to", backups)
    server.stop()
    tally("restore", "--from", backups, "--data-dir", tmp_path / "new")
    assert rows_of(tmp_path / "other", tmp_path / "new") == before


def test_a_restore_that_kill9_cuts_off_leaves_no_data_folder_and_runs_again(new_server, tmp_path):
    server = start(new_server)
    fill(server)
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
    with server.cluster() as cluster:
        before = {r.ck: r.v for r in cluster.connect().execute("SELECT ck, v FROM bak.rows")}
    server.stop()
    cut = 0
    for turn in range(4):
        new = tmp_path / f"new{turn}"
        running = subprocess.Popen([str(TALLY), "restore", "--from", str(tmp_path / "b"), "--data-dir", str(new)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        let_pass(0.02 * turn)
        running.kill()
        running.wait()
        left = tmp_path / f"new{turn}.restoring"
        if not new.exists():
            cut += 1
            if left.exists():
                again = tally("restore", "--from", tmp_path / "b", "--data-dir", new, code=1)
                assert "a restore was broken off" in again.stderr and str(left) in again.stderr and not new.exists()
                shutil.rmtree(left)
            tally("restore", "--from", tmp_path / "b", "--data-dir", new)
        assert not left.exists()
        if turn == 3:
            assert rows_of(tmp_path / f"server{turn}", new) == before
    assert cut, "no restore was cut off"


def test_a_folder_that_holds_anything_is_not_restored_into(new_server, tmp_path):
    server = start(new_server)
    tally("backup", "--data-dir", tmp_path / "data", "--to", tmp_path / "b")
    server.stop()
    for name, make in (("notes", lambda d: (d / "notes.txt").write_text("mine")), ("empty", lambda d: None)):
        folder = tmp_path / name
        folder.mkdir()
        make(folder)
        held = sorted(os.listdir(folder))
        refused = tally("restore", "--from", tmp_path / "b", "--data-dir", folder, code=1 if held else 0)
        if held:
            assert "is there already" in refused.stderr and str(folder) in refused.stderr
            assert sorted(os.listdir(folder)) == held and (folder / "notes.txt").read_text() == "mine"
