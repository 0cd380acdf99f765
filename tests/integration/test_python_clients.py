"""Clients in Python that bring libraries of their own, as their registry has them.

AWS's MCP server for Amazon Keyspaces answers MCP requests on its standard input by CQL requests to Tally. It has two ways to connect, and
the tests use both: to Amazon Keyspaces (TLS, always port 9142), and to any server that speaks CQL (an address and a port).

LangChain's classes (langchain/stores.py) work as far as they need no index: Tally has none, as Amazon Keyspaces."""
import contextlib
import json
import os
import re
import sys

import pytest
from cassandra.auth import PlainTextAuthProvider

import programs
from tally_server import ROOT, Server, await_active, certificates, create_keyspace, create_table

USER, PASSWORD = "mcp-at-123456789012", "pw"


def own_address():
    """A loopback address that no other process of tests uses, because the MCP server fixes the port."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


@contextlib.contextmanager
def running(server):
    """Starts the server and stops it in the end; kills it when the fixture or its use fails."""
    server.start()
    try:
        yield server
        assert server.alive(), f"tallyd died:\n{server.log_tail()}"
        server.stop()
    finally:
        if server.alive():
            server.kill9()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcp")
    file = folder / "credentials"
    file.write_text(f"user {USER} {PASSWORD}\n")
    file.chmod(0o600)
    ca, flags = certificates(folder / "certificates")
    s = Server(folder, "--listen", own_address(), "--tls-port", "9142", *flags, "--auth", "sigv4", "--credentials", file, "--compatibility", "strict",
               "--ddl-delay", "100")
    s.ca = ca
    with running(s):
        with s.cluster(auth_provider=PlainTextAuthProvider(USER, PASSWORD), schema_metadata_enabled=False) as cluster:
            fill(cluster.connect())
        yield s


def fill(session):
    create_keyspace(session, "shop")
    create_table(session, "shop", "orders", "customer text, at timestamp, total decimal, notes map<text, text>, PRIMARY KEY (customer, at)")
    session.execute("CREATE TABLE shop.stock (item int PRIMARY KEY, pieces int) WITH CUSTOM_PROPERTIES = "
                    "{'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}")
    await_active(session, "shop", "stock")
    for day in range(1, 26):
        session.execute(f"INSERT INTO shop.orders (customer, at, total) VALUES ('Ada', '2024-01-{day:02}', {day}.50)")
    session.execute("INSERT INTO shop.orders (customer, at, notes) VALUES ('Bob', '2024-02-01', {'door': 'red'})")


class Tools:
    """A conversation with the MCP server: JSON-RPC 2.0, one message per line."""

    def __init__(self, home):
        command = programs.venv_program("keyspaces-mcp", "awslabs.amazon-keyspaces-mcp-server")
        self.conversation = programs.Conversation("env", f"HOME={home}", command)
        self.asked = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tally's tests", "version": "1"}}
        self.ask("initialize", client)
        self.say({"method": "notifications/initialized"})

    def say(self, message):
        self.conversation.say(json.dumps({"jsonrpc": "2.0", **message}))

    def ask(self, method, parameters):
        self.asked += 1
        self.say({"id": self.asked, "method": method, "params": parameters})
        answer = self.conversation.hear()
        while answer.get("id") != self.asked:  # skips notifications
            answer = self.conversation.hear()
        return answer["result"]

    def call(self, name, **arguments):
        """Returns (whether the tool succeeded, the text that a model gets)."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        (content,) = result["content"]
        return not result["isError"], content["text"]


def mcp_server(home, settings):
    """The MCP server with its settings file in the home folder, as its documentation says."""
    if sys.version_info >= (3, 12):
        pytest.skip("not run: the MCP server needs a Python before 3.12")
    (home / ".keyspaces-mcp").mkdir(exist_ok=True)
    (home / ".keyspaces-mcp" / "env").write_text(settings)
    return Tools(home)


