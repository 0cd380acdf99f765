"""A Region that is added to a keyspace passes through its states: CREATING, while the tables get there one by one, then ACTIVE."""
import re
from contextlib import contextmanager

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import NoHostAvailable

from aws_api import Api, refused
from control import objects, release, set_clock, set_rule
from tally_server import eventually

MULTI = {"replicationStrategy": "MULTI_REGION"}
PROGRESS = re.compile(r"[0-9]{1,3}(?:[.][0-9]{1,2})?%")  # botocore's model
MINUTE = 60_000
TABLES = ("a", "b", "c")


@contextmanager
def server(folder, tables=TABLES, replication="{'class': 'SingleRegionStrategy'}", delay=4 * MINUTE):
    """With a keyspace k of these tables, and a frozen clock: an ALTER KEYSPACE takes four minutes of it."""
    with Api(folder, "--control", "on", "--ddl-delay", "none") as api, api.server.cluster() as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE k WITH replication = {replication}")
        session.execute("CREATE TYPE k.address (street text)")
        for name in tables:
            session.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY) WITH CUSTOM_PROPERTIES = {{'client_side_timestamps': {{'status': 'enabled'}}}}")
        set_clock(session, state="frozen")
        set_rule(session, str(delay), "ALTER KEYSPACE")
        yield api, session


def add(client, *regions):
    client.update_keyspace(keyspaceName="k", clientSideTimestamps={"status": "ENABLED"}, replicationSpecification=MULTI | {"regionList": ["us-east-1", *regions]})


def shown(client):
    """Region -> (status, progress) of keyspace k, as GetKeyspace answers it."""
    got = client.get_keyspace(keyspaceName="k")
    statuses = got.get("replicationGroupStatuses", [])
    assert got.get("replicationRegions", []) == [s["region"] for s in statuses]
    assert got["replicationStrategy"] == ("MULTI_REGION" if statuses else "SINGLE_REGION")
    assert all(PROGRESS.fullmatch(s.get("tablesReplicationProgress", "0%")) for s in statuses)
    return {s["region"]: (s["keyspaceStatus"], s.get("tablesReplicationProgress")) for s in statuses}


def rows(session, table="keyspaces"):
    return [tuple(r)[1:] for r in session.execute(f"SELECT * FROM system_multiregion_info.{table} WHERE keyspace_name = 'k'")]


def await_progress(session, progress):
    eventually(lambda: ("eu-west-1", "Creating", progress) in rows(session))


def test_a_new_region_counts_the_tables_that_it_has(tmp_path):
    with server(tmp_path) as (api, session):
        client = api.client()
        assert shown(client) == {}
        add(client, "eu-west-1")
        for progress, there in (("0%", 0), ("33.33%", 1), ("66.66%", 2), ("100%", 3)):
            await_progress(session, progress)
            assert shown(client) == {"eu-west-1": ("CREATING", progress), "us-east-1": ("UPDATING", None)}
            assert rows(session) == [("eu-west-1", "Creating", progress), ("us-east-1", "Updating", None)]
            assert rows(session, "tables") == [r for i, t in enumerate(TABLES) for r in (
                (t, "eu-west-1", "ACTIVE" if i < there else "CREATING"), (t, "us-east-1", "ACTIVE"))]
            replicas = client.get_table(keyspaceName="k", tableName="b")["replicaSpecifications"]
            assert {r["region"]: r["status"] for r in replicas} == {"eu-west-1": "ACTIVE" if there >= 2 else "CREATING", "us-east-1": "ACTIVE"}
            session.execute("INSERT INTO k.a (p) VALUES (1)")  # the tables stay usable
            set_clock(session, advance_ms=MINUTE)
        eventually(lambda: shown(client) == {"eu-west-1": ("ACTIVE", None), "us-east-1": ("ACTIVE", None)})
        assert rows(session) == [("eu-west-1", "Active", "100%"), ("us-east-1", "Active", "100%")]
        assert {status for _, _, status in rows(session, "tables")} == {"ACTIVE"}


def test_a_third_region_and_a_keyspace_without_tables(tmp_path):
    two = "{'class': 'NetworkTopologyStrategy', 'us-east-1': '3', 'eu-west-1': '3'}"
    with server(tmp_path, tables=(), replication=two) as (api, session):
        client = api.client()
        add(client, "eu-west-1", "ap-east-1")
        assert shown(client) == {"ap-east-1": ("CREATING", "100%"), "eu-west-1": ("UPDATING", None), "us-east-1": ("UPDATING", None)}
        set_clock(session, advance_ms=4 * MINUTE)
        eventually(lambda: {s for s, _ in shown(client).values()} == {"ACTIVE"})
        # Tags add no Region: nothing is CREATING.
        session.execute("ALTER KEYSPACE k WITH TAGS = {'team': 'a'}")
        assert rows(session) == [(r, "Updating", None) for r in ("ap-east-1", "eu-west-1", "us-east-1")]


