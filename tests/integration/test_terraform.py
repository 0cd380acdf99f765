"""The requests that Terraform's AWS provider sends, in its order, with its waits.

The provider itself takes hours to build and cannot be fetched. The sequence is that of its source at commit 5f2286d6d836: keyspace.go, table.go
and tags_gen.go in internal/service/keyspaces, and internal/provider/sdkv2/tags_interceptor.go, which sends tags before the update of the
resource and reads them after each operation.
"""
import pytest
from botocore.exceptions import ClientError

import stores
from aws_api import Api
from tally_server import eventually

PENDING = {"create": {"CREATING"}, "update": {"UPDATING"}, "delete": {"ACTIVE", "DELETING"}}


@pytest.fixture
def terraform(tmp_path):
    with Api(tmp_path) as api:
        yield Terraform(api.client())


class Terraform:
    """Resources as in a state file: what was read of each."""

    def __init__(self, client):
        self.client, self.state = client, {}

    # aws_keyspaces_keyspace

    def find_keyspace(self, name):
        try:
            return self.client.get_keyspace(keyspaceName=name)
        except self.client.exceptions.ResourceNotFoundException:
            return None

    def create_keyspace(self, name, tags=(), **more):
        self.client.create_keyspace(keyspaceName=name, **({"tags": pairs(tags)} if tags else {}), **more)
        eventually(lambda: self.find_keyspace(name))
        return self.read_keyspace(name)

    def read_keyspace(self, name):
        got = self.find_keyspace(name)
        self.state[name] = got and {"arn": got["resourceArn"], "name": got["keyspaceName"], "strategy": got["replicationStrategy"],
                                    "regions": set(got.get("replicationRegions", [])), "tags": self.list_tags(got["resourceArn"])}
        return self.state[name]

    def update_keyspace(self, name, tags):
        self.update_tags(self.state[name]["arn"], self.state[name]["tags"], tags)
        return self.read_keyspace(name)

    def delete_keyspace(self, name):
        def deleted():
            try:
                return self.client.delete_keyspace(keyspaceName=name)
            except self.client.exceptions.ConflictException as e:
                assert "a table under it is currently being created or deleted" in e.response["Error"]["Message"], e
                return None

        eventually(deleted)
        eventually(lambda: self.find_keyspace(name) is None)

    # aws_keyspaces_table

    def wait(self, keyspace, table, operation):
        """As StateChangeConf: a status that is neither pending nor the target is an error."""
        def ended():
            try:
                status = self.client.get_table(keyspaceName=keyspace, tableName=table)["status"]
            except self.client.exceptions.ResourceNotFoundException:
                status = None
            if status in PENDING[operation]:
                return False
            assert status == (None if operation == "delete" else "ACTIVE"), status
            return True

        eventually(ended)

    def create_table(self, keyspace, table, tags=(), **settings):
        self.client.create_table(keyspaceName=keyspace, tableName=table, **({"tags": pairs(tags)} if tags else {}), **settings)
        self.wait(keyspace, table, "create")
        return self.read_table(keyspace, table)

    def read_table(self, keyspace, table):
        got = self.client.get_table(keyspaceName=keyspace, tableName=table)
        capacity = got["capacitySpecification"]
        self.state[keyspace, table] = {
            "arn": got["resourceArn"],
            "capacity_specification": {k: capacity[k] for k in ("throughputMode", "readCapacityUnits", "writeCapacityUnits") if k in capacity},
            "comment": got.get("comment", {}).get("message"), "default_time_to_live": got.get("defaultTimeToLive"),
            "encryption_specification": got["encryptionSpecification"], "point_in_time_recovery": got["pointInTimeRecovery"]["status"],
            "columns": {c["name"]: c["type"] for c in got["schemaDefinition"]["allColumns"]}, "ttl": got.get("ttl", {}).get("status"),
            "client_side_timestamps": got.get("clientSideTimestamps", {}).get("status"), "tags": self.list_tags(got["resourceArn"])}
        return self.state[keyspace, table]

    def update_table(self, keyspace, table, tags=None, **settings):
        """One UpdateTable for each setting that changes."""
        if tags is not None:
            self.update_tags(self.state[keyspace, table]["arn"], self.state[keyspace, table]["tags"], tags)
        for name, value in settings.items():
            self.client.update_table(keyspaceName=keyspace, tableName=table, **{name: value})
            self.wait(keyspace, table, "update")
        return self.read_table(keyspace, table)

    def delete_table(self, keyspace, table):
        self.client.delete_table(keyspaceName=keyspace, tableName=table)
        self.wait(keyspace, table, "delete")

    # tags

    def list_tags(self, arn):
        return {t["key"]: t["value"] for page in self.client.get_paginator("list_tags_for_resource").paginate(resourceArn=arn) for t in page["tags"]}

    def update_tags(self, arn, old, new):
        """Without a wait between them, or behind."""
        removed, updated = {k: v for k, v in old.items() if k not in new}, {k: v for k, v in new.items() if old.get(k) != v}
        if removed:
            self.client.untag_resource(resourceArn=arn, tags=pairs(removed))
        if updated:
            self.client.tag_resource(resourceArn=arn, tags=pairs(updated))


