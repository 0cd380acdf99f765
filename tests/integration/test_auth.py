"""Logins and roles: passwords and AWS signatures through real drivers, and every statement about roles as Cassandra answered it."""
import ast
import os
import random
import socket
import struct
import subprocess

import pytest
from cassandra import AuthenticationFailed, ConsistencyLevel, InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ServerError
from cassandra.query import SimpleStatement

from control import drop_rule, objects, release, set_rule
from tally_server import ROOT, TALLYD, Server, create_keyspace, eventually


def log_in(server, name, password, **options):
    cluster = server.cluster(auth_provider=PlainTextAuthProvider(name, password), **options)
    return cluster, cluster.connect()


def refused_login(server, name, password):
    with pytest.raises(NoHostAvailable) as e:
        log_in(server, name, password)
    (error,) = e.value.errors.values()
    assert isinstance(error, AuthenticationFailed)
    return str(error)


def credentials(tmp_path, *lines, mode=0o600):
    file = tmp_path / "credentials"
    file.write_text("\n".join(lines) + "\n")
    file.chmod(mode)
    return file


# ---- every statement ----

def answer(session, statement):
    """As the recorded files have it: the first twelve rows, or the error."""
    try:
        rows = session.execute(statement)
        return f"OK   {statement} -> {rows.column_names} {[tuple(r) for r in rows][:12]}"
    except Exception as e:  # noqa: BLE001: whatever the driver makes of the answer is what is compared
        return f"ERR  {statement} -> {type(e).__name__} {e}"[:len(f"ERR  {statement} -> {type(e).__name__} ") + 300]


@pytest.mark.parametrize("recorded", ["roles.recorded", "permissions.recorded"])
def test_statements_answer_as_cassandra_answered(new_server, recorded):
    """What Apache Cassandra 5.0.8 with PasswordAuthenticator and CassandraAuthorizer answered, in this order: statements about roles; and of each kind of statement
    some by one who may do nothing, on what is there and what is not, sound and faulty."""
    s = new_server("--mode", "cassandra", "--auth", "password")
    session, clusters, checked = None, [], 0
    for line in (ROOT / "tests" / "integration" / recorded).read_text().splitlines():
        if line.startswith("--- login failed"):
            who, words = line.removeprefix("--- login failed ").split("] ", 1)
            assert words in refused_login(s, *ast.literal_eval(who + "]"))
        elif line.startswith("--- login"):
            cluster, session = log_in(s, *ast.literal_eval(line.removeprefix("--- login ")), protocol_version=5)
            clusters.append(cluster)
        else:
            statement = line[5:].split(" -> ", 1)[0]
            assert answer(session, statement)[:415] == line[:415]
        checked += 1
    assert checked > 180
    for cluster in clusters:
        cluster.shutdown()
    s.stop()


def test_identities_of_certificates_are_kept_as_cassandra_keeps_them(new_server):
    """Words, rights and their order: those of Cassandra 5.0.8's AddIdentityStatement and DropIdentityStatement; without a login, what it answered."""
    s = new_server("--mode", "cassandra", "--auth", "password")
    cluster, root = log_in(s, "cassandra", "cassandra")
    for statement in ("CREATE ROLE app WITH PASSWORD = 'x' AND LOGIN = true", "CREATE ROLE boss WITH SUPERUSER = true", "CREATE ROLE other",
                      "ADD IDENTITY 'spiffe://one' TO ROLE 'app'", "ADD IDENTITY IF NOT EXISTS 'spiffe://one' TO ROLE 'other'", "ADD IDENTITY 'spiffe://two' TO ROLE app",
                      "ADD IDENTITY 'admin' TO ROLE 'boss'"):
        root.execute(statement)
    for statement, words in (("ADD IDENTITY 'x' TO ROLE 'nobody'", "Can not add identity for non-existent role 'nobody'"), ("ADD IDENTITY 'admin' TO ROLE 'app'", "admin already exists"),
                             ("DROP IDENTITY 'gone'", "identity 'gone' doesn't exist")):
        with pytest.raises(InvalidRequest, match=words):
            root.execute(statement)
    root.execute("DROP IDENTITY IF EXISTS 'gone'")
    app_cluster, app = log_in(s, "app", "x")
    for statement in ("ADD IDENTITY 'x' TO ROLE 'other'", "DROP IDENTITY 'admin'"):
        with pytest.raises(Unauthorized, match="User app does not have sufficient privileges to perform the requested operation"):
            app.execute(statement)
    root.execute("GRANT ALL PERMISSIONS ON ALL ROLES TO app")
    with pytest.raises(Unauthorized, match="Only superusers can bind identities to a role with superuser status"):
        app.execute("ADD IDENTITY 'y' TO ROLE 'boss'")
    with pytest.raises(Unauthorized, match="Only superusers can remove identity bindings from a role with superuser status"):
        app.execute("DROP IDENTITY 'admin'")
    app.execute("ADD IDENTITY 'three' TO ROLE 'other'")
    app_cluster.shutdown()
    cluster.shutdown()
    s.kill9()
    s.start()
    cluster, root = log_in(s, "cassandra", "cassandra")
    kept = {(r.identity, r.role) for r in root.execute("SELECT identity, role FROM system_auth.identity_to_role")}
    assert kept == {("spiffe://one", "app"), ("spiffe://two", "app"), ("admin", "boss"), ("three", "other")}
    root.execute("DROP IDENTITY 'spiffe://one'")
    root.execute("DROP ROLE boss")  # takes its own along
    assert {r.identity for r in root.execute("SELECT identity FROM system_auth.identity_to_role")} == {"spiffe://two", "three"}
    cluster.shutdown()
    s.stop()


