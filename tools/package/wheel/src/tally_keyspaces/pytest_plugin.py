"""Fixtures: keyspaces_server, a server for the session, and keyspaces_session, a keyspace for each test.

With pytest-xdist each worker is a process with a session of its own, and so has a server of its own on free ports.
"""
import uuid
from typing import TYPE_CHECKING, Iterator

import pytest

from .client import wait_active
from .server import Server

if TYPE_CHECKING:
    from cassandra.cluster import Cluster, Session

OPTIONS = {
    "mode": ("service to emulate: keyspaces or cassandra", "keyspaces"),
    "flags": ("settings of tallyd for keyspaces_server, such as '--limits enforce --ddl-delay none'", ""),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tally-keyspaces")
    for name, (help_text, default) in OPTIONS.items():
        group.addoption(f"--keyspaces-{name}", help=help_text)
        parser.addini(f"keyspaces_{name}", help=help_text, default=default)


def setting(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"keyspaces_{name}")
    return str(config.getini(f"keyspaces_{name}") if given is None else given)


@pytest.fixture(scope="session")
def keyspaces_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A tally_keyspaces.Server in memory: .host, .port, .admin, .api, .cluster()."""
    with Server(setting(pytestconfig, "mode"), setting(pytestconfig, "flags")) as server:
        yield server


@pytest.fixture(scope="session")
def keyspaces_cluster(keyspaces_server: Server) -> "Iterator[Cluster]":
    """The Cluster of keyspaces_session."""
    with keyspaces_server.cluster() as cluster:
        yield cluster


@pytest.fixture
def keyspaces_session(keyspaces_cluster: "Cluster") -> "Iterator[Session]":
    """A session of cassandra-driver in a new keyspace, which is ACTIVE. The keyspace is dropped after the test."""
    keyspace = f"test_{uuid.uuid4().hex[:16]}"
    session = keyspaces_cluster.connect()
    session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    wait_active(session, keyspace)
    session.set_keyspace(keyspace)
    yield session
    session.execute(f"DROP KEYSPACE {keyspace}")
    session.shutdown()