def test_the_progress_survives_a_restart(tmp_path):
    with server(tmp_path) as (api, session):
        client = api.client()
        add(client, "eu-west-1")
        set_clock(session, advance_ms=2 * MINUTE)
        await_progress(session, "66.66%")
        set_rule(session, "held", "ALTER KEYSPACE")
        api.server.kill9()
        api.server.flags = (*api.server.flags[:-2], "--ddl-delay", "none")
        api.server.start()
        with api.server.cluster() as cluster:
            session = cluster.connect()
            assert shown(client) == {"eu-west-1": ("CREATING", "66.66%"), "us-east-1": ("UPDATING", None)}
            assert [r for r in rows(session, "tables") if r[2] == "CREATING"] == [("c", "eu-west-1", "CREATING")]
            release(session, "k", "k", kind="keyspace")
            assert shown(client) == {"eu-west-1": ("ACTIVE", None), "us-east-1": ("ACTIVE", None)}


def test_other_ddl_waits_until_the_region_is_there(tmp_path):
    with server(tmp_path) as (api, session):
        client = api.client()
        session.execute("CREATE KEYSPACE other WITH replication = {'class': 'SingleRegionStrategy'}")
        add(client, "eu-west-1")
        for statement in ("CREATE TABLE k.d (p int PRIMARY KEY)", "ALTER TABLE k.a ADD x int", "DROP TABLE k.a", "CREATE TYPE k.t (a int)",
                          "DROP TYPE k.address", "ALTER KEYSPACE k WITH TAGS = {'team': 'a'}", "DROP KEYSPACE k"):
            with pytest.raises((InvalidRequest, NoHostAvailable), match="Keyspace 'k' is UPDATING: wait until it is ACTIVE"):
                session.execute(statement)
        refused(lambda: client.delete_table(keyspaceName="k", tableName="a"), "ConflictException", 409)
        session.execute("CREATE TABLE other.d (p int PRIMARY KEY)")
        set_clock(session, advance_ms=4 * MINUTE)
        eventually(lambda: {s for s, _ in shown(client).values()} == {"ACTIVE"})
        session.execute("DROP TABLE k.a")


def test_a_region_that_fails_leaves_the_keyspace_as_it_was(tmp_path):
    with server(tmp_path) as (api, session):
        client = api.client()
        set_rule(session, str(4 * MINUTE), "ALTER KEYSPACE", failure="no capacity")
        add(client, "eu-west-1")
        set_clock(session, advance_ms=MINUTE)
        await_progress(session, "33.33%")
        set_clock(session, advance_ms=3 * MINUTE)
        eventually(lambda: shown(client) == {})
        set_rule(session, str(4 * MINUTE), "ALTER KEYSPACE", failure="")
        add(client, "eu-west-1")
        assert shown(client)["eu-west-1"] == ("CREATING", "0%")  # nothing is left of the first


def test_a_held_change_stays_where_it_is_until_it_is_released(tmp_path):
    with server(tmp_path, delay="held") as (api, session):
        client = api.client()
        add(client, "eu-west-1")
        set_clock(session, advance_ms=60 * MINUTE)
        assert objects(session, "k")["keyspace", "k"].held and shown(client)["eu-west-1"] == ("CREATING", "0%")
        release(session, "k", "k", kind="keyspace")
        assert shown(client) == {"eu-west-1": ("ACTIVE", None), "us-east-1": ("ACTIVE", None)}


def test_table_with_customer_key_keeps_its_keyspace_in_one_region(tmp_path):
    words = "Customer managed KMS key encryption type is not supported on multi region table"
    with server(tmp_path) as (api, session):
        session.execute("CREATE TABLE k.secret (p int PRIMARY KEY) WITH CUSTOM_PROPERTIES = {'encryption_specification': "
                        "{'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY', 'kms_key_identifier': 'arn:aws:kms:us-east-1:1:key/1'}}")
        client = api.client()
        with pytest.raises(InvalidRequest, match=words):
            session.execute("ALTER KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': 3, 'eu-west-1': 3} "
                            "AND CLIENT_SIDE_TIMESTAMPS = {'status': 'ENABLED'}")
        refused(lambda: add(client, "eu-west-1"), "ValidationException", 400, words)
        session.execute("ALTER TABLE k.secret WITH CUSTOM_PROPERTIES = {'encryption_specification': {'encryption_type': 'AWS_OWNED_KMS_KEY'}}")
        add(client, "eu-west-1")
