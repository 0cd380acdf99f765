"""Application Auto Scaling of Amazon Keyspaces' tables, as boto3 and the AWS CLI ask for it: another way to say a table's AUTOSCALING_SETTINGS."""
import datetime
import json
import subprocess

import pytest

from aws_api import ACCOUNT, REGION, Api, compare_with_model, refused
from tally_server import await_active, create_keyspace

OPERATIONS = ["RegisterScalableTarget", "DescribeScalableTargets", "DeregisterScalableTarget", "PutScalingPolicy", "DescribeScalingPolicies", "DeleteScalingPolicy"]
READ, WRITE = "cassandra:table:ReadCapacityUnits", "cassandra:table:WriteCapacityUnits"
PROVISIONED = "CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}"


def test_the_table_of_shapes_is_the_service_model():
    compare_with_model("application-autoscaling", "SCALING", "shape_autoscaling.def", "as_", OPERATIONS)


class Tables:
    def __init__(self, api):
        self.api = api
        self.scaling = api.client(service="application-autoscaling")
        self.keyspaces = api.client("cbor")
        self.cluster = api.server.cluster()
        self.s = self.cluster.connect()
        create_keyspace(self.s, "sc")
        self.n = 0

    def make(self, options=PROVISIONED):
        self.n += 1
        name = f"t{self.n}"
        self.s.execute(f"CREATE TABLE sc.{name} (pk int PRIMARY KEY) WITH {options}")
        await_active(self.s, "sc", name)
        return name

    def settings(self, table, of="read"):
        got = self.keyspaces.get_table_auto_scaling_settings(keyspaceName="sc", tableName=table)["autoScalingSpecification"]
        return got[f"{of}CapacityAutoScaling"]

    def register(self, table, dimension=READ, **more):
        return self.scaling.register_scalable_target(**place(table, dimension), **more)

    def put(self, table, dimension=READ, name="mine", metric=None, target=55.0, **more):
        return self.scaling.put_scaling_policy(PolicyName=name, PolicyType="TargetTrackingScaling", **place(table, dimension), TargetTrackingScalingPolicyConfiguration={
            "TargetValue": target, "PredefinedMetricSpecification": {
                "PredefinedMetricType": metric or f"Cassandra{'Read' if dimension == READ else 'Write'}CapacityUtilization"}, **more})

    def targets(self, **asked):
        return self.scaling.describe_scalable_targets(ServiceNamespace="cassandra", **asked)["ScalableTargets"]

    def policies(self, **asked):
        return self.scaling.describe_scaling_policies(ServiceNamespace="cassandra", **asked)["ScalingPolicies"]


def place(table, dimension=READ):
    return {"ServiceNamespace": "cassandra", "ResourceId": f"keyspace/sc/table/{table}", "ScalableDimension": dimension}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    t = Tables(Api(tmp_path_factory.mktemp("scaling"), "--ddl-delay", "none", "--ddl-rules", "ALTER TABLE * = held"))
    yield t
    assert t.api.server.alive(), f"tallyd died:\n{t.api.server.log_tail()}"
    t.cluster.shutdown()
    t.api.server.stop()


