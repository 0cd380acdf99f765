"""tally explain, check and gate: prices without a server are what a server charges, what they refuse is what it refuses."""
import json
import random
import re
import struct
import subprocess
import xml.etree.ElementTree

import pytest
from cassandra import InvalidRequest
from cassandra.query import SimpleStatement

from tally_server import TALLYD, Server, create_keyspace
from test_charge_model import COLUMNS, KINDS, MAKERS, Model

TALLY = TALLYD.parent / "tally"
SCHEMA = """
-- the documentation's example
CREATE KEYSPACE shop WITH replication = {'class': 'SingleRegionStrategy'};
USE shop;
CREATE TABLE mytable (pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static,
    PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)); -- a remark; with a semicolon
"""


def tally(*arguments):
    return subprocess.run([TALLY, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def explain(schema, statement, *flags):
    run = tally("explain", "--schema", schema, "--statement", statement, "--json", *flags)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def schema(tmp_path):
    file = tmp_path / "schema.cql"
    file.write_text(SCHEMA)
    return file


def test_documented_examples_cost_what_the_documentation_says(schema):
    static = explain(schema, "INSERT INTO mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)")
    assert (static["static_bytes"], static["row_bytes"], static["units"]) == (122, 0, 1)
    both = explain(schema, "INSERT INTO mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (1, 2, 3, 4, 5, 6)")
    assert (both["static_bytes"], both["row_bytes"], both["units"]) == (122, 134, 4)
    assert "written apart" in both["advice"]
    row = explain(schema, "INSERT INTO mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1) VALUES (1, 2, 3, 4, 5)", "--size-model", "current")
    assert (row["row_bytes"], row["units"]) == (31, 1)


@pytest.mark.parametrize("where, level, kind, units", [
    ("", "LOCAL_QUORUM", "table_scan", 4),
    ("", "local_one", "table_scan", 2),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2", "LOCAL_QUORUM", "row_range", 1),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 = 4", "LOCAL_ONE", "point", 0.5),
])
def test_reads_have_their_class_and_units(schema, tmp_path, where, level, kind, units):
    data = tmp_path / "data.cql"
    data.write_text("INSERT INTO mytable (pk_col1, pk_col2, ck_col1, ck_col2) VALUES (1, 2, 3, 4);\n"
                    "BEGIN UNLOGGED BATCH INSERT INTO mytable (pk_col1, pk_col2, ck_col1, ck_col2) VALUES (1, 2, 3, 5); APPLY BATCH;\n")
    answer = explain(schema, "SELECT * FROM mytable" + where, "--data", data, "--consistency", level)
    assert (answer["query_class"], answer["units"]) == (kind, units)
    assert bool(answer["advice"]) == (kind == "table_scan")


def test_a_read_of_a_system_table_gets_neither_advice_nor_a_class_of_the_guidance(schema):
    answer = explain(schema, "SELECT * FROM system.local WHERE key = ?")
    assert answer["units"] == 0 and not answer["advice"] and "guidance" not in answer
    run = tally("explain", "SELECT * FROM system.local", "--schema", schema)
    assert run.returncode == 0 and "guidance" not in run.stdout


@pytest.mark.parametrize("where, kind, guidance", [
    ("", "table_scan", "table scan"),
    (" WHERE token(pk_col1, pk_col2) > 7", "partition_range", "partition range scan"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2", "row_range", "row range scan"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 > 3", "row_range", "row range scan"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND reg_col1 = 9 ALLOW FILTERING", "row_range", "partition scan"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 = 4", "point", "point query"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 = 4 AND reg_col1 = 9 ALLOW FILTERING", "point", "point query"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 = 3 AND ck_col2 IN (4, 5)", "point", "partition scan"),
    (" WHERE pk_col1 = 1 AND pk_col2 = 2 AND ck_col1 IN (3, 4)", "row_range", "partition scan"),
])
def test_reads_have_the_guidances_class_beside_the_payloads(schema, where, kind, guidance):
    answer = explain(schema, "SELECT * FROM mytable" + where)
    assert (answer["query_class"], answer["guidance"]["class"]) == (kind, guidance)
    assert answer["guidance"]["rating"] and answer["guidance"]["granularity"] == "multiple values"
    assert [g["name"] for g in answer["guidance"]["granularities"]] == ["single value", "multiple values", "unique values"]


def test_the_granularity_that_applies_to_a_table_is_marked(tmp_path):
    schema = tmp_path / "unique.cql"
    schema.write_text("CREATE KEYSPACE u WITH replication = {'class': 'SingleRegionStrategy'}; CREATE TABLE u.t (k int PRIMARY KEY, v int);")
    said = tally("explain", "SELECT * FROM u.t WHERE k = 1", "--schema", schema).stdout
    assert "guidance      point query: best" in said and "* unique values (each row is a partition)" in said and "* applies to t, by its key" in said
    assert said.count("\n              * ") == 2


def test_a_large_row_that_was_read_is_let_go(schema, tmp_path):
    data = tmp_path / "data.cql"
    (tmp_path / "blob.cql").write_text("CREATE KEYSPACE b WITH replication = {'class': 'SingleRegionStrategy'}; CREATE TABLE b.t (pk int PRIMARY KEY, v blob);")
    data.write_text(f"INSERT INTO b.t (pk, v) VALUES (1, 0x{'00' * 8000});")
    assert explain(tmp_path / "blob.cql", "SELECT * FROM b.t WHERE pk = 1", "--data", data)["units"] == 2


def test_pages_are_charged_each(schema, tmp_path):
    data = tmp_path / "data.cql"
    data.write_text("".join(f"INSERT INTO mytable (pk_col1, pk_col2, ck_col1, ck_col2) VALUES (1, 2, 3, {i});\n" for i in range(10)))
    answer = explain(schema, "SELECT * FROM mytable WHERE pk_col1 = 1 AND pk_col2 = 2", "--data", data, "--page-size", 3)
    assert (answer["rows_returned"], answer["units"]) == (10, answer["pages"]) and answer["pages"] in (4, 5)


@pytest.mark.parametrize("write_size", ["row", "written"])
@pytest.mark.parametrize("size_model", ["documented-2022", "current"])
def test_what_is_predicted_is_what_a_server_charges(tmp_path, size_model, write_size):
    """Random statements, one after the other: each finds what those before it left."""
    keyspace, kinds = "CREATE KEYSPACE w WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n", dict(KINDS)
    for kind, options in kinds.items():
        model, rng, statements = Model(size_model, kind), random.Random(f"{size_model} {write_size} {kind}"), []
        for _ in range(150):
            statements.append(rng.choice(MAKERS)(rng, model).text)
            if rng.random() < 0.4:
                statements.append(f"SELECT * FROM w.t WHERE pk = {rng.randrange(1, 4)}" + rng.choice(["", f" AND ck = {rng.choice([1, 22, 333])}", " AND ck > 1 AND ck < 333"]))
            if rng.random() < 0.05:
                statements.append("SELECT * FROM w.t")
        (tmp_path / "schema.cql").write_text(keyspace + f"CREATE TABLE w.t ({COLUMNS}){options};\n")
        (tmp_path / "gate.cql").write_text("".join(f"-- at most 1000000 units\n{s};\n" for s in statements))
        run = tally("gate", "--file", tmp_path / "gate.cql", "--schema", tmp_path / "schema.cql", "--size-model", size_model, "--write-size", write_size, "--json")
        predicted = [(s.get("run_as", s["statement"]), s["units"], s["error"]) for s in json.loads(run.stdout)["statements"]]
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        server = Server(folder, "--ddl-delay", "none", "--size-model", size_model, "--write-size", write_size, "--compatibility", "strict").start()
        with server.cluster(protocol_version=4) as cluster:
            session = cluster.connect()
            create_keyspace(session, "w")
            session.execute(f"CREATE TABLE w.t ({COLUMNS}){options}")
            for text, units, refused in predicted:
                future = session.execute_async(SimpleStatement(text))
                if refused:
                    with pytest.raises(InvalidRequest) as e:
                        future.result()
                    assert refused.removeprefix("refused: ") in str(e.value)
                    continue
                future.result()
                charged = struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
                assert charged == units, re.sub(r"0x\w{40,}", "0x...", text)
        server.stop()
        assert len(predicted) > 150 and sum(not refused for _, _, refused in predicted) > 100


def test_what_keyspaces_refuses_is_told_from_what_is_wrong(schema, tmp_path):
    file = tmp_path / "app.cql"
    file.write_text("SELECT count(*) FROM mytable;\n\nSELECT * FROM nowhere;\n"
                    "BEGIN BATCH\n  INSERT INTO mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 9);\nAPPLY BATCH;\n"
                    "CREATE MATERIALIZED VIEW v AS SELECT * FROM mytable WHERE pk_col1 IS NOT NULL PRIMARY KEY (pk_col1);\nSELEC;\n")
    run = tally("check", "--file", file, "--schema", schema, "--json")
    found = json.loads(run.stdout)
    assert (run.returncode, found["ok"], found["statements"]) == (1, False, 5)
    assert [(f["line"], f["refused_by"]) for f in found["refused"]] == [(1, "keyspaces"), (3, "everybody"), (7, "keyspaces"), (8, "everybody")]
    text = tally("check", "--file", file, "--schema", schema)
    assert text.returncode == 1 and f"{file}:3: wrong CQL: unconfigured table shop.nowhere" in text.stdout and text.stdout.endswith("5 statements, 4 refused\n")
    quoted = tmp_path / 'an "app".cql'
    quoted.write_text("SELECT * FROM mytable;")
    assert json.loads(tally("check", "--file", quoted, "--schema", schema, "--json").stdout)["file"] == str(quoted)
    file.write_text("SELECT * FROM mytable;")
    fine = tally("check", "--file", file, "--schema", schema)
    assert (fine.returncode, fine.stdout) == (0, "1 statements, 0 refused\n")


DUMP = """CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3};
USE shop;
CREATE TABLE orders (id int PRIMARY KEY, note text);
INSERT INTO orders (id, note) VALUES (1, 'a');
SELECT count(*) FROM orders;
SELECT * FROM nowhere;
"""


def test_a_definition_that_keyspaces_refuses_takes_effect_for_what_follows(tmp_path):
    """Dumps of Cassandra have NetworkTopologyStrategy."""
    file = tmp_path / "dump.cql"
    file.write_text(DUMP)
    found = json.loads(tally("check", "--file", file, "--json").stdout)["refused"]
    assert [(f["line"], f["refused_by"]) for f in found] == [*[(1, "keyspaces")] * 3, (5, "keyspaces"), (6, "everybody")]
    # so does one of --schema, which is not what is asked about
    (tmp_path / "q.cql").write_text("SELECT id FROM shop.orders; SELECT count(*) FROM shop.orders;")
    (tmp_path / "schema.cql").write_text("\n".join(DUMP.splitlines()[:3]))
    run = tally("check", "--file", tmp_path / "q.cql", "--schema", tmp_path / "schema.cql", "--json")
    (one,) = json.loads(run.stdout)["refused"]
    assert "count" in one["statement"]
    schema = tmp_path / "schema.cql"
    priced = tally("explain", "--schema", schema, "--statement", "SELECT id FROM shop.orders", "--json")
    assert priced.returncode == 0, priced.stdout + priced.stderr


APPLICATION = """SELECT * FROM orders WHERE customer = ?;
SELECT * FROM orders WHERE customer = :c AND day IN :days LIMIT :n;
SELECT * FROM orders WHERE customer IN (?, :other) AND day > ? AND day < :till;
INSERT INTO orders JSON ?;
UPDATE orders SET "Total" = :t, tags = tags + ?, marks[?] = :m WHERE customer = ? AND day = :day IF "Total" = :t;
BEGIN UNLOGGED BATCH INSERT INTO orders (customer, day, note) VALUES (:a, :b, ?); DELETE FROM orders WHERE customer = ? AND day = ?; APPLY BATCH;
SELECT count(*) FROM orders WHERE customer = ?;
SELECT * FROM orders WHERE "Total" = ?;
SELECT * FROM by_day WHERE day = 4;
SELECT DISTINCT customer, sum("Total") FROM orders PER PARTITION LIMIT 3;
CREATE TABLE x (a int PRIMARY KEY, b vector<float, 3>) WITH read_repair = 'NONE';
SELECT count(*) FROM orders WHERE customer = 5;
"""
REFUSED_SCHEMA = """CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3};
USE shop;
CREATE TABLE orders (customer int, day int, "Total" int, note text, tags set<text>, marks map<text, int>, PRIMARY KEY (customer, day));
CREATE INDEX by_total ON orders ("Total");
CREATE MATERIALIZED VIEW by_day AS SELECT * FROM orders WHERE day IS NOT NULL AND customer IS NOT NULL PRIMARY KEY (day, customer);
CREATE FUNCTION twice (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * a;';
"""


def test_check_takes_markers_and_names_each_fault_of_a_statement(tmp_path):
    schema, file = tmp_path / "schema.cql", tmp_path / "app.cql"
    schema.write_text(REFUSED_SCHEMA), file.write_text(APPLICATION)
    run = tally("check", "--file", file, "--schema", schema, "--json")
    said = json.loads(run.stdout)
    assert run.returncode == 1, run.stdout + run.stderr
    assert [(f["line"], f["rule"], f["count"], f["lines"]) for f in said["refused"]] == [
        (7, "aggregate", 2, [7, 12]), (8, None, 1, [8]), (9, None, 1, [9]),
        (10, "distinct", 1, [10]), (10, "per-partition-limit", 1, [10]), (10, "aggregate", 1, [10]), (10, None, 1, [10]),
        (11, "table-option", 1, [11]), (11, "data-type", 1, [11])]
    needs = {f["line"]: f["needs"] for f in said["refused"]}
    assert needs[8] == f"the index that {schema}:4 would create" and needs[9] == f"the materialized view that {schema}:5 would create" and needs[7] is None
    assert (said["statements"], said["refused_statements"]) == (12, 6)
    assert {t["table"]: (t["statements"], t["refused"], t["wrong"]) for t in said["tables"]} == {
        "shop.orders": (10, 3, 2), "shop.by_day": (1, 0, 1), "shop.x": (1, 1, 0)}
    text = tally("check", "--file", file, "--schema", schema).stdout
    assert "    2 times: lines 7, 12\n" in text and f"    it needs the index that {schema}:4 would create\n" in text
    assert re.search(r"^shop\.orders +10 +3 +2$", text, re.M) and text.endswith("12 statements, 6 refused\n")


def test_an_index_of_the_file_itself_is_a_fault_and_what_reads_need(tmp_path):
    file = tmp_path / "app.cql"
    file.write_text(REFUSED_SCHEMA + 'SELECT * FROM orders WHERE "Total" = 7;\n')
    found = json.loads(tally("check", "--file", file, "--json").stdout)["refused"]
    assert [(f["line"], f["rule"]) for f in found] == [(1, "regions"), (1, "region-name"), (1, "region-own"), (4, "secondary-index"), (5, "materialized-view"), (6, "user-function"), (7, None)]
    assert found[-1]["needs"] == f"the index that {file}:4 would create"


def test_a_schema_that_is_wrong_ends_check_for_all_that(tmp_path):
    """A table that Amazon Keyspaces would refuse, too, is not left out for another fault."""
    schema, file = tmp_path / "schema.cql", tmp_path / "app.cql"
    schema.write_text(REFUSED_SCHEMA + "CREATE TABLE y (a vector<float, 2>, b nosuch, PRIMARY KEY (b));\n"), file.write_text("SELECT * FROM shop.orders;")
    run = tally("check", "--file", file, "--schema", schema)
    assert run.returncode == 2 and f"{schema}:7: " in run.stderr


def test_markers_get_values_and_are_shown(tmp_path):
    schema = tmp_path / "schema.cql"
    schema.write_text(REFUSED_SCHEMA)
    run = tally("explain", "--schema", schema, "INSERT INTO shop.orders (customer, day, note) VALUES (?, :day, ?)")
    assert re.search(r"^run as +INSERT INTO shop.orders \(customer, day, note\) VALUES \(1, 1, '0{19}1'\)$", run.stdout, re.M), run.stdout + run.stderr
    said = explain(schema, "SELECT * FROM shop.orders WHERE customer = 1 AND day = :d")
    assert said["statement"].endswith(":d") and said["run_as"].endswith("day = 1")
    assert "run_as" not in explain(schema, "SELECT * FROM shop.orders WHERE customer = 1")
    run = tally("explain", "SELECT * FROM shop.by_day WHERE day = ?", "--schema", schema)
    assert run.returncode == 1 and run.stderr == f"tally explain: unconfigured table shop.by_day; it needs the materialized view that {schema}:5 would create\n"


@pytest.mark.parametrize("statement, run_as", [
    ("BEGIN BATCH INSERT INTO shop.orders (customer, day, note) VALUES (?, ?, ?); INSERT INTO shop.orders (customer, day) VALUES (?, ?); DELETE FROM shop.orders WHERE customer = ? AND day = ?; APPLY BATCH",
     "\\(1, 1, '0{19}1'\\).*\\(1, 2\\).*customer = 1 AND day = 3;"),
    ("BEGIN BATCH INSERT INTO shop.orders (customer, day) VALUES (:c, :d); INSERT INTO shop.orders (customer, day) VALUES (:c, :e); APPLY BATCH", "\\(1, 1\\).*\\(1, 2\\)"),
    ("BEGIN BATCH INSERT INTO shop.orders (customer, day) VALUES (?, 7); INSERT INTO shop.orders (customer, day) VALUES (?, 7); APPLY BATCH", "\\(1, 7\\).*\\(2, 7\\)"),
    ("BEGIN BATCH INSERT INTO shop.orders JSON ?; INSERT INTO shop.orders JSON ?; APPLY BATCH", '"day": "1".*"day": "2"'),
])
def test_made_up_rows_of_a_batch_differ(tmp_path, statement, run_as):
    """A logged batch cannot hold several statements on the same row: that is no fault of a batch whose keys are not known."""
    schema, file = tmp_path / "schema.cql", tmp_path / "app.cql"
    schema.write_text(REFUSED_SCHEMA), file.write_text(statement)
    assert re.search(run_as, explain(schema, statement)["run_as"])
    run = tally("check", "--file", file, "--schema", schema)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("statement, rule", [
    ("BEGIN BATCH INSERT INTO shop.orders (customer, day) VALUES (:c, :d); UPDATE shop.orders SET note = 'a' WHERE customer = :c AND day = :d; APPLY BATCH", "logged-batch-same-row"),
    ("UPDATE shop.orders SET note = ? WHERE customer = ? AND day = ? IF note IN ?", "in-write"),
])
def test_a_name_has_one_value_in_a_batch_and_the_list_of_a_condition_is_one(tmp_path, statement, rule):
    schema, file = tmp_path / "schema.cql", tmp_path / "app.cql"
    schema.write_text(REFUSED_SCHEMA), file.write_text(statement)
    assert [f["rule"] for f in json.loads(tally("check", "--file", file, "--schema", schema, "--json").stdout)["refused"]] == [rule]


@pytest.mark.parametrize("statement, partitions, advice", [
    ("SELECT * FROM shop.ev WHERE host = 'a' LIMIT 1", 1, "38 rows after the LIMIT are read and paid for: LIMIT is applied to a page that has been read. "
                                                        "With a page size of 1, the fetch size of drivers, they are not read.\n"),
    ("SELECT * FROM shop.ev WHERE host = 'a' AND at IN (1, 2, 3)", 1, ""),
    ("SELECT * FROM shop.ev WHERE host = 'a' AND at > 1000 AND at < 1005", 1, ""),
    ("SELECT * FROM shop.ev WHERE host IN ('a', 'b')", 2, ""),
    ("DELETE FROM shop.ev WHERE host = 'a'", 0, ""),
    ("INSERT INTO shop.ev (host, at, who) VALUES ('a', 7, 'me')", 0, "Static and non-static columns in one statement cost twice the units of each: "
                                                                     "written apart they cost each once.\n"),
])
def test_advice_and_partitions_are_those_of_the_statement(tmp_path, statement, partitions, advice):
    schema, data = tmp_path / "schema.cql", tmp_path / "data.cql"
    schema.write_text("CREATE KEYSPACE shop WITH replication = {'class': 'SingleRegionStrategy'};\n"
                      "CREATE TABLE shop.ev (host text, at int, msg text, who text static, PRIMARY KEY (host, at));\n")
    data.write_text("INSERT INTO shop.ev (host, who) VALUES ('a', 'me');\n" +
                    "".join(f"INSERT INTO shop.ev (host, at, msg) VALUES ('a', {i}, '{'x' * 1000}');\n" for i in range(39)))
    said = explain(schema, statement, "--data", data)
    assert (said["partitions"], said["advice"]) == (partitions, advice)
    if "LIMIT" in statement:
        assert said["units"] == 11 and explain(schema, statement, "--data", data, "--page-size", 1)["units"] == 1


def test_the_words_of_check_are_the_servers(new_server, tmp_path):
    server = new_server("--ddl-delay", "none", "--compatibility", "strict")
    statement = "SELECT DISTINCT pk FROM w.t"
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "w")
        session.execute("CREATE TABLE w.t (pk int PRIMARY KEY)")
        with pytest.raises(InvalidRequest) as e:
            session.execute(statement)
    (tmp_path / "s.cql").write_text("CREATE KEYSPACE w WITH replication = {'class': 'SingleRegionStrategy'}; CREATE TABLE w.t (pk int PRIMARY KEY);")
    (tmp_path / "q.cql").write_text(statement)
    (found,) = json.loads(tally("check", "--file", tmp_path / "q.cql", "--schema", tmp_path / "s.cql", "--json").stdout)["refused"]
    assert found["words"] in str(e.value) and found["code"] == "0x2200"


