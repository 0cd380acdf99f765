"""Servers on one pool of a Ceph cluster know of one another: drivers discover them, follow their failures, and log in at each of them."""
import itertools
import re

import pytest
from cassandra import AuthenticationFailed, ConsistencyLevel, ReadTimeout, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import HostStateListener, RoundRobinPolicy, TokenAwarePolicy, WhiteListRoundRobinPolicy

import page_api
from ceph_cluster import ceph_do, cluster_in, objects_in, osd_of
from ports import free_port
from tally_server import HANG, Server, create_keyspace, eventually, status_of

ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
DEATH = "a server has left that died"  # why a server has applied a batch of the log


class Cloud:
    """Servers on the addresses, all on one port, as those of a real cluster."""

    def __init__(self, ceph, folder, *flags, pool="tally"):
        self.port = free_port()
        store = ["--store", "rados", "--rados-conf", ceph / "ceph.conf", "--rados-pool", pool, "--port", str(self.port)]
        self.servers = {a: Server(folder(a), *store, "--listen", a, "--admin-port", str(free_port()), *flags) for a in ADDRESSES}
        self.clusters = []

    def start(self, *addresses):
        for a in addresses:
            self.servers[a].start()

    def connect(self, address, policy=None, **options):
        """A session of a driver that knows one address."""
        profile = ExecutionProfile(load_balancing_policy=policy or TokenAwarePolicy(RoundRobinPolicy()), request_timeout=HANG,
                                   consistency_level=ConsistencyLevel.LOCAL_QUORUM)
        cluster = Cluster([address], port=self.port, connect_timeout=HANG, control_connection_timeout=HANG,
                          execution_profiles={EXEC_PROFILE_DEFAULT: profile}, status_event_refresh_window=0, topology_event_refresh_window=0, **options)
        self.clusters.append(cluster)
        return cluster.connect()

    def connect_only(self, address, **options):
        return self.connect(address, WhiteListRoundRobinPolicy([address]), **options)

    def stop(self):
        for c in self.clusters:
            c.shutdown()
        for s in self.servers.values():
            if s.process and s.alive():
                s.stop()


@pytest.fixture
def cloud(ceph, tmp_path_factory):
    made = []

    def make(*flags):
        made.append(Cloud(ceph, lambda a: tmp_path_factory.mktemp("server"), *flags))
        return made[-1]

    yield make
    for c in made:
        c.stop()


class Listener(HostStateListener):
    def __init__(self):
        self.events = []

    def on_add(self, host):
        self.events.append(("add", host.address))

    def on_remove(self, host):
        self.events.append(("remove", host.address))

    def on_up(self, host):
        self.events.append(("up", host.address))

    def on_down(self, host):
        self.events.append(("down", host.address))


def hosts_up(session):
    return {h.address for h in session.cluster.metadata.all_hosts() if h.is_up}


def answered_by(session):
    return {session.execute("SELECT rpc_address FROM system.local").one().rpc_address for _ in range(12)}


def ring(session):
    """What system.local and system.peers say together."""
    rows = [session.execute("SELECT rpc_address, host_id, tokens, schema_version, data_center, rack, release_version FROM system.local").one(),
            *session.execute("SELECT rpc_address, host_id, tokens, schema_version, data_center, rack, release_version FROM system.peers")]
    return {r.rpc_address: (r.host_id, tuple(sorted(r.tokens)), r.schema_version, r.data_center, r.rack, r.release_version) for r in rows}


def leads(server):
    return re.search(r"^tally_server_leads (\d)$", page_api.ask(server, "GET", "/metrics")[2], re.M)[1] == "1"


def live(server):
    return int(re.search(r"^tally_servers_live (\d+)$", page_api.ask(server, "GET", "/metrics")[2], re.M)[1])


