"""Amazon Keyspaces' control plane, as boto3 and the AWS CLI call it: unmodified, with another endpoint."""
import datetime
import errno
import http.client
import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import boto3
import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

import stores
from aws_api import ACCOUNT, REGION, Api, compare_with_model, key_flags, refused
from control import release_all
from file_faults import FaultyServer, build_library
from ports import free_port
from tally_server import HANG, ROOT, Server, await_active, create_keyspace, eventually

SCHEMA = {"allColumns": [{"name": "id", "type": "int"}, {"name": "at", "type": "timestamp"}, {"name": "note", "type": "text"},
                         {"name": "tags", "type": "map<text, frozen<list<int>>>"}, {"name": "shared", "type": "text"}],
          "partitionKeys": [{"name": "id"}], "clusteringKeys": [{"name": "at", "orderBy": "DESC"}], "staticColumns": [{"name": "shared"}]}
PLAIN = {"allColumns": [{"name": "p", "type": "int"}], "partitionKeys": [{"name": "p"}]}
TARGET = {"targetTrackingScalingPolicyConfiguration": {"targetValue": 70.0, "scaleInCooldown": 60}}


def await_status(client, keyspace, table, status="ACTIVE"):
    """As the SDKs' examples wait."""
    seen = []
    eventually(lambda: seen.append(client.get_table(keyspaceName=keyspace, tableName=table)["status"]) or seen[-1] == status, lambda: seen)
    return sorted(set(seen), key=seen.index)


def without_metadata(answer):
    return {k: v for k, v in answer.items() if k != "ResponseMetadata"}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with Api(tmp_path_factory.mktemp("api"), "--ddl-delay", "100") as a:
        yield a


@pytest.fixture(scope="module", params=["json", "cbor"])
def client(request, api):
    c = api.client(request.param)
    assert c.meta.service_model.resolved_protocol == {"json": "json", "cbor": "smithy-rpc-v2-cbor"}[request.param]
    return c


@pytest.fixture(scope="module")
def keyspace(client):
    name = "Shop_" + client.meta.service_model.resolved_protocol.replace("-", "_")
    assert client.create_keyspace(keyspaceName=name, tags=[{"key": "team", "value": "a"}])["resourceArn"] == (
        f"arn:aws:cassandra:{REGION}:{ACCOUNT}:/keyspace/{name}/")
    await_keyspace(client, name)
    return name


def await_keyspace(client, name):
    """A type may be made in it once it is ACTIVE; GetKeyspace of one Region has no status."""
    def is_active():
        try:
            return client.create_type(keyspaceName=name, typeName="first", fieldDefinitions=[{"name": "a", "type": "int"}])
        except ClientError as e:
            assert e.response["Error"]["Code"] == "ConflictException", e

    eventually(is_active, f"{name} did not become ACTIVE")


@pytest.fixture(scope="module")
def session(api):
    with api.server.cluster() as cluster:
        yield cluster.connect()


# ---------------------------------------------------------------- the model

def test_the_table_of_shapes_is_the_service_model():
    compare_with_model("keyspaces", "KEYSPACES", "shape.def", "")


# ---------------------------------------------------------------- operations

def check_a_restore(client, keyspace, session, arn):
    restored = client.restore_table(sourceKeyspaceName=keyspace, sourceTableName="Orders", targetKeyspaceName=keyspace, targetTableName="Again",
                                    restoreTimestamp=datetime.datetime.now(), tagsOverride=[{"key": "of", "value": "restore"}],
                                    capacitySpecificationOverride={"throughputMode": "PROVISIONED", "readCapacityUnits": 1, "writeCapacityUnits": 2})
    assert restored["restoredTableARN"] == arn.replace("Orders", "Again")
    assert await_status(client, keyspace, "Again")[0] in ("RESTORING", "ACTIVE")
    assert client.get_table(keyspaceName=keyspace, tableName="Again")["capacitySpecification"]["writeCapacityUnits"] == 2
    assert session.execute(f'SELECT note FROM "{keyspace}"."Again" WHERE id = 1').one() == ("x",)
    client.delete_table(keyspaceName=keyspace, tableName="Again")


