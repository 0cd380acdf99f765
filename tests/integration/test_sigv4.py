"""AWS's SigV4 plugins, unmodified and with explicit keys, log in to a server as they do to Amazon Keyspaces: docs/access.md.

A program per driver (sigv4/) takes logins from its input and says what came of each; what is right is said here.
"""
import datetime
import json
import os
import subprocess

import pytest
from cassandra.auth import PlainTextAuthProvider

from control import set_clock
from programs import Conversation
from tally_server import Server, certificates

REGION = "us-west-2"
PLUGINS = ["python", "node", "go", "java"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sigv4")
    file = folder / "credentials"
    file.write_text("user app-at-123456789012 pw\nkey UserID-1 UserSecretKey-1 app-at-123456789012\nkey UserID-2 Other app-at-123456789012 a+token/==\n")
    file.chmod(0o600)
    ca, flags = certificates(folder / "certificates")
    s = Server(folder, "--auth", "sigv4", "--credentials", file, "--region", REGION, "--control", "on", "--tls-port", "0", *flags).start()
    s.ca = ca
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module", params=PLUGINS)
def log_in(request, program, server):
    """log_in(login): what it came to, [what, words]."""
    plugin = Conversation(*program(f"sigv4-{request.param}"), server.host, server.port, server.ready["tls"].rsplit(":", 1)[1], server.ca)

    def one(login):
        plugin.say(json.dumps(login))
        return plugin.hear()

    yield one
    plugin.end()


def is_let_in(answer):
    """Or is refused in the server's words, by the class of the driver that says so."""
    if answer == ["ok", "local"]:
        return True
    assert answer[0] in ("AuthenticationFailed", "AuthenticationError", "AuthenticationException", "*errors.errorString") and "Invalid signature" in answer[1], answer
    return False


def log_in_by_password(server):
    cluster = server.cluster(auth_provider=PlainTextAuthProvider("app-at-123456789012", "pw"))
    return cluster, cluster.connect()


LOGINS = [
    # transport, region, key, secret, token, whether it is let in
    ("plain", REGION, "UserID-1", "UserSecretKey-1", "", True),
    ("tls", REGION, "UserID-1", "UserSecretKey-1", "", True),
    ("plain", REGION, "UserID-1", "UserSecretKey-1", "unasked", False),  # a key without a token takes none
    ("plain", REGION, "UserID-2", "Other", "a+token/==", True),
    ("tls", REGION, "UserID-2", "Other", "a+token/==", True),
    ("plain", REGION, "UserID-2", "Other", "", False),
    ("plain", REGION, "UserID-2", "Other", "b+token/==", False),
    ("plain", REGION, "UserID-1", "Wrong", "", False),
    ("tls", REGION, "UserID-1", "Wrong", "", False),
    ("plain", REGION, "UserID-9", "UserSecretKey-1", "", False),
    ("plain", "eu-west-1", "UserID-1", "UserSecretKey-1", "", False),
]


def test_who_signs_with_the_right_key_is_let_in(log_in):
    for *login, right in LOGINS:
        assert is_let_in(log_in(login)) is right, login


def test_a_signature_is_good_for_fifteen_minutes(log_in, server):
    cluster, session = log_in_by_password(server)
    for minutes, right in ((14, True), (16, False), (-14, True), (-16, False)):
        set_clock(session, state="running", now=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes))
        assert is_let_in(log_in(LOGINS[0][:5])) is right, minutes
    set_clock(session, state="free")
    cluster.shutdown()


def test_a_password_works_beside_signatures(server):
    cluster, session = log_in_by_password(server)
    assert session.execute("SELECT key FROM system.local").one().key == "local"
    cluster.shutdown()


CQLSHRC = """[auth_provider]
module = cassandra_sigv4.auth
classname = SigV4AuthProvider
aws_access_key_id = UserID-1
aws_secret_access_key = UserSecretKey-1
region_name = us-west-2
"""


def test_cqlsh_expansion_signs_in(server, expansion, tmp_path):
    (tmp_path / "cqlshrc").write_text(CQLSHRC)
    run = subprocess.run([expansion, server.host, str(server.port), "--cqlshrc", tmp_path / "cqlshrc", "-e", "SELECT key FROM system.local"],
                         capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"})
    assert run.returncode == 0 and "local" in run.stdout, run.stderr
