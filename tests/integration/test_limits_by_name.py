"""Each limit is named by what it refuses: those that test_limits.py does not meet by their name."""
import pytest
from cassandra import ReadTimeout, WriteTimeout

from tally_server import await_active, create_keyspace

PROVISIONED = " WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 1000}}"


@pytest.mark.parametrize("limit, flags, options, statement, error", [
    ("table-read", ("--limits", "enforce", "--limit-values", "table-read=2"), "", "SELECT * FROM k.t WHERE p = 1", ReadTimeout),
    ("provisioned-read", ("--limits", "enforce", "--limit-values", "burst=2"), PROVISIONED, "SELECT * FROM k.t WHERE p = 1", ReadTimeout),
    ("entities-account", ("--guidance", "enforce", "--limit-values", "entities-account=3"), "", "INSERT INTO k.t (p) VALUES (1)", WriteTimeout),
])
def test_a_refusal_names_its_limit(new_server, limit, flags, options, statement, error):
    server = new_server("--ddl-delay", "none", *flags)
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute(f"CREATE TABLE k.t (p int PRIMARY KEY){options}")
        await_active(session, "k", "t")
        with pytest.raises(error, match=f"\\({limit}: "):
            for _ in range(100):
                session.execute(statement)
        assert session.execute("SELECT refused FROM system_metering.throttles WHERE limit_name = %s", (limit,)).one().refused >= 1