def test_a_gate_fails_what_costs_more_than_it_may(schema, tmp_path):
    file, junit = tmp_path / "gate.cql", tmp_path / "junit.xml"
    file.write_text("-- at most 1 unit\nSELECT * FROM mytable WHERE pk_col1 = 1 AND pk_col2 = 2;\n-- at most 2 units\nSELECT * FROM mytable;\n"
                    "-- at most 0.5 units\nINSERT INTO mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 9);\n"
                    "-- at most 9 units\nSELECT pk_col1 FROM mytable WHERE reg_col1 = 1;\n")
    run = tally("gate", "--file", file, "--schema", schema, "--junit", junit)
    assert run.returncode == 1 and f"{file}:4: costs 4 units, 2 more than the 2 that it may" in run.stdout
    assert "costs 1 units, 0.5 more than the 0.5 that it may" in run.stdout and f"{file}:8: refused: " in run.stdout
    suite = xml.etree.ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), len(suite.findall("testcase/failure"))) == ("4", "3", 3)
    file.write_text("-- at most 4 units\nSELECT * FROM mytable;\n-- at most 2 units at LOCAL_ONE\nSELECT * FROM mytable;\n-- at most 0.5 at one\n"
                    "SELECT * FROM mytable WHERE pk_col1 = ? AND pk_col2 = :p;\n")
    passed = tally("gate", "--file", file, "--schema", schema)
    assert passed.returncode == 0, passed.stdout + passed.stderr


