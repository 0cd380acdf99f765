"""Clients in Java as Maven Central has them: Liquibase, cassandra-migration, DSBulk, and a Spring Boot application.

The tools run in keyspaces mode as strict as Amazon Keyspaces, and in cassandra mode. The schema tools do not wait until
every table that they create is ACTIVE, so DDL takes no time here. Of DSBulk, Maven Central has load and unload, but not
count (com.datastax.oss:dsbulk-workflow-count)."""
import os
import re
import subprocess

import pytest

from programs import BRIEF, Conversation
from tally_server import HANG, ROOT, TALLYD, Server

MODES = {"keyspaces": ("--mode", "keyspaces", "--compatibility", "strict", "--ddl-delay", "none"),
         "cassandra": ("--mode", "cassandra")}
ENABLE_TTL = "WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}"


class Client:
    """A client program (Conversation) and the server that it uses, with a keyspace shop."""

    def __init__(self, server, session, command):
        self.server, self.session, self.conversation = server, session, Conversation(*command)
        self.strict = "strict" in server.flags
        self.data_center = session.execute("SELECT data_center FROM system.local").one().data_center

    def do(self, *words):
        self.conversation.say("\t".join(map(str, words)))
        return self.conversation.hear()


@pytest.fixture(scope="module", params=MODES)
def server(request, tmp_path_factory):
    """(server, session)"""
    s = Server(tmp_path_factory.mktemp("server"), *MODES[request.param]).start()
    try:
        with s.cluster() as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE shop"
                            " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            yield s, session
        assert s.alive(), f"tallyd died:\n{s.log_tail()}"
        s.stop()
    finally:
        if s.alive():
            s.kill9()


@pytest.fixture(scope="module")
def schema_tools(server, program):
    java, *rest = program("schema-tools")
    keyspaces = ["-Dliquibase.cassandra.awsKeyspacesCompatibilityModeEnabled=true"]
    client = Client(*server, [java, *(keyspaces if "strict" in server[0].flags else []), *rest])
    yield client
    client.conversation.end()


def liquibase(client, command, *arguments):
    """Returns the exit status and the output of the command line."""
    s = client.server
    options = {"compliancemode": "Liquibase", "localdatacenter": client.data_center, "consistency": "LOCAL_QUORUM",
               "requesttimeout": 1000 * HANG, "connecttimeout": 1000 * HANG}
    url = f"jdbc:cassandra://{s.host}:{s.port}/shop?" + "&".join(f"{k}={v}" for k, v in options.items())
    return client.do("liquibase", f"--url={url}", "--changelog-lock-poll-rate=0", "--analytics-enabled=false", command,
                     "--changelog-file=changelog.xml", *arguments)


def change_sets(client):
    rows = client.session.execute("SELECT id, orderexecuted FROM shop.databasechangelog")
    return [row.id for row in sorted(rows, key=lambda row: row.orderexecuted)]


def test_liquibase_updates_once_and_rolls_back(schema_tools):
    def order():
        (row,) = schema_tools.session.execute("SELECT customer, total FROM shop.orders WHERE id = 1")
        return row.customer, row.total and str(row.total)

    for ran in (4, 0):
        status, words = liquibase(schema_tools, "update")
        assert status == 0 and re.search(rf"^Run: +{ran}$", words, re.M), words
        assert change_sets(schema_tools) == ["create", "insert", "add", "update"] and order() == ("Ada", "9.5")
    status, words = liquibase(schema_tools, "rollback-count", "--count=1")
    assert status == 0 and "Rolling Back Changeset: changelog.xml::update::ada" in words, words
    assert change_sets(schema_tools) == ["create", "insert", "add"] and order() == ("Ada", None)


def test_liquibase_drops_a_column_only_in_cassandra_mode(schema_tools):
    liquibase(schema_tools, "update")
    status, words = liquibase(schema_tools, "rollback-count", "--count=2")
    if schema_tools.strict:
        assert status == 1 and "ALTER TABLE DROP is not yet supported." in words, words
    else:
        assert status == 0 and change_sets(schema_tools) == ["create", "insert"], words


def migrate(client, consensus):
    s = client.server
    return client.do("migrate", s.host, s.port, client.data_center, "shop", str(consensus).lower())


