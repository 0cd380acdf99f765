"""AWS's API through AWS's SDKs of Go, JavaScript and Java, unmodified, with another endpoint: docs/control_plane.md.

A program per SDK (api/) goes through the life of a table and says what it sees; what is right is said here, what is under way is let go when it was seen, and
what was made is used by CQL meanwhile.
"""
import json

import pytest

import stores
from aws_api import Api, key_flags, make_roles
from control import release
from programs import Conversation
from tally_server import create_keyspace, eventually

ARN = "arn:aws:cassandra:us-east-1:111122223333:/keyspace/"
COLUMNS = ["id int", "at timestamp", "note text"]
PAGES = [["again"], ["orders"]]

LIFE = [
    ("create keyspace", ARN + "Shop/"),
    ("create table", ARN + "Shop/table/orders"),
    ("orders", "CREATING"),
    ("orders", "ACTIVE"),
    ("get table", [COLUMNS, "id", "at", "DESC", "PAY_PER_REQUEST", "of the shop", "ENABLED"]),
    ("age", None),
    ("use", "orders"),
    ("add a column", ["id int", "at timestamp", "more list<int>", "note text"]),  # regular columns by name
    ("change the capacity mode", ["PROVISIONED", 5, 6]),
    ("tag", ["cost=b", "team=a"]),
    ("untag", ["cost=b"]),
    ("type", [["street text", "no int"], ["address"]]),
    ("delete type", "address"),
    ("restore", ARN + "Shop/table/again"),
    ("again", "RESTORING"),
    ("again", "ACTIVE"),
    ("use", "again"),
    ("list by pages", [PAGES, PAGES]),
    ("refused", ["ResourceNotFoundException", 404, "The table none does not exist in keyspace Shop.", ARN + "Shop/table/none"]),
    ("refused", ["ConflictException", 409, "The keyspace Shop already exists.", ""]),
    ("refused", ["ValidationException", 400, "1 validation error detected: Value '_x' at 'keyspaceName' failed to satisfy constraint: Member must satisfy regular "
                 "expression pattern: [a-zA-Z0-9][a-zA-Z0-9_]{0,47}", ""]),
    ("refused", ["ServiceQuotaExceededException", 402, "The quota of 4 concurrent restores has been exceeded. Wait until restored tables are ACTIVE.", ""]),
    ("again", "DELETING"),
    ("again", "gone"),
    ("orders", "DELETING"),
    ("orders", "gone"),
    ("delete keyspace", "ResourceNotFoundException"),
]

LOGINS = [
    # region, key, secret, token, keyspace that is then to be made, what is said of it
    (("us-east-1", "AKID", "SECRET", "", "mine"), ("create keyspace", ["ok"])),
    (("us-east-1", "TEMP", "OTHER", "a-token", "mine"), ("create keyspace", ["ConflictException", 409])),
    (("us-east-1", "READER", "SECRET", "", "other"), ("create keyspace", ["AccessDeniedException", 403])),
    (("us-east-1", "AKID", "WRONG", "", "other"), ("list keyspaces", ["untyped InvalidSignatureException", 403])),
    (("us-east-1", "NOBODY", "SECRET", "", "other"), ("list keyspaces", ["untyped UnrecognizedClientException", 403])),
    (("us-east-1", "TEMP", "OTHER", "b-token", "other"), ("list keyspaces", ["untyped UnrecognizedClientException", 403])),
    (("eu-west-1", "AKID", "SECRET", "", "ireland"), ("create keyspace", ["ok"])),  # the server answers for every Region
]


@pytest.fixture(scope="module")
def signing(tmp_path_factory):
    """Checks signatures, and knows a role that may only read."""
    folder = tmp_path_factory.mktemp("signing")
    make_roles(folder, "CREATE ROLE reader WITH PASSWORD = 'pw' AND LOGIN = true", "GRANT SELECT ON ALL KEYSPACES TO reader")
    with Api(folder, *key_flags(folder, "user alice pw", "user reader pw", "key AKID SECRET alice", "key TEMP OTHER alice a-token", "key READER SECRET reader")) as api:
        yield api