@pytest.mark.parametrize("text, tests, words", [
    ("", 1, "there is no statement in the file"), ("-- at most 1 unit\n", 1, "there is no statement in the file"),
    ("-- at most 9 units\nSELECT * FROM mytable;\nSELECT * FROM mytable;\n-- at most 9 units\nSELECT * FROM mytable;\n", 3, 'there is no remark "-- at most N units" above the statement'),
    ("-- at most 9 units at MOST\nSELECT * FROM mytable;\n", 1, "there is no consistency level 'MOST'"),
])
def test_a_gate_without_a_limit_is_wrong_also_in_its_report(schema, tmp_path, text, tests, words):
    file, junit = tmp_path / "gate.cql", tmp_path / "junit.xml"
    file.write_text(text)
    run = tally("gate", "--file", file, "--schema", schema, "--junit", junit)
    assert run.returncode == 2 and str(file) in run.stderr, run.stdout + run.stderr
    suite = xml.etree.ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), [f.get("message") for f in suite.findall("testcase/failure")]) == (str(tests), [words])


@pytest.mark.parametrize("arguments, status, words", [
    (["explain"], 2, "--statement is needed"),
    (["explain", "--statement", "SELECT * FROM t", "--schema", "/nowhere"], 2, "cannot read /nowhere"),
    (["explain", "--statement", "SELECT * FROM shop.mytable", "--size-model", "old"], 2, "--size-model must be documented-2022 or current, not 'old'"),
    (["explain", "--statement", "SELECT * FROM shop.mytable", "--consistency", "MANY"], 2, "there is no level 'MANY'"),
    (["check", "--file", "/nowhere"], 2, "cannot read /nowhere"),
    (["gate"], 2, "--file is needed"),
    (["gate", "--file", "SCHEMA"], 2, "schema.cql:3: there is no remark"),
    (["gate", "--file", "SCHEMA", "--page-size", "x"], 2, "not a number: 'x'"),
])
def test_what_is_wrong_is_named(schema, arguments, status, words):
    run = tally(*[schema if a == "SCHEMA" else a for a in arguments])
    assert run.returncode == status and words in run.stderr, run.stdout + run.stderr


