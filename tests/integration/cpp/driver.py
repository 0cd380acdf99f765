"""Tally through the C++ driver, which PyPI's acsylla has inside: driver.py HOST PORT [strict]

Prints "ok NAME" or "FAILED NAME: why" for every check and a line of totals; exits non-zero when a check failed.
"""
import asyncio
import decimal
import os
import sys
import traceback
import uuid
from datetime import date, datetime, time, timezone

import acsylla

HOST, PORT = sys.argv[1], int(sys.argv[2])
STRICT = sys.argv[3:] == ["strict"]  # what Amazon Keyspaces refuses is refused
KS = "cpp_driver"
SCALARS = {
    "ascii": "plain", "bigint": -2**63, "blob": b"\0\xff\x10", "boolean": True, "date": date(2026, 11, 21), "decimal": decimal.Decimal("-12345.678900"),
    "double": -1.5e300, "float": 0.5, "inet": "2001:db8::1", "int": -2**31, "smallint": -2**15, "text": "naïve ☃ 𝄞", "time": time(23, 59, 59, 999999),
    "timestamp": datetime(2026, 11, 21, 1, 2, 3, 123000, tzinfo=timezone.utc), "timeuuid": "8e14e760-7fa8-11eb-bc66-000000000001", "tinyint": -128,
    "uuid": str(uuid.uuid4()), "varint": (-10**38).to_bytes(16, "big", signed=True),
}


async def created(s, query, parameters):
    """As an application on Keyspaces waits for what it made."""
    for _ in range(600):
        row = (await s.query(query, parameters)).first()
        if row and row.as_list()[0] in ("ACTIVE", KS):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{parameters} did not come")


async def create_keyspace(s):
    await s.query(f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    await created(s, "SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = ?", [KS])


async def create_table(s, name, definition):
    await s.query(f"CREATE TABLE {KS}.{name} ({definition})")
    await created(s, "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ? AND table_name = ?", [KS, name])


async def scalar_round_trip(s):
    await create_table(s, "scalars", "id int PRIMARY KEY, " + ", ".join(f"v_{t} {t}" for t in SCALARS))
    for t, value in SCALARS.items():
        insert = await s.create_prepared(f"INSERT INTO {KS}.scalars (id, v_{t}) VALUES (?, ?)")
        select = await s.create_prepared(f"SELECT v_{t} FROM {KS}.scalars WHERE id = ?")
        for row, written in ((1, value), (2, None)):
            await s.execute(insert.bind([row, written]))
            read = (await s.execute(select.bind([row]))).first().as_list()[0]
            assert read == written, (t, read, written)


async def collection_round_trip(s):
    await create_table(s, "collections", "id int PRIMARY KEY, l list<text>, s set<int>, m map<text, int>, nested map<int, frozen<list<text>>>")
    insert = await s.create_prepared(f"INSERT INTO {KS}.collections (id, l, s, m, nested) VALUES (?, ?, ?, ?, ?)")
    await s.execute(insert.bind([1, ["b", "a", "b"], {3, 1, 2}, {"x": 1, "y": 2}, {7: ["u", "v"]}]))
    update = await s.create_prepared(f"UPDATE {KS}.collections SET l = l + ?, s = s - ?, m['z'] = ? WHERE id = 1")
    await s.execute(update.bind([["c"], {3}, 26]))
    row = (await s.query(f"SELECT l, s, m, nested FROM {KS}.collections WHERE id = 1")).first().as_list()
    assert row == [["b", "a", "b", "c"], {1, 2}, {"x": 1, "y": 2, "z": 26}, {7: ["u", "v"]}], row


async def paging_and_batch(s):
    await create_table(s, "pages", "pk int, ck int, v text, PRIMARY KEY (pk, ck)")
    insert = await s.create_prepared(f"INSERT INTO {KS}.pages (pk, ck, v) VALUES (?, ?, ?)")
    batch = acsylla.create_batch_unlogged()
    for ck in range(25):
        batch.add_statement(insert.bind([1, ck, f"v{ck}"]))
    await s.execute_batch(batch)
    select = acsylla.create_statement(f"SELECT ck FROM {KS}.pages WHERE pk = 1 ORDER BY ck DESC")
    select.set_page_size(7)
    seen, pages, more = [], 0, True
    while more:
        page = await s.execute(select)
        seen += [row.as_list()[0] for row in page]
        pages, more = pages + 1, page.has_more_pages()
        if more:
            select.set_page_state(page.page_state())
    assert (seen, pages) == (list(range(24, -1, -1)), 4)


async def errors(s):
    counted = ("SELECT COUNT(*) FROM system.local", "countRows is not yet supported") if STRICT else ("SELECT count FROM system.local", "count")
    for query, words in (counted, ("SELEC 1", "line 1:0 no viable alternative at input 'SELEC'"), (f"SELECT * FROM {KS}.nowhere", "nowhere"),
                         (f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}", KS)):
        try:
            await s.query(query)
        except acsylla.errors.CassException as e:
            assert words in str(e), (query, e)
        else:
            raise AssertionError(f"{query} did not fail")


async def counters(s):
    await create_table(s, "counters", "id int PRIMARY KEY, c counter")
    for _ in range(3):
        await s.query(f"UPDATE {KS}.counters SET c = c + 5 WHERE id = 1")
    assert (await s.query(f"SELECT c FROM {KS}.counters WHERE id = 1")).first().as_list() == [15]


async def light_weight_transactions(s):
    await create_table(s, "once", "id int PRIMARY KEY, v int")
    insert = f"INSERT INTO {KS}.once (id, v) VALUES (1, %d) IF NOT EXISTS"
    assert (await s.query(insert % 1)).first().as_dict() == {"[applied]": True}
    assert (await s.query(insert % 2)).first().as_dict() == {"[applied]": False, "id": 1, "v": 1}


async def the_drivers_picture_of_the_schema(s):
    for _ in range(600):  # it follows the events of the server
        keyspace = s.get_metadata().get_keyspace_meta(KS)
        table = next((t for t in keyspace.tables if t.name == "pages"), None) if keyspace else None
        if table:
            break
        await asyncio.sleep(0.05)
    assert [(c.name, c.type) for c in table.columns] == [("pk", "int"), ("ck", "int"), ("v", "text")], table.columns


def login():
    """With TALLY_CA the server speaks TLS only, and whoever comes must log in."""
    if "TALLY_CA" not in os.environ:
        return {}
    with open(os.environ["TALLY_CA"], encoding="ascii") as ca:
        return {"username": "cassandra", "password": "cassandra", "ssl_enabled": True, "ssl_trusted_cert": ca.read(),
                "ssl_verify_flags": acsylla.SSLVerifyFlags.PEER_IDENTITY}


CHECKS = [create_keyspace, scalar_round_trip, collection_round_trip, paging_and_batch, errors, counters, light_weight_transactions,
          the_drivers_picture_of_the_schema]


async def main():
    outcomes = []
    cluster = acsylla.create_cluster([HOST], port=PORT, consistency="LOCAL_QUORUM", serial_consistency="SERIAL", connect_timeout=20, request_timeout=30, **login())
    session = await cluster.create_session()
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            await check(session)
            print("ok", name)
            outcomes.append(True)
        except Exception:  # noqa: BLE001: whatever it is, the check has failed
            print(f"FAILED {name}: {traceback.format_exc()}")
            outcomes.append(False)
    await session.close()
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    return 0 if all(outcomes) else 1


sys.exit(asyncio.run(main()))