@pytest.fixture(scope="module", params=["keyspaces", "cassandra"])
def tools(request, server, tmp_path_factory):
    """The MCP server, connected to the module's server in one of its two ways."""
    home = tmp_path_factory.mktemp("home")
    settings = {"DB_USE_KEYSPACES": str(request.param == "keyspaces").lower(), "DB_KEYSPACES_ENDPOINT": server.host, "DB_KEYSPACES_REGION": "us-east-1",
                "DB_CASSANDRA_CONTACT_POINTS": server.host, "DB_CASSANDRA_PORT": server.port, "DB_CASSANDRA_LOCAL_DATACENTER": "us-east-1",
                "DB_CASSANDRA_USERNAME": USER, "DB_CASSANDRA_PASSWORD": PASSWORD}
    certificate = home / ".keyspaces-mcp/certs/sf-class2-root.crt"
    certificate.parent.mkdir(parents=True)
    certificate.write_bytes(server.ca.read_bytes())
    made = mcp_server(home, "".join(f"{k}={v}\n" for k, v in settings.items()))
    yield made
    made.conversation.end()


def test_mcp_server_lists_and_describes_the_schema(tools):
    assert [t["name"] for t in tools.ask("tools/list", {})["tools"]] == [
        "listKeyspaces", "listTables", "describeKeyspace", "describeTable", "executeQuery", "analyzeQueryPerformance"]
    good, text = tools.call("listKeyspaces")
    assert good and {"- `shop`", "- `system`", "- `system_schema_mcs`"} <= set(text.splitlines())
    good, text = tools.call("listTables", keyspace="shop")
    assert good and [line for line in text.splitlines() if line.startswith("- `")] == ["- `orders`", "- `stock`"]
    good, text = tools.call("describeKeyspace", keyspace="shop")
    assert good and "**Strategy**: `org.apache.cassandra.locator.SimpleStrategy`" in text and "**Durable Writes**: `True`" in text
    good, text = tools.call("describeTable", keyspace="shop", table="orders")
    assert good and [line for line in text.splitlines() if line.startswith("| `")] == [
        "| `at` | `timestamp` | `clustering` |", "| `customer` | `text` | `partition_key` |", "| `notes` | `map<text, text>` | `regular` |",
        "| `total` | `decimal` | `regular` |"]
    assert tools.call("describeTable", keyspace="shop", table="stock")[0]
    assert tools.call("describeTable", keyspace="shop", table="nosuch") == (
        False, "Error executing tool describeTable: Error describing table: Failed to describe table shop.nosuch: Table not found: shop.nosuch")
    good, text = tools.call("describeKeyspace", keyspace="nosuch")
    assert not good and "Keyspace not found: nosuch" in text


def test_mcp_server_runs_queries(tools):
    good, text = tools.call("executeQuery", keyspace="shop", query="SELECT * FROM orders WHERE customer = 'Ada'")
    assert good and "**Row Count:** 25" in text and "Showing 20 of 25 total rows" in text
    assert "| Ada | 2024-01-02 00:00:00 | null | 2.50 |" in text.splitlines()
    good, text = tools.call("executeQuery", keyspace="shop", query="SELECT notes FROM shop.orders WHERE customer = 'Bob'")
    assert good and "| {'door': 'red'} |" in text.splitlines()
    good, text = tools.call("executeQuery", keyspace="system_schema_mcs", query="SELECT table_name, status FROM tables WHERE keyspace_name = 'shop'")
    assert good and {"| orders | ACTIVE |", "| stock | ACTIVE |"} <= set(text.splitlines())
    good, text = tools.call("executeQuery", keyspace="shop", query="SELECT * FROM stock WHERE item = 1")
    assert good and "No rows returned." in text


@pytest.mark.parametrize("query, words", [
    ("SELECT * FROM orders WHERE total = 3", "use ALLOW FILTERING"),
    ("SELECT count(*) FROM orders", "countRows is not yet supported"),
    ("SELECT nosuch FROM orders", "Undefined column name nosuch"),
    ("SELECT * FROM nosuch", "unconfigured table shop.nosuch")])
def test_mcp_server_passes_refusals_on(tools, query, words):
    good, text = tools.call("executeQuery", keyspace="shop", query=query)
    assert not good and words in text