def test_a_schema_that_is_wrong_is_named_with_its_line(tmp_path):
    file = tmp_path / "schema.cql"
    file.write_text("CREATE KEYSPACE k WITH replication = {'class': 'SingleRegionStrategy'};\n\nCREATE TABLE k.t (p int PRIMARY KEY, v nosuch);\n")
    run = tally("explain", "SELECT * FROM k.t", "--schema", file)
    assert run.returncode == 2 and f"{file}:3: " in run.stderr and "nosuch" in run.stderr


# ---- against a server ----

@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    server = Server(folder, "--ddl-delay", "none", "--compatibility", "report").start()
    with server.cluster(protocol_version=4) as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        session.execute("CREATE TYPE shop.place (street text, zip int)")
        session.execute("CREATE TABLE shop.orders (customer int, region text, day int, total int, note text, at frozen<place>, name text static, PRIMARY KEY ((customer, region), day)) "
                        "WITH CLUSTERING ORDER BY (day DESC) AND CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}, 'ttl': {'status': 'enabled'}}")
        for i in range(40):
            session.execute(f"INSERT INTO shop.orders (customer, region, day, note) VALUES (1, 'eu', {i}, '{'x' * 900}')")
        session.execute("SELECT count(*) FROM shop.orders WHERE customer = 1 AND region = 'eu'")
        yield server, session
    server.stop()