def test_cassandra_migration_applies_its_scripts_once(schema_tools):
    session, strict = schema_tools.session, schema_tools.strict
    if strict:
        what, words = migrate(schema_tools, consensus=False)
        assert what == "InvalidQueryException" and f"ALTER TABLE ... {ENABLE_TTL}" in words
        session.execute(f"ALTER TABLE shop.schema_migration_leader {ENABLE_TTL}")
    for applied in (2, 0):
        assert migrate(schema_tools, consensus=not strict) == ["applied", applied]
        assert [tuple(row) for row in session.execute("SELECT id, name, mail FROM shop.users")] == [
            (1, "Ada", "ada@example.org")]
    rows = session.execute("SELECT version, script_name FROM shop.schema_migration WHERE applied_successful = true")
    assert [tuple(row) for row in rows] == [(1, "1_users.cql"), (2, "2_mail.cql")]


@pytest.fixture(scope="module")
def dsbulk(server, program, tmp_path_factory):
    """A client with run(command, url, table, *arguments), which returns DSBulk's exit status, its output and error logs."""
    s, session = server
    client, logs = Client(s, session, program("dsbulk")), tmp_path_factory.mktemp("logs")
    settings = ["-h", s.host, "-port", s.port, "-dc", client.data_center, "-cl", "LOCAL_QUORUM", "-k", "shop",
                "--log.directory", logs, "--driver.basic.request.timeout", "2 minutes",
                "--driver.advanced.netty.io-group.shutdown.quiet-period", "0",
                "--driver.advanced.netty.admin-group.shutdown.quiet-period", "0"]

    def run(command, url, table, *arguments):
        status, words = client.do(command, "-url", url, "-t", table, *settings, *arguments)
        return status, words + "".join(log.read_text() for log in sorted(logs.glob("*/*-errors.log")))

    client.run = run
    yield client
    client.conversation.end()


def test_dsbulk_loads_and_unloads(dsbulk, tmp_path):
    """All rows have one partition key, so DSBulk makes batches of 32 rows by default; Amazon Keyspaces takes 30."""
    dsbulk.session.execute("CREATE TABLE shop.loaded"
                           " (customer text, id int, tags set<text>, total decimal, PRIMARY KEY (customer, id))")
    lines = sorted(rf'Ada,{n},"[\"a\",\"b, {n}\"]",{n}.50' for n in range(1000))
    (tmp_path / "loaded.csv").write_text("\n".join(["customer,id,tags,total", *lines]))
    unbatched = []
    if dsbulk.strict:
        status, words = dsbulk.run("load", tmp_path / "loaded.csv", "loaded")
        assert status == 2 and "Batches with more than 30 statements are not supported" in words, words
        unbatched = ["--batch.mode", "DISABLED"]
    status, words = dsbulk.run("load", tmp_path / "loaded.csv", "loaded", *unbatched)
    assert status == 0, words
    assert len(dsbulk.session.execute("SELECT id FROM shop.loaded").all()) == 1000
    status, words = dsbulk.run("unload", tmp_path / "unloaded", "loaded")
    assert status == 0, words
    files = [file.read_text().splitlines() for file in (tmp_path / "unloaded").glob("*.csv")]
    assert files and all(header == "customer,id,tags,total" for header, *_ in files)
    assert sorted(line for _, *rest in files for line in rest) == lines


def test_spring_boot_examples_tests_pass(program):
    command = [str(word) for word in program("spring-boot")]
    environment = {**os.environ, "TALLYD": str(TALLYD), "JAVA_TOOL_OPTIONS": BRIEF}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=5 * HANG, check=False)
    passed = "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in done.stdout
    assert done.returncode == 0 and passed, done.stdout + done.stderr


def test_the_page_names_the_spring_boot_example():
    page = (ROOT / "docs/testing.md").read_text()
    configuration = ROOT / "tools/package/examples/spring-boot/src/test/java/shop/TallyConfiguration.java"
    assert "(../tools/package/examples/spring-boot)" in page
    assert "TALLYD=/opt/tally/tallyd mvn test" in page and '"TALLYD"' in configuration.read_text()