def test_mcp_server_analyses_queries(tools):
    good, text = tools.call("analyzeQueryPerformance", keyspace="shop", query="SELECT * FROM orders WHERE customer = 'Ada'")
    assert good and "**Table:** `orders`" in text and "EFFICIENT PARTITION KEY USAGE" in text and "ALLOW FILTERING:" not in text
    good, text = tools.call("analyzeQueryPerformance", keyspace="shop", query="SELECT * FROM orders WHERE total = 3 ALLOW FILTERING")
    assert good and "WARNING - ALLOW FILTERING" in text
    good, text = tools.call("analyzeQueryPerformance", keyspace="shop", query="SELECT * FROM nosuch")
    assert good and "Table 'nosuch' not found in keyspace 'shop'" in text


def test_mcp_server_works_in_cassandra_mode_with_the_settings_of_the_documentation(cassandra_server, tmp_path):
    (settings,) = re.findall(r"^```\n(DB_USE_KEYSPACES=.*?)^```", (ROOT / "docs/connecting.md").read_text(), re.M | re.S)
    made = mcp_server(tmp_path, settings.replace("9042", str(cassandra_server.port)))
    good, text = made.call("executeQuery", keyspace="system", query="SELECT data_center FROM local")
    assert good and "| datacenter1 |" in text.splitlines()
    made.conversation.end()


@pytest.fixture(scope="module", params=["keyspaces", "cassandra"])
def langchain(request, tmp_path_factory, program):
    """step(name): what the step of stores.py returned. LangChain does not wait until its tables are ACTIVE, so they are at once."""
    strict = request.param == "keyspaces"
    flags = ("--compatibility", "strict") if strict else ()
    with running(Server(tmp_path_factory.mktemp("langchain"), "--mode", request.param, "--ddl-delay", "none", *flags)) as s, s.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE chat WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        stores = programs.Conversation(*program("langchain"), s.host, s.port, "chat")

        def step(name):
            stores.say(name)
            what, value = stores.hear()
            return value if what == "ok" else (what, value)

        step.strict, step.session = strict, session
        yield step
        stores.end()


def refused(words):
    return "InvalidRequest", f'Error from server: code=2200 [Invalid query] message="{words}"'


TALK = [["human", "Where is my order?"], ["ai", "On its way."]]
NO_INDEX = "CREATE INDEX is not yet supported."


def test_langchain_chat_history(langchain):
    assert langchain("chat_history") == TALK
    assert langchain("chat_history_async") == TALK
    assert langchain("chat_history_cleared") == []


def test_langchain_byte_store_and_loader(langchain):
    assert langchain("byte_store") == [["two", None, "one"], ["a/1", "a/2"]]
    assert langchain("loader") == ["a/1", "a/2", "b/1"]
    markdown, rows = langchain("database")
    assert "### Table Name: bytes" in markdown and "- row_id (text)" in markdown and "b'three'" in rows
    deleted = langchain("byte_store_delete")
    assert deleted == (refused("IN is not yet supported in DELETE. Send a statement for each key.") if langchain.strict else ["b/1"])


def test_langchain_llm_cache(langchain):
    assert langchain("llm_cache") == ["answer", None]
    if langchain.strict:
        what, words = langchain("llm_cache_with_ttl")
        assert what == "InvalidRequest" and "ALTER TABLE ... WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}" in words
        langchain.session.execute("ALTER TABLE chat.langchain_llm_cache WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}")
    assert langchain("llm_cache_with_ttl") == ["answer", None]
    cleared = langchain("llm_cache_clear")
    assert cleared == (refused("TRUNCATE cannot be prepared. Send it as a simple statement.") if langchain.strict else None)


def test_langchain_vector_stores_work_only_without_an_index(langchain):
    if langchain.strict:
        no_type = refused("vector is not yet supported. Store it as text or blob.")
        assert langchain("vector_store") == langchain("semantic_cache") == no_type
        what, words = langchain("unindexed_store")  # the store's own session is at LOCAL_ONE
        assert what == "InvalidRequest" and "Supported consistency levels are: LOCAL_QUORUM" in words
        return
    assert langchain("vector_store") == langchain("semantic_cache") == refused(NO_INDEX)
    assert langchain("vector_store_documents") == "red"
    assert langchain("vector_store_search") == refused("ANN ordering is not yet supported.")
    assert langchain("unindexed_store") == ["green", 1, 2]