def on(server):
    return f"{server.host}:{server.port}"


def test_a_read_is_explained_by_the_server_that_runs_it(served):
    server, session = served
    text = "SELECT * FROM shop.orders WHERE customer = 1 AND region = 'eu'"
    said = json.loads(tally("explain", "--server", on(server), "--statement", text, "--page-size", 15, "--consistency", "LOCAL_ONE", "--json").stdout)
    assert said["pages"] == 3 and [c["query_class"] for c in said["charged"]] == ["row_range"] * 3 and said["units"] == sum(c["read_units"] for c in said["charged"])
    future = session.execute_async(SimpleStatement(text))
    future.result()
    whole = json.loads(tally("explain", "--server", on(server), "--statement", text, "--json").stdout)
    assert whole["units"] == struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
    shown = tally("explain", "--server", on(server), "--statement", text).stdout
    assert re.search(r"^units +\d+ at LOCAL_QUORUM, on 1 page, charged by the server$", shown, re.M)
    limited, = json.loads(tally("explain", "--server", on(server), "--statement", f"{text} LIMIT 1", "--json").stdout)["charged"]
    assert limited["advice"].startswith("39 rows after the LIMIT are read and paid for") and "With a page size of 1," in limited["advice"]
    scan, = json.loads(tally("explain", "--server", on(server), "--statement", f"{text} AND total = 1 ALLOW FILTERING", "--json").stdout)["charged"]
    assert (scan["query_class"], scan["guidance_class"]) == ("row_range", "partition scan")


