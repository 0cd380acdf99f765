"""TLS: the driver over an encrypted connection, the modern versions only, and the plain port beside it."""
import http.client
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from cqlsh_shell import Shell
from ports import free_port
from tally_server import ROOT, TALLY, Server, certificates, create_keyspace, create_table, eventually


@pytest.fixture
def tls(new_server, tmp_path):
    """A server with a certificate of its own; (server, host, TLS port, certificate of who signed it)."""
    ca, flags = certificates(tmp_path / "certificates")
    # v5 is offered for its segments over TLS
    server = new_server(*flags, "--tls-port", "0", "--ddl-delay", "none", "--protocol", "5")
    host, port = server.ready["tls"].rsplit(":", 1)
    return server, host, int(port), ca


def context_for(cert):
    context = ssl.create_default_context(cafile=str(cert))
    context.check_hostname = True
    return context


@pytest.mark.parametrize("version", [3, 4, 5])
def test_driver_over_tls(tls, version):
    _, host, port, cert = tls
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=300)
    with Cluster([host], port=port, protocol_version=version, ssl_context=context_for(cert), ssl_options={"server_hostname": "127.0.0.1"},
                 execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=300) as cluster:
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


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_every_port_takes_tls_1_2_and_later(api_tls, version):
    server, api, ca = api_tls
    cql = int(server.ready["tls"].rsplit(":", 1)[1])
    for port in (cql, api):
        context = context_for(ca)
        context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")

        def shake():
            with socket.create_connection(("127.0.0.1", port), 300) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as s:
                return s.version()

        if version >= ssl.TLSVersion.TLSv1_2:
            assert shake() == version.name.replace("_", ".")
        else:
            with pytest.raises((ssl.SSLError, OSError)):
                shake()


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
    done = subprocess.run([str(server.process.args[0]), "--data-dir", str(tmp_path / "other"), "--port", "0", "--admin-port", "0", "--api-port", "0", "--tls-key",
                           str(tmp_path / "certificates" / "server-key.pem")], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "--tls-cert" in done.stderr + done.stdout


# ---- TLS only ----

def test_without_a_plain_port_the_driver_finds_its_way(new_server, tmp_path):
    ca, flags = certificates(tmp_path / "certificates")
    s = new_server(*flags, "--tls-port", "0", "--tls-only", "on")
    assert s.ready["cql"] == "off"
    with s.cluster(ssl_context=context_for(ca), ssl_options={"server_hostname": "127.0.0.1"}) as cluster:
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"
    with open(f"/proc/{s.process.pid}/net/tcp") as table:
        inodes = {os.readlink(f"/proc/{s.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{s.process.pid}/fd") if os.path.islink(f"/proc/{s.process.pid}/fd/{fd}")}
        listening = {int(line.split()[1].split(":")[1], 16) for line in list(table)[1:] if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in inodes}
    assert listening == {s.port}


@pytest.mark.parametrize("flags, words", [(["--tls-only", "on"], "--tls-only needs TLS"), (["--tls-client-cert", "required"], "--tls-client-cert needs TLS")])
def test_settings_of_tls_without_tls_are_refused(tls, flags, words):
    server, *_ = tls
    done = subprocess.run([str(server.binary), "--check-config", *flags], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and words in done.stderr


# ---- certificates of clients ----

def answers(host, port, context):
    """One OPTIONS over TLS: does the server take this client?"""
    with socket.create_connection((host, port), 10) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as s:
        s.sendall(b"\x04\x00\x00\x00\x05\x00\x00\x00\x00")
        return s.recv(5)[4:5] == b"\x06"


def client_context(ca, folder=None):
    context = context_for(ca)
    if folder:
        context.load_cert_chain(folder / "client.pem", folder / "client-key.pem")
    return context


@pytest.mark.parametrize("ask", ["optional", "required"])
def test_certificates_of_clients_are_checked(new_server, tmp_path, ask):
    ca, flags = certificates(tmp_path / "certificates")
    certificates(tmp_path / "strangers")
    s = new_server(*flags, "--tls-port", "0", "--tls-only", "on", "--tls-client-cert", ask, "--tls-client-ca", str(ca))
    assert answers(s.host, s.port, client_context(ca, tmp_path / "certificates"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        answers(s.host, s.port, client_context(ca, tmp_path / "strangers"))
    if ask == "optional":
        assert answers(s.host, s.port, client_context(ca))
    else:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            answers(s.host, s.port, client_context(ca))
    with s.cluster(ssl_context=client_context(ca, tmp_path / "certificates"), ssl_options={"server_hostname": "127.0.0.1"}) as cluster:
        assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"


def test_a_client_certificate_needs_somebody_to_trust(tls):
    server, _, _, ca = tls
    folder = ca.parent
    done = subprocess.run([str(server.binary), "--check-config", "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server-key.pem"),
                           "--tls-client-cert", "required"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "needs --tls-client-ca" in done.stderr


# ---- other files while it runs ----

def serial(host, port, context):
    with socket.create_connection((host, port), 10) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as s:
        return s.getpeercert()["serialNumber"]


@pytest.mark.parametrize("told", [True, False], ids=["SIGHUP", "files"])
def test_a_new_certificate_is_taken_and_open_connections_go_on(tls, tmp_path, told):
    server, host, port, ca = tls
    other, _ = certificates(tmp_path / "other")
    either = context_for(ca)
    either.load_verify_locations(cafile=str(other))
    before = serial(host, port, either)
    with Cluster([host], port=port, ssl_context=context_for(ca), ssl_options={"server_hostname": "127.0.0.1"}, connect_timeout=300) as cluster:
        session = cluster.connect()
        for name in ("server.pem", "server-key.pem"):
            shutil.copy(tmp_path / "other" / name, ca.parent / name)
        if told:
            server.process.send_signal(signal.SIGHUP)
        eventually(lambda: serial(host, port, either) != before)
        for _ in range(20):
            assert session.execute("SELECT key FROM system.local").one().key == "local"
        assert cluster.metadata.get_host(host, port).is_up
    assert "new connections get the certificate" in server.log.read_text()


@pytest.fixture
def api_tls(tmp_path):
    """A server with its API over TLS: (server, API's TLS port, certificate of who signed it)."""
    ca, flags = certificates(tmp_path / "certificates")
    port = free_port()
    server = Server(tmp_path, *flags, "--tls-port", "0", "--api-port", str(free_port()), "--api-tls-port",
                    str(port)).start()
    yield server, port, ca
    if server.alive():
        server.stop()


def replace(folder, other):
    for name in ("server.pem", "server-key.pem"):
        shutil.copy(other / name, folder / name)


def api_answers(connection):
    connection.request("POST", "/", b"{}", {"Content-Type": "application/x-amz-json-1.0",
                                            "X-Amz-Target": "KeyspacesService.ListKeyspaces"})
    return connection.getresponse().read().startswith(b'{"keyspaces"')


@pytest.mark.parametrize("told", [True, False], ids=["SIGHUP", "files"])
def test_the_api_takes_a_new_certificate_and_open_connections_go_on(api_tls, tmp_path, told):
    server, port, ca = api_tls
    other, _ = certificates(tmp_path / "other")
    either = context_for(ca)
    either.load_verify_locations(cafile=str(other))
    before = serial("127.0.0.1", port, either)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=300, context=context_for(ca))
    assert api_answers(connection)
    open_one = connection.sock
    replace(ca.parent, tmp_path / "other")
    if told:
        server.process.send_signal(signal.SIGHUP)
    eventually(lambda: serial("127.0.0.1", port, either) != before)
    cql_port = int(server.ready["tls"].rsplit(":", 1)[1])
    assert serial("127.0.0.1", port, context_for(other)) == serial(server.host, cql_port, context_for(other))
    assert api_answers(connection) and connection.sock is open_one
    assert api_answers(http.client.HTTPSConnection("127.0.0.1", port, timeout=300, context=context_for(other)))
    connection.close()


def test_the_api_keeps_its_certificate_when_the_new_one_is_of_no_use(api_tls, tmp_path):
    server, port, ca = api_tls
    certificates(tmp_path / "other")
    before = serial("127.0.0.1", port, context_for(ca))
    shutil.copy(tmp_path / "other" / "server.pem", ca.parent / "server.pem")  # whose key is another
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "connections go on with the certificate that was there" in server.log.read_text())
    assert serial("127.0.0.1", port, context_for(ca)) == before


@pytest.mark.parametrize("name", ["server.pem", "server-key.pem", "ca.pem"])
def test_a_pipe_in_place_of_a_certificate_holds_up_nothing(new_server, tmp_path, name):
    ca, flags = certificates(tmp_path / "certificates")
    s = new_server(*flags, "--tls-port", "0", "--tls-client-cert", "optional", "--tls-client-ca", str(ca),
                   "--api-port", str(free_port()), "--api-tls-port", str(free_port()))
    (ca.parent / name).unlink()
    os.mkfifo(ca.parent / name)
    s.process.send_signal(signal.SIGHUP)
    eventually(lambda: f"cannot read {ca.parent / name}: it is not a regular file" in s.log.read_text())
    s.stop()
    done = subprocess.run([str(s.binary), "--data-dir", str(tmp_path / "other"), *flags, "--tls-client-cert",
                           "optional", "--tls-client-ca", str(ca)], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and "it is not a regular file" in done.stderr


def test_an_encrypted_key_is_refused_and_no_passphrase_asked_for(tls, tmp_path):
    server, host, port, ca = tls
    before = serial(host, port, context_for(ca))
    key, encrypted = ca.parent / "server-key.pem", tmp_path / "encrypted.pem"
    subprocess.run(["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", encrypted],
                   check=True, capture_output=True)
    shutil.copy(encrypted, key)
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "connections go on with the certificate that was there" in server.log.read_text())
    assert serial(host, port, context_for(ca)) == before
    server.stop()


def test_a_certificate_of_no_use_changes_nothing_but_the_log(tls):
    server, host, port, ca = tls
    before = serial(host, port, context_for(ca))
    (ca.parent / "server.pem").write_text("no certificate\n")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "connections go on with the certificate that was there" in server.log.read_text())
    assert serial(host, port, context_for(ca)) == before


# ---- tally cert ----

def test_the_key_is_nobody_elses_and_nothing_is_overwritten(tmp_path):
    folder = tmp_path / "made"
    certificates(folder, "--host", "db.example,10.1.2.3", "--days", "3")
    assert stat.S_IMODE((folder / "server-key.pem").stat().st_mode) == stat.S_IMODE((folder / "client-key.pem").stat().st_mode) == 0o600
    assert not list(folder.glob("ca-key*"))
    text = subprocess.run(["openssl", "x509", "-in", folder / "server.pem", "-noout", "-ext", "subjectAltName"], capture_output=True, text=True).stdout
    assert "DNS:db.example, IP Address:10.1.2.3" in text
    again = subprocess.run([str(TALLY), "cert", "--to", str(folder)], capture_output=True, text=True)
    assert again.returncode == 1 and "ca.pem: File exists" in again.stderr


# ---- cqlsh ----

@pytest.mark.parametrize("which", ["cqlsh", "cqlsh-expansion"])
def test_cqlsh_over_tls(new_server, tmp_path, monkeypatch, request, which):
    program = ROOT / "build" / "venv" / "bin" / "cqlsh" if which == "cqlsh" else request.getfixturevalue("expansion")
    ca, flags = certificates(tmp_path / "certificates")
    s = new_server("--mode", "cassandra", *flags, "--tls-port", "0", "--tls-only", "on", "--auth", "password")
    monkeypatch.setenv("SSL_CERTFILE", str(ca))
    shell = Shell(program, s, tmp_path, "--ssl", "-u", "cassandra", "-p", "cassandra")
    assert "local" in shell.do("SELECT key FROM system.local;")
    assert shell.leave() == 0