def test_the_life_of_a_table(client, keyspace, session):
    arn = f"arn:aws:cassandra:{REGION}:{ACCOUNT}:/keyspace/{keyspace}/table/Orders"
    made = client.create_table(
        keyspaceName=keyspace, tableName="Orders", schemaDefinition=SCHEMA, comment={"message": "of the shop"}, ttl={"status": "ENABLED"},
        defaultTimeToLive=3600, pointInTimeRecovery={"status": stores.in_use.recovery.upper()}, tags=[{"key": "team", "value": "a"}],
        capacitySpecification={"throughputMode": "PROVISIONED", "readCapacityUnits": 5, "writeCapacityUnits": 6},
        autoScalingSpecification={"readCapacityAutoScaling": {"autoScalingDisabled": False, "minimumUnits": 5, "maximumUnits": 50, "scalingPolicy": TARGET}})
    assert made["resourceArn"] == arn
    assert await_status(client, keyspace, "Orders")[0] in ("CREATING", "ACTIVE")  # of 100 ms; who asks later sees the end
    t = client.get_table(keyspaceName=keyspace, tableName="Orders")
    assert t["resourceArn"] == arn and t["comment"] == {"message": "of the shop"} and t["defaultTimeToLive"] == 3600 and t["ttl"] == {"status": "ENABLED"}
    assert t["capacitySpecification"] == {"throughputMode": "PROVISIONED", "readCapacityUnits": 5, "writeCapacityUnits": 6}
    assert t["pointInTimeRecovery"]["status"] == stores.in_use.recovery.upper()
    assert stores.in_use.recovery == "disabled" or isinstance(t["pointInTimeRecovery"]["earliestRestorableTimestamp"], datetime.datetime)
    assert abs(t["creationTimestamp"].timestamp() - time.time()) < 600
    assert sorted(t["schemaDefinition"]["allColumns"], key=str) == sorted(SCHEMA["allColumns"], key=str)
    assert {k: v for k, v in t["schemaDefinition"].items() if k != "allColumns"} == {k: v for k, v in SCHEMA.items() if k != "allColumns"}
    scaling = client.get_table_auto_scaling_settings(keyspaceName=keyspace, tableName="Orders")["autoScalingSpecification"]
    assert scaling["readCapacityAutoScaling"] == {"autoScalingDisabled": False, "minimumUnits": 5, "maximumUnits": 50, "scalingPolicy": {
        "targetTrackingScalingPolicyConfiguration": {"disableScaleIn": False, "scaleInCooldown": 60, "scaleOutCooldown": 0, "targetValue": 70.0}}}
    assert scaling["writeCapacityAutoScaling"] == {"autoScalingDisabled": True}
    session.execute(f"INSERT INTO \"{keyspace}\".\"Orders\" (id, at, note, shared) VALUES (1, '2026-01-02', 'x', 'y')")
    assert session.execute(f'SELECT note, shared FROM "{keyspace}"."Orders" WHERE id = 1').one() == ("x", "y")
    client.update_table(keyspaceName=keyspace, tableName="Orders", addColumns=[{"name": "more", "type": "frozen<first>"}])
    assert "ACTIVE" in await_status(client, keyspace, "Orders")
    assert {"name": "more", "type": "frozen<first>"} in client.get_table(keyspaceName=keyspace, tableName="Orders")["schemaDefinition"]["allColumns"]
    client.update_table(keyspaceName=keyspace, tableName="Orders", capacitySpecification={"throughputMode": "PAY_PER_REQUEST"})
    await_status(client, keyspace, "Orders")
    t = client.get_table(keyspaceName=keyspace, tableName="Orders")
    assert t["capacitySpecification"]["throughputMode"] == "PAY_PER_REQUEST" and t["warmThroughputSpecification"]["readUnitsPerSecond"] == 12000
    client.tag_resource(resourceArn=arn, tags=[{"key": "cost", "value": "b"}])
    await_status(client, keyspace, "Orders")
    client.untag_resource(resourceArn=arn, tags=[{"key": "team", "value": "a"}])
    await_status(client, keyspace, "Orders")
    assert client.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "cost", "value": "b"}]
    if stores.in_use.has_history:
        check_a_restore(client, keyspace, session, arn)
    client.delete_table(keyspaceName=keyspace, tableName="Orders")
    eventually(lambda: not client.list_tables(keyspaceName=keyspace)["tables"])
    refused(lambda: client.get_table(keyspaceName=keyspace, tableName="Orders"), "ResourceNotFoundException", 404, "The table Orders does not exist")


def test_types(client, keyspace):
    client.create_type(keyspaceName=keyspace, typeName="outer", fieldDefinitions=[{"name": "in", "type": "frozen<first>"}, {"name": "l", "type": "list<text>"}])
    eventually(lambda: client.get_type(keyspaceName=keyspace, typeName="outer")["status"] == "ACTIVE")
    got = client.get_type(keyspaceName=keyspace, typeName="outer")
    assert got["fieldDefinitions"][0] == {"name": "in", "type": "frozen<first>"} and got["maxNestingDepth"] == 2
    assert client.get_type(keyspaceName=keyspace, typeName="first")["directParentTypes"] == ["outer"]
    assert client.list_types(keyspaceName=keyspace)["types"] == ["first", "outer"]
    refused(lambda: client.delete_type(keyspaceName=keyspace, typeName="first"), "ValidationException", 400, "first")
    assert client.delete_type(keyspaceName=keyspace, typeName="outer")["typeName"] == "outer"
    refused(lambda: client.get_type(keyspaceName=keyspace, typeName="none"), "ResourceNotFoundException", 404, "The type none does not exist")