def random_change_of_identities(rng, roles, identities):
    """A statement and the words that refuse it, if any; what it changes is changed in the set and the map."""
    role, identity, kind, careful = f"r{rng.randrange(3)}", f"spiffe://{rng.randrange(4)}", rng.choice(["add", "add", "drop", "create role", "drop role"]), rng.random() < 0.4
    if kind == "create role":
        roles.add(role)
        return f"CREATE ROLE IF NOT EXISTS {role}", None
    if kind == "drop role":  # takes its own along
        roles.discard(role)
        for i in [i for i, of in identities.items() if of == role]:
            del identities[i]
        return f"DROP ROLE IF EXISTS {role}", None
    if kind == "drop":
        known = identities.pop(identity, None)
        return f"DROP IDENTITY {'IF EXISTS ' if careful else ''}'{identity}'", None if known or careful else f"identity '{identity}' doesn't exist"
    statement = f"ADD IDENTITY {'IF NOT EXISTS ' if careful else ''}'{identity}' TO ROLE '{role}'"
    if role not in roles:
        return statement, f"Can not add identity for non-existent role '{role}'"
    refused = identity in identities and not careful
    identities.setdefault(identity, role)
    return statement, f"{identity} already exists" if refused else None


def test_random_changes_of_identities_are_those_of_a_map(new_server):
    s, rng, roles, identities = new_server("--mode", "cassandra", "--auth", "password"), random.Random(1), set(), {}
    for _ in range(3):
        cluster, root = log_in(s, "cassandra", "cassandra")
        for _ in range(60):
            statement, refused = random_change_of_identities(rng, roles, identities)
            if refused:
                with pytest.raises(InvalidRequest, match=refused):
                    root.execute(statement)
            else:
                root.execute(statement)
        cluster.shutdown()
        s.kill9()
        s.start()
        cluster, root = log_in(s, "cassandra", "cassandra")
        assert {r.identity: r.role for r in root.execute("SELECT identity, role FROM system_auth.identity_to_role")} == identities
        cluster.shutdown()


def test_identities_need_a_login(cassandra_server):
    with cassandra_server.cluster() as cluster:
        session = cluster.connect()
        for statement in ("ADD IDENTITY 'x' TO ROLE 'r'", "DROP IDENTITY IF EXISTS 'x'"):
            with pytest.raises(Unauthorized, match="You have to be logged in and not anonymous to perform this request"):
                session.execute(statement)