@pytest.fixture
def unsigned(tmp_path):
    with Api(tmp_path, "--control", "on", "--ddl-delay", "20", "--ddl-rules", "CREATE TABLE * = held; DROP TABLE * = held; RESTORE TABLE * = held") as api:
        yield api


def use(session, table):
    """What is written to the first is there in the one that is restored from it."""
    if table == "orders":
        session.execute('INSERT INTO "Shop".orders (id, at, note) VALUES (1, 0, \'x\')')
    assert session.execute(f'SELECT note FROM "Shop".{table} WHERE id = 1').one() == ("x",)


@pytest.mark.parametrize("sdk", ["go", "node", "java"])
def test_aws_sdk(sdk, program, unsigned, signing):
    with unsigned.server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "held")
        client = Conversation(*program(f"api-{sdk}"), unsigned.url, signing.url)
        for what, right in LIFE:
            heard, value = client.hear()
            assert heard == what
            if what == "age":
                assert 0 <= value < 600
            else:
                assert value == right, what
            if what == "use":
                use(session, value)
                client.say("used")
            elif right in ("CREATING", "RESTORING", "DELETING"):
                release(session, "Shop", what)
    for (*login, keyspace), (what, right) in LOGINS:
        client.say(json.dumps([*login, f"{keyspace}_{sdk}"]))
        heard, value = client.hear()
        assert (heard, value[:2]) == (what, right), (login, value)
    client.end()


def test_who_may_only_read_changes_nothing(signing):
    """Whatever the request names: a role without the right is told so, and nothing of what is there."""
    def made(call):
        """Not while the keyspace is in the making."""
        try:
            return call()
        except owner.exceptions.ConflictException:
            return None

    owner, reader = (signing.client(key=key, secret="SECRET") for key in ("AKID", "READER"))
    plain = {"allColumns": [{"name": "p", "type": "int"}], "partitionKeys": [{"name": "p"}]}
    fields = [{"name": "a", "type": "int"}]
    arn = owner.create_keyspace(keyspaceName="theirs")["resourceArn"]
    eventually(lambda: made(lambda: owner.create_type(keyspaceName="theirs", typeName="u", fieldDefinitions=fields)))
    table = owner.create_table(keyspaceName="theirs", tableName="t", schemaDefinition=plain, pointInTimeRecovery={"status": stores.in_use.recovery.upper()})["resourceArn"]
    eventually(lambda: owner.get_table(keyspaceName="theirs", tableName="t")["status"] == "ACTIVE")
    assert reader.get_table(keyspaceName="theirs", tableName="t")["tableName"] == "t" and reader.list_tags_for_resource(resourceArn=table)["tags"] == []
    refused = reader.exceptions.AccessDeniedException
    for change in (
            lambda c: c.create_keyspace(keyspaceName="other"), lambda c: c.create_keyspace(keyspaceName="theirs"),
            lambda c: c.update_keyspace(keyspaceName="theirs", replicationSpecification={"replicationStrategy": "MULTI_REGION", "regionList": ["us-east-1", "eu-west-1"]}),
            lambda c: c.delete_keyspace(keyspaceName="theirs"),
            lambda c: c.create_table(keyspaceName="theirs", tableName="more", schemaDefinition=plain),
            lambda c: c.create_table(keyspaceName="theirs", tableName="t", schemaDefinition=plain),
            lambda c: c.update_table(keyspaceName="theirs", tableName="t", addColumns=[{"name": "v", "type": "int"}]),
            lambda c: c.restore_table(sourceKeyspaceName="theirs", sourceTableName="t", targetKeyspaceName="theirs", targetTableName="r"),
            lambda c: c.delete_table(keyspaceName="theirs", tableName="t"),
            lambda c: c.create_type(keyspaceName="theirs", typeName="v", fieldDefinitions=fields),
            lambda c: c.create_type(keyspaceName="theirs", typeName="u", fieldDefinitions=fields), lambda c: c.delete_type(keyspaceName="theirs", typeName="u"),
            lambda c: c.tag_resource(resourceArn=table, tags=[{"key": "a", "value": "b"}]), lambda c: c.untag_resource(resourceArn=arn, tags=[{"key": "a", "value": "b"}])):
        with pytest.raises(refused, match="User reader has no [A-Z]+ permission on "):
            change(reader)