def test_a_write_is_explained_against_the_servers_schema_and_changes_nothing(served):
    server, session = served
    before = session.execute("SELECT customer FROM shop.orders").all()
    text = "INSERT INTO shop.orders (customer, region, day, at, total) VALUES (2, 'us', 7, {street: 'Elm', zip: 7}, 9)"
    said = json.loads(tally("explain", "--server", on(server), "--statement", text, "--json").stdout)
    assert session.execute("SELECT customer FROM shop.orders").all() == before
    future = session.execute_async(SimpleStatement(text), custom_payload={"capacity": b""})
    future.result()
    charged = json.loads(future.custom_payload["capacity"])
    # keys, properties and the type came over: timestamps and all
    assert (said["row_bytes"], said["units"]) == (charged["row_bytes"], charged["write_units"]) and "size-client-timestamps" in said["rules"]
    session.execute("DELETE FROM shop.orders WHERE customer = 2 AND region = 'us'")


def test_a_servers_report_is_listed_with_keyspaces_words(served):
    server, _ = served
    run = tally("check", "--server", on(server), "--json")
    said = json.loads(run.stdout)
    (use,) = [u for u in said["refused"] if u["table"] == "orders"]
    assert run.returncode == 1 and not said["ok"] and "is not yet supported" in use["words"] and use["uses"] == 1 and "count(*)" in use["statement"].lower()
    assert "shop.orders: 1 times: " in tally("check", "--server", on(server)).stdout