def test_a_disk_that_fails_is_an_error_of_the_server(tmp_path):
    """Keyspaces and Application Auto Scaling each name it in their way. What only reads goes on, and what was refused is not there."""
    library = build_library(tmp_path)
    with Api(tmp_path, "--ddl-delay", "none", make=lambda folder, *flags: FaultyServer(folder, library, *flags)) as api:
        c, scaling = api.client(), api.client(service="application-autoscaling")
        c.create_keyspace(keyspaceName="k")
        await_keyspace(c, "k")
        c.create_table(keyspaceName="k", tableName="t", schemaDefinition=PLAIN, capacitySpecification={
            "throughputMode": "PROVISIONED", "readCapacityUnits": 5, "writeCapacityUnits": 5})
        await_status(c, "k", "t")
        before = c.list_keyspaces()["keyspaces"]
        api.server.fail("write", 1, 1_000_000, errno.ENOSPC)
        for refuses in (c, api.client("cbor")):
            refused(lambda: refuses.create_keyspace(keyspaceName="more"), "InternalServerException", 500, "the log could not be synced")
        refused(lambda: c.create_table(keyspaceName="k", tableName="more", schemaDefinition=PLAIN), "InternalServerException", 500)
        refused(lambda: scaling.register_scalable_target(
            ServiceNamespace="cassandra", ResourceId="keyspace/k/table/t", ScalableDimension="cassandra:table:ReadCapacityUnits", MinCapacity=1, MaxCapacity=9),
            "InternalServiceException", 500)
        assert c.list_keyspaces()["keyspaces"] == before and [t["tableName"] for t in c.list_tables(keyspaceName="k")["tables"]] == ["t"]
        api.server.heal()

        def is_made():
            try:
                return c.create_keyspace(keyspaceName="more")["resourceArn"]
            except c.exceptions.InternalServerException:
                return None
        eventually(is_made)


def test_a_keyspace_is_there_when_it_can_be_used(tmp_path):
    """As Terraform waits: for GetKeyspace to find it, and with the deletion for what is under way in it."""
    api = Api(tmp_path, "--control", "on", "--ddl-delay", "none", "--ddl-rules", "CREATE KEYSPACE * = held; CREATE TABLE * = held; DROP TABLE * = held")
    c = api.client()

    def is_deleted():
        try:
            c.delete_keyspace(keyspaceName="late")
            return True
        except ClientError as e:
            assert e.response["Error"]["Code"] == "ConflictException" and busy in e.response["Error"]["Message"], e

    with api.server.cluster() as cluster:
        session = cluster.connect()
        c.create_keyspace(keyspaceName="late")
        refused(lambda: c.get_keyspace(keyspaceName="late"), "ResourceNotFoundException", 404, "does not exist")
        assert "late" not in [k["keyspaceName"] for k in c.list_keyspaces()["keyspaces"]]
        refused(lambda: c.create_keyspace(keyspaceName="late"), "ConflictException", 409)
        release_all(session)
        await_keyspace(c, "late")
        c.create_table(keyspaceName="late", tableName="t", schemaDefinition=PLAIN)
        busy = "a table under it is currently being created or deleted"
        refused(lambda: c.delete_keyspace(keyspaceName="late"), "ConflictException", 409, busy)
        release_all(session)
        await_status(c, "late", "t")
        c.delete_table(keyspaceName="late", tableName="t")
        refused(lambda: c.delete_keyspace(keyspaceName="late"), "ConflictException", 409, busy)
        release_all(session)
        eventually(is_deleted, busy)
    api.server.stop()


def test_keyspaces_of_several_regions(client):
    name = "multi_" + str(time.monotonic_ns())
    client.create_keyspace(keyspaceName=name, replicationSpecification={"replicationStrategy": "MULTI_REGION", "regionList": ["us-east-1", "eu-west-1"]})
    await_keyspace(client, name)
    got = client.get_keyspace(keyspaceName=name)
    assert got["replicationStrategy"] == "MULTI_REGION" and sorted(got["replicationRegions"]) == ["eu-west-1", "us-east-1"]
    assert {s["keyspaceStatus"] for s in got["replicationGroupStatuses"]} == {"ACTIVE"}
    client.update_keyspace(keyspaceName=name, clientSideTimestamps={"status": "ENABLED"}, replicationSpecification={
        "replicationStrategy": "MULTI_REGION", "regionList": ["us-east-1", "eu-west-1", "ap-east-1"]})
    eventually(lambda: len(client.get_keyspace(keyspaceName=name)["replicationRegions"]) == 3)
    refused(lambda: client.create_keyspace(keyspaceName="x", replicationSpecification={"replicationStrategy": "MULTI_REGION"}), "ValidationException", 400, "regionList")


def test_lists_have_pages(client, keyspace):
    for n in range(7):
        client.create_table(keyspaceName=keyspace, tableName=f"page{n}", schemaDefinition=PLAIN)
    pages = list(client.get_paginator("list_tables").paginate(keyspaceName=keyspace, PaginationConfig={"PageSize": 3}))
    assert [len(p["tables"]) for p in pages] == [3, 3, 1]
    assert [t["tableName"] for p in pages for t in p["tables"]] == [f"page{n}" for n in range(7)]
    names = [k["keyspaceName"] for p in client.get_paginator("list_keyspaces").paginate(PaginationConfig={"PageSize": 2}) for k in p["keyspaces"]]
    assert names == sorted(set(names)) and {"system", "system_schema", "system_schema_mcs", keyspace} <= set(names) and "system_metering" not in names
    refused(lambda: client.list_tables(keyspaceName=keyspace, nextToken="?"), "ValidationException", 400, "nextToken")
    for n in range(7):
        await_status(client, keyspace, f"page{n}")
        client.delete_table(keyspaceName=keyspace, tableName=f"page{n}")