def test_truncate_and_restore_need_rights_of_their_own(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password")
    cluster, root = log_in(s, "cassandra", "cassandra")
    for statement in ("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                      "CREATE TABLE k.t (p int PRIMARY KEY)", "CREATE ROLE app WITH PASSWORD = 'x' AND LOGIN = true", "INSERT INTO k.t (p) VALUES (1)"):
        root.execute(statement)
    app_cluster, app = log_in(s, "app", "x")
    with pytest.raises(Unauthorized, match="User app has no MODIFY permission on <table k.t> or any of its parents"):
        app.execute("TRUNCATE k.t")
    root.execute("GRANT MODIFY ON k.t TO app")
    app.execute("TRUNCATE k.t")
    assert list(root.execute("SELECT * FROM k.t")) == []
    restore = "RESTORE TABLE k.r FROM TABLE k.t"
    with pytest.raises(Unauthorized, match="User app has no CREATE permission on <all tables in k> or any of its parents"):
        app.execute(restore)
    root.execute("GRANT CREATE ON KEYSPACE k TO app")
    with pytest.raises(Unauthorized, match="User app has no SELECT permission on <table k.t> or any of its parents"):
        app.execute(restore)
    app_cluster.shutdown()
    cluster.shutdown()
    s.stop()


REPLICATED = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
MADE = [
    ("CREATE TABLE", "CREATE TABLE k.n (p int PRIMARY KEY)", "TABLE k.n", ("k", "n", "table")),
    ("CREATE KEYSPACE", f"CREATE KEYSPACE n {REPLICATED}", "KEYSPACE n", ("n", "n", "keyspace")),
]


@pytest.mark.parametrize("statement, text, on, held", MADE, ids=[m[0] for m in MADE])
def test_rights_of_a_creator_go_with_a_creation_that_fails(new_server, statement, text, on, held):
    """The name is another role's then, which alone has rights on what it makes."""
    s = new_server("--mode", "cassandra", "--auth", "password", "--control", "on")
    cluster, root = log_in(s, "cassandra", "cassandra")
    for setup in (f"CREATE KEYSPACE k {REPLICATED}", "CREATE ROLE a WITH PASSWORD = 'x' AND LOGIN = true",
                  "CREATE ROLE b WITH PASSWORD = 'x' AND LOGIN = true",
                  "GRANT CREATE ON ALL KEYSPACES TO a", "GRANT CREATE ON ALL KEYSPACES TO b"):
        root.execute(setup)
    listed = f"LIST ALL PERMISSIONS ON {on} OF %s NORECURSIVE"
    rights = lambda role: {r.permission for r in root.execute(listed % role)}  # noqa: E731
    set_rule(root, "held", statement, held[0], "*", failure="no luck")
    (a_cluster, a), (b_cluster, b) = log_in(s, "a", "x"), log_in(s, "b", "x")
    waiting = a.execute_async(text)
    eventually(lambda: (held[2], held[1]) in objects(root, held[0]))
    release(root, *held)
    with pytest.raises((ServerError, NoHostAvailable), match="no luck"):
        waiting.result()
    drop_rule(root, statement, held[0])
    b.execute(text)
    assert "SELECT" in rights("b") and rights("a") == set()
    for c in (a_cluster, b_cluster, cluster):
        c.shutdown()
    s.stop()


def test_a_failed_drop_leaves_the_rights_that_were_granted(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password", "--control", "on",
                   "--ddl-rules", "DROP TABLE k.t = 1 fail no luck")
    cluster, root = log_in(s, "cassandra", "cassandra")
    for setup in (f"CREATE KEYSPACE k {REPLICATED}", "CREATE TABLE k.t (p int PRIMARY KEY)",
                  "CREATE ROLE a WITH PASSWORD = 'x' AND LOGIN = true", "GRANT SELECT ON k.t TO a"):
        root.execute(setup)
    rights = lambda: [r.permission for r in root.execute("LIST ALL PERMISSIONS OF a")]  # noqa: E731
    with pytest.raises((ServerError, NoHostAvailable), match="no luck"):
        root.execute("DROP TABLE k.t")
    assert rights() == ["SELECT"]
    drop_rule(root, "DROP TABLE", "k", "t")
    root.execute("DROP TABLE k.t")
    assert rights() == []
    cluster.shutdown()
    s.stop()


def test_passwords_and_properties_with_the_character_0_are_refused_and_not_cut(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password")
    with s.cluster(auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        root = cluster.connect()
        create_keyspace(root, "k")
        root.execute("CREATE ROLE app WITH PASSWORD = 'one' AND LOGIN = true")
        root.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
        for text in ("CREATE ROLE b WITH PASSWORD = 'one\0two' AND LOGIN = true", "CREATE USER b WITH PASSWORD '\0two'", "ALTER ROLE app WITH PASSWORD = 'two\0'"):
            with pytest.raises(InvalidRequest, match="A password must not hold the character 0"):
                root.execute(text)
        for text in ("CREATE TABLE k.u (p int PRIMARY KEY) WITH comment = 'one\0two'", "ALTER TABLE k.t WITH comment = '\0'",
                     "ALTER TABLE k.t WITH caching = {'keys': 'ALL\0'}", "ALTER TABLE k.t WITH caching = {'keys\0x': 'ALL'}"):
            with pytest.raises(InvalidRequest, match="A property must not hold the character 0"):
                root.execute(text)
        assert [r.role for r in root.execute("SELECT role FROM system_auth.roles")] == ["app", "cassandra"]
        assert [(r.table_name, r.comment) for r in root.execute("SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = 'k'")] == [("t", "")]
    with s.cluster(auth_provider=PlainTextAuthProvider("app", "one")) as cluster:
        cluster.connect()


HASHED = "$2a$10$wzSBBQ/QgTHnLF47SBcJMuocHlbukAXs/PzdKjphWJ/u9TBIlV3qe"  # of "pb", made by Cassandra


def test_superusers_change_roles_by_their_table(new_server):
    """The way to recover a superuser's password; recorded from Cassandra 5.0.8, except that a role that does not exist is
    refused here (Cassandra inserts half a row)."""
    s = new_server("--mode", "cassandra", "--auth", "password")
    update = "UPDATE system_auth.roles SET {} WHERE role = 'r1'"
    cluster, root = log_in(s, "cassandra", "cassandra")
    with cluster:
        root.execute("CREATE ROLE r1 WITH PASSWORD = 'one' AND LOGIN = true")
        row = lambda: tuple(root.execute("SELECT can_login, is_superuser, salted_hash FROM system_auth.roles WHERE role = 'r1'").one())
        before = row()[2]
        root.execute(update.format("can_login = false"))
        assert row() == (False, False, before)
        refused_login(s, "r1", "one")
        root.execute(update.format(f"can_login = true, salted_hash = '{HASHED}'"))
        assert row() == (True, False, HASHED)
        refused_login(s, "r1", "one")
        own, r1 = log_in(s, "r1", "pb")
        with own:
            root.execute("GRANT MODIFY ON ALL KEYSPACES TO r1")
            with pytest.raises(Unauthorized, match="Only superusers may change system_auth"):
                r1.execute(update.format("is_superuser = true"))
            root.execute(update.format("is_superuser = true"))
            assert row() == (True, True, HASHED)
            r1.execute("UPDATE system_auth.roles SET is_superuser = null WHERE role = 'r1'")
            with pytest.raises(Unauthorized):
                r1.execute(update.format("is_superuser = true"))
        root.execute("DELETE salted_hash FROM system_auth.roles WHERE role = 'r1'")
        assert row() == (True, False, None)
        refused_login(s, "r1", "pb")
        for statement, words in (
                ("UPDATE system_auth.roles SET can_login = true WHERE role = 'nobody'", "Role nobody doesn't exist; use CREATE ROLE"),
                ("UPDATE system_auth.roles SET can_login = false WHERE role = 'r1\0'", "doesn't exist"),
                ("INSERT INTO system_auth.roles (role, can_login) VALUES ('nobody', true)", "Role nobody doesn't exist"),
                (update.format("salted_hash = 'secret'"), "Please use jBcrypt"),
                (update.format(f"salted_hash = '{HASHED}\0'"), "Please use jBcrypt"),
                (update.format("member_of = {'cassandra'}"), "use GRANT and REVOKE"),
                ("DELETE FROM system_auth.roles WHERE role = 'r1'", "use DROP ROLE"),
                ("TRUNCATE system_auth.roles", "Truncation is not supported")):
            with pytest.raises(InvalidRequest, match=words):
                root.execute(statement)
        assert row() == (True, False, None)
        root.execute(update.format(f"salted_hash = '{HASHED}'"))
    s.kill9()
    s.start()
    log_in(s, "r1", "pb")[0].shutdown()


def test_a_hash_that_would_hold_up_all_logins_is_refused(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password")
    cluster, root = log_in(s, "cassandra", "cassandra")
    with pytest.raises(InvalidRequest, match="The cost of a hashed password may be at most 14"):
        root.execute("CREATE ROLE slow WITH LOGIN = true AND HASHED PASSWORD = '$2a$31$JSJEMFm6GeaW9XxT5JIheuEtPvat6i7uKbnTcxX3c1wshIIsGyUtG'")
    cluster.shutdown()
    s.stop()


# ---- logins ----

@pytest.mark.parametrize("version", [3, 4, 5])
def test_who_has_not_logged_in_gets_nothing(new_server, version):
    s = new_server("--mode", "cassandra", "--auth", "password")
    with pytest.raises(NoHostAvailable) as e:
        s.cluster(protocol_version=version).connect()
    assert "AuthenticationFailed" in repr(e.value) and "Remote end requires authentication" in str(e.value)
    cluster, session = log_in(s, "cassandra", "cassandra", protocol_version=version)
    assert session.execute("SELECT role FROM system_auth.roles").one().role == "cassandra"
    cluster.shutdown()


def test_requests_before_the_login_are_refused_on_the_wire(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password")
    with socket.create_connection((s.host, s.port), timeout=300) as c:
        def ask(opcode, body):
            c.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)
            head = b""
            while len(head) < 9:
                head += c.recv(9 - len(head))
            _, _, _, answered, n = struct.unpack(">BBhBI", head)
            body = b""
            while len(body) < n:
                body += c.recv(n - len(body))
            return answered, body

        option = lambda t: struct.pack(">H", len(t)) + t  # noqa: E731
        assert ask(0x01, struct.pack(">H", 1) + option(b"CQL_VERSION") + option(b"3.0.0")) == (0x03, option(b"org.apache.cassandra.auth.PasswordAuthenticator"))
        query = b"SELECT * FROM system.local"
        opcode, body = ask(0x07, struct.pack(">I", len(query)) + query + struct.pack(">HB", 1, 0))
        assert opcode == 0x00 and struct.unpack_from(">I", body)[0] == 0x000A and b"expecting SASL_RESPONSE" in body
        for token in (b"", b"\0", b"x", b"\0\0", b"\0a\0", b"SigV4\0\0", b"\0" + b"a" * 300 + b"\0b", b"\0a\0b\0c"):
            with socket.create_connection((s.host, s.port), timeout=300) as c:
                ask(0x01, struct.pack(">H", 1) + option(b"CQL_VERSION") + option(b"3.0.0"))
                opcode, body = ask(0x0F, struct.pack(">i", len(token)) + token)
                assert opcode == 0x00 and struct.unpack_from(">I", body)[0] == 0x0100, body
                assert c.recv(1) == b""
    s.stop()


def begin_guess(server, host, source):
    """A connection from this address, with its STARTUP sent."""
    c = socket.create_connection((host, server.port), timeout=300, source_address=(source, 0))
    c.sendall(struct.pack(">BBhBI", 4, 0, 1, 1, 22) + struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0")
    return c


def send_guess(c, password):
    c.recv(100)
    token = b"\0cassandra\0" + password
    c.sendall(struct.pack(">BBhBI", 4, 0, 1, 0x0F, 4 + len(token)) + struct.pack(">i", len(token)) + token)


def test_who_guesses_pays_and_others_log_in(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password", "--handshake-timeout", "300")  # the checks may wait long for their turn
    log_in(s, "cassandra", "cassandra")[0].shutdown()
    guesses = [begin_guess(s, s.host, "127.0.0.9") for _ in range(60)]
    for i, c in enumerate(guesses):
        send_guess(c, b"guess%d" % i)
    log_in(s, "cassandra", "cassandra")[0].shutdown()  # of another address, while they wait: it is remembered
    words = [c.recv(500) for c in guesses]
    refused = sum(b"Too many failed logins" in w for w in words)
    assert refused >= 20 and refused + sum(b"are incorrect" in w for w in words) == 60, words[-1]
    for c in guesses:
        c.close()
    s.stop()


def test_guesses_of_one_ipv4_address_do_not_count_for_others_of_a_socket_of_both_families(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password", "--handshake-timeout", "300", "--listen", "::")
    guilty = [begin_guess(s, "127.0.0.1", "127.0.0.9") for _ in range(60)]
    innocent = [begin_guess(s, "127.0.0.1", f"127.0.0.{i}") for i in range(20, 50)]
    for i, c in enumerate(guilty + innocent):
        send_guess(c, b"guess%d" % i)
    assert any(b"Too many failed logins" in c.recv(500) for c in guilty)
    assert all(b"are incorrect" in c.recv(500) for c in innocent)
    for c in guilty + innocent:
        c.close()
    s.stop()


def test_roles_and_passwords_survive_kill9(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password")
    cluster, session = log_in(s, "cassandra", "cassandra")
    session.execute("CREATE ROLE app WITH PASSWORD = 'p1-secret' AND LOGIN = true")
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY)")
    session.execute("GRANT SELECT ON k.t TO app")
    session.execute("ALTER ROLE cassandra WITH PASSWORD = 'new-secret'")
    s.kill9()
    cluster.shutdown()
    s.start()
    assert "are incorrect" in refused_login(s, "cassandra", "cassandra")
    log_in(s, "cassandra", "new-secret")[0].shutdown()
    cluster, session = log_in(s, "app", "p1-secret")
    assert list(session.execute("SELECT * FROM k.t")) == []
    with pytest.raises(Unauthorized, match="User app has no MODIFY permission on <table k.t> or any of its parents"):
        session.execute("INSERT INTO k.t (p) VALUES (1)")
    cluster.shutdown()
    assert "p1-secret" not in s.log.read_text() and "new-secret" not in s.log.read_text()
    s.stop()


def test_credentials_of_keyspaces_mode(tmp_path):
    file = credentials(tmp_path, "user alice-at-123456789012 s3cret")
    s = Server(tmp_path, "--auth", "password", "--credentials", file).start()
    cluster, session = log_in(s, "alice-at-123456789012", "s3cret")
    assert session.execute("SELECT key FROM system.local").one().key == "local"
    cluster.shutdown()
    assert "Provided username bob-at-123456789012 and/or password are incorrect" in refused_login(s, "bob-at-123456789012", "s3cret")
    s.stop()


@pytest.mark.parametrize("flags, words", [
    (["--auth", "password"], "--credentials"),
    (["--auth", "sigv4", "--mode", "cassandra"], "needs --credentials"),
    (["--credentials", "/nowhere"], "has no effect"),
    (["--auth", "password", "--credentials", "/nowhere"], "cannot read /nowhere"),
])
def test_settings_that_make_no_sense_are_refused(tmp_path, flags, words):
    s = Server(tmp_path, *flags)
    with pytest.raises(AssertionError, match="did not become ready"):
        s.start()
    assert words in s.log_tail()


@pytest.mark.parametrize("lines, mode, words", [
    (["user alice pw"], 0o604, "may be read by everybody: chmod 600 it"),
    (["user alice"], 0o600, "line 1: it must be: user NAME PASSWORD"),
    (["# fine", "key A B c", "key A B c"], 0o600, "line 3: this access key is there already"),
    (["user alice pw", "key A B alice t"], 0o600, None),
    (["user alice pw"], 0o640, None),  # of the group
])
def test_check_config_looks_at_the_credentials(tmp_path, lines, mode, words):
    file = credentials(tmp_path, *lines, mode=mode)
    flags = ["--auth", "sigv4", "--credentials", str(file), "--data-dir", str(tmp_path / "data"), "--port", "0"]
    checked = subprocess.run([TALLYD, "--check-config", *flags], capture_output=True, text=True, timeout=300)
    assert checked.returncode == (1 if words else 0) and (words or "") in checked.stderr
    if words:
        started = subprocess.run([TALLYD, *flags], capture_output=True, text=True, timeout=300)
        assert (started.returncode, started.stderr) == (checked.returncode, checked.stderr)


@pytest.mark.parametrize("path", ["fifo", "folder"])
def test_credentials_are_a_regular_file(tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for flags in (["--check-config"], ["--data-dir", str(tmp_path / "data"), "--port", "0"]):
        done = subprocess.run([TALLYD, *flags, "--auth", "password", "--credentials", str(tmp_path / path)],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 1 and f"cannot read {tmp_path / path}: it is not a regular file" in done.stderr


def test_only_superusers_change_the_server(new_server):
    """Whatever a role was granted: system_control restores the states of roles, too."""
    s = new_server("--mode", "cassandra", "--auth", "password", "--control", "on")
    cluster, root = log_in(s, "cassandra", "cassandra")
    root.execute("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true")
    root.execute("GRANT ALL ON ALL KEYSPACES TO app")
    app_cluster, app = log_in(s, "app", "pw")
    changes = ["INSERT INTO system_control.snapshots (name) VALUES ('mine')",
               "UPDATE system_control.clock SET state = 'frozen' WHERE name = 'server'",
               "DELETE FROM system_control.faults WHERE name = 'x'",
               "BEGIN UNLOGGED BATCH INSERT INTO system_control.snapshots (name) VALUES ('mine') APPLY BATCH"]
    for change in changes:
        with pytest.raises(Unauthorized, match="Only superusers may change system_control"):
            app.execute(change)
    prepared = app.prepare(changes[0])
    for _ in range(2):
        with pytest.raises(Unauthorized, match="Only superusers may change system_control"):
            app.execute(prepared)
    assert app.execute("SELECT * FROM system_control.clock").one().state
    root.execute(changes[1])
    root.execute("ALTER ROLE app WITH SUPERUSER = true")
    app.execute(changes[2])
    cluster.shutdown()
    app_cluster.shutdown()


def test_cqlsh_logs_in_with_a_password(new_server, tmp_path):
    import sys
    s = new_server("--mode", "cassandra", "--auth", "password")
    cqlsh = os.path.join(os.path.dirname(sys.executable), "cqlsh")
    for password, status in (("cassandra", 0), ("wrong", 1)):
        run = subprocess.run([cqlsh, s.host, str(s.port), "-u", "cassandra", "-p", password, "-e", "LIST ROLES"], capture_output=True, text=True, timeout=300,
                             env={**os.environ, "HOME": str(tmp_path)})
        assert run.returncode == status, run.stdout + run.stderr
        assert ("cassandra" in run.stdout) == (status == 0)
    s.stop()


def test_a_login_that_is_not_finished_is_closed(new_server):
    s = new_server("--mode", "cassandra", "--auth", "password", "--handshake-timeout", "1")
    with socket.create_connection((s.host, s.port), timeout=300) as c:
        c.sendall(struct.pack(">BBhBI", 4, 0, 1, 1, 22) + struct.pack(">H", 1) + b"\0\x0bCQL_VERSION\0\x053.0.0")
        assert c.recv(100)[4] == 0x03
        assert c.recv(1) == b""
    s.stop()


def test_a_role_reads_the_values_of_its_own_traces_only(new_server):
    """Apache Cassandra 5.0.8 shows all traces to every role; a trace holds values of tables that the reader may not select from."""
    s = new_server("--mode", "cassandra", "--auth", "password")
    cluster, session = log_in(s, "cassandra", "cassandra", schema_metadata_enabled=False)
    session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE k.t (p int PRIMARY KEY, v text)")
    for name in ("reader", "auditor"):
        session.execute(f"CREATE ROLE {name} WITH PASSWORD = 'p' AND LOGIN = true")
    session.execute("GRANT SELECT ON ALL KEYSPACES TO auditor")
    session.execute(SimpleStatement("INSERT INTO k.t (p, v) VALUES (1, 'a secret')", consistency_level=ConsistencyLevel.LOCAL_QUORUM), trace=True)
    for name, seen in (("reader", False), ("auditor", True), ("cassandra", True)):
        other, its = log_in(s, name, "cassandra" if name == "cassandra" else "p", schema_metadata_enabled=False)
        its.execute("SELECT key FROM system.local", trace=True)
        for table, column in (("sessions", "parameters"), ("events", "activity")):
            texts = [str(r[0]) for r in its.execute(f"SELECT {column} FROM system_traces.{table}")]
            assert any("a secret" in t for t in texts) == seen, (name, texts)
            assert any("SELECT key FROM system.local" in t for t in texts), (name, texts)
        prepared = its.prepare("SELECT parameters FROM system_traces.sessions")
        assert any("a secret" in str(r[0]) for r in its.execute(prepared)) == seen
        other.shutdown()
    cluster.shutdown()