def test_a_servers_report_has_no_templates(served):
    """Words name what was used, as CREATE INDEX: Tally refuses one itself, and notes the use all the same."""
    server, session = served
    with pytest.raises(InvalidRequest):
        session.execute("CREATE INDEX ON shop.orders (total)")
    session.execute("CREATE TABLE shop.spans (id int PRIMARY KEY, span vector<float, 2>)")
    said = json.loads(tally("check", "--server", on(server), "--json").stdout)
    words = {u["rule"]: u["words"] for u in said["refused"]}
    tables = {u["rule"]: (u["keyspace"], u["table"]) for u in said["refused"]}
    assert tables["secondary-index"] == ("shop", "orders") and "\nshop.orders: 1 times: CREATE INDEX is not yet supported." in "\n" + tally("check", "--server", on(server)).stdout
    assert words["secondary-index"] == "CREATE INDEX is not yet supported." and "vector" in words["data-type"]
    assert not any("%" in w for w in words.values())


@pytest.mark.parametrize("arguments, words", [
    (["explain", "--statement", "SELECT * FROM t", "--server", "127.0.0.1:1"], "127.0.0.1"), (["check", "--server", "127.0.0.1:1"], "127.0.0.1"),
    (["check"], "--file is needed, or --server"), (["check", "--server", "x", "--file", "y"], "--file is needed, or --server"),
    (["explain", "--statement", "SELECT * FROM t", "--server", "127.0.0.1:1", "--schema", "s"], "--schema and --data have no effect with --server"),
])
def test_servers_that_are_not_there_are_named(arguments, words):
    run = tally(*arguments)
    assert run.returncode == 2 and words in run.stderr, run.stdout + run.stderr
