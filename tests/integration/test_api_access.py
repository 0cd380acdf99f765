"""AWS's API and what else governs statements: permissions of roles, the rules that delay, hold and fail DDL, bounds on requests. What CQL says of them, the API says."""
import functools
import json
import re
import socket
import threading
import time

import pytest
from botocore.exceptions import ClientError
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider

from aws_api import REGION, Api, key_flags, make_roles, refused
from control import drop_rule, release, set_clock, set_rule
from tally_server import HANG, eventually

PLAIN = {"allColumns": [{"name": "p", "type": "int"}], "partitionKeys": [{"name": "p"}]}
PROVISIONED = "CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}"
ARN = f"arn:aws:cassandra:{REGION}:111122223333:/keyspace/k/table/t"
TAGS = [{"key": "a", "value": "b"}]
PLACE = {"ServiceNamespace": "cassandra", "ResourceId": "keyspace/k/table/t", "ScalableDimension": "cassandra:table:ReadCapacityUnits"}
HOUR = {"StartTime": 0, "EndTime": 3600}


# ---------------------------------------------------------------- permissions

@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A server whose roles were made by statements, in cassandra mode: `nobody` may do nothing, `some` a little; and which are logged in to by keys."""
    folder = tmp_path_factory.mktemp("access")
    roles = [f"CREATE ROLE {role} WITH PASSWORD = 'pw' AND LOGIN = true" for role in ("nobody", "some")]
    grants = [f"GRANT {grant} TO some" for grant in ("SELECT ON ALL KEYSPACES", "ALTER ON k.t", "CREATE ON KEYSPACE k")]
    make_roles(folder, "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", "CREATE TABLE k.t (p int PRIMARY KEY)",
               "CREATE TYPE k.y (a int)", *roles, *grants)
    keys = key_flags(folder, "user root pw", "user nobody pw", "user some pw", "key ROOT SECRET root", "key NOBODY SECRET nobody", "key SOME SECRET some")
    with Api(folder, *keys, "--ddl-delay", "none") as api:
        root = api.client(key="ROOT", secret="SECRET")
        if api.server.has_history:
            root.update_table(keyspaceName="k", tableName="t", pointInTimeRecovery={"status": "ENABLED"})
        root.update_table(keyspaceName="k", tableName="t", capacitySpecification={"throughputMode": "PROVISIONED", "readCapacityUnits": 10, "writeCapacityUnits": 20})
        yield api


@functools.lru_cache(maxsize=None)
def client_of(api, key, protocol="json", service="keyspaces"):
    return api.client(protocol, key, "SECRET", service=service)


CHANGES = [
    ("CREATE permission on <all keyspaces>", lambda k: k.create_keyspace(keyspaceName="mine")),
    ("ALTER permission on <keyspace k>", lambda k: k.update_keyspace(keyspaceName="k", replicationSpecification={
        "replicationStrategy": "MULTI_REGION", "regionList": [REGION, "eu-west-1"]})),
    ("DROP permission on <keyspace k>", lambda k: k.delete_keyspace(keyspaceName="k")),
    ("CREATE permission on <all tables in k>", lambda k: k.create_table(keyspaceName="k", tableName="mine", schemaDefinition=PLAIN)),
    ("CREATE permission on <all tables in k>", lambda k: k.create_type(keyspaceName="k", typeName="mine", fieldDefinitions=[{"name": "a", "type": "int"}])),
    ("CREATE permission on <all tables in k>", lambda k: k.restore_table(sourceKeyspaceName="k", sourceTableName="t", targetKeyspaceName="k", targetTableName="r")),
    ("ALTER permission on <table k.t>", lambda k: k.update_table(keyspaceName="k", tableName="t", defaultTimeToLive=60)),
    ("ALTER permission on <table k.t>", lambda k: k.tag_resource(resourceArn=ARN, tags=TAGS)),
    ("ALTER permission on <table k.t>", lambda k: k.untag_resource(resourceArn=ARN, tags=TAGS)),
    ("DROP permission on <table k.t>", lambda k: k.delete_table(keyspaceName="k", tableName="t")),
    ("DROP permission on <all tables in k>", lambda k: k.delete_type(keyspaceName="k", typeName="y")),
]


@pytest.mark.parametrize("protocol", ["json", "cbor"])
@pytest.mark.parametrize("lacks, call", CHANGES)
def test_who_may_not_change_it_is_told_so(signed, lacks, call, protocol):
    keyspaces = client_of(signed, "NOBODY", protocol)
    refused(lambda: call(keyspaces), "AccessDeniedException", 403, f"^User nobody has no {lacks} or any of its parents$")


@pytest.mark.parametrize("protocol", ["json", "cbor", "query"])
def test_metrics_are_for_who_may_read_the_ledger(signed, protocol):
    def calls(key):
        metrics = client_of(signed, key, protocol, "cloudwatch")
        return (lambda: metrics.get_metric_statistics(Namespace="AWS/Cassandra", MetricName="AccountMaxReads", Period=60, Statistics=["Sum"], **HOUR),
                lambda: metrics.get_metric_data(MetricDataQueries=[{"Id": "a", "MetricStat": {"Metric": {"Namespace": "AWS/Cassandra"}, "Period": 60, "Stat": "Sum"}}], **HOUR),
                metrics.list_metrics)

    for call in calls("NOBODY"):
        refused(call, "AccessDenied", 403, "User nobody has no SELECT permission on <table system_metering.metrics> or any of its parents")
    for call in calls("SOME"):
        call()


def test_targets_and_policies_are_the_tables_to_alter(signed):
    policy = {"PolicyName": "x", "PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 50.0, "PredefinedMetricSpecification": {"PredefinedMetricType": "CassandraReadCapacityUtilization"}}}

    def calls(key):
        scaling = client_of(signed, key, service="application-autoscaling")
        return (lambda: scaling.register_scalable_target(**PLACE, MinCapacity=1, MaxCapacity=5), lambda: scaling.put_scaling_policy(**PLACE, **policy),
                lambda: scaling.delete_scaling_policy(**PLACE, PolicyName="x"), lambda: scaling.deregister_scalable_target(**PLACE))

    for allowed in calls("SOME"):
        allowed()
    scaling = client_of(signed, "SOME", service="application-autoscaling")
    scaling.register_scalable_target(**PLACE, MinCapacity=1, MaxCapacity=5)
    scaling.put_scaling_policy(**PLACE, **policy)
    for denied in calls("NOBODY"):
        refused(denied, "AccessDeniedException", 403, "^User nobody has no ALTER permission on <table k.t> or any of its parents$")


def test_a_role_may_what_it_was_granted_and_what_it_made(signed):
    keyspaces = client_of(signed, "SOME")
    keyspaces.create_table(keyspaceName="k", tableName="own", schemaDefinition=PLAIN)
    keyspaces.update_table(keyspaceName="k", tableName="t", defaultTimeToLive=60)
    refused(lambda: keyspaces.delete_table(keyspaceName="k", tableName="t"), "AccessDeniedException", 403, "DROP permission on <table k.t>")
    keyspaces.delete_table(keyspaceName="k", tableName="own")
    assert keyspaces.get_table(keyspaceName="k", tableName="t")["defaultTimeToLive"] == 60
    assert client_of(signed, "NOBODY").list_tables(keyspaceName="k")["tables"], "who has signed may read the schema, as in CQL"


def test_cql_says_the_same(signed):
    with signed.server.cluster(auth_provider=PlainTextAuthProvider("nobody", "pw")) as cluster, pytest.raises(Unauthorized) as caught:
        cluster.connect().execute("ALTER TABLE k.t WITH default_time_to_live = 60")
    words = re.search(r'message="([^"]*)"', str(caught.value)).group(1)
    refused(lambda: client_of(signed, "NOBODY").update_table(keyspaceName="k", tableName="t", defaultTimeToLive=60),
            "AccessDeniedException", 403, "^" + re.escape(words) + "$")


# ---------------------------------------------------------------- rules of DDL

@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    with Api(tmp_path_factory.mktemp("rules"), "--control", "on", "--ddl-delay", "none") as api, api.server.cluster() as cluster:
        api.s, api.keyspaces = cluster.connect(), api.client("cbor")
        api.s.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        yield api


def status_by_cql(api, table):
    row = api.s.execute("SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = 'k' AND table_name = %s", (table,)).one()
    return row.status if row else None


def status_by_api(api, table):
    try:
        return api.keyspaces.get_table(keyspaceName="k", tableName=table)["status"]
    except ClientError as e:
        assert (e.response["Error"]["Code"], e.response["ResponseMetadata"]["HTTPStatusCode"]) == ("ResourceNotFoundException", 404)
        return None


def status(api, table):
    """By the API and by CQL: the same, or none by both; asked again when it changes meanwhile."""
    while True:
        before, by_api, after = status_by_cql(api, table), status_by_api(api, table), status_by_cql(api, table)
        if before == after:
            assert by_api == before
            return by_api


@pytest.mark.parametrize("way", ["api", "cql"])
def test_changes_that_are_held_and_fail(ruled, way):
    """Whichever way a change is asked for: held, its status stands; failed, things are as they were; and the API sees what CQL sees."""
    c, s, table = ruled.keyspaces, ruled.s, f"held_by_{way}"
    create, alter, drop = {
        "api": (lambda: c.create_table(keyspaceName="k", tableName=table, schemaDefinition=PLAIN),
                lambda: c.update_table(keyspaceName="k", tableName=table, defaultTimeToLive=77), lambda: c.delete_table(keyspaceName="k", tableName=table)),
        "cql": (lambda: s.execute(f"CREATE TABLE k.{table} (p int PRIMARY KEY)"), lambda: s.execute(f"ALTER TABLE k.{table} WITH default_time_to_live = 77"),
                lambda: s.execute(f"DROP TABLE k.{table}"))}[way]

    def run(statement, change, meanwhile, afterwards, failure="out of luck"):
        set_rule(s, "held", statement=statement, keyspace="k", name=table, failure=failure)
        change()
        assert status(ruled, table) == meanwhile
        refused(lambda: c.update_table(keyspaceName="k", tableName=table, defaultTimeToLive=5), "ConflictException", 409, meanwhile)
        release(s, "k", table)
        eventually(lambda: status(ruled, table) == afterwards)
        drop_rule(s, statement=statement, keyspace="k", name=table)

    run("CREATE TABLE", create, "CREATING", None)
    run("CREATE TABLE", create, "CREATING", "ACTIVE", failure="")
    run("ALTER TABLE", alter, "UPDATING", "ACTIVE")
    assert c.get_table(keyspaceName="k", tableName=table)["defaultTimeToLive"] == 0
    run("ALTER TABLE", alter, "UPDATING", "ACTIVE", failure="")
    assert c.get_table(keyspaceName="k", tableName=table)["defaultTimeToLive"] == 77
    run("DROP TABLE", drop, "DELETING", "ACTIVE")
    run("DROP TABLE", drop, "DELETING", None, failure="")


def test_changes_take_the_time_that_rules_say(ruled):
    set_rule(ruled.s, "5000", statement="CREATE TABLE", keyspace="k", name="slow")
    set_clock(ruled.s, state="frozen")
    ruled.keyspaces.create_table(keyspaceName="k", tableName="slow", schemaDefinition=PLAIN)
    assert status(ruled, "slow") == "CREATING"
    set_clock(ruled.s, advance_ms=5000)
    eventually(lambda: status(ruled, "slow") == "ACTIVE")


# ---------------------------------------------------------------- bounds: a guilty client and an innocent one

HEADERS = (b"Host: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n"
           b"X-Amz-Target: KeyspacesService.ListKeyspaces\r\n")
SECOND = 1


@pytest.fixture(scope="module")
def bounded(tmp_path_factory):
    with Api(tmp_path_factory.mktemp("bounds"), "--request-timeout", str(SECOND)) as api:
        yield api


def innocent(api):
    """Each time over a connection of its own: one that is kept is idle for longer than it may be here."""
    status, _, body = api.post(b"{}", {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "KeyspacesService.ListKeyspaces"})
    assert status == 200 and json.loads(body)["keyspaces"]


def trickle(api, first, piece):
    """Sends a piece every tenth of a second until the server has had enough of it; what the server said."""
    with socket.create_connection(("127.0.0.1", api.port), timeout=300) as s:
        s.sendall(first)
        s.settimeout(0.1)
        deadline = time.monotonic() + HANG
        while time.monotonic() < deadline:
            try:
                s.sendall(piece)
                got = s.recv(4096)
                return got
            except socket.timeout:
                innocent(api)
            except (ConnectionResetError, BrokenPipeError):
                return b""
    raise AssertionError("the connection was never ended")


@pytest.mark.parametrize("first, piece", [
    (b"POST / HTTP/1.1\r\n", b"X"),
    (b"POST / HTTP/1.1\r\n" + HEADERS, b"A: b\r\n"),
    (b"POST / HTTP/1.1\r\n" + HEADERS + b"Content-Length: 100000\r\n\r\n{", b" "),
    (b"POST / HTTP/1.1\r\n" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    (b"", b"\r\n"),
])
def test_who_sends_slowly_is_sent_off_and_others_are_answered(bounded, first, piece):
    assert b" 200 " not in trickle(bounded, first, piece)


def test_a_header_that_is_too_large(bounded):
    with socket.create_connection(("127.0.0.1", bounded.port), timeout=300) as s:
        try:
            s.sendall(b"POST / HTTP/1.1\r\n" + HEADERS + b"X-Large: " + b"x" * (1 << 20) + b"\r\n\r\n{}")
            answer = s.recv(4096)
        except (ConnectionResetError, BrokenPipeError):
            answer = b""
    assert not answer or re.match(rb"HTTP/1\.1 (431|413|400|414) ", answer)
    innocent(bounded)


def read_answer(stream):
    """(status, what the body says)"""
    status, length = int(stream.readline().split()[1]), 0
    while (line := stream.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, json.loads(stream.read(length))


def test_requests_one_behind_the_other_are_answered_in_order(bounded):
    bodies = [b'{"maxResults": 1}', b"{", b'{"maxResults": 2}']
    with socket.create_connection(("127.0.0.1", bounded.port), timeout=300) as s:
        s.sendall(b"".join(b"POST / HTTP/1.1\r\n" + HEADERS + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies))
        answers = [read_answer(stream) for stream in [s.makefile("rb")] * len(bodies)]
    assert [a[0] for a in answers] == [200, 400, 200]
    assert [len(a[1].get("keyspaces", ())) for a in answers] == [1, 0, 2] and answers[1][1]["__type"].endswith("#SerializationException")


def test_a_long_pipeline_keeps_nobody_waiting(bounded):
    one = b"POST / HTTP/1.1\r\n" + HEADERS + b"Content-Length: 2\r\n\r\n{}"
    stop = threading.Event()

    def guilty():
        while not stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", bounded.port), timeout=300) as s:
                    s.settimeout(0.2)
                    while not stop.is_set():
                        s.sendall(one * 200)  # and reads nothing
            except OSError:
                pass

    threads = [threading.Thread(target=guilty) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            innocent(bounded)
    finally:
        stop.set()
        for t in threads:
            t.join()
