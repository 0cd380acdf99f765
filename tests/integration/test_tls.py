"""TLS: the driver over an encrypted connection, the modern versions only, and the plain port beside it."""
import socket
import ssl
import subprocess

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from tally_server import create_keyspace, create_table


@pytest.fixture
def tls(new_server, tmp_path):
    """A server with a certificate of its own; (server, host, TLS port, certificate)."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    server = new_server("--tls-cert", str(cert), "--tls-key", str(key), "--tls-port", "0", "--ddl-delay", "none")
    host, port = server.ready["tls"].rsplit(":", 1)
    return server, host, int(port), cert


def context_for(cert):
    context = ssl.create_default_context(cafile=str(cert))
    context.check_hostname = True
    return context


@pytest.mark.parametrize("version", [3, 4, 5])
def test_driver_over_tls(tls, version):
    _, host, port, cert = tls
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=30)
    with Cluster([host], port=port, protocol_version=version, ssl_context=context_for(cert), ssl_options={"server_hostname": "127.0.0.1"},
                 execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=20) as cluster:
        session = cluster.connect()
        create_keyspace(session, "secret")
        create_table(session, "secret", "t", "k int PRIMARY KEY, v text")
        large = "x" * 300_000  # many TLS records, and more than one v5 segment
        insert = session.prepare("INSERT INTO secret.t (k, v) VALUES (?, ?)")
        for k in range(5):
            session.execute(insert, (k, large))
        rows = {r.k: r.v for r in session.execute("SELECT k, v FROM secret.t")}
        assert rows == {k: large for k in range(5)}


def test_old_tls_versions_are_refused(tls):
    server, host, port, cert = tls
    context = context_for(cert)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, OSError)):
        with socket.create_connection((host, port), 5) as plain:
            context.wrap_socket(plain, server_hostname="127.0.0.1")
    assert server.alive()


def test_plain_bytes_on_the_tls_port_harm_nobody(tls):
    server, host, port, cert = tls
    with socket.create_connection((host, port), 5) as s:
        s.sendall(b"\x04\x00\x00\x00\x05\x00\x00\x00\x00" * 100)
        s.settimeout(15)
        try:
            while s.recv(4096):
                pass
        except ConnectionResetError:
            pass
    with server.cluster() as cluster:
        assert cluster.connect().execute("SELECT release_version FROM system.local").one()


def test_a_key_without_its_certificate_is_refused(tls, tmp_path):
    server, *_ = tls
    done = subprocess.run([str(server.process.args[0]), "--data-dir", str(tmp_path / "other"), "--port", "0", "--admin-port", "0", "--tls-key",
                           str(tmp_path / "key.pem")], capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "--tls-cert" in done.stderr + done.stdout