OPTIONS = ("comment = 'c' AND default_time_to_live = 60 AND TAGS = {'k': 'v'} AND CLUSTERING ORDER BY (at DESC) AND CUSTOM_PROPERTIES = {"
           "'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 3, 'write_capacity_units': 4}, 'ttl': {'status': 'enabled'},"
           "'client_side_timestamps': {'status': 'enabled'}, 'point_in_time_recovery': {'status': '" + stores.in_use.recovery + "'},"
           "'warm_throughput': {'read_units_per_second': 13000, 'write_units_per_second': 5000}} AND AUTOSCALING_SETTINGS = {"
           "'provisioned_write_capacity_autoscaling_update': {'autoscaling_disabled': false, 'minimum_units': 4, 'maximum_units': 9,"
           "'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 50, 'scale_in_cooldown': 60}}}} AND cdc = true")


def test_a_table_by_cql_and_the_same_by_the_api_are_described_alike(client, session):
    """By the API, in system_schema, in system_schema_mcs, and as cqlsh describes them."""
    both = []
    scaling = {"autoScalingDisabled": False, "minimumUnits": 4, "maximumUnits": 9,
               "scalingPolicy": {"targetTrackingScalingPolicyConfiguration": {"targetValue": 50.0, "scaleInCooldown": 60}}}
    name = "same_" + str(time.monotonic_ns())
    create_keyspace(session, name)
    session.execute(f"CREATE TABLE {name}.x (id int, at timestamp, note text, tags map<text, frozen<list<int>>>, shared text static,"
                    f" PRIMARY KEY (id, at)) WITH {OPTIONS}")
    client.create_table(keyspaceName=name, tableName="y", schemaDefinition=SCHEMA, comment={"message": "c"}, defaultTimeToLive=60, tags=[{"key": "k", "value": "v"}],
                        capacitySpecification={"throughputMode": "PROVISIONED", "readCapacityUnits": 3, "writeCapacityUnits": 4}, ttl={"status": "ENABLED"},
                        clientSideTimestamps={"status": "ENABLED"}, pointInTimeRecovery={"status": stores.in_use.recovery.upper()}, cdcSpecification={"status": "ENABLED"},
                        warmThroughputSpecification={"readUnitsPerSecond": 13000, "writeUnitsPerSecond": 5000},
                        autoScalingSpecification={"writeCapacityAutoScaling": scaling})
    for table in ("x", "y"):
        await_active(session, name, table)
        await_status(client, name, table)
        seen = [without_metadata(client.get_table(keyspaceName=name, tableName=table)),
                without_metadata(client.get_table_auto_scaling_settings(keyspaceName=name, tableName=table))]
        for query in ("system_schema.tables", "system_schema.columns", "system_schema_mcs.tables", "system_schema_mcs.columns", "system_schema_mcs.autoscaling"):
            seen += sorted(session.execute(f"SELECT JSON * FROM {query} WHERE keyspace_name = %s AND table_name = %s", (name, table)), key=str)
        seen += list(session.execute("SELECT JSON tags FROM system_schema_mcs.tags WHERE resource_id = %s", (f"/keyspace/{name}/table/{table}",)))
        session.cluster.refresh_keyspace_metadata(name)
        session.cluster.refresh_table_metadata(name, table)
        seen.append(session.cluster.metadata.keyspaces[name].tables[table].export_as_string())
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+0000)?|datetime\([^)]*\)|\b\d{13}\b|stream/[\w:.-]+", "?", str(seen))
        both.append(text.replace(f"table/{table}", "table/?").replace(f"'{table}'", "?").replace(f'"{table}"', "?").replace(f"{name}.{table}", "?"))
    assert both[0] == both[1]


# ---------------------------------------------------------------- refusals