def test_a_target_and_its_policy_are_the_tables_settings(tables):
    """Statements about tables are held: these are no such, and the table is ACTIVE all the time."""
    name = tables.make()
    arn = tables.register(name, MinCapacity=5, MaxCapacity=50)["ScalableTargetARN"]
    assert arn.startswith(f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:scalable-target/")
    assert tables.keyspaces.get_table(keyspaceName="sc", tableName=name)["status"] == "ACTIVE"
    (target,) = tables.targets(ResourceIds=[f"keyspace/sc/table/{name}"])
    assert (target["MinCapacity"], target["MaxCapacity"], target["ScalableTargetARN"], target["ScalableDimension"]) == (5, 50, arn, READ)
    assert not any(target["SuspendedState"].values()) and abs((target["CreationTime"] - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) < 600
    assert tables.settings(name) == {"autoScalingDisabled": True, "minimumUnits": 5, "maximumUnits": 50}, "nothing scales without a policy"
    assert tables.policies(ResourceId=f"keyspace/sc/table/{name}") == []

    made = tables.put(name, ScaleInCooldown=60, ScaleOutCooldown=30, DisableScaleIn=True)
    assert made["Alarms"] == [] and made["PolicyARN"].endswith(f":resource/cassandra/keyspace/sc/table/{name}:policyName/mine")
    assert tables.settings(name) == {"autoScalingDisabled": False, "minimumUnits": 5, "maximumUnits": 50, "scalingPolicy": {
        "targetTrackingScalingPolicyConfiguration": {"disableScaleIn": True, "scaleInCooldown": 60, "scaleOutCooldown": 30, "targetValue": 55.0}}}
    (policy,) = tables.policies(ResourceId=f"keyspace/sc/table/{name}", ScalableDimension=READ, PolicyNames=["mine"])
    assert policy["PolicyARN"] == made["PolicyARN"] and policy["PolicyType"] == "TargetTrackingScaling"
    assert policy["TargetTrackingScalingPolicyConfiguration"] == {
        "TargetValue": 55.0, "PredefinedMetricSpecification": {"PredefinedMetricType": "CassandraReadCapacityUtilization"}, "ScaleOutCooldown": 30, "ScaleInCooldown": 60,
        "DisableScaleIn": True}
    row = tables.s.execute("SELECT * FROM system_schema_mcs.autoscaling WHERE keyspace_name = 'sc' AND table_name = %s", (name,)).one()
    assert "55" in str(row.provisioned_read_capacity_autoscaling_update) and not row.provisioned_write_capacity_autoscaling_update

    tables.register(name, MaxCapacity=70)
    tables.put(name, target=60.0)
    assert tables.settings(name)["maximumUnits"] == 70 and tables.settings(name)["minimumUnits"] == 5
    assert tables.policies(ResourceId=f"keyspace/sc/table/{name}")[0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 60
    tables.scaling.delete_scaling_policy(PolicyName="mine", **place(name))
    assert tables.policies(ResourceId=f"keyspace/sc/table/{name}") == [] and tables.settings(name) == {"autoScalingDisabled": True, "minimumUnits": 5, "maximumUnits": 70}
    tables.scaling.deregister_scalable_target(**place(name))
    assert tables.targets(ResourceIds=[f"keyspace/sc/table/{name}"]) == [] and tables.settings(name) == {"autoScalingDisabled": True}


def test_settings_of_cql_are_a_target_with_a_policy(tables):
    name = tables.make(PROVISIONED + " AND AUTOSCALING_SETTINGS = {'provisioned_write_capacity_autoscaling_update': {'autoscaling_disabled': false, 'minimum_units': 4,"
                       "'maximum_units': 9, 'scaling_policy': {'target_tracking_scaling_policy_configuration': {'target_value': 50}}}}")
    assert [(t["MinCapacity"], t["MaxCapacity"], t["ScalableDimension"]) for t in tables.targets(ResourceIds=[f"keyspace/sc/table/{name}"])] == [(4, 9, WRITE)]
    (policy,) = tables.policies(ResourceId=f"keyspace/sc/table/{name}")
    assert policy["PolicyName"] == "write-capacity-target-tracking" and policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50
    refused(lambda: tables.put(name, WRITE, "another"), "ValidationException", 400, "Only one TargetTrackingScaling policy")
    tables.scaling.deregister_scalable_target(**place(name, WRITE))
    assert tables.settings(name, "write") == {"autoScalingDisabled": True}


def test_lists_have_pages_and_a_restart_forgets_nothing(tables):
    names = [tables.make() for _ in range(3)]
    for name in names:
        for dimension in (READ, WRITE):
            tables.register(name, dimension, MinCapacity=1, MaxCapacity=2)
            tables.put(name, dimension, f"of {name}")
    pages = list(tables.scaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="cassandra", PaginationConfig={"PageSize": 4}))
    assert [len(p["ScalableTargets"]) for p in pages] == [4, 2]
    assert [(t["ResourceId"], t["ScalableDimension"]) for p in pages for t in p["ScalableTargets"]] == [(f"keyspace/sc/table/{n}", d) for n in names for d in (READ, WRITE)]
    assert [p["PolicyName"] for p in tables.policies(PolicyNames=[f"of {names[1]}"])] == [f"of {names[1]}"] * 2
    assert tables.scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"] == []
    before = tables.targets(), tables.policies()
    tables.api.server.stop()
    tables.api.server.start()
    assert (tables.targets(), tables.policies()) == before
    tables.cluster.shutdown()
    tables.cluster = tables.api.server.cluster()
    tables.s = tables.cluster.connect()
    tables.s.execute(f"DROP TABLE sc.{names[0]}")
    assert [t["ResourceId"] for t in tables.targets(ScalableDimension=READ)] == [f"keyspace/sc/table/{n}" for n in names[1:]]


@pytest.mark.parametrize("call, error, text", [
    (lambda t, n: t.register(n, MinCapacity=5), "ValidationException", "MinCapacity and MaxCapacity are required"),
    (lambda t, n: t.register(n, MinCapacity=5, MaxCapacity=4), "ValidationException", "Maximum capacity cannot be less"),
    (lambda t, n: t.register(n, MinCapacity=0, MaxCapacity=4), "ValidationException", "minimum_units"),
    (lambda t, n: t.register("none", MinCapacity=1, MaxCapacity=4), "ValidationException", "keyspace/sc/table/none does not exist"),
    (lambda t, n: t.register(n, "dynamodb:table:ReadCapacityUnits", MinCapacity=1, MaxCapacity=4), "ValidationException", "Unsupported service namespace"),
    (lambda t, n: t.register(n, "what:is:this", MinCapacity=1, MaxCapacity=4), "ValidationException", "'scalableDimension' failed to satisfy constraint"),
    (lambda t, n: t.register(n, MinCapacity=1, MaxCapacity=4, SuspendedState={"DynamicScalingInSuspended": True}), "ValidationException", "cannot suspend"),
    (lambda t, n: t.register(n, MinCapacity=1, MaxCapacity=4, Tags={"a": "b"}), "ValidationException", "Tags"),
    (lambda t, n: t.register(t.make("comment = 'on demand'"), MinCapacity=1, MaxCapacity=4), "ValidationException", "should not have AUTOSCALING_SETTINGS"),
    (lambda t, n: t.put(n), "ObjectNotFoundException", "No scalable target registered for service namespace: cassandra, resource ID: keyspace/sc/table/t"),
    (lambda t, n: t.put("none"), "ObjectNotFoundException", "No scalable target registered"),
    (lambda t, n: t.scaling.deregister_scalable_target(**place(n)), "ObjectNotFoundException", "No scalable target registered"),
    (lambda t, n: t.scaling.delete_scaling_policy(PolicyName="x", **place(n)), "ObjectNotFoundException", "No scaling policy found"),
    (lambda t, n: (t.register(n, MinCapacity=1, MaxCapacity=4), t.put(n, target=9.0)), "ValidationException", "target_value"),
    (lambda t, n: (t.register(n, MinCapacity=1, MaxCapacity=4), t.put(n, metric="DynamoDBReadCapacityUtilization")), "ValidationException", "needs the PredefinedMetricType"),
    (lambda t, n: (t.register(n, MinCapacity=1, MaxCapacity=4), t.scaling.put_scaling_policy(PolicyName="x", PolicyType="StepScaling", **place(n))),
     "ValidationException", "of the type TargetTrackingScaling"),
    (lambda t, n: t.scaling.describe_scalable_targets(ServiceNamespace="cassandra", NextToken="?"), "InvalidNextTokenException", "NextToken"),
    (lambda t, n: t.scaling.describe_scalable_targets(ServiceNamespace="cassandra", MaxResults=51), "ValidationException", "MaxResults"),
    (lambda t, n: t.scaling.describe_scalable_targets(ServiceNamespace="oranges"), "ValidationException", "'serviceNamespace'"),
])
def test_what_is_wrong_is_told(tables, call, error, text):
    refused(lambda: call(tables, tables.make()), error, 400, text)


def test_a_table_that_is_being_changed_is_a_concurrent_update(tables):
    name = tables.make()
    tables.s.execute(f"ALTER TABLE sc.{name} WITH default_time_to_live = 5")
    refused(lambda: tables.register(name, MinCapacity=1, MaxCapacity=4), "ConcurrentUpdateException", 400, "UPDATING")


def test_the_aws_cli(tables, aws):
    def run(*words):
        done = subprocess.run([aws, "application-autoscaling", *words, "--service-namespace", "cassandra", "--endpoint-url", tables.api.url, "--region", REGION,
                               "--output", "json"], capture_output=True, text=True, timeout=300, check=False,
                              env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    of = ["--resource-id", f"keyspace/sc/table/{tables.make()}", "--scalable-dimension", READ]
    arn = run("register-scalable-target", *of, "--min-capacity", "2", "--max-capacity", "20")["ScalableTargetARN"]
    assert [t["MaxCapacity"] for t in run("describe-scalable-targets")["ScalableTargets"] if t["ScalableTargetARN"] == arn] == [20]