def test_a_driver_follows_the_servers(cloud):
    """It knows one of them, finds the others, goes on when one is killed, and uses one that joins."""
    c = cloud("--mode", "cassandra")
    c.start("127.0.0.1", "127.0.0.2")
    eventually(lambda: live(c.servers["127.0.0.1"]) == 2)  # the driver drops events that come while it connects
    session = c.connect("127.0.0.1")
    eventually(lambda: hosts_up(session) == {"127.0.0.1", "127.0.0.2"}, lambda: f"the driver knows {hosts_up(session)}")
    listener = Listener()
    session.cluster.register_listener(listener)
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (p int PRIMARY KEY)")  # the driver waits until both have one version of the schema
    one, two = (c.connect_only(a) for a in ("127.0.0.1", "127.0.0.2"))
    eventually(lambda: len(ring(one)) == 2 and ring(one) == ring(two), lambda: f"{ring(one)} {ring(two)}")
    tokens = [t for r in ring(one).values() for t in r[1]]
    assert len(set(tokens)) == len(tokens) == 32

    c.start("127.0.0.3")
    eventually(lambda: answered_by(session) == set(ADDRESSES), "the new server gets no traffic")
    assert ("add", "127.0.0.3") in listener.events or ("up", "127.0.0.3") in listener.events

    c.servers["127.0.0.2"].kill9()
    for p in range(50):  # no statement fails
        session.execute("INSERT INTO ks.t (p) VALUES (%s)", (p,))
    eventually(lambda: ("down", "127.0.0.2") in listener.events, lambda: f"the driver was not told: {listener.events}")
    eventually(lambda: set(ring(one)) == {"127.0.0.1", "127.0.0.3"}, lambda: str(ring(one)))
    assert session.execute("SELECT count(*) FROM ks.t").one().count == 50
    c.start("127.0.0.2")
    eventually(lambda: answered_by(session) == set(ADDRESSES), "the server that came back gets no traffic")

    c.servers["127.0.0.3"].stop()
    eventually(lambda: set(ring(one)) == {"127.0.0.1", "127.0.0.2"}, lambda: str(ring(one)))
    eventually(lambda: ("remove", "127.0.0.3") in listener.events, lambda: str(listener.events))


def test_of_two_servers_with_one_broadcast_address_the_second_stops(cloud):
    c = cloud()
    one, two = (c.servers[a] for a in ADDRESSES[:2])
    two.flags = (*two.flags, "--broadcast-address", ADDRESSES[0])
    c.start(*ADDRESSES[:2])
    assert two.process.wait(timeout=HANG) == 1
    assert f"two servers have the address {ADDRESSES[0]}:{c.port}, and this one stops" in two.log_tail()
    session = c.connect_only(ADDRESSES[0])
    assert session.execute("SELECT rpc_address FROM system.local").one().rpc_address == ADDRESSES[0]
    eventually(lambda: live(one) == 1)


