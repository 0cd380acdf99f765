"""Tally through the Node, Go, Java and Rust drivers: each a program of its own folder that prints "ok NAME" per check.

A toolchain that this machine lacks is named as not run; with CI=true it is a failure.
"""
import os
import re
import shutil
import subprocess

import pytest

from tally_server import ROOT, Server, free_port, certificates

HERE = ROOT / "tests" / "integration"
BUILD = ROOT / "build" / "drivers"


FLAGS = {
    "keyspaces": ["--mode", "keyspaces", "--ddl-delay", "100", "--peers", "127.0.0.250"],  # which does not answer
    "strict": ["--mode", "keyspaces", "--ddl-delay", "100", "--compatibility", "strict", "--peers", "keyspaces"],  # nine, which do
    "cassandra": ["--mode", "cassandra"],
    "tls": ["--mode", "cassandra", "--tls-only", "on", "--tls-port", "0", "--auth", "password"],
}


@pytest.fixture(scope="module", params=FLAGS)
def either_server(request, tmp_path_factory):
    folder, ca = tmp_path_factory.mktemp("server"), None
    flags = FLAGS[request.param]
    if request.param == "tls":
        ca, more = certificates(folder / "certificates")
        flags = flags + more
    s = Server(folder, *flags).start()
    s.compatibility, s.ca = request.param, ca
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


def need(*tools):
    missing = [t for t in tools if shutil.which(t) is None]
    if not missing:
        return
    message = f"not run: no {', '.join(missing)} on this machine"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def build(folder, *command, **env):
    done = subprocess.run([str(c) for c in command], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def run(server, *command):
    env = {**os.environ, **({"TALLY_CA": str(server.ca)} if server.ca else {})}
    run_program(*command, server.host, server.port, server.compatibility, env=env)


def run_program(*command, env=None):
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=300)
    print(done.stdout)
    totals = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    assert totals, done.stdout + done.stderr
    assert done.returncode == 0 and totals[2] == "0" and int(totals[1]) >= 7, done.stdout + done.stderr


def copy(name):
    """Sources in build/, so that what the toolchains leave beside them stays out of the tree."""
    target = BUILD / name
    shutil.copytree(HERE / name, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "target"))
    return target


def test_node_driver(either_server):
    need("node", "npm")
    folder = copy("node")
    build(folder, "npm", "ci", "--silent", "--no-audit", "--no-fund")
    run(either_server, "node", folder / "driver_test.js")


def test_go_driver(either_server):
    need("go")
    folder = copy("go")
    build(folder, "go", "build", "-o", BUILD / "go-driver-test", ".")
    run(either_server, BUILD / "go-driver-test")


# 4.13.0, which the SigV4 plugin depends on, ships a native-protocol that reads the payload before the warnings; so do all up to 4.19.0.
@pytest.mark.parametrize("driver", ["org.apache.cassandra:4.19.3", "com.datastax.oss:4.13.0"])
def test_java_driver(either_server, driver):
    need("mvn", "java")
    group, version = driver.split(":")
    folder = copy("java")
    target = folder / f"target-{version}"
    build(folder, "mvn", "-q", "-B", "package", f"-Ddriver.group={group}", f"-Ddriver.version={version}", f"-Dtally.buildDir={target}")
    run(either_server, "java", f"-Dkeyspace=java_{version.replace('.', '_')}", "-cp", f"{target}/classes:{target}/lib/*", "tally.DriverTest")


def test_rust_driver(either_server):
    need("cargo")
    folder = copy("rust")
    build(folder, "cargo", "build", "--locked", "--quiet")
    run(either_server, folder / "target" / "debug" / "rust-driver-test")


def test_aws_sdk_for_go(tmp_path):
    """AWS's API of Keyspaces, not CQL: docs/control_plane.md."""
    need("go")
    folder, port = copy("goapi"), free_port()
    build(folder, "go", "build", "-o", BUILD / "go-api-test", ".")
    server = Server(tmp_path, "--api-port", str(port), "--region", "us-east-1", "--ddl-delay", "100", "--compatibility", "strict").start()
    run_program(BUILD / "go-api-test", f"http://127.0.0.1:{port}")
    server.stop()
