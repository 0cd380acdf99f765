"""A damaged data folder: what cost acknowledged rows refuses to start and says which file; a tail that a crash tore starts with every acknowledged row."""
import os
import random
import shutil
import stat
import subprocess

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from tally_server import TALLY, Server, eventually

ROWS = 2000


def write_rows(server, first=0, rows=ROWS):
    with server.cluster() as cluster:
        session = cluster.connect()
        if first == 0:
            session.execute("CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute("CREATE TABLE d.t (pk int PRIMARY KEY, v text)")
        insert = session.prepare("INSERT INTO d.t (pk, v) VALUES (?, ?)")
        for ok, result in execute_concurrent_with_args(session, insert, [(i, f"value {i} " + "x" * 100) for i in range(first, first + rows)]):
            assert ok, result


def count_rows(server):
    with server.cluster() as cluster:
        return sum(1 for _ in cluster.connect().execute("SELECT pk FROM d.t"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a server that was killed after 2,000 acknowledged rows; tests take copies."""
    folder = tmp_path_factory.mktemp("killed")
    server = Server(folder, "--mode", "cassandra").start()
    write_rows(server)
    server.kill9()
    return folder


@pytest.fixture
def server(killed, tmp_path):
    """A server that is not started, on a copy of that folder."""
    shutil.copytree(killed / "data", tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))
    s = Server(tmp_path, "--mode", "cassandra")
    yield s
    if s.process:
        s.kill9()


def rows_folder(server):
    return server.folder / "data" / "rows"


def newest(server, pattern):
    return max(rows_folder(server).glob(pattern), key=lambda p: (p.stat().st_size > 0, p.name))


def refused(server, *words):
    """Does not start; says these words and leaves every file as it was."""
    before = {p: p.read_bytes() for p in sorted((server.folder / "data").rglob("*")) if p.is_file() and not p.name.startswith("LOG")}
    with pytest.raises(AssertionError, match="did not become ready"):
        server.start()
    assert server.process.wait(timeout=300) == 1, server.log_tail()
    said = server.log_tail()
    for word in words:
        assert str(word) in said, said
    for path, content in before.items():
        assert path.exists() and path.read_bytes() == content, f"{path} was changed"


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def cut(path, size):
    with open(path, "r+b") as f:
        f.truncate(size)


def append(path, tail):
    with open(path, "ab") as f:
        f.write(tail)


@pytest.mark.parametrize("part", [0.01, 0.3, 0.5, 0.8, 0.97])
def test_flipped_bit_in_the_log_refuses(server, part):
    log = newest(server, "*.log")
    flip(log, int(log.stat().st_size * part))
    refused(server, log.name, "damaged", "--on-damage cut")


@pytest.mark.parametrize("bit_in", ["checksum", "length", "type"])
def test_flipped_bit_in_a_record_head_refuses(server, bit_in):
    log = newest(server, "*.log")
    flip(log, 32768 + {"checksum": 0, "length": 4, "type": 6}[bit_in])
    refused(server, log.name, "damaged")


def test_zeroed_block_in_the_middle_of_the_log_refuses(server):
    log = newest(server, "*.log")
    content = bytearray(log.read_bytes())
    content[32768:65536] = bytes(32768)
    log.write_bytes(content)
    refused(server, log.name, "damaged")


def test_log_emptied_before_the_stamp_is_renewed_refuses(server):
    """The log is new since the start, whose stamp knew nothing of it."""
    server.start()
    write_rows(server, ROWS, 10)
    server.kill9()
    log = newest(server, "*.log")
    cut(log, 0)
    refused(server, log.name, "damaged")


@pytest.mark.parametrize("keep", [0, 0.5])
def test_log_cut_in_the_middle_refuses(server, keep):
    """Idle for a moment, so that the stamp knows all of the log."""
    server.start()
    write_rows(server, ROWS, 500)
    wait_for_stamp(server)
    server.kill9()
    log = newest(server, "*.log")
    cut(log, int(log.stat().st_size * keep))
    refused(server, log.name, "damaged")


def wait_for_stamp(server):
    """Until the stamp knows all bytes of the newest log."""
    log = newest(server, "*.log")
    line = f"log {int(log.stem)} {log.stat().st_size}\n"
    stamp = server.folder / "data" / "tally.stamp"
    eventually(lambda: line in stamp.read_text(), stamp.read_text, interval=0.1)


def test_last_acknowledged_row_is_guarded_when_the_server_was_idle(server):
    server.start()
    write_rows(server, ROWS, 100)
    wait_for_stamp(server)
    server.kill9()
    log = newest(server, "*.log")
    flip(log, log.stat().st_size - 3)
    refused(server, log.name, "damaged")


def test_missing_log_refuses(server):
    log = newest(server, "*.log")
    log.unlink()
    refused(server, log.name, "missing")


def test_missing_log_after_a_clean_stop_refuses(server):
    server.start()
    write_rows(server, ROWS, 100)
    server.stop()
    log = newest(server, "*.log")
    log.unlink()
    refused(server, log.name, "missing")


@pytest.mark.parametrize("size", [0, 0.5, -1])
def test_cut_manifest_refuses(server, size):
    manifest = newest(server, "MANIFEST-*")
    full = manifest.stat().st_size
    cut(manifest, full + size if size < 0 else int(full * size))
    refused(server, manifest.name, "damaged")


def test_flipped_bit_in_the_manifest_refuses(server):
    manifest = newest(server, "MANIFEST-*")
    flip(manifest, manifest.stat().st_size // 2)
    refused(server, manifest.name)


def first_record(manifest):
    whole = manifest.read_bytes()
    return whole[:7 + int.from_bytes(whole[4:6], "little")]


@pytest.mark.parametrize("tail", ["torn", "with a wrong sum", "with a sector that never came"])
def test_what_was_never_in_force_of_the_manifest_is_cut_off(server, tail):
    """A power cut within records that were being written: of the sectors some are there."""
    manifest = newest(server, "MANIFEST-*")
    whole, record = manifest.stat().st_size, first_record(manifest)
    with manifest.open("ab") as f:
        f.write({"torn": record[:-1], "with a wrong sum": record[:-1] + bytes([record[-1] ^ 1]), "with a sector that never came": record[:9] + bytes(1500) + record}[tail])
    server.start()
    assert count_rows(server) == ROWS
    assert f"{manifest.name}: " in server.log_tail() and f"bytes after byte {whole} cannot be read and are cut off" in server.log_tail()


def test_other_damage_in_front_of_a_record_of_the_manifest_refuses(server):
    manifest = newest(server, "MANIFEST-*")
    with manifest.open("ab") as f:
        f.write(b"\x55" * 1500 + first_record(manifest))
    refused(server, manifest.name, "damaged")


@pytest.mark.parametrize("what", ["everything", "CURRENT", "folder", "MANIFEST-*", "IDENTITY"])
def test_emptied_store_refuses(server, what):
    rows = rows_folder(server)
    for path in rows.iterdir():
        if what in ("everything", "folder") or path.match(what):
            path.unlink()
    if what == "folder":
        rows.rmdir()
    with pytest.raises(AssertionError, match="did not become ready"):
        server.start()
    assert "Restore the data folder" in server.log_tail() or "missing" in server.log_tail(), server.log_tail()


def test_another_store_in_its_place_refuses(server, tmp_path_factory):
    other = Server(tmp_path_factory.mktemp("other"), "--mode", "cassandra").start()
    other.stop()
    shutil.rmtree(rows_folder(server))
    shutil.copytree(rows_folder(other), rows_folder(server))
    refused(server, "IDENTITY")


@pytest.mark.parametrize("damage", ["cut", "missing", "flipped"])
def test_damaged_table_file_refuses(server, damage):
    """A restart has flushed the rows into a table file."""
    server.start()
    server.stop()
    table = newest(server, "*.sst")
    if damage == "missing":
        table.unlink()
    elif damage == "cut":
        cut(table, table.stat().st_size // 2)
    else:
        flip(table, table.stat().st_size - 5)  # its magic number
    with pytest.raises(AssertionError, match="did not become ready"):
        server.start()
    assert table.stem.lstrip("0") in server.log_tail(), server.log_tail()


def whole_record(block):
    """Of a block of the log, which is pieces behind each other, one that is a record."""
    at = 0
    while block[at + 6] != 1:
        at += 7 + int.from_bytes(block[at + 4:at + 6], "little")
    return block[at:at + 7 + int.from_bytes(block[at + 4:at + 6], "little")]


@pytest.mark.parametrize("tail", ["torn", "zeroed", "garbage", "zeros and garbage", "whole block of garbage", "rest of a sector missing"])
def test_tail_that_a_crash_leaves_is_accepted(server, tail):
    log = newest(server, "*.log")
    r = random.Random(7)
    block = log.read_bytes()[32768:65536]  # begins with a piece: checksum, length, type, bytes
    length = int.from_bytes(block[4:6], "little")
    append(log, {
        "torn": block[:min(300, 7 + length - 1)],
        "zeroed": bytes(70_000),
        "garbage": r.randbytes(500),
        "zeros and garbage": bytes(5000) + r.randbytes(3000),
        "whole block of garbage": r.randbytes(100_000),
        "rest of a sector missing": bytes(512 - log.stat().st_size % 512) + whole_record(block),
    }[tail])
    server.start()
    assert count_rows(server) == ROWS
    write_rows(server, ROWS, 10)
    server.stop()
    server.start()
    assert count_rows(server) == ROWS + 10
    server.stop()


def test_cut_on_demand_starts_with_what_stands_before_the_damage(server):
    log = newest(server, "*.log")
    flip(log, log.stat().st_size // 2)
    refused(server, log.name)
    server.flags += ("--on-damage", "cut")
    server.start()
    assert 0 < count_rows(server) < ROWS
    assert "cut off" in server.log_tail()
    server.stop()
    server.flags = server.flags[:-2]
    server.start()
    server.stop()


def stamped(server, **changes):
    """Rewrites lines of the stamp, with a sum that fits."""
    path = server.folder / "data" / "tally.stamp"
    lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
    text = "".join(" ".join([k, changes[k]] if k in changes else [k, *v]) + "\n" for k, *v in lines[:-1])
    path.write_text(text + f"sum {crc32c(text.encode()):08x}\n")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_newer_format_refuses(server):
    stamped(server, format="3")
    refused(server, "tally.stamp", "format 3", "newer tallyd")


def test_damaged_stamp_refuses(server):
    path = server.folder / "data" / "tally.stamp"
    flip(path, 40)
    refused(server, "tally.stamp", "damaged", "remove it")


def test_folder_without_stamp_is_adopted(server):
    stamp = server.folder / "data" / "tally.stamp"
    stamp.unlink()
    server.start()
    assert count_rows(server) == ROWS
    assert stat.S_IMODE(stamp.stat().st_mode) == 0o600
    assert stamp.read_text().startswith("tally-data\nformat 2\n")
    server.stop()


def test_flipped_bit_refuses_in_a_folder_without_stamp_too(server):
    (server.folder / "data" / "tally.stamp").unlink()
    log = newest(server, "*.log")
    flip(log, log.stat().st_size // 2)
    refused(server, log.name, "damaged")


@pytest.mark.parametrize("pattern", ["*.log", "MANIFEST-*"])
def test_sparse_file_of_the_store_is_refused_unread(server, pattern):
    """By a start and by `tally verify`, each of which would read its 256 GB."""
    sparse = newest(server, pattern)
    os.truncate(sparse, 1 << 38)
    with pytest.raises(AssertionError, match="did not become ready"):
        server.start()
    assert server.process.wait(timeout=300) == 1, server.log_tail()
    assert f"{sparse} is sparse" in server.log_tail()
    looked = subprocess.run([TALLY, "verify", "--data-dir", server.folder / "data"], capture_output=True, text=True, timeout=300)
    assert looked.returncode == 1 and f"{sparse} is sparse" in looked.stdout + looked.stderr, looked
