"""A connection sees addresses of its own family: IPv6 over IPv6, IPv4 over IPv4, also when one socket takes both."""
import ipaddress
import socket

import pytest
from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy
from tally_server import HANG, create_keyspace, eventually

V4, V6 = "127.0.0.1", "::1"
RINGS = {V4: [f"127.0.0.{i}" for i in range(2, 11)], V6: [f"::{i:x}" for i in range(2, 11)]}


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind((V6, 0))
        return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="not run: this machine has no IPv6 loopback address")


def connected(server, address):
    """A cluster of the one node at this address, and its session."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([address]),
                               consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=HANG)
    cluster = server.cluster(contact=address, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster, cluster.connect()


def shown(server, address, tables=("local", "peers")):
    """All addresses in these tables of keyspace system, per table and column, as a client of this address sees them."""
    cluster, session = connected(server, address)
    with cluster:
        assert [h.address for h in cluster.metadata.all_hosts() if h.is_up] == [address]
        found = {}
        for table in tables:
            for row in session.execute(f"SELECT * FROM system.{table}"):
                for column, value in row._asdict().items():
                    if value is not None and (column == "peer" or column.endswith("_address")):
                        found.setdefault(f"{table}.{column}", []).append(value)
        return found


@pytest.mark.parametrize("mode, peers, columns", [("keyspaces", "peers", {"peer", "rpc_address"}),
                                                  ("cassandra", "peers_v2", {"peer", "native_address"})])
@pytest.mark.parametrize("address", [V4, V6])
def test_a_connection_to_both_families_sees_its_own(new_server, mode, peers, columns, address):
    server = new_server("--mode", mode, "--listen", "::", "--peers", "keyspaces")
    found = shown(server, address, ("local", peers))
    for column in ("broadcast_address", "listen_address", "rpc_address"):
        assert found.pop(f"local.{column}") == [address]
    assert set(found) == {f"{peers}.{c}" for c in columns}
    for addresses in found.values():
        assert sorted(addresses, key=ipaddress.ip_address) == RINGS[address]


def test_a_server_of_one_family_shows_the_addresses_that_follow_its_own(new_server):
    server = new_server("--listen", V6, "--peers", "keyspaces")
    found = shown(server, V6)
    assert found["local.rpc_address"] == [V6] and sorted(found["peers.rpc_address"], key=ipaddress.ip_address) == RINGS[V6]
    cluster, session = connected(server, V6)
    with cluster:
        create_keyspace(session, "k")


def test_a_socket_on_a_mapped_address_is_of_ipv4(new_server):
    server = new_server("--listen", "::ffff:127.0.0.1", "--peers", "keyspaces")
    found = shown(server, V4)
    assert found["local.rpc_address"] == [V4] and sorted(found["peers.rpc_address"], key=ipaddress.ip_address) == RINGS[V4]


def test_listed_peers_are_shown_to_connections_of_their_family(new_server):
    server = new_server("--listen", "::", "--peers", "10.0.0.5,2001:db8::5,::1,127.0.0.1,::ffff:10.0.0.6")
    assert sorted(shown(server, V4)["peers.peer"]) == ["10.0.0.5", "10.0.0.6"]
    assert shown(server, V6)["peers.peer"] == ["2001:db8::5"]


def test_the_driver_connects_to_the_nodes_that_it_discovers(new_server):
    """Discovered nodes that are addresses of the same server: over each family the driver uses those of the family."""
    server = new_server("--listen", "::", "--peers", "127.0.0.1,127.0.0.2,::1")
    for address, expected in ((V4, {"127.0.0.1", "127.0.0.2"}), (V6, {V6})):
        with server.cluster(contact=address) as cluster:
            session = cluster.connect()
            seen = set()

            def has_asked_all():  # connect() waits for the first node only
                seen.add(session.execute("SELECT rpc_address FROM system.local").one().rpc_address)
                return seen >= expected

            eventually(has_asked_all, lambda: f"asked {seen} of {expected}")
            assert seen == expected == {h.address for h in cluster.metadata.all_hosts()}


def test_an_ipv4_client_of_an_ipv6_socket_is_known_by_its_ipv4_address(new_server):
    server = new_server("--mode", "cassandra", "--listen", "::")
    for address in (V4, V6):
        cluster, session = connected(server, address)
        with cluster:
            assert {r.address for r in session.execute("SELECT address FROM system_views.clients")} == {address}
            trace = session.execute("SELECT * FROM system.local", trace=True).get_query_trace()
            assert trace.coordinator == address and trace.client == address