@pytest.mark.parametrize("call, error, status, text", [
    (lambda c, k: c.create_keyspace(keyspaceName="_x"), "ValidationException", 400,
     r"^1 validation error detected: Value '_x' at 'keyspaceName' failed to satisfy constraint: Member must satisfy regular expression pattern: "),
    (lambda c, k: c.create_keyspace(keyspaceName="a" * 49), "ValidationException", 400, "Member must have length less than or equal to 48"),
    (lambda c, k: c.create_keyspace(), "ValidationException", 400, "Value null at 'keyspaceName' failed to satisfy constraint: Member must not be null"),
    (lambda c, k: c.create_keyspace(keyspaceName="x", tags=[{"key": "", "value": "v"}]), "ValidationException", 400, r"Value '' at 'tags\.1\.member\.key'"),
    (lambda c, k: c.create_keyspace(keyspaceName="x", tags=[{"key": f"k{i}", "value": "v"} for i in range(61)]), "ValidationException", 400, "'tags'.*60"),
    (lambda c, k: c.list_tables(keyspaceName=k, maxResults=0), "ValidationException", 400, "Member must have value greater than or equal to 1"),
    (lambda c, k: c.list_tables(keyspaceName=k, maxResults=1001), "ValidationException", 400, "Member must have value less than or equal to 1000"),
    (lambda c, k: c.list_tables(keyspaceName="nope"), "ResourceNotFoundException", 404, "The keyspace nope does not exist"),
    (lambda c, k: c.create_keyspace(keyspaceName="system_schema"), "ValidationException", 400, "system_schema keyspace is not user-modifiable"),
    (lambda c, k: c.create_type(keyspaceName=k, typeName="my-addr", fieldDefinitions=[{"name": "a", "type": "int"}]),
     "ValidationException", 400, "UDT name my-addr contains invalid characters"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition={**PLAIN, "allColumns": [{"name": "p", "type": "int"}, {"name": "p", "type": "int"}]}),
     "ValidationException", 400, "duplicate AllColumns can not be declared"),
    (lambda c, k: c.create_keyspace(keyspaceName=k), "ConflictException", 409, "already exists"),
    (lambda c, k: c.delete_keyspace(keyspaceName="system"), "ValidationException", 400, "system keyspace"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition={**PLAIN, "clusteringKeys": [{"name": "q", "orderBy": "UP"}]}),
     "ValidationException", 400, r"Value 'UP' at 'schemaDefinition\.clusteringKeys\.1\.member\.orderBy'.*enum value set: \[ASC, DESC\]"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition={**PLAIN, "partitionKeys": [{"name": "q"}]}), "ValidationException", 400, "Unknown definition q"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition={**PLAIN, "allColumns": [{"name": "p", "type": "int; DROP"}]}),
     "ValidationException", 400, "'int; DROP' is not a type"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition={**PLAIN, "allColumns": [{"name": "p", "type": "vector<float, 2>"}]}),
     "ValidationException", 400, "vector"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition=PLAIN, capacitySpecification={"throughputMode": "PROVISIONED"}),
     "ValidationException", 400, "requires 'read_capacity_units' and 'write_capacity_units'"),
    (lambda c, k: c.create_table(keyspaceName=k, tableName="t", schemaDefinition=PLAIN, defaultTimeToLive=630720001), "ValidationException", 400, "630720000"),
    (lambda c, k: c.create_table(keyspaceName="nope", tableName="t", schemaDefinition=PLAIN), "ResourceNotFoundException", 404, "nope"),
    (lambda c, k: c.tag_resource(resourceArn="arn:aws:cassandra:nowhere", tags=[{"key": "a", "value": "b"}]), "ResourceNotFoundException", 404, "does not exist"),
    (lambda c, k: c.tag_resource(resourceArn="not an arn, but long enough", tags=[{"key": "a", "value": "b"}]), "ValidationException", 400, "'resourceArn'"),
    (lambda c, k: c.restore_table(sourceKeyspaceName=k, sourceTableName="none", targetKeyspaceName=k, targetTableName="t"), "ValidationException", 400, "none"),
])
def test_what_is_wrong_is_told_in_the_services_form(client, keyspace, call, error, status, text):
    response = refused(lambda: call(client, keyspace), error, status, text)
    if error == "ResourceNotFoundException":
        assert response["resourceArn"].startswith("arn:aws:cassandra:")


def test_capacity_beyond_a_quota_is_refused(tmp_path):
    api = Api(tmp_path, "--ddl-delay", "none")
    c = api.client()
    c.create_keyspace(keyspaceName="k")
    await_keyspace(c, "k")

    def capacity(read, write):
        return {"throughputMode": "PROVISIONED", "readCapacityUnits": read, "writeCapacityUnits": write}

    def create(name, read, write):
        return c.create_table(keyspaceName="k", tableName=name, schemaDefinition=PLAIN, capacitySpecification=capacity(read, write))

    refused(lambda: create("t", 1, 40001), "ServiceQuotaExceededException", 402, "^The quota of 40000 write units per second for a table")
    for name in ("t", "u"):
        create(name, 40000, 1)
        await_status(c, "k", name)
    refused(lambda: create("v", 1, 1), "ServiceQuotaExceededException", 402, "^The quota of 80000 read units per second for all provisioned tables together")
    refused(lambda: c.update_table(keyspaceName="k", tableName="t", capacitySpecification=capacity(1, 40001)), "ServiceQuotaExceededException", 402, "40000 write units")
    refused(lambda: c.update_table(keyspaceName="k", tableName="t", autoScalingSpecification={
        "readCapacityAutoScaling": {"autoScalingDisabled": False, "minimumUnits": 1, "maximumUnits": 40001, "scalingPolicy": TARGET}}),
        "ServiceQuotaExceededException", 402, "40000 read units")
    assert c.get_table(keyspaceName="k", tableName="t")["capacitySpecification"] == capacity(40000, 1)
    api.server.stop()


