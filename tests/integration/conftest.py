"""Fixtures: a server for a module in each mode, and servers that a test starts itself. --store rados gives each of them a pool of a Ceph cluster."""
import os
import shutil

import pytest

import programs
import rados_exceptions
import stores
from ceph_cluster import cluster_in
from tally_server import TALLY, TALLYD, Server


def pytest_addoption(parser):
    parser.addoption("--store", choices=["local", "rados"], default="local", help="where the servers keep their rows: in data folders, or in a Ceph cluster of one OSD in memory")


def pytest_configure(config):
    if config.getoption("--store") == "rados":
        stores.in_use = stores.Rados()


def pytest_unconfigure():
    stores.in_use.close()


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--store") == "rados":
        terminalreporter.write_line(f"{stores.in_use.made} databases in pools of the cluster")


def pytest_collection_modifyitems(config, items):
    """An exception counts as an expected failure: neither passed nor skipped."""
    if config.getoption("--store") == "rados":
        for item in items:
            if why := rados_exceptions.reason(item.path.name, item.name):
                item.add_marker(pytest.mark.xfail(run=False, reason=why))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Keyspaces mode, the default; one for the module. v5 is offered, too: charges are tested in every version."""
    s = Server(tmp_path_factory.mktemp("server"), "--ddl-delay", "100", "--protocol", "5").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module")
def cassandra_server(tmp_path_factory):
    """Cassandra mode; one for the module."""
    s = Server(tmp_path_factory.mktemp("server"), "--mode", "cassandra").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    """The folder of a Ceph cluster with one OSD in memory; one for the module."""
    with cluster_in(tmp_path_factory.mktemp("ceph")) as folder:
        yield folder


@pytest.fixture
def new_server(tmp_path):
    """new_server(*flags): a server of the test's own, started; stopped or killed when the test ends."""
    made = []

    def make(*flags):
        made.append(Server(tmp_path, *flags).start())
        return made[-1]

    yield make
    for s in made:
        if s.process and s.alive():
            s.kill9()


@pytest.fixture(scope="session")
def program():
    """program(name): the command that runs one of programs.py. What this machine cannot make is named as not run; with CI=true it is a failure."""
    def command(name):
        try:
            return programs.program(name)
        except programs.ToolchainMissing as e:
            give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            give_up(f"not run: {e}")

    return command


@pytest.fixture(scope="session")
def package_tree(tmp_path_factory):
    """The folder that packages are made of: TALLYTEST_TREE, a relocatable tree, or the preset's programs without libraries."""
    if "TALLYTEST_TREE" in os.environ:
        return os.environ["TALLYTEST_TREE"]
    tree = tmp_path_factory.mktemp("tree")
    (tree / "bin").mkdir()
    for built in (TALLY, TALLYD):
        shutil.copy(built, tree / "bin")
    return tree


@pytest.fixture(scope="module")
def expansion():
    """cqlsh-expansion brings a cqlshlib of its own."""
    return programs.venv_program("cqlsh-expansion", "cqlsh-expansion")


@pytest.fixture(scope="module")
def aws():
    """The AWS CLI brings a botocore of its own."""
    return programs.venv_program("awscli", "aws")


@pytest.fixture
def controlled(new_server):
    """A server whose DDL and clock tests control (control.py), and a session that reads no metadata."""
    clusters = []

    def start(*flags):
        server = new_server("--control", "on", *flags)
        clusters.append(server.cluster(schema_metadata_enabled=False))
        return server, clusters[-1].connect()

    yield start
    for c in clusters:
        c.shutdown()