def test_ddl_of_a_server_that_is_killed_is_finished_by_another(cloud):
    """The first server leads and holds every change; the second one would finish it at once."""
    c = cloud()
    one, two = (c.servers[a] for a in ADDRESSES[:2])
    one.flags = (*one.flags, "--ddl-delay", "held")
    two.flags = (*two.flags, "--ddl-delay", "none")
    c.start("127.0.0.1")
    eventually(lambda: leads(one))
    c.start("127.0.0.2")
    eventually(lambda: live(one) == live(two) == 2)
    assert page_api.ask(two, "GET", "/ready")[0] == 200
    a, b = c.connect_only("127.0.0.1"), c.connect_only("127.0.0.2")
    create_keyspace(b, "held")
    eventually(lambda: a.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'held'").one())
    a.execute("CREATE TABLE held.t (p int PRIMARY KEY)")
    eventually(lambda: status_of(b, "held", "t") == "CREATING")
    assert not leads(two)
    one.kill9()
    eventually(lambda: status_of(b, "held", "t") == "ACTIVE")
    assert leads(two)
    b.execute("INSERT INTO held.t (p) VALUES (1)")


class Torn:
    """A keyspace with tables on two OSDs, one of which holds everything else: its servers answer while the other one is down."""

    def __init__(self, ceph, cloud, pool, home):
        self.ceph, self.cloud, self.pool, self.home, self.other = ceph, cloud, pool, home, 1 - home

    def tables(self, session):
        """A table on each OSD, the servers' one first."""
        found = {}
        for n in itertools.count():
            before = objects_in(self.ceph, self.pool)
            session.execute(f"CREATE TABLE torn.t{n} (p int PRIMARY KEY)")
            session.execute(f"INSERT INTO torn.t{n} (p) VALUES (0)")
            [rows] = [name for name in objects_in(self.ceph, self.pool) - before if name.startswith("rows.")]
            found[osd_of(self.ceph, self.pool, rows)] = f"torn.t{n}"
            if len(found) == 2:
                return found[self.home], found[self.other]

    def start_at_home(self, server):
        """Starts a server that does not run, and again until all logs of batches are on the OSD that stays."""
        if not (server.process and server.alive()):
            server.start()
        while any(osd_of(self.ceph, self.pool, name) != self.home for name in objects_in(self.ceph, self.pool) if name.startswith("batches.")):
            server.stop()
            server.start()

    def kill_other(self):
        ceph_do("kill", self.ceph, self.other)

    def start_other(self):
        ceph_do("start-osd", self.ceph, self.other)
        ceph_do("wait-up", self.ceph)


@pytest.fixture
def torn(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp("ceph"), "--osds", "2", "--store", "bluestore") as ceph:
        for n in itertools.count():  # until the records of the servers and the list of logs of batches are on one OSD
            pool = f"single{n}"
            ceph_do("make-pool", ceph, pool, "--copies", "1")
            home = osd_of(ceph, pool, "named")
            if osd_of(ceph, pool, "batches") == home:
                break
        c = Cloud(ceph, lambda a: tmp_path_factory.mktemp("server"), "--mode", "cassandra", pool=pool)
        yield Torn(ceph, c, pool, home)
        c.stop()


def has(session, table, *rows):
    """Whether the table has all of the rows, as a server sees it that may have to wait for an OSD."""
    try:
        return all(session.execute(f"SELECT p FROM {table} WHERE p = {p}").one() for p in rows)
    except ReadTimeout:
        return False


def test_a_batch_of_a_server_that_is_killed_in_its_middle_is_completed_at_once(torn):
    """The server is killed when the batch is in the log and the rows on one OSD are written; those on the other OSD, which is down, were never sent. Another server
    completes the batch when it takes the first one for dead; without another one the first one does, when it is started again."""
    c = torn.cloud
    one, two = c.servers[ADDRESSES[0]], c.servers[ADDRESSES[1]]
    torn.start_at_home(one)
    session = c.connect_only(ADDRESSES[0])
    create_keyspace(session, "torn")
    near, far = torn.tables(session)
    rows = itertools.count(1)

    def cut_off(completes):
        """Whether the batch was completed for the death of its server, and not for its age."""
        def applied(why=""):
            return completes.log.read_text().count(f"batches were applied that {why}")

        before, before_for_death = applied(), applied(DEATH)
        session, n = c.connect_only(ADDRESSES[0]), next(rows)
        torn.kill_other()
        session.execute_async(f"BEGIN BATCH INSERT INTO {near} (p) VALUES ({n}); INSERT INTO {far} (p) VALUES ({n}); INSERT INTO {far} (p) VALUES (-{n}); APPLY BATCH")
        eventually(lambda: has(session, near, n))
        one.kill9()
        session.cluster.shutdown()
        torn.start_other()
        if completes is one:
            one.start()
        reader = c.connect_only(completes.host)
        eventually(lambda: has(reader, far, n, -n), completes.log_tail)
        eventually(lambda: applied() > before, completes.log_tail)
        return applied(DEATH) > before_for_death

    def completes_at_once(completes):
        """A machine may be so slow that a batch is old before the death of its server is noticed; hardly each of five times."""
        for _ in range(5):
            torn.start_at_home(one)
            eventually(lambda: live(one) == (1 if completes is one else 2))
            if cut_off(completes):
                return True
        return False

    torn.start_at_home(two)
    assert completes_at_once(two), two.log_tail()
    two.stop()
    assert completes_at_once(one), one.log_tail()


def test_roles_are_the_same_at_every_server(cloud):
    c = cloud("--mode", "cassandra", "--auth", "password")
    c.start("127.0.0.1", "127.0.0.2")

    def login(address, name, password):
        return c.connect_only(address, auth_provider=PlainTextAuthProvider(name, password))

    def may_log_in(address, password):
        try:
            login(address, "app", password).cluster.shutdown()
            return True
        except NoHostAvailable as e:
            # a list of hosts when the password changed between the driver's first connection and its next
            assert isinstance(e.errors, list) or all(isinstance(x, AuthenticationFailed) for x in e.errors.values()), e.errors
            return False

    def may_read(session):
        try:
            session.execute("SELECT * FROM roles.t")
            return True
        except Unauthorized:
            return False

    a = login("127.0.0.1", "cassandra", "cassandra")
    a.execute("CREATE KEYSPACE roles WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    a.execute("CREATE TABLE roles.t (p int PRIMARY KEY)")
    a.execute("CREATE ROLE app WITH PASSWORD = 'first' AND LOGIN = true")
    eventually(lambda: may_log_in("127.0.0.2", "first"))
    app = login("127.0.0.2", "app", "first")
    assert not may_read(app)
    a.execute("GRANT SELECT ON KEYSPACE roles TO app")
    eventually(lambda: may_read(app))
    a.execute("REVOKE SELECT ON KEYSPACE roles FROM app")
    eventually(lambda: not may_read(app))
    a.execute("ALTER ROLE app WITH PASSWORD = 'second'")
    eventually(lambda: not may_log_in("127.0.0.2", "first"))
    assert may_log_in("127.0.0.2", "second")
    app.execute("ALTER ROLE app WITH PASSWORD = 'third'")  # at the second server, by the role itself
    eventually(lambda: may_log_in("127.0.0.1", "third"))
    a.execute("DROP ROLE app")
    eventually(lambda: not may_log_in("127.0.0.2", "third"))