def test_what_is_under_way_is_a_conflict_and_fifty_of_it_a_quota(tmp_path):
    api = Api(tmp_path, "--ddl-rules", "CREATE TABLE k.d = none; CREATE TABLE * = held; DROP TABLE * = held; CREATE KEYSPACE * = none; CREATE TYPE * = none")
    c = api.client()
    c.create_keyspace(keyspaceName="k")
    await_keyspace(c, "k")
    c.create_table(keyspaceName="k", tableName="d", schemaDefinition=PLAIN)
    await_status(c, "k", "d")
    for _ in range(2):  # once more is no error
        c.delete_table(keyspaceName="k", tableName="d")
        assert c.get_table(keyspaceName="k", tableName="d")["status"] == "DELETING"
    for n in range(49):
        c.create_table(keyspaceName="k", tableName=f"t{n}", schemaDefinition=PLAIN)
    refused(lambda: c.create_table(keyspaceName="k", tableName="t50", schemaDefinition=PLAIN), "ServiceQuotaExceededException", 402, "50 concurrent DDL")
    refused(lambda: c.create_table(keyspaceName="k", tableName="t0", schemaDefinition=PLAIN), "ConflictException", 409, "CREATING")
    refused(lambda: c.update_table(keyspaceName="k", tableName="t0", defaultTimeToLive=5), "ConflictException", 409, "CREATING; wait until it is ACTIVE")
    refused(lambda: c.delete_table(keyspaceName="k", tableName="t0"), "ConflictException", 409, "CREATING")
    refused(lambda: c.delete_keyspace(keyspaceName="k"), "ConflictException", 409, "t0")
    api.server.stop()


def test_one_request_changes_one_setting(client, keyspace):
    client.create_table(keyspaceName=keyspace, tableName="settings", schemaDefinition=PLAIN)
    await_status(client, keyspace, "settings")
    refused(lambda: client.update_table(keyspaceName=keyspace, tableName="settings", defaultTimeToLive=5, pointInTimeRecovery={"status": "ENABLED"}),
            "ValidationException", 400, "one setting")
    refused(lambda: client.update_table(keyspaceName=keyspace, tableName="settings"), "ValidationException", 400, "changes nothing")
    refused(lambda: client.get_table_auto_scaling_settings(keyspaceName=keyspace, tableName="settings"), "ValidationException", 400, "provisioned")
    client.delete_table(keyspaceName=keyspace, tableName="settings")


# ---------------------------------------------------------------- bodies

JSON = {"Content-Type": "application/x-amz-json-1.0"}
CBOR = {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}
LIST = "/service/KeyspacesService/operation/ListKeyspaces"


