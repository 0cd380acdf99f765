"""A server opens data folders that earlier versions have written. Their archives are in folders/; each release adds one.

usage: test_upgrade.py NAME     writes folders/NAME.tar.xz with the server of the preset
"""
import sys
import tarfile
import tempfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from tally_server import Server, create_keyspace, create_table, eventually

FOLDERS = Path(__file__).parent / "folders"
FLAGS = ("--ddl-delay", "none")
SETTINGS = "comment = 'kept' AND default_time_to_live = 300000000 AND gc_grace_seconds = 1000"
VALUES = (7, "a", Decimal("1.50"), [1, 2], {"x": UUID(int=5)}, date(2026, 11, 28))
UNITS = "SELECT write_units FROM system_metering.tables WHERE keyspace_name = 'shop' AND table_name = 'orders'"


def fill(session, part):
    """Writes half of the rows; the first time, the schema, too."""
    if part == 0:
        create_keyspace(session, "shop")
        session.execute("CREATE TYPE shop.place (street text, zip int)")
        session.execute("CREATE TABLE shop.orders (id int, line int, note text STATIC, amount decimal, parts list<int>, marks map<text, uuid>, day date, at frozen<place>, "
                        f"PRIMARY KEY (id, line)) WITH CLUSTERING ORDER BY (line DESC) AND {SETTINGS}")
        create_table(session, "shop", "hits", "id text PRIMARY KEY, n counter")
        create_table(session, "shop", "pairs", "k frozen<tuple<int, text>> PRIMARY KEY, v text")
    for line in range(part, 10, 2):
        session.execute("INSERT INTO shop.orders (id, line, note, amount, parts, marks, day, at) VALUES (%s, %s, %s, %s, %s, %s, %s, {street: 'Main', zip: 12345})",
                        (VALUES[0], line, *VALUES[1:]))
        session.execute("UPDATE shop.hits SET n = n + %s WHERE id = 'home'", (line,))
        session.execute("INSERT INTO shop.pairs (k, v) VALUES ((%s, 'x'), 'y')", (line,))
    session.execute("DELETE FROM shop.orders WHERE id = 7 AND line = %s", (8 + part,))


def check(session):
    """Reads all that fill wrote."""
    rows = list(session.execute("SELECT line, note, amount, parts, marks, day, at FROM shop.orders WHERE id = 7"))
    assert [r.line for r in rows] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert all((r.note, r.amount, r.parts, dict(r.marks), r.day.date()) == VALUES[1:] for r in rows)
    assert all((r.at.street, r.at.zip) == ("Main", 12345) for r in rows)
    assert session.execute("SELECT n FROM shop.hits WHERE id = 'home'").one().n == 45
    assert {r.k for r in session.execute("SELECT k FROM shop.pairs")} == {(line, "x") for line in range(10)}
    table = session.execute("SELECT comment, default_time_to_live, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = 'shop' AND table_name = 'orders'").one()
    assert tuple(table) == ("kept", 300000000, 1000)
    assert session.execute(UNITS).one().write_units >= 12


@pytest.mark.parametrize("name", [path.name.removesuffix(".tar.xz") for path in sorted(FOLDERS.glob("*.tar.xz"))])
def test_the_folder_of_an_earlier_version_is_read_and_written(tmp_path, name):
    with tarfile.open(FOLDERS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    for _ in range(2):
        server = Server(tmp_path, *FLAGS).start()
        with server.cluster() as cluster:
            session = cluster.connect()
            check(session)
            session.execute("INSERT INTO shop.orders (id, line, note) VALUES (8, 1, 'new')")
            assert session.execute("SELECT note FROM shop.orders WHERE id = 8").one().note == "new"
        server.stop()


def test_a_folder_of_a_later_format_is_refused_and_not_changed(tmp_path):
    server = Server(tmp_path, *FLAGS).start()
    server.stop()
    stamp = server.data / "tally.stamp"
    later = stamp.read_text().replace("format 2\n", "format 99\n")
    stamp.write_text(later)
    with pytest.raises(AssertionError, match="format 99; this tallyd reads formats up to 2. Start the newer tallyd that wrote it"):
        server.start()
    assert stamp.read_text() == later


def write(name):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, *FLAGS)
        for part in range(2):
            server.start()
            with server.cluster() as cluster:
                fill(cluster.connect(), part)
                # the ledger writes its counts when a second is over; the kill below must not take them away
                eventually(lambda: b"orders" in (server.data / "ledger.tally").read_bytes())
            server.kill9() if part else server.stop()
        with tarfile.open(FOLDERS / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(server.data, "data")


if __name__ == "__main__":
    write(sys.argv[1])
