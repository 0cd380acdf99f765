"""tally capacity: sizes and units of the documentation, predictions that a server charges to the unit, a day's figures and costs, and inputs that are wrong."""
import json
import math
import re
import struct
import subprocess
import urllib.request
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from ports import free_port
from tally_server import SLOWER, TALLYD, Server, create_keyspace
from test_documented_charges import MODELS, definition, literals, name, read_cases

TALLY = TALLYD.parent / "tally"
NODETOOL = Path(__file__).with_name("nodetool")
KEYSPACE = "CREATE KEYSPACE shop WITH replication = {'class': 'SingleRegionStrategy'};\n"
ORDERS = "CREATE TABLE shop.orders (customer int, day int, id int, total int, note text, name text static, PRIMARY KEY ((customer), day, id));\n"
SESSIONS = "CREATE TABLE shop.sessions (session text PRIMARY KEY, data blob) WITH default_time_to_live = 600 AND CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}};\n"
TABLES = """
tables:
  shop.orders:
    partitions: 1000
    rows_per_partition: 12
    values: {day: range 1..4, note: size 20..400, name: size 12}
  shop.sessions:
    partitions: 5000
    values: {session: size 32, data: size 100..2900}
"""


def tally(*arguments):
    return subprocess.run([TALLY, *map(str, arguments)], capture_output=True, text=True, timeout=300 * SLOWER)


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.schema = self.write("schema.cql", KEYSPACE + ORDERS + SESSIONS)

    def write(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file

    def capacity(self, workload, *flags, code=0, schema=None):
        file = self.write("workload.yaml", workload)
        run = tally("capacity", "--schema", schema or self.schema, "--workload", file, "--json", "--samples", 60, *flags)
        assert run.returncode == code, run.stdout[:2000] + run.stderr
        return json.loads(run.stdout)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


# ---- sizes ----

LEVEL = re.compile(r"@(\w+) |page=(\d+) ")
OFFLINE = re.compile(r"table\d?|do|run|units|2022:|current:")


def is_offline(case):
    """What needs no server with batches of the protocol, types, Regions, storage or time, and fits on a command line."""
    lines = [line for _, line in case.steps]
    return all(OFFLINE.match(line) or re.match(r"\w+=", line) for line in lines) and not any(re.search(r"stored=|ttl_deletes=|\d{6,}\)", line) for line in lines)


def asked(files, case, schema, data, text, level, page):
    """What capacity size says of the statement, by model."""
    flags = ["--consistency", level] + (["--page-size", page] if page else [])
    run = tally("capacity", "size", "--schema", files.write("case.cql", schema), "--data", files.write("data.cql", data), "--statement", text, "--json", *flags)
    assert run.returncode == 0, run.stdout + run.stderr
    (one,) = json.loads(run.stdout)["statements"]
    return one


def check(answer, line, where):
    only = re.match(r"(2022|current): ", line)
    for model, full in MODELS.items():
        if only and only[1] != model:
            continue
        got = answer[full]
        for key, wanted in re.findall(r"(\w+)=(\S+)", line):
            if key in ("rules", "not"):
                assert (set(wanted.split(",")) <= set(got["rules"])) == (key == "rules"), (where, model, got["rules"])
                continue
            field = {"units": "units", "read": "read_units", "write": "write_units", "static": "static_write_units", "row": "row_bytes", "static_bytes": "static_bytes",
                     "rows": "rows_read"}[key]
            assert got[field] == float(wanted), (where, model, key)


@pytest.mark.parametrize("case", [c for c in read_cases() if is_offline(c)], ids=name)
def test_documented_examples_come_out(files, case):
    schema, data, answer = "CREATE KEYSPACE d WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3};\n", "", None

    def table(text):
        return literals(re.sub(r"\{t(\d?)\}", r"d.t\1", text))

    for number, line in case.steps:
        word, _, rest = line.partition(" ")
        if m := re.match(r"table(\d?)$", word):
            columns, options = definition(rest)
            schema += f"CREATE TABLE d.t{m[1]} ({columns}){options};\n"
        elif word == "do":
            data += table(rest) + ";\n"
        elif word == "run":
            level, page = "LOCAL_QUORUM", 0
            while m := LEVEL.match(rest):
                level, page, rest = m[1] or level, m[2] or page, rest[m.end():]
            answer = asked(files, case, schema, data, table(rest), level, page)
            data += table(rest) + ";\n"
        else:
            check(answer, line, f"documented_charges.txt:{number}")


def test_the_numbers_that_users_know(files):
    """122, 134, 256 bytes and 56 units, of the founding documentation."""
    mytable = ("CREATE KEYSPACE d WITH replication = {'class': 'SingleRegionStrategy'};\nCREATE TABLE d.mytable (pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, "
               "static_col1 int static, PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2));\nCREATE TABLE d.wide (pk int, ck int, reg blob, st blob static, PRIMARY KEY (pk, ck));")
    statements = ["INSERT INTO d.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)", "INSERT INTO d.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1) VALUES (1, 2, 3, 4, 5)",
                  "INSERT INTO d.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (1, 2, 3, 4, 5, 6)",
                  f"INSERT INTO d.wide (pk, ck, reg, st) VALUES (1, 1, 0x{'00' * (26112 - 115)}, 0x{'00' * (1536 - 111)})"]
    run = tally("capacity", "size", "--schema", files.write("d.cql", mytable), "--statement", ";".join(statements), "--json")
    got = [s["documented-2022"] for s in json.loads(run.stdout)["statements"]]
    assert [s["bytes"] for s in got[:3]] == [122, 134, 256] and got[3]["units"] == 56
    assert json.loads(run.stdout)["statements"][1]["current"]["bytes"] == 31
    text = tally("capacity", "size", "--schema", files.folder / "d.cql", "--statement", statements[0]).stdout
    assert re.search(r"^INSERT INTO d\.mytable.* +0 +122 +122 +1 ", text, re.M), text


def test_rows_of_a_sample_are_sized_each(files):
    rows = files.write("orders.csv", 'customer,day,id,note\n1,2,3,"say ""hi"", please"\n\n4,5,6,\n')
    run = json.loads(tally("capacity", "size", "--schema", files.schema, "--rows", rows, "--table", "shop.orders", "--json").stdout)
    assert [(s["line"], s["documented-2022"]["bytes"]) for s in run["statements"]] == [(2, 7 + 8 + 8 + 16 + 100), (4, 7 + 8 + 8 + 100)]
    rows = files.write("rows.json", '[{"customer": 1, "day": 2, "id": 3, "note": "caf\\u00e9"},\n {"customer": 1, "day": 2, "id": 4, "note": null}]')
    run = json.loads(tally("capacity", "size", "--schema", files.schema, "--rows", rows, "--table", "shop.orders", "--json").stdout)
    assert [(s["line"], s["documented-2022"]["bytes"]) for s in run["statements"]] == [(1, 7 + 8 + 8 + 5 + 100), (2, 7 + 8 + 8 + 100)]


def test_a_field_of_a_user_type_may_have_a_reserved_word_as_its_name(files):
    schema = files.write("reserved.cql", KEYSPACE + 'CREATE TYPE shop.u (a int, "select" text, "From" text);\nCREATE TABLE shop.t (p int PRIMARY KEY, u frozen<u>);\n')
    rows = files.write("reserved.json", '{"p": 1, "u": {"a": 1, "select": "x", "\\"From\\"": "y"}}')
    run = tally("capacity", "size", "--schema", schema, "--rows", rows, "--json")
    assert run.returncode == 0 and json.loads(run.stdout)["statements"][0]["current"]["bytes"] == 27, run.stdout + run.stderr


# ---- what is predicted is what is charged ----

WORKLOAD = """
tables:
  %s.t:
    partitions: 300
    rows_per_partition: 7
    values: {day: range 1..3, note: size 20..2500, name: size 12, tags: elements 1..4 size 8}
statements:
  - {cql: "%s", rate: 1, keys: zipf 1.2, consistency: %s, page_size: %d, values: {id: elements 2..3, limit: range 2..9}}
"""
STATEMENTS = [
    ("INSERT INTO %s.t (customer, day, id, total, note) VALUES (?, ?, ?, ?, ?)", "LOCAL_QUORUM", 5000),
    ("INSERT INTO %s.t (customer, day, id, note, name, tags) VALUES (?, ?, ?, ?, ?, ?)", "LOCAL_QUORUM", 5000),
    ("UPDATE %s.t SET total = ?, note = ? WHERE customer = ? AND day = ? AND id = ?", "LOCAL_QUORUM", 5000),
    ("UPDATE %s.t SET total = ? WHERE customer = ? AND day = ? AND id = ? IF EXISTS", "LOCAL_QUORUM", 5000),
    ("DELETE FROM %s.t WHERE customer = ? AND day = ?", "LOCAL_QUORUM", 5000),
    ("SELECT * FROM %s.t WHERE customer = ?", "LOCAL_QUORUM", 3),
    ("SELECT note, name FROM %s.t WHERE customer = ? AND day = ? AND id IN ?", "LOCAL_ONE", 5000),
    ("SELECT note FROM %s.t WHERE customer = ? AND day > ? AND day < ? LIMIT ?", "LOCAL_ONE", 100),
]


@pytest.mark.parametrize("size_model", ["documented-2022", "current"])
def test_what_is_predicted_is_what_a_server_charges(files, size_model):
    """Each statement and the rows under it, on a keyspace of its own, as --record has them."""
    folder = files.folder / "server"
    folder.mkdir()
    server = Server(folder, "--ddl-delay", "none", "--size-model", size_model, "--compatibility", "strict").start()
    columns = "customer int, day int, id int, total int, note text, tags set<text>, name text static, PRIMARY KEY ((customer), day, id)"
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        for i, (text, level, page) in enumerate(STATEMENTS):
            keyspace = f"w{i}"
            schema = files.write("w.cql", f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SingleRegionStrategy'}};\nCREATE TABLE {keyspace}.t ({columns});\n")
            said = files.capacity(WORKLOAD % (keyspace, text % keyspace, level, page), "--record", files.folder / "record", "--size-model", size_model, "--samples", 12, schema=schema)
            lines = [json.loads(line) for line in (files.folder / "record").read_text().splitlines()]
            # those of the table's storage come after the last sample, and are rows that are there then
            last = max(k for k, line in enumerate(lines) if line["name"])
            create_keyspace(session, keyspace)
            session.execute(f"CREATE TABLE {keyspace}.t ({columns})")
            charged = []
            for line in lines[:last + 1]:
                units = 0
                statement = SimpleStatement(line["cql"], consistency_level=getattr(ConsistencyLevel, line["consistency"]), fetch_size=line["page_size"] or 5000)
                future = session.execute_async(statement)
                while True:
                    future.result()
                    units += struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
                    if not future.has_more_pages:
                        break
                    future.start_fetching_next_page()
                assert units == line["units"], line["cql"]
                if line["name"]:
                    charged.append(units)
            (s,) = said["statements"]
            of = s[size_model]
            assert len(charged) == 12 and sum(charged) / 12 == pytest.approx(of["read_units"]["mean"] + of["write_units"]["mean"])
            assert max(charged) == of["read_units"]["max"] + of["write_units"]["max"] and s["table"] == f"{keyspace}.t"
    server.stop()


# ---- markers ----

PEOPLE = """CREATE TYPE shop.address (street text, number int);
CREATE TABLE shop.people (p int, c int, a address, f frozen<address>, n int, PRIMARY KEY (p, c));
CREATE TABLE shop.logs (p int, c int, line text, PRIMARY KEY (p, c));
CREATE TABLE shop.flags (p int PRIMARY KEY, n int);
"""
OF_PEOPLE = """tables:
  shop.people: {partitions: 50, rows_per_partition: 6, values: {a: size 8, f: size 8}}
  shop.logs: {partitions: 50, rows_per_partition: 5}
  shop.flags: {partitions: 50}
statements:
"""


def people(files, cql, values="{}", *flags, code=0, tables=OF_PEOPLE, more=""):
    schema = files.write("people.cql", KEYSPACE + PEOPLE)
    load = f'{tables}  - {{cql: "{cql}", rate: 1, values: {values}{more}}}\n'
    return files.capacity(load, "--samples", 12, *flags, schema=schema, code=code)


def mean(entry, kind):
    return entry["documented-2022"][f"{kind}_units"]["mean"]


@pytest.mark.parametrize("cql, values, units", [
    ("SELECT n FROM shop.people WHERE p IN (?, ?, ?)", "{}", 3),
    ("SELECT n FROM shop.people WHERE p IN ?", "{p: elements 3}", 3),
    ("SELECT n FROM shop.people WHERE p = ? AND c IN (?, ?, ?, ?)", "{}", 4),
    ("SELECT n FROM shop.people WHERE p = ? AND c IN ?", "{c: elements 2}", 2),
    ("SELECT n FROM shop.people WHERE p IN (?, ?) AND c IN (?, ?)", "{}", 4),
])
def test_every_value_of_an_in_is_another_one(files, cql, values, units):
    """Each is a subquery, and each of them a unit at least."""
    (s,) = people(files, cql, values)["statements"]
    assert s["refused"] is None and mean(s, "read") == units


@pytest.mark.parametrize("written, named", [
    ("INSERT INTO shop.people (p, c, n) VALUES (?, ?, ?)", "INSERT INTO shop.people (p, c, n) VALUES (:who, :c, :n)"),
    ("SELECT n FROM shop.people WHERE p = ? AND c >= ? AND c < ?", 'SELECT n FROM shop.people WHERE p = :p AND c >= :low AND c < :"High One"'),
    ("SELECT n FROM shop.people WHERE p IN ? LIMIT ?", "SELECT n FROM shop.people WHERE p IN :list LIMIT :most"),
    ("BEGIN BATCH UPDATE shop.flags SET n = ? WHERE p = ?; UPDATE shop.flags SET n = ? WHERE p = ? APPLY BATCH",
     "BEGIN BATCH UPDATE shop.flags SET n = :n WHERE p = :p; UPDATE shop.flags SET n = :n WHERE p = :p APPLY BATCH"),
])
def test_a_named_marker_gets_the_values_of_its_column_like_a_positional_one(files, written, named):
    values = "{p: elements 3, limit: range 1..4}"
    one, other = (people(files, cql.replace('"', '\\"'), values, "--record", files.folder / "record")["statements"] for cql in (written, named))
    assert [s.pop("cql") for s in one + other] == [written] * len(one) + [named] * len(other)
    assert [{**s, "name": None} for s in one] == [{**s, "name": None} for s in other] and one[0]["refused"] is None
    assert mean(one[0], "read") + mean(one[0], "write") >= 1


@pytest.mark.parametrize("more", ["", ", rows: existing"])
@pytest.mark.parametrize("insert", ["INSERT INTO shop.people (p, c, n) VALUES (?, ?, ?)",
                                    "INSERT INTO shop.flags (p, n) VALUES (?, ?)"])
def test_statements_of_a_batch_write_a_row_each(files, insert, more):
    batch = f"BEGIN UNLOGGED BATCH {insert}; {insert}; {insert}; APPLY BATCH"
    (s,) = people(files, batch, "{}", "--record", files.folder / "record", more=more)["statements"]
    assert s["refused"] is None and mean(s, "write") == 3
    ran = [json.loads(line) for line in (files.folder / "record").read_text().splitlines()]
    keys = [re.findall(r"VALUES \((.*?), \d+\)", r["cql"]) for r in ran if r["name"]]
    assert len(keys) == 12 and all(len(set(k)) == 3 for k in keys)


def test_a_batch_over_two_tables_is_charged_to_each(files):
    """A logged batch, of which each row costs twice; each table has its own part, its own markers and values."""
    said = people(files, "BEGIN BATCH INSERT INTO shop.people (p, c, n) VALUES (?, ?, ?); "
                         "INSERT INTO shop.logs (p, c, line) VALUES (?, ?, ?); APPLY BATCH", "{line: size 1500}")
    one, two = said["statements"]
    charged = [(s["table"], mean(s, "write"), s["refused"]) for s in (one, two)]
    assert charged == [("shop.people", 2, None), ("shop.logs", 4, None)]
    by_table = {t["table"]: t["writes"]["units_a_day"] for t in said["tables"]}
    assert by_table["shop.logs"] == pytest.approx(2 * by_table["shop.people"], rel=0.1)


@pytest.mark.parametrize("cql, values", [
    ("UPDATE shop.people SET a.street = ?, a.number = ? WHERE p = ? AND c = ?", "{}"),
    ("UPDATE shop.people SET a.street = ? WHERE p = ? AND c = ?", "{a.street: size 30}"),
    ("INSERT INTO shop.people (p, c, f) VALUES (?, ?, {street: ?, number: ?})", "{}"),
    ("INSERT INTO shop.people (p, c, f) VALUES (?, ?, {street: ?, number: ?})", "{f.street: size 5, f.number: range 1..3}"),
])
def test_a_field_of_a_user_type_is_as_its_column_or_as_is_said_of_it(files, cql, values):
    (s,) = people(files, cql, values)["statements"]
    assert s["refused"] is None and mean(s, "write") == 1


def test_everything_that_is_missing_is_asked_at_once(files):
    """Of the columns that statements use alone: none is of static data, or of shop.sessions."""
    load = files.write("w.yaml", """tables:
  shop.orders: {values: {day: range 1..4}}
statements:
  - {cql: 'SELECT note FROM shop.orders WHERE customer = ? AND day = ? AND id IN ? LIMIT ?', rate: 1}
  - {cql: 'UPDATE shop.orders SET note = ? WHERE customer = ? AND day = ? AND id = ?', rate: 1}
  - {cql: 'SELECT nothing FROM shop.orders', rate: 1}
""")
    said = tally("capacity", "--schema", files.schema, "--workload", load, "--json")
    assert said.returncode == 2
    lines = [line.split(": ", 1) for line in json.loads(said.stdout)["error"].split("\n")]
    assert [place.rsplit(":", 1)[1] for place, _ in lines] == ["4"] * 5 + ["6"]
    asked = ["rows_per_partition of orders", "partitions of orders", "how long is note", "elements 3, for id", "as limit",
             "Undefined column name nothing"]
    assert all(wanted in words for (_, words), wanted in zip(lines, asked))


def test_a_ttl_delete_is_what_a_server_counts(files):
    """1 a started KiB of the row that has expired: 108 + 100..2900 bytes are 1, 2 or 3."""
    said = files.capacity(TABLES + "statements:\n  - {cql: 'INSERT INTO shop.sessions (session, data) VALUES (?, ?)', rate: 2, values: {data: size 2400}}\n")
    (s,) = said["statements"]
    assert s["ttl_deletes"] == 3 and s["documented-2022"]["write_units"]["max"] == 3
    table = next(t for t in said["tables"] if t["table"] == "shop.sessions")
    assert table["ttl_deletes_a_day"] == 3 * 2 * 86400


# ---- a day ----

def orders(said, kind):
    return next(t for t in said["tables"] if t["table"] == "shop.orders")[kind]


def test_peaks_and_settings_follow_the_curve(files):
    said = files.capacity(TABLES + "statements:\n  - {cql: 'INSERT INTO shop.orders (customer, day, id) VALUES (?, ?, ?)', rate: {0: 10, 12: 10, 13: 400, 14: 10}}\n", "--region", "us-east-1")
    writes = orders(said, "writes")
    mean = (10 * 22 + 2 * 205) / 24
    assert writes["units_a_day"] == pytest.approx(mean * 86400, rel=0.02)
    assert 400 <= writes["peak_second"] < 400 + 8 * 20 and "12:" <= writes["peak_second_at"] < "14:"
    assert 380 < writes["peak_minute"] < 420 and "12:5" <= writes["peak_minute_at"] < "13:1"
    # what 300 seconds of unused capacity save is less than the whole hill, and more than nothing
    assert mean < writes["provisioned_units"] < writes["peak_second"]
    assert writes["on_demand_refused"] == writes["new_on_demand_refused"] == 0
    hours = writes["scaled_by_hour"]
    assert max(hours) in hours[12:15] and hours[3] < 40 and max(hours) <= math.ceil(writes["peak_minute"] / 0.7) + 1
    assert writes["units_a_day"] / 3600 < writes["scaled_unit_hours"] < writes["provisioned_units"] * 24 * 1.5


def test_a_new_on_demand_table_refuses_what_is_above_its_4000_write_units(files):
    load = TABLES + "statements:\n  - {cql: 'INSERT INTO shop.orders (customer, day, id) VALUES (?, ?, ?)', rate: %s}\n"
    calm, wild = files.capacity(load % 3000), files.capacity(load % "{0: 100, 12: 100, 12:10: 9000, 12:20: 100}")
    assert orders(calm, "writes")["new_on_demand_refused"] == 0 and orders(calm, "writes")["provisioned_units"] >= 3000
    above = sum(max(0, 100 + 8900 * (1 - abs(s - 600) / 600) - 4000) for s in range(1200))
    assert orders(wild, "writes")["new_on_demand_refused"] == pytest.approx(above, rel=0.1)


def test_more_than_the_quota_is_no(files):
    said = files.capacity(TABLES + "statements:\n  - {cql: 'INSERT INTO shop.orders (customer, day, id) VALUES (?, ?, ?)', rate: 50000}\n", "--region", "us-east-1", code=1)
    assert orders(said, "writes")["provisioned_units"] is None and said["costs"][0]["provisioned"]["total"] is None and said["costs"][0]["on_demand"]["writes"] > 0


@pytest.mark.parametrize("keys, over", [("uniform", 0), ("hot 90% on 2", 2), ("zipf 1.1", 1)])
def test_the_partitions_that_throttle_are_named(files, keys, over):
    said = files.capacity(TABLES + "statements:\n  - {cql: \"UPDATE shop.orders SET note = '%s' WHERE customer = ? AND day = ? AND id = ?\", rate: 8000, keys: %s}\n" % ("x" * 800, keys),
                          code=1 if over else 0)
    table = next(t for t in said["tables"] if t["table"] == "shop.orders")
    hot = [p for p in table["busiest_partitions"] if p["above_write_limit"]]
    assert len(hot) == over and table["partitions_above_a_limit"] == over
    assert [p["key"] for p in hot] == [f"customer = {i}" for i in range(over)]
    if keys == "hot 90% on 2":
        assert hot[0]["write_units"] == pytest.approx(0.45 * 8000) and not hot[0]["above_entities"] and not hot[0]["above_read_limit"]


def test_entities_of_a_partition_have_a_limit_of_their_own(files):
    said = files.capacity(TABLES + "statements:\n  - {cql: 'SELECT day FROM shop.orders WHERE customer = ?', rate: 300, keys: hot 100% on 1}\n", "--guidance", code=1)
    (first, *_) = next(t for t in said["tables"] if t["table"] == "shop.orders")["busiest_partitions"]
    assert first["entities"] == pytest.approx(12 * 300) and first["above_entities"] and not first["above_read_limit"]


def test_what_keyspaces_refuses_is_listed(files):
    schema = files.write("s.cql", KEYSPACE + ORDERS + "CREATE INDEX ON shop.orders (total);\n")
    load = TABLES.replace("  shop.sessions:", "#").split("#")[0]
    said = files.capacity(load + "statements:\n  - {cql: 'SELECT count(*) FROM shop.orders WHERE customer = ?', rate: 5}\n", schema=schema, code=1)
    (refused,) = said["refused"]
    assert refused["line"] == 3 and "CREATE INDEX is not yet supported" in refused["words"]
    assert "countRows is not yet supported" in said["statements"][0]["refused"] and orders(said, "reads")["units_a_day"] == 0


# ---- costs ----

def test_costs_are_units_times_prices(files):
    prices = files.write("prices.csv", "date,2026-01-15\nregion,read_unit,write_unit,read_unit_hour,write_unit_hour,storage_gb_month,ttl_delete\n"
                                       "moon-1,0.001,0.01,0.5,2.5,300,0.1\nmoon-2,0.001,,0.5,2.5,300,0.1\n")
    load = TABLES + """statements:
  - {cql: 'INSERT INTO shop.orders (customer, day, id) VALUES (?, ?, ?)', rate: 4}
  - {cql: 'SELECT * FROM shop.orders WHERE customer = ? AND day = ? AND id = ?', rate: 6}
  - {cql: 'INSERT INTO shop.sessions (session, data) VALUES (?, ?)', rate: 1}
"""
    said = files.capacity(load, "--prices", prices)
    first, second = said["costs"]
    tables, days = said["tables"], 365 / 12
    reads, writes = (sum(t[k]["units_a_day"] for t in tables) for k in ("reads", "writes"))
    assert first["on_demand"]["reads"] == pytest.approx(reads * 0.001 * days) and first["on_demand"]["writes"] == pytest.approx(writes * 0.01 * days)
    assert first["provisioned"]["writes"] == pytest.approx(sum(t["writes"]["provisioned_units"] for t in tables) * 24 * days * 2.5)
    assert first["auto_scaling"]["reads"] == pytest.approx(sum(t["reads"]["scaled_unit_hours"] for t in tables) * days * 0.5)
    stored = sum(t["storage_bytes"]["documented-2022"] for t in tables)
    assert first["storage"] == pytest.approx(stored / 1e9 * 300) and first["ttl_deletes"] == pytest.approx(sum(t["ttl_deletes_a_day"] for t in tables) * days * 0.1)
    assert first["on_demand"]["total"] == pytest.approx(sum((first["on_demand"]["reads"], first["on_demand"]["writes"], first["storage"], first["ttl_deletes"])))
    assert first["read_break_even_percent"] == pytest.approx(100 * 0.5 / 3.6) and said["prices"]["date"] == "2026-01-15"
    assert said["keyspace_costs"] == []
    # a price that is not known makes no total, and is no zero
    assert second["on_demand"]["writes"] is None and second["on_demand"]["total"] is None and second["write_break_even_percent"] is None
    assert second["provisioned"]["total"] == pytest.approx(first["provisioned"]["total"])
    text = tally("capacity", "--schema", files.schema, "--workload", files.folder / "workload.yaml", "--prices", prices, "--samples", 20).stdout
    assert re.search(r"^moon-2 +unknown ", text, re.M) and "at the prices of 2026-01-15" in text
    assert "units a second, - capacity" in text and "█" in text and "shop.orders" in text


def test_each_region_of_a_keyspace_is_paid_for(files):
    prices = files.write("prices.csv", "date,2026-01-15\nregion,read_unit,write_unit,read_unit_hour,write_unit_hour,storage_gb_month,pitr_gb_month,ttl_delete\n"
                                       "us-east-1,0.001,0.01,0.5,2.5,300,30,0.1\neu-west-1,0.002,0.03,0.7,3.5,400,40,0.2\nap-northeast-1,0.003,0.02,0.6,4.5,500,50,0.3\n")
    where = "{'class': 'NetworkTopologyStrategy', 'us-east-1': 3, 'eu-west-1': 3, 'ap-northeast-1': 3}"
    several = files.write("several.cql", f"CREATE KEYSPACE shop WITH replication = {where};\n" +
                          SESSIONS.replace("'ttl': {'status': 'enabled'}", "'ttl': {'status': 'enabled'}, 'point_in_time_recovery': {'status': 'enabled'}"))
    load = """tables:
  shop.sessions: {partitions: 5000, values: {session: size 32, data: size 500}}
statements:
  - {cql: 'INSERT INTO shop.sessions (session, data) VALUES (?, ?)', rate: 1500}
  - {cql: 'SELECT * FROM shop.sessions WHERE session = ?', rate: 6}
"""
    said = files.capacity(load, "--prices", prices, schema=several)
    (table,), (of_all,) = said["tables"], said["keyspace_costs"]
    assert 1500 <= table["writes"]["provisioned_units"] < 1700, "1,500 writes a second of one unit are that many in each Region"
    assert said["statements"][0]["documented-2022"]["write_units"]["max"] == 1
    assert of_all["keyspace"] == "shop" and sorted(of_all["regions"]) == ["ap-northeast-1", "eu-west-1", "us-east-1"]
    regions = {c["region"]: c for c in said["costs"]}
    assert len(regions) == 3
    for item in ("storage", "recovery", "ttl_deletes"):
        assert of_all[item] == pytest.approx(sum(c[item] for c in regions.values())) and of_all[item] > 0
    for mode in ("on_demand", "provisioned", "auto_scaling"):
        assert of_all[mode]["writes"] == pytest.approx(sum(c[mode]["writes"] for c in regions.values()))
        assert of_all[mode]["reads"] == pytest.approx(regions[of_all["regions"][0]][mode]["reads"])
    text = tally("capacity", "--schema", several, "--workload", files.folder / "workload.yaml", "--prices", prices, "--samples", 20).stdout
    assert re.search(r"^shop in its 3 Regions +[0-9]", text, re.M) and "what each of its 3 Regions needs" in text


def test_storage_is_what_a_server_counts(files, new_server):
    """The rows of a sample, as many as there are partitions: nothing is stretched."""
    rows = [(i, 2, i * 10, "n" * (i * 37 % 300)) for i in range(1, 41)]
    files.write("orders.csv", "customer,day,id,note\n" + "".join(f"{c},{d},{i},{n}\n" for c, d, i, n in rows))
    said = files.capacity("tables: {shop.orders: {partitions: 40, rows_per_partition: 3}}\nstatements: []\n", "--rows", files.folder / "orders.csv", "--table", "shop.orders")
    table = next(t for t in said["tables"] if t["table"] == "shop.orders")
    low, high = (120 * size for size in (7 + 8 + 8 + 100, 7 + 8 + 8 + 100 + 300))
    assert table["rows"] == 120 and low < table["storage_bytes"]["documented-2022"] < high
    sessions = next(t for t in said["tables"] if t["table"] == "shop.sessions")
    assert sessions["rows"] is None and sessions["storage_bytes"]["current"] is None and "partitions" in sessions["unknown"]
    assert all(c["storage"] is None and c["on_demand"]["total"] is None for c in said["costs"]) and len(said["costs"]) > 20


# ---- what a table comes to ----

EVENTS = """CREATE KEYSPACE shop WITH replication = {'class': 'SingleRegionStrategy'};
CREATE TABLE shop.events (id bigint, at int, v text, PRIMARY KEY (id, at))%s;
"""
EVENT_TABLE = "tables:\n  shop.events: {partitions: 1000, rows_per_partition: 10, values: {v: size 147%s}}\n"


@pytest.mark.parametrize("options, using, values, seconds", [
    (" WITH default_time_to_live = 2592000", "", "", 30 * 86400), ("", " USING TTL 86400", "", 86400), ("", " USING TTL ?", ", ttl: range 100..300", 200),
    (" WITH default_time_to_live = 2592000", " USING TTL 86400", "", 86400), ("", "", "", 0),
])
def test_rows_that_expire_take_the_room_of_a_steady_state(files, options, using, values, seconds):
    """1,000 rows of 266 bytes a second, kept for 30 days, are 690 GB."""
    schema = files.write("events.cql", EVENTS % (options or " WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}"))
    said = files.capacity((EVENT_TABLE % values) + "statements:\n  - {cql: 'INSERT INTO shop.events (id, at, v) VALUES (?, ?, ?)%s', rate: 1000}\n" % using,
                          "--region", "us-east-1", schema=schema)
    (table,), (cost,), size = said["tables"], said["costs"], said["statements"][0]["documented-2022"]["row_bytes"]["mean"]
    assert size == 266
    if not seconds:
        assert "steady_state" not in table and cost["storage"] == pytest.approx(table["storage_bytes"]["documented-2022"] / 1e9 * 0.25)
        return
    assert table["steady_state"]["rows"] == 1000 * seconds and table["steady_state"]["documented-2022"] == 1000 * seconds * size
    assert cost["storage"] == pytest.approx(max(1000 * seconds * size, table["storage_bytes"]["documented-2022"]) / 1e9 * 0.25)
    if seconds == 30 * 86400:
        text = tally("capacity", "--schema", schema, "--workload", files.folder / "workload.yaml", "--no-plots").stdout
        assert "  kept by time to live in the long run: 2592000000 rows, 689.47 GB documented-2022" in text


def test_both_size_models_and_a_usual_use_have_costs_beside_the_present_settings(files):
    """A row with a text of 950 bytes is two write units in the model of 2022 and one in the current model."""
    schema = files.write("events.cql", EVENTS % " WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}")
    workload = EVENT_TABLE.replace("147%s", "950") + "statements:\n  - {cql: 'INSERT INTO shop.events (id, at, v) VALUES (?, ?, ?)', rate: 100}\n"
    said = files.capacity(workload, "--region", "us-east-1", schema=schema)
    (table,), (cost,), (other,) = said["tables"], said["costs"], said["costs_by_other_model"]["costs"]
    units = {model: said["statements"][0][model]["write_units"]["mean"] for model in ("documented-2022", "current")}
    assert units == {"documented-2022": 2, "current": 1} and said["costs_by_other_model"]["size_model"] == "current"
    assert cost["on_demand"]["writes"] == pytest.approx(2 * other["on_demand"]["writes"], rel=0.01)
    writes = table["writes"]
    assert writes["provisioned_units_70_percent"] == math.ceil(writes["peak_minute"] / 0.7) > writes["provisioned_units"]
    hour = 0.00065 * 24 * 365 / 12
    assert cost["provisioned_70_percent"]["writes"] == pytest.approx(writes["provisioned_units_70_percent"] * hour)
    assert table["settings"] == {"capacity_mode": "PROVISIONED", "read_capacity_units": 10, "write_capacity_units": 20}
    text = tally("capacity", "--schema", schema, "--workload", files.folder / "workload.yaml", "--no-plots", "--region", "us-east-1").stdout
    assert "    now set to    20 units: LESS than the load needs\n" in text and "by the size model current, at the prices" in text
    assert f"    at 70 %       {writes['provisioned_units_70_percent']} units, if the busiest minute is to use 70 % of them\n" in text


def test_entities_count_with_guidance_alone(files):
    schema = files.write("events.cql", EVENTS % "")
    workload = (EVENT_TABLE % "") + "statements:\n  - {cql: 'SELECT * FROM shop.events WHERE id = ?', rate: 250, keys: hot 100% on 1}\n"
    said = files.capacity(workload, schema=schema)
    hot = said["tables"][0]["busiest_partitions"][0]
    assert said["ok"] and hot["entities"] == 2500 and not hot["above_entities"]
    said = files.capacity(workload, "--guidance", schema=schema, code=1)
    assert said["tables"][0]["busiest_partitions"][0]["above_entities"]


# ---- nodetool ----

CAPTURED = """CREATE KEYSPACE capacity_shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE capacity_shop.orders (customer int, day int, id int, total int, note text, name text static, PRIMARY KEY ((customer), day, id));
CREATE TABLE capacity_shop.sessions (session text PRIMARY KEY, customer int, data blob) WITH default_time_to_live = 86400;
"""


def captured(files, *flags, tablestats="tablestats.txt", code=0, **files_of):
    schema = files.write("captured.cql", CAPTURED)
    values = files.write("values.yaml", "tables:\n  capacity_shop.orders: {values: {note: size 20..400, name: size 12}}\n"
                                        "  capacity_shop.sessions: {values: {session: size 38, data: size 100..3000}}\n")
    run = tally("capacity", "--schema", schema, "--tablestats", NODETOOL / tablestats, "--info", NODETOOL / "info.txt", "--status", NODETOOL / "status.txt",
                "--tablehistograms", f"{NODETOOL / 'tablehistograms_orders.txt'},{NODETOOL / 'tablehistograms_sessions.txt'}", "--json", "--samples", 60,
                *(flags or ["--workload", values]))
    assert run.returncode == code, run.stdout[:2000] + run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("tablestats", ["tablestats.txt", "tablestats_h.txt"])
def test_captures_of_cassandra_are_read_as_they_come(files, tablestats):
    """As Cassandra 5.0.8 printed them of 600 orders in 50 partitions and 200 sessions, 400 reads and 800 writes in its uptime."""
    said = captured(files, tablestats=tablestats)
    uptime = int(re.search(r"Uptime \(seconds\) +: (\d+)", (NODETOOL / "info.txt").read_text())[1])
    rates = {s["name"].split(" (")[0]: s["rate_mean"] * uptime for s in said["statements"]}
    assert rates == pytest.approx({"reads of capacity_shop.orders": 300, "writes of capacity_shop.orders": 600, "reads of capacity_shop.sessions": 100,
                                   "writes of capacity_shop.sessions": 200})
    assert {t["table"]: t["rows"] for t in said["tables"]} == {"capacity_shop.orders": 600, "capacity_shop.sessions": 200}
    assert any("tablehistograms counts 24 cells" in n for n in said["notes"]) and all(t["complete"] for t in said["tables"])
    assert all(c["on_demand"]["total"] > 0 for c in said["costs"])


def test_what_captures_do_not_say_stays_unknown(files):
    said = captured(files, "--region", "us-east-1")
    assert all("how long is" in s["unknown"] for s in said["statements"]) and not any(t["complete"] for t in said["tables"])
    (cost,) = said["costs"]
    assert cost["on_demand"]["total"] is None and cost["on_demand"]["reads"] is None
    # Cassandra's bytes, not compressed, and 100 bytes for each of 600 and 200 rows, at 0.25 dollars for a GB
    assert cost["storage"] == pytest.approx((23273 / 0.11724 + 22367 / 0.02444 + 80_000) / 1e9 * 0.25, rel=1e-4)


STATS = """Total number of tables: 1
----------------
Keyspace: shop
\t\tTable: notes
\t\tSpace used (live): {live}
\t\tSSTable Compression Ratio: {ratio}
\t\tNumber of partitions (estimate): {partitions}
\t\tLocal read count: {reads}
\t\tLocal write count: {writes}
\t\tCompacted partition mean bytes: {mean}
----------------
"""
NOTES = """CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3};
CREATE TABLE shop.notes (id int PRIMARY KEY, note text);
"""
GIB = 2 ** 30


def notes_of(files, nodes, uptimes, n_nodes, *flags):
    default = {"live": 1, "ratio": -1.0, "partitions": 1000, "reads": 0, "writes": 0, "mean": 100}
    stats = ",".join(str(files.write(f"stats{i}.txt", STATS.format(**{**default, **node}))) for i, node in enumerate(nodes))
    infos = ",".join(str(files.write(f"info{i}.txt", f"Uptime (seconds) : {uptime}\n")) for i, uptime in enumerate(uptimes))
    status = files.write("status.txt", "Datacenter: dc1\n" + "".join(f"UN  10.0.0.{i}  1 KiB  256  ?  {i}  rack1\n" for i in range(n_nodes)))
    values = files.write("values.yaml", "tables:\n  shop.notes: {values: {note: size 20}}\n")
    return tally("capacity", "--schema", files.write("notes.cql", NOTES), "--tablestats", stats, "--info", infos, "--status", status, "--workload", values,
                 "--region", "us-east-1", "--samples", 20, "--json", *flags)


def test_storage_of_a_cluster_is_its_live_bytes_before_compression_of_one_replica(files):
    """10 GiB on each of 6 nodes at a ratio of 0.5, with 3 replicas: 40 GiB. Each of the 20 million rows has 100 bytes of metadata, as a stored row has in both size models."""
    said = json.loads(notes_of(files, [{"live": 10 * GIB, "ratio": 0.5, "partitions": 10_000_000}], [1000], 6).stdout)
    (table,) = said["tables"]
    stored = 40 * GIB + 100 * 20_000_000
    assert table["rows"] == 20_000_000 and table["storage_bytes"] == {"documented-2022": stored, "current": stored}
    assert said["costs"][0]["storage"] == pytest.approx(stored / 1e9 * 0.25)
    assert any("by 3 replicas, and 100 bytes of metadata for each of 20000000 rows" in n for n in said["notes"])
    # of two captured nodes each counts by its own ratio; one has no compression
    said = json.loads(notes_of(files, [{"live": 10 * GIB, "ratio": 0.5}, {"live": 4 * GIB}], [1000, 1000], 6).stdout)
    assert said["tables"][0]["storage_bytes"]["current"] == pytest.approx(24 * GIB + 100 * 2000, rel=1e-9)


def test_storage_without_a_number_of_rows_is_said_to_lack_their_metadata(files):
    schema = files.write("wide.cql", NOTES.replace("id int PRIMARY KEY, note text", "id int, at int, note text, PRIMARY KEY (id, at)"))
    stats = files.write("stats.txt", STATS.format(live=GIB, ratio=-1.0, partitions=1000, reads=0, writes=0, mean=100))
    for rows, stored, words in [("", GIB, "without the metadata of rows (100 bytes each): no input gives their number"),
                                ("  shop.notes: {rows_per_partition: 7}\n", GIB + 100 * 7 * 1000, "and 100 bytes of metadata for each of 7000 rows")]:
        workload = files.write("rows.yaml", "tables:\n" + rows) if rows else None
        said = json.loads(tally("capacity", "--schema", schema, "--tablestats", stats, "--status", files.write("status.txt", "Datacenter: dc1\n" + 3 * "UN  10.0.0.1  1 KiB\n"),
                                *(["--workload", workload] if rows else []), "--json").stdout)
        assert said["tables"][0]["storage_bytes"]["current"] == stored and any(n.endswith(words) for n in said["notes"]), said["notes"]


def test_each_node_counts_by_its_own_uptime(files):
    """100 and 10 reads a second on two of two nodes, of which one was started a short time ago."""
    said = json.loads(notes_of(files, [{"reads": 10_000_000, "writes": 3000}, {"reads": 1000}], [100_000, 100], 2).stdout)
    rates = {s["name"].split(" of ")[0]: s["rate_mean"] for s in said["statements"]}
    assert rates == pytest.approx({"reads": 110 / 2, "writes": 0.03 / 3})
    assert json.loads(notes_of(files, [{"reads": 1000}] * 3, [100], 3).stdout)["statements"][0]["rate_mean"] == pytest.approx(15)
    wrong = notes_of(files, [{}] * 3, [100, 100], 3)
    assert wrong.returncode == 2 and "--info has 2 nodes and --tablestats 3" in wrong.stdout


@pytest.mark.parametrize("mean, warns", [(20480, True), (120, False)])
def test_a_sample_that_is_not_what_the_partitions_hold_is_named(files, mean, warns):
    rows = files.write("notes.csv", "id,note\n1," + "x" * 20 + "\n")
    said = json.loads(notes_of(files, [{"mean": mean, "reads": 5}], [100], 1, "--rows", rows).stdout)
    warnings = [n for n in said["notes"] if n.startswith("WARNING")]
    assert bool(warnings) == warns and all("20480 bytes in a mean partition, and 1 sampled rows of 127 bytes are 127" in w for w in warnings)


def test_json_of_nodetool_is_read_and_static_columns_are_named(files):
    """Both files are Cassandra 5.0.8's, of one moment."""
    schema = files.write("notes.cql", "CREATE KEYSPACE capacity_notes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n"
                         "CREATE TABLE capacity_notes.orders (customer int, day int, note text, name text static, PRIMARY KEY (customer, day));\n")
    values = files.write("values.yaml", "tables:\n  capacity_notes.orders: {rows_per_partition: 12, values: {note: size 300, name: size 1}}\n")
    both = []
    for form in ("txt", "json"):
        run = tally("capacity", "--schema", schema, "--tablestats", NODETOOL / f"tablestats_static.{form}", "--info", NODETOOL / "info.txt", "--workload", values, "--json")
        assert run.returncode == 0, run.stdout + run.stderr
        said = json.loads(run.stdout)
        (note,) = [n for n in said["notes"] if "static columns (name)" in n]
        both.append((said["tables"], said["costs"], [s["rate_mean"] for s in said["statements"]]))
    assert both[0][2] == both[1][2] and both[0][0][0]["rows"] == 600
    assert both[0][0][0]["storage_bytes"]["current"] == pytest.approx(both[1][0][0]["storage_bytes"]["current"], rel=1e-3)
    for text, words in [('{"a": {"tables": {"t": {"local_read_count": "many"}}}}', "n.json:1: a number is expected: 'local_read_count'"),
                        ('{"a": {"tables": {"t": {"local_read_count": 1}}}}', "n.json:1: the figures of t lack 'local_write_count'")]:
        run = tally("capacity", "--schema", schema, "--tablestats", files.write("n.json", text))
        assert run.returncode == 2 and words in run.stderr, run.stderr


def test_captures_of_all_nodes_are_scaled_to_the_cluster(files):
    three = (NODETOOL / "status.txt").read_text()
    node = next(line for line in three.splitlines() if line.startswith("UN"))
    status = files.write("status.txt", three + (node + "\n").replace("127.0.0.1", "127.0.0.2") + (node + "\n").replace("127.0.0.1", "127.0.0.3"))
    schema = files.write("captured.cql", CAPTURED.replace("'replication_factor': 1", "'replication_factor': 3"))
    run = json.loads(tally("capacity", "--schema", schema, "--tablestats", NODETOOL / "tablestats.txt", "--info", NODETOOL / "info.txt", "--status", status, "--json").stdout)
    uptime = int(re.search(r"Uptime \(seconds\) +: (\d+)", (NODETOOL / "info.txt").read_text())[1])
    rates = {s["name"].split(" (")[0]: s["rate_mean"] * uptime for s in run["statements"]}
    # three nodes, of which one was captured; a read asks two replicas, a write three
    assert rates["reads of capacity_shop.orders"] == pytest.approx(300 * 3 / 2) and rates["writes of capacity_shop.orders"] == pytest.approx(600)


# ---- what a server was asked ----

@pytest.fixture(scope="module")
def asked_server(tmp_path_factory):
    """60 writes of three partitions, 20 reads of one; its clock goes on by a minute, so that they are those of its last one. And the capture of all that."""
    folder = tmp_path_factory.mktemp("asked")
    server = Server(folder, "--ddl-delay", "none", "--control", "on", "--capture", folder / "all.tcap").start()
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        session.execute("CREATE TABLE shop.orders (customer int, day int, id int, note text, PRIMARY KEY ((customer), day, id))")
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = '2031-05-06T07:08:09Z' WHERE name = 'server'")
        insert = session.prepare("INSERT INTO shop.orders (customer, day, id, note) VALUES (?, ?, ?, ?)")
        charged = {"reads": 0, "writes": 0}

        def run(kind, *query):
            future = session.execute_async(*query)
            future.result()
            charged[kind] += struct.unpack(">d", future.custom_payload["RequestCharge"])[0]

        for i in range(60):
            run("writes", insert, (i % 3, 1, i, "x" * (i * 40)))
        for _ in range(20):
            run("reads", "SELECT * FROM shop.orders WHERE customer = 2 AND day = 1")
        session.execute("UPDATE system_control.clock SET advance_ms = 60000 WHERE name = 'server'")
        server.charged = charged
        yield server
    server.stop()


def test_a_running_server_is_estimated_by_its_last_minute(asked_server):
    run = tally("capacity", "--server", f"{asked_server.host}:{asked_server.port}", "--region", "us-east-1", "--json")
    said = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    by_kind = {("writes" if "INSERT" in s["cql"] else "reads"): s for s in said["statements"]}
    assert by_kind["writes"]["rate_mean"] == 1 and by_kind["reads"]["rate_mean"] == pytest.approx(1 / 3)
    assert by_kind["writes"]["documented-2022"]["write_units"]["mean"] * 60 == pytest.approx(asked_server.charged["writes"])
    assert by_kind["reads"]["documented-2022"]["read_units"]["mean"] * 20 == pytest.approx(asked_server.charged["reads"])
    # a statement that did not run in the last minute is named
    later = asked_server.cluster(protocol_version=4)
    later.connect().execute("UPDATE system_control.clock SET advance_ms = 60000 WHERE name = 'server'")
    later.shutdown()
    text = tally("capacity", "--server", f"{asked_server.host}:{asked_server.port}", "--no-plots").stdout
    assert "    SELECT * FROM shop.orders WHERE customer = ? AND day = ?: it did not run in the server's last minute\n" in text
    # what the server does not tell is not known
    assert by_kind["writes"]["documented-2022"]["write_units"]["p99"] is None and by_kind["writes"]["current"]["row_bytes"]["p50"] is None
    (table,) = said["tables"]
    assert table["rows"] == 60 and table["storage_bytes"]["documented-2022"] > 60 * 123 and table["storage_bytes"]["current"] is None
    assert table["busiest_partitions"][0]["key"] == "customer = 2" and table["partitions_above_a_limit"] == 0
    assert said["costs"][0]["on_demand"]["total"] > 0


def test_a_condition_that_fails_is_charged_in_one_of_several_regions(tmp_path):
    """A write takes a unit in each of three Regions, a condition that does not hold one unit in all. The bill has their sum; the capture's estimate and
    /metrics count what each Region takes."""
    file = tmp_path / "regions.tcap"
    server = Server(tmp_path, "--ddl-delay", "none", "--admin-port", str(free_port()), "--capture", file).start()
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': 3, 'eu-west-1': 3, 'ap-northeast-1': 3}")
        session.execute(session.prepare("CREATE TABLE shop.t (p int PRIMARY KEY, v text)"))  # as some migration tools do

        def bill(statement, values):
            future = session.execute_async(statement, values)
            future.result()
            return struct.unpack(">d", future.custom_payload["RequestCharge"])[0]

        insert, update = (session.prepare(s) for s in ("INSERT INTO shop.t (p, v) VALUES (?, 'a')", "UPDATE shop.t SET v = 'b' WHERE p = ? IF v = 'none'"))
        assert [bill(insert, (p,)) for p in range(4)] == [3] * 4
        assert [bill(update, (1,)) for _ in range(5)] == [1] * 5
        with urllib.request.urlopen(f"http://{server.admin}/metrics") as answer:
            assert "\ntally_write_units_total 9\n" in answer.read().decode()
    server.stop()
    run = tally("capacity", "--capture", file, "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    units = {s["cql"].split()[0]: (s["observed"], s["documented-2022"]["write_units"]["mean"]) for s in json.loads(run.stdout)["statements"]}
    assert units == {"INSERT": (4, 1), "UPDATE": (5, 1)}


def test_a_capture_is_estimated_by_what_it_was_charged(asked_server, files):
    schema = files.write("s.cql", KEYSPACE + "CREATE TABLE shop.orders (customer int, day int, id int, note text, PRIMARY KEY ((customer), day, id));\n")
    copy = files.folder / "copy.tcap"
    copy.write_bytes((asked_server.folder / "all.tcap").read_bytes())
    run = tally("capacity", "--schema", schema, "--capture", copy, "--json")
    assert run.returncode == 2 and "copy.tcap: offset" in run.stderr + run.stdout  # it is still being written: has no end
    asked_server.stop()
    copy.write_bytes((asked_server.folder / "all.tcap").read_bytes())
    run = tally("capacity", "--schema", schema, "--capture", copy, "--region", "us-east-1", "--json")
    said = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    by_kind = {("writes" if "INSERT" in s["cql"] else "reads"): s for s in said["statements"]}
    assert by_kind["writes"]["observed"] == 60 and by_kind["reads"]["observed"] == 20
    assert by_kind["writes"]["documented-2022"]["write_units"]["mean"] * 60 == pytest.approx(asked_server.charged["writes"])
    assert by_kind["writes"]["documented-2022"]["row_bytes"]["max"] == 7 + 8 + 8 + 100 + 59 * 40 and by_kind["writes"]["current"]["row_bytes"]["max"] is None
    (table,) = said["tables"]
    assert {p["key"] for p in table["busiest_partitions"]} == {f"customer = {i}" for i in range(3)} and table["busiest_partitions"][0]["key"] == "customer = 2"
    assert table["busiest_partitions"][0]["read_units"] == asked_server.charged["reads"]  # all in one second of its frozen clock
    seconds = int(re.search(r"its (\d+) seconds are repeated", "".join(said["notes"]))[1])
    assert table["reads"]["units_a_day"] == pytest.approx(asked_server.charged["reads"] * 86400 / seconds, rel=0.01)
    alone = json.loads(tally("capacity", "--capture", copy, "--region", "us-east-1", "--json").stdout)
    # its own CREATE statements are in it
    assert (alone["statements"], alone["tables"]) == (said["statements"], said["tables"])
    (said_no,) = [tally("capacity", "--schema", schema, "--capture", copy, "--size-model", "current")]
    assert said_no.returncode == 2 and "was charged by documented-2022" in said_no.stderr


def test_statements_of_a_capture_count_the_same_without_a_prepared_id(tmp_path):
    """Each statement of a table runs with values in its text, with the session's keyspace, and prepared on a table of its own."""
    file = tmp_path / "all.tcap"
    server = Server(tmp_path, "--ddl-delay", "none", "--control", "on", "--capture", file).start()
    of = lambda t, values: [s.format(t=t, v=values) for s in (  # pylint: disable=unnecessary-lambda-assignment
        "INSERT INTO {t} (p, c, v) VALUES ({v[0]}, {v[1]}, {v[2]})", "UPDATE {t} SET v = {v[2]} WHERE p = {v[0]} AND c = {v[1]}",
        "SELECT v FROM {t} WHERE p = {v[0]} AND c = {v[1]}", "DELETE FROM {t} WHERE p = {v[0]} AND c = {v[1]}",
        "BEGIN UNLOGGED BATCH INSERT INTO {t} (p, c, v) VALUES ({v[0]}, {v[1]}, {v[2]}); INSERT INTO {t} (p, c) VALUES ({v[0]}, 8) APPLY BATCH")]
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        for t in ("prepared", "literal", "bare"):
            session.execute(f"CREATE TABLE shop.{t} (p int, c int, v text, PRIMARY KEY (p, c))")
        session.execute("USE shop")
        session.execute("UPDATE system_control.clock SET state = 'frozen', now = '2031-05-06T07:08:09Z' WHERE name = 'server'")
        for text in of("shop.prepared", "???"):
            statement = session.prepare(text)
            for i in range(3):
                session.execute(statement, [{"p": 7, "c": i, "v": "x" * 2000}[c.name] for c in statement.column_metadata])
        for t in ("shop.literal", "bare"):
            for i in range(3):
                for text in of(t, (7, i, "'" + "x" * 2000 + "'")):
                    session.execute(text)
        session.execute("UPDATE system_control.clock SET advance_ms = 1000 WHERE name = 'server'")
        counted = {f"{r.keyspace_name}.{r.table_name}": (r.write_units_last_second, r.entities_last_second)
                   for r in session.execute("SELECT * FROM system_metering.partitions")}
    server.stop()
    run = tally("capacity", "--capture", file, "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    said = json.loads(run.stdout)
    by_table = {t: [] for t in ("shop.prepared", "shop.literal", "shop.bare")}
    for s in said["statements"]:
        by_table[s["table"]].append((s["cql"].split()[0], s["observed"], s["documented-2022"]))
    one, *others = (sorted(v, key=lambda s: s[0]) for v in by_table.values())
    assert [s[:2] for s in one] == [(verb, 3) for verb in ("BEGIN", "DELETE", "INSERT", "SELECT", "UPDATE")] and others == [one, one]
    (partitions,) = zip(*(t["busiest_partitions"] for t in said["tables"]))
    busiest = {t["table"]: (p["write_units"], p["entities"]) for t, p in zip(said["tables"], partitions)}
    assert {p["key"] for p in partitions} == {"p = 7"} and busiest == counted
    assert len(set(counted.values())) == 1


# ---- what is wrong ----

def cut(name, line):
    return "\n".join((NODETOOL / name).read_text().splitlines()[:line]) + "\n"


ONE = "statements:\n  - {cql: 'SELECT * FROM shop.orders WHERE customer = ?', rate: 1"


@pytest.mark.parametrize("workload, words", [
    ("tabels: {}\n", "w.yaml:1: unknown key 'tabels' of a workload: there are tables, statements"),
    ("tables: {shop.orders: {partition: 7}}\n", "w.yaml:1: unknown key 'partition' of a table: there are partitions, rows_per_partition, values"),
    ("tables:\n  shop.nowhere: {partitions: 7}\n", "w.yaml:2: the schema has no table shop.nowhere"),
    ("tables:\n  shop.orders: {partitions: 0.5}\n", "w.yaml:2: '0.5' is no whole number from 1 to 1000000000000"),
    ("tables: [1\n", "w.yaml:2: "), ("", "w.yaml:1: the file is empty"),
    (ONE + ", keys: zipf}\n", "w.yaml:2: keys is uniform, zipf S"), (ONE + ", colour: 1}\n", "w.yaml:2: unknown key 'colour' of a statement"),
    (ONE + ", consistency: MANY}\n", "w.yaml:2: there is no consistency level 'MANY'"), (ONE + ", rate: 2}\n", "w.yaml:2: 'rate' is there twice"),
    ("statements:\n  - {cql: SELECT 1}\n", "w.yaml:2: a statement has a rate"), ("statements:\n  - {rate: 1}\n", "w.yaml:2: a statement has cql"),
    ("statements:\n  - {cql: x, rate: {25: 1}}\n", "w.yaml:2: '25' is no time of a day"), ("statements:\n  - {cql: x, rate: -1}\n", "w.yaml:2: '-1' is no number from 0 upward"),
    ("statements:\n  - {cql: x, rate: {8: 1, 7: 1}}\n", "w.yaml:2: times go up"),
    ("statements:\n  - {cql: SELECT * FROM shop.nowhere, rate: 1}\n", "w.yaml:2: unconfigured table shop.nowhere"),
    (ONE + "}\n", "w.yaml:2: how many rows has a partition of the table? Say rows_per_partition of orders"),
    (TABLES + "statements:\n  - {cql: 'SELECT * FROM shop.orders WHERE customer = ? LIMIT ?', rate: 1}\n", "the value of a marker is not known"),
    ("tables: {shop.orders: {partitions: 7, rows_per_partition: 2}}\n" + ONE + "}\n", "w.yaml:3: how long is name (text)? Say so under values (name: size 20..400)"),
    ("tables: {shop.orders: {values: {note: length 7}}}\n", "w.yaml:1: note: 'length 7' is none of size A..B"),
    ("tables: {shop.orders: {values: {note: size 7..3}}}\n", "w.yaml:1: note: 7..3 is no range from 0 upward"),
])
def test_a_workload_that_is_wrong_is_named(files, workload, words):
    run = tally("capacity", "--schema", files.schema, "--workload", files.write("w.yaml", workload))
    assert run.returncode == 2 and not run.stdout and words in run.stderr, run.stdout + run.stderr
    said = json.loads(tally("capacity", "--schema", files.schema, "--workload", files.folder / "w.yaml", "--json").stdout)
    assert said["ok"] is False and words in said["error"]


@pytest.mark.parametrize("file, text, words", [
    ("r.csv", "customer,dya\n1,2\n", "r.csv:1: shop.orders has no column 'dya'"), ("r.csv", "customer,day,id\n1,2,3\n1,2\n", "r.csv:3: the row has 2 fields, the first line names 3 columns"),
    ("r.csv", "customer,day,id\n1,2,three\n", "r.csv:2: "), ("r.csv", "day,id\n1,2\n", "r.csv:2: the row has no customer, which is of the partition key"),
    ("r.csv", 'customer,day,id,note\n1,2,3,"open\n', "r.csv:2: a quoted field has no end"), ("r.csv", "customer,customer\n1,1\n", "r.csv:1: the column customer is there twice"),
    ("r.csv", "customer,day,id\n", "r.csv:1: there are no rows"), ("r.csv", 'customer,day,id\n1,2,"3"x\n', "r.csv:2: there is text after a quoted field"),
    ("r.json", '{"customer": 1, "day": 2}\n{"customer": 1, "day" 2}\n', "r.json:2: the row is not JSON: expected a colon at line 1, column 23 of the row"), ("r.json", "[1]", "r.json:1: a row is an object"),
    ("r.json", '[{"customer": 1, "day": 1, "id": 1}', "r.json:1: the array has no end"), ("r.json", '{"customer": 1, "what": 2}', "r.json:1: shop.orders has no column 'what'"),
    ("r.json", '\n{"customer": 1, "day": "x", "id": 1}', "r.json:2: "), ("r.json", '{"customer": 1, "day": {"a": 1}}', "r.json:1: day: Expected an int value, but got an object: {\"a\": 1}"),
    ("r.json", '{"customer": 1, "note": 5}', "r.json:1: note: Expected a UTF-8 string, but got a number: 5"),
    ("r.json", '{"customer": 1, "note": "\\x"}', "r.json:1: the row is not JSON: unknown escape sequence at line 1, column 27 of the row"),
])
def test_a_sample_that_does_not_fit_is_named(files, file, text, words):
    rows = files.write(file, text)
    for command in (["capacity"], ["capacity", "size"]):
        run = tally(*command, "--schema", files.schema, "--rows", rows, "--table", "shop.orders")
        assert run.returncode == 2 and words in run.stderr, run.stdout + run.stderr


@pytest.mark.parametrize("flag, text, words", [
    ("tablestats", cut("tablestats.txt", 20), "the figures of capacity_shop.orders lack 'Local read count': is the text cut off?"),
    ("tablestats", "hello\n", "n.txt:1: this is no line of tablestats: 'hello'"), ("tablestats", "Total number of tables: 3\n", "n.txt:1: there is no table in it"),
    ("tablestats", (NODETOOL / "tablestats.txt").read_text().replace("Local read count: 300", "Local read count: many"), "n.txt:24: a number is expected: 'Local read count: many'"),
    ("tablehistograms", cut("tablehistograms_orders.txt", 8), "n.txt:8: the line 'Max' is missing: is the text cut off?"),
    ("tablehistograms", "shop.orders\n", "n.txt:1: a line 'keyspace/table histograms' is expected"),
    ("info", cut("info.txt", 5), "n.txt:5: there is no line 'Uptime (seconds)'"), ("info", "Uptime (seconds) : -3\n", "n.txt:1: a number is expected"),
    ("status", cut("status.txt", 4), "n.txt:4: there is no node in it"), ("status", "what\n", "n.txt:1: a line 'Datacenter: ...' is expected"),
])
def test_a_capture_that_is_malformed_is_named(files, flag, text, words):
    file = files.write("n.txt", text)
    flags = {"tablestats": NODETOOL / "tablestats.txt", flag: file}
    run = tally("capacity", "--schema", files.write("captured.cql", CAPTURED), *(x for k, v in flags.items() for x in (f"--{k}", v)))
    assert run.returncode == 2 and words in run.stderr, run.stdout + run.stderr


@pytest.mark.parametrize("prices, words", [
    ("region,read_unit\nx,1\n", "p.csv:2: no line 'date,2025-11-05' says of which day the prices are"), ("date,yesterday\n", "p.csv:1: 'yesterday' is no date as 2025-11-05"),
    ("date,2025-11-05\nregion,red_unit\n", "p.csv:2: there is no price 'red_unit'"), ("date,2025-11-05\nx,1\n", "p.csv:2: a line 'region,...' names the columns"),
    ("date,2025-11-05\nregion,read_unit\nx,cheap\n", "p.csv:3: 'cheap' is no price"), ("date,2025-11-05\nregion,read_unit\nx,1\nx,2\n", "p.csv:4: the Region 'x' is there twice"),
    ("date,2025-11-05\nregion,read_unit\nx,1,2\n", "p.csv:3: there are more fields than columns: '2'"),
    ("date,2025-11-05\nregion,read_unit,write_unit\nx,1\n", "p.csv:3: there are fewer fields than columns: 'x,1'"), ("date,2025-11-05\nregion,read_unit\n", "p.csv:2: there are no prices"),
])
def test_prices_that_are_wrong_are_named(files, prices, words):
    files.write("w.yaml", "statements: []\n")
    run = tally("capacity", "--schema", files.schema, "--workload", files.folder / "w.yaml", "--prices", files.write("p.csv", prices))
    assert run.returncode == 2 and words in run.stderr, run.stdout + run.stderr


def test_unknown_regions_and_stale_prices_are_named(files):
    files.write("w.yaml", "statements: []\n")
    old = files.write("old.csv", "# prices\ndate,2019-04-01\nregion,read_unit\nx,1\n")
    flags = ["--schema", files.schema, "--workload", files.folder / "w.yaml"]
    run = tally("capacity", *flags, "--region", "us-east-1,atlantis-1")
    assert run.returncode == 2 and "--region: prices.csv has no prices of the Region 'atlantis-1'" in run.stderr
    said = tally("capacity", *flags, "--prices", old)
    assert said.returncode == 0 and re.search(r"old\.csv:2: the prices are from 2019-04-01, \d+ days old", said.stdout)
    run = tally("capacity", *flags, "--prices", old, "--price-age", 365)
    assert run.returncode == 2 and re.search(r"old\.csv:2: the prices are from 2019-04-01, \d+ days old, and --price-age allows 365", run.stderr)
    run = tally("capacity", "--schema", files.write("bad.cql", KEYSPACE + "CREATE TABEL x;\n"), "--workload", files.folder / "w.yaml")
    assert run.returncode == 2 and "bad.cql:2: " in run.stderr