@pytest.mark.parametrize("body, headers, path, status, error", [
    (b"{}", {**JSON, "X-Amz-Target": "KeyspacesService.NoSuch"}, "/", 404, "UnknownOperationException"),
    (b"{}", {**JSON, "X-Amz-Target": "OtherService.ListKeyspaces"}, "/", 404, "UnknownOperationException"),
    (b"{}", JSON, "/", 404, "UnknownOperationException"),
    (b"\xa0", CBOR, "/service/KeyspacesService/operation/NoSuch", 404, "UnknownOperationException"),
    (b"{", {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"}, "/", 400, "SerializationException"),
    (b"[" * 40, {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"}, "/", 400, "SerializationException"),
    (b"[]", {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"}, "/", 400, "SerializationException"),
    (b'{"maxResults": "x"}', {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"}, "/", 400, "SerializationException"),
    (b'{"keyspaceName": "a\\u0000b"}', {**JSON, "X-Amz-Target": "KeyspacesService.GetKeyspace"}, "/", 400, "SerializationException"),
    (b"\xff", CBOR, LIST, 400, "SerializationException"),
    (b"\xa1\x61", CBOR, LIST, 400, "SerializationException"),
    (b"\x81" * 40 + b"\x00", CBOR, LIST, 400, "SerializationException"),
    (b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff", CBOR, LIST, 400, "SerializationException"),
    (b"\xa0\xa0", CBOR, LIST, 400, "SerializationException"),
    (b"\xa1\x67message\x62\xc3\x28", CBOR, LIST, 400, "SerializationException"),
    (b"", CBOR, LIST, 200, None),
    (b"\xbf\xff", CBOR, LIST, 200, None),
    (b"\xbf\x6amaxResults\x01\xff", CBOR, LIST, 200, None),
    (b"\xa1\x7f\x63max\x67Results\xff\x18\x64", CBOR, LIST, 200, None),
    (b'{"unknown": {"member": [1, 2, null]}}', {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"}, "/", 200, None),
])
def test_bodies(api, body, headers, path, status, error):
    got = api.post(body, headers, path)
    assert got[:2] == (status, error), got
    if error and headers.get("smithy-protocol") is None:
        assert json.loads(got[2])["__type"] == f"com.amazonaws.keyspaces#{error}"


def test_a_body_that_is_too_large_is_refused_and_others_go_on(api, client):
    status, _, _ = api.post(b" " * (2 << 20), {**JSON, "X-Amz-Target": "KeyspacesService.ListKeyspaces"})
    assert status == 413
    assert client.list_keyspaces()["keyspaces"]


def test_half_requests_hold_nobody_up(api, client):
    """64 connections are kept. Those that never send a whole request make room, and one that has been answered stays open."""
    innocent = http.client.HTTPConnection("127.0.0.1", api.port, timeout=HANG)

    def ask():
        innocent.request("GET", "/")
        return innocent.getresponse().read()

    ask()
    socket_before = innocent.sock
    half = []
    for _ in range(200):
        half.append(socket.create_connection(("127.0.0.1", api.port)))
        half[-1].sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
    half[0].settimeout(HANG)
    assert half[0].recv(1) == b""  # the server has closed it
    ask()
    assert innocent.sock is socket_before
    assert client.list_keyspaces()["keyspaces"]
    for s in half:
        s.close()


# ---------------------------------------------------------------- signatures

@pytest.mark.parametrize("protocol", ["json", "cbor"])
def test_signatures_are_verified_where_logins_are_asked_for(tmp_path, protocol):
    api = Api(tmp_path, *key_flags(tmp_path, "user alice pw", "key AKID SECRET alice", "key TEMP OTHER alice a-token"))
    good = api.client(protocol, "AKID", "SECRET")
    assert good.list_keyspaces()["keyspaces"]
    assert good.create_keyspace(keyspaceName="mine")["resourceArn"]
    assert api.client(protocol, "TEMP", "OTHER", "a-token").list_keyspaces()["keyspaces"]
    refused(api.client(protocol, "AKID", "WRONG").list_keyspaces, "InvalidSignatureException", 403, "does not match")
    refused(api.client(protocol, "NOBODY", "SECRET").list_keyspaces, "UnrecognizedClientException", 403, "security token")
    refused(api.client(protocol, "TEMP", "OTHER", "b-token").list_keyspaces, "UnrecognizedClientException", 403, "security token")
    refused(api.client(protocol, "TEMP", "OTHER").list_keyspaces, "UnrecognizedClientException", 403, "security token")
    refused(api.client(protocol, "AKID", "SECRET", "any-token").list_keyspaces, "UnrecognizedClientException", 403,
            "security token")
    assert api.client(protocol, "AKID", "SECRET", region="eu-west-1").get_keyspace(keyspaceName="mine")["resourceArn"].startswith("arn:aws:cassandra:eu-west-1:")
    refused(api.client(protocol, "AKID", "SECRET", region="eu-west-9").list_keyspaces, "InvalidSignatureException", 403, "valid region")
    refused(api.client(protocol, signature_version=botocore.UNSIGNED).list_keyspaces, "MissingAuthenticationTokenException", 403)
    api.server.stop()


@pytest.mark.parametrize("protocol", ["json", "cbor"])
def test_names_are_of_the_region_that_a_request_is_signed_for(tmp_path, protocol):
    """Also without --auth, where the signature itself is not checked."""
    api = Api(tmp_path, "--ddl-delay", "none")
    here, there = api.client(protocol), api.client(protocol, region="eu-west-1")
    prefix = f"arn:aws:cassandra:eu-west-1:{ACCOUNT}:/keyspace/k/"
    assert there.create_keyspace(keyspaceName="k", tags=[{"key": "a", "value": "b"}])["resourceArn"] == prefix
    await_keyspace(there, "k")
    assert there.create_table(keyspaceName="k", tableName="t", schemaDefinition=PLAIN, cdcSpecification={"status": "ENABLED"})["resourceArn"] == f"{prefix}table/t"
    table = there.get_table(keyspaceName="k", tableName="t")
    assert table["resourceArn"] == f"{prefix}table/t" and table["latestStreamArn"].startswith(f"{prefix}table/t/stream/")
    assert there.list_tags_for_resource(resourceArn=prefix)["tags"] == [{"key": "a", "value": "b"}]
    refused(lambda: here.list_tags_for_resource(resourceArn=prefix), "ResourceNotFoundException", 404)
    refused(lambda: there.get_table(keyspaceName="k", tableName="u"), "ResourceNotFoundException", 404)
    own = prefix.replace("eu-west-1", REGION)
    assert here.get_keyspace(keyspaceName="k")["resourceArn"] == own
    assert {k["resourceArn"] for k in here.list_keyspaces()["keyspaces"] if k["keyspaceName"] == "k"} == {own}
    assert api.client(protocol, region="nowhere-1").get_keyspace(keyspaceName="k")["resourceArn"] == own
    assert api.client(protocol, signature_version=botocore.UNSIGNED).get_keyspace(keyspaceName="k")["resourceArn"] == own
    api.server.stop()


def test_an_old_signature_is_refused(tmp_path, monkeypatch):
    api = Api(tmp_path, *key_flags(tmp_path, "user alice pw", "key AKID SECRET alice"))
    real = botocore.auth.get_current_datetime
    for minutes, fits in ((-14, True), (14, True), (-16, False), (16, False)):
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *a, m=minutes, **k: real(*a, **k) + datetime.timedelta(minutes=m))
        call = api.client("json", "AKID", "SECRET").list_keyspaces
        if fits:
            call()
        else:
            refused(call, "InvalidSignatureException", 403, "Signature expired")
    api.server.stop()


# ---------------------------------------------------------------- other ways in

def test_https_beside_http(tmp_path):
    cert, key, port = tmp_path / "cert.pem", tmp_path / "key.pem", free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    api = Api(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key), "--tls-port", "0", "--api-tls-port", str(port))
    c = boto3.client("keyspaces", endpoint_url=f"https://127.0.0.1:{port}", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b", verify=str(cert))
    assert c.list_keyspaces()["keyspaces"] == api.client().list_keyspaces()["keyspaces"]
    api.server.stop()


def test_the_aws_cli(api, aws):
    def run(*words):
        done = subprocess.run([aws, "keyspaces", *words, "--endpoint-url", api.url, "--region", REGION, "--output", "json"], capture_output=True, text=True,
                              timeout=300, check=False, env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    assert run("create-keyspace", "--keyspace-name", "cli")[1]["resourceArn"].endswith(":/keyspace/cli/")
    await_keyspace(api.client(), "cli")
    code, made, error = run("create-table", "--keyspace-name", "cli", "--table-name", "t", "--schema-definition", json.dumps(SCHEMA),
                            "--capacity-specification", "throughputMode=PAY_PER_REQUEST", "--tags", "key=a,value=b")
    assert code == 0, error
    await_status(api.client(), "cli", "t")
    assert run("get-table", "--keyspace-name", "cli", "--table-name", "t")[1]["status"] == "ACTIVE"
    assert run("list-tags-for-resource", "--resource-arn", made["resourceArn"])[1]["tags"] == [{"key": "a", "value": "b"}]
    code, _, error = run("get-table", "--keyspace-name", "cli", "--table-name", "none")
    assert code in (254, 255) and "(ResourceNotFoundException) when calling the GetTable operation: The table none does not exist" in error


def test_the_documentation_runs_as_it_stands(tmp_path, aws):
    """Its lines of Python and of a shell, in their order, on a server of another account."""
    api = Api(tmp_path, "--account", "210987654321", "--ddl-delay", "100")
    names, ran = {}, 0
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "docs/control_plane.md").read_text(), re.M | re.S):
        if language not in ("python", ""):
            continue
        block = block.replace("127.0.0.1:9181", f"127.0.0.1:{api.port}")
        ran += 1
        if "application-autoscaling" in block:  # of a table that has capacity of its own
            names["keyspaces"].update_table(keyspaceName="mykeyspace", tableName="mytable", capacitySpecification={
                "throughputMode": "PROVISIONED", "readCapacityUnits": 10, "writeCapacityUnits": 10})
            await_status(names["keyspaces"], "mykeyspace", "mytable")
        if language:
            exec(block, names)  # pylint: disable=exec-used
        else:
            done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True, timeout=300, check=False,
                                  env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PATH": f"{Path(aws).parent}:/usr/bin:/bin", "HOME": "/nonexistent"})
            assert done.returncode == 0 and "mytable" in done.stdout, (block, done.stdout, done.stderr)
    assert ran == 5
    arn = "arn:aws:cassandra:us-east-1:210987654321:/keyspace/mykeyspace/table/mytable"
    assert names["keyspaces"].get_table(keyspaceName="mykeyspace", tableName="mytable")["resourceArn"] == arn
    policy = names["scaling"].describe_scaling_policies(ServiceNamespace="cassandra")["ScalingPolicies"][0]
    assert (policy["PolicyName"], policy["PolicyARN"].split(":")[4]) == ("reads", "210987654321")
    api.server.stop()


def test_a_signature_covers_the_operation(tmp_path):
    """A request that was signed for one operation is not one for another, whose name somebody puts beside it."""
    with Api(tmp_path, *key_flags(tmp_path, "user alice pw", "key AKID SECRET alice")) as api:
        body = b'{"keyspaceName": "k"}'
        api.client("json", "AKID", "SECRET").create_keyspace(keyspaceName="k")

        def post(target, signed, **added):
            request = AWSRequest("POST", f"{api.url}/", data=body, headers={**JSON,
                **({"X-Amz-Target": target} if signed else {})})
            SigV4Auth(Credentials("AKID", "SECRET"), "cassandra", REGION).add_auth(request)
            return api.post(body, {**request.headers, "X-Amz-Target": target, **added})

        get, drop = "KeyspacesService.GetKeyspace", "KeyspacesService.DeleteKeyspace"
        status, error, answer = post(drop, signed=False)
        assert (status, error) == (400, "IncompleteSignatureException") and b"x-amz-target" in answer
        status, error, _ = post(get, signed=True, **{"X-Amz-Target": drop})
        assert (status, error) == (403, "InvalidSignatureException")
        eventually(lambda: post(get, signed=True)[0] == 200)


def test_the_terraform_block_is_terraform(tmp_path):
    """As far as its syntax goes: the provider itself is not fetched."""
    if not shutil.which("terraform"):
        pytest.skip("not run: no terraform on this machine")
    blocks = re.findall(r"^```hcl\n(.*?)^```", (ROOT / "docs/control_plane.md").read_text(), re.M | re.S)
    assert blocks
    (tmp_path / "main.tf").write_text("\n".join(blocks))
    done = subprocess.run(["terraform", "fmt", "-check", "-diff", tmp_path / "main.tf"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_no_api_in_cassandra_mode(tmp_path):
    port = free_port()
    server = Server(tmp_path, "--mode", "cassandra", "--api-port", str(port)).start()
    assert server.ready["api"] == "off"
    with pytest.raises(OSError):
        http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/")
    server.stop()