def pairs(tags):
    return [{"key": k, "value": v} for k, v in dict(tags).items()]


def columns(**types):
    return [{"name": name, "type": cql} for name, cql in types.items()]


def test_a_keyspace_is_made_tagged_and_deleted(terraform):
    made = terraform.create_keyspace("shop", tags={"team": "a", "env": "test"})
    assert made["strategy"] == "SINGLE_REGION" and made["tags"] == {"team": "a", "env": "test"}
    assert terraform.read_keyspace("shop") == made  # a plan right after it is empty
    assert terraform.update_keyspace("shop", {"team": "b", "cost": "1"})["tags"] == {"team": "b", "cost": "1"}
    terraform.delete_keyspace("shop")
    assert terraform.read_keyspace("shop") is None


def test_a_keyspace_of_two_regions(terraform):
    made = terraform.create_keyspace("shop", replicationSpecification={"replicationStrategy": "MULTI_REGION", "regionList": ["us-east-1", "eu-west-1"]})
    assert (made["strategy"], made["regions"]) == ("MULTI_REGION", {"us-east-1", "eu-west-1"})
    eventually(lambda: {r["keyspaceStatus"] for r in terraform.find_keyspace("shop")["replicationGroupStatuses"]} == {"ACTIVE"})
    terraform.delete_keyspace("shop")


def test_a_table_is_made_changed_in_all_and_deleted(terraform):
    terraform.create_keyspace("shop")
    definition = {"allColumns": columns(id="uuid", day="date", total="decimal"), "partitionKeys": [{"name": "id"}],
                  "clusteringKeys": [{"name": "day", "orderBy": "DESC"}]}
    made = terraform.create_table(
        "shop", "orders", tags={"team": "a", "old": "x"}, schemaDefinition=definition, comment={"message": "all orders"},
        capacitySpecification={"throughputMode": "PAY_PER_REQUEST"}, encryptionSpecification={"type": "AWS_OWNED_KMS_KEY"},
        pointInTimeRecovery={"status": "DISABLED"}, ttl={"status": "ENABLED"}, defaultTimeToLive=1000)
    assert (made["comment"], made["default_time_to_live"], made["ttl"], made["tags"]) == ("all orders", 1000, "ENABLED", {"team": "a", "old": "x"})
    assert terraform.read_table("shop", "orders") == made
    changed = terraform.update_table(
        "shop", "orders", tags={"team": "b", "new": "y"},
        capacitySpecification={"throughputMode": "PROVISIONED", "readCapacityUnits": 200, "writeCapacityUnits": 100},
        clientSideTimestamps={"status": "ENABLED"}, defaultTimeToLive=1500, pointInTimeRecovery={"status": stores.in_use.recovery.upper()},
        addColumns=columns(note="text"))
    assert changed == {**made, "tags": {"team": "b", "new": "y"}, "client_side_timestamps": "ENABLED", "default_time_to_live": 1500,
                       "capacity_specification": {"throughputMode": "PROVISIONED", "readCapacityUnits": 200, "writeCapacityUnits": 100},
                       "point_in_time_recovery": stores.in_use.recovery.upper(), "columns": {**made["columns"], "note": "text"}}
    terraform.delete_table("shop", "orders")
    terraform.delete_keyspace("shop")


def test_a_keyspace_goes_while_its_table_is_being_deleted(terraform):
    """Without depends_on both are deleted at once: the provider repeats DeleteKeyspace after these words."""
    terraform.create_keyspace("shop")
    terraform.create_table("shop", "t", schemaDefinition={"allColumns": columns(id="int"), "partitionKeys": [{"name": "id"}]})
    terraform.client.delete_table(keyspaceName="shop", tableName="t")
    with pytest.raises(ClientError, match="a table under it is currently being created or deleted"):
        terraform.client.delete_keyspace(keyspaceName="shop")
    terraform.delete_keyspace("shop")
