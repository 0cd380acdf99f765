"""CUSTOM_PROPERTIES, AUTOSCALING_SETTINGS, TAGS and cdc: checked, stored, shown as Amazon Keyspaces documents them, and there after a restart."""
import itertools
import re

import pytest
from cassandra import InvalidRequest
from cassandra.protocol import SyntaxException

import stores
from control import set_clock
from tally_server import ROOT, await_active, create_keyspace, eventually

COLUMNS = "(p int PRIMARY KEY, v int)"
PROVISIONED = "'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, 'write_capacity_units': '7'}"
POLICY = "'scaling_policy': {'target_tracking_scaling_policy_configuration': {%s}}"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    from tally_server import Server

    server = Server(tmp_path_factory.mktemp("server"), "--ddl-delay", "none", "--region", "eu-west-1",
                    "--compatibility", "strict", "--control", "on").start()
    cluster = server.cluster(schema_metadata_enabled=False)
    session = cluster.connect()
    create_keyspace(session, "k")
    yield server, session
    cluster.shutdown()
    server.stop()


@pytest.fixture
def session(started):
    return started[1]


numbers = itertools.count()


@pytest.fixture
def table(request, session):
    """A name that no other test has: on a cluster one that is used again awaits the end of the old rows."""
    return f"k.{re.sub(r'[^a-z0-9]+', '_', request.node.name.lower())[:40].rstrip('_')}_{next(numbers)}"


def row(session, table):
    return session.execute("SELECT * FROM system_schema_mcs.tables WHERE keyspace_name = %s AND table_name = %s", table.split(".")).one()


def properties(session, table):
    return {group: dict(entries) for group, entries in row(session, table).custom_properties.items()}


def alter(session, table, what):
    session.execute(f"ALTER TABLE {table} WITH {what}")


def custom(text):
    return "CUSTOM_PROPERTIES = {%s}" % text


def test_a_plain_table_shows_what_it_has_without_asking(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    shown = properties(session, table)
    assert shown.pop("capacity_mode").keys() == {"throughput_mode", "last_update_to_pay_per_request_timestamp"}
    assert shown == {"encryption_specification": {"encryption_type": "AWS_OWNED_KMS_KEY"}, "point_in_time_recovery": {"status": "disabled"}}


def test_all_of_them_at_once(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH default_time_to_live = 60 AND comment = 'c' AND TAGS = {{'Team': 'a'}} AND CUSTOM_PROPERTIES = {{"
                    + PROVISIONED + ", 'TTL': {'Status': 'ENABLED'}, 'client_side_timestamps': {'status': 'enabled'}, 'point_in_time_recovery': {'status': '" + stores.in_use.recovery + "'}, "
                    "'encryption_specification': {'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY', 'kms_key_identifier': 'arn:aws:kms:eu-west-1:1:key/x'}, "
                    "'warm_throughput': {'read_units_per_second': 13000, 'write_units_per_second': 5000}}")
    shown = properties(session, table)
    assert shown["capacity_mode"] == {"throughput_mode": "PROVISIONED", "read_capacity_units": "5", "write_capacity_units": "7"}
    assert shown["ttl"] == shown["client_side_timestamps"] == {"status": "enabled"}
    assert shown["point_in_time_recovery"]["status"] == stores.in_use.recovery
    assert shown["encryption_specification"]["kms_key_identifier"] == "arn:aws:kms:eu-west-1:1:key/x"
    assert shown["warm_throughput"] == {"read_units_per_second": "13000", "write_units_per_second": "5000"}
    assert row(session, table).default_time_to_live == 60


REFUSED = [
    (custom("'speed': {'status': 'enabled'}"), "Unknown custom property 'speed.status'"),
    (custom("'ttl': {'state': 'enabled'}"), "Unknown custom property 'ttl.state'"),
    (custom("'ttl': 'enabled'"), "Invalid value for custom property 'ttl': it must be a map"),
    (custom("'ttl': {}"), "ttl of custom_properties is an empty map"),
    (custom("'ttl': {'status': 'maybe'}"), "Invalid value 'maybe' for ttl.status: it must be one of enabled|disabled"),
    (custom("'ttl': {'status': 'enabled'}, 'TTL': {'status': 'enabled'}"), "custom_properties.ttl.status is given twice"),
    (custom("'capacity_mode': {'throughput_mode': 'PROVISIONED'}"), "requires 'read_capacity_units' and 'write_capacity_units' to be set"),
    (custom("'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5}"), "requires 'read_capacity_units' and 'write_capacity_units' to be set"),
    (custom("'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 0, 'write_capacity_units': 1}"), "Invalid value '0' for capacity_mode.read_capacity_units"),
    (custom("'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 'x', 'write_capacity_units': 1}"), "Invalid value 'x' for capacity_mode.read_capacity_units"),
    (custom("'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1.5, 'write_capacity_units': 1}"), "Invalid value '1.5'"),
    (custom("'capacity_mode': {'read_capacity_units': 1, 'write_capacity_units': 1}"), "capacity_mode needs throughput_mode"),
    (custom("'capacity_mode': {'throughput_mode': 'PAY_PER_REQUEST', 'read_capacity_units': 1, 'write_capacity_units': 1}"), "should not have 'read_capacity_units'"),
    (custom("'capacity_mode': {'throughput_mode': 'SERVERLESS'}"), "must be one of PAY_PER_REQUEST|PROVISIONED"),
    (custom("'point_in_time_recovery': {'status': 'on'}"), "must be one of enabled|disabled"),
    (custom("'encryption_specification': {'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY'}"), "Required property kms_key_identifier not present"),
    (custom("'encryption_specification': {'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY', 'kms_key_identifier': 'mine'}"), "it must begin with arn:"),
    (custom("'encryption_specification': {'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY', 'kms_key_identifier': "
            "'arn:%s'}"
            % ("x" * 5093)), "it must have at most 5096 characters"),
    ("cdc = true AND " + custom("'cdc_specification': {'view_type': 'NEW_IMAGE', 'tags': {'k': '%s'}}" % ("v" * 257)),
     "it must have at most 256 characters"),
    ("cdc = true AND " + custom("'cdc_specification': {'view_type': 'NEW_IMAGE', 'tags': {'%s': 'v'}}" % ("k" * 129)),
     "The key of a tag must have 1 to 128 characters"),
    (custom("'cdc_specification': {'view_type': 'NEW_IMAGE'}"), "cdc_specification is for tables with cdc = true"),
    ("cdc = true AND " + custom("'cdc_specification': {'view_type': 'SOME'}"), "must be one of NEW_AND_OLD_IMAGES"),
    (custom("'warm_throughput': {'read_units_per_second': 0}"), "Invalid value '0' for warm_throughput.read_units_per_second"),
    (custom("'replica_updates': {'us-east-1': {'read_capacity_units': 5}}"), "Unrecognized option 'READ_CAPACITY_UNITS' inside 'replica_updates'"),
    ("AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': {'minimum_units': 1}}", "should not have AUTOSCALING_SETTINGS"),
    ("AUTOSCALING_SETTINGS = {'provisioned_read_capacity': {'minimum_units': 1}}", "Unknown auto scaling setting 'provisioned_read_capacity.minimum_units'"),
    (custom(PROVISIONED) + " AND AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': {'minimum_units': 5, 'maximum_units': 4}}", "'maximum_units' can not be less than 'minimum_units'."),
    (custom(PROVISIONED) + " AND AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': {'autoscaling_disabled': false}}", "needs a target_value"),
    (custom(PROVISIONED) + " AND AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': {%s}}" % (POLICY % "'target_value': 95"), "must be value between 10 to 90, got '95'"),
    ("TAGS = {'aws:x': '1'}", "may not begin with aws:"),
    ("TAGS = {'': '1'}", "must have 1 to 128 characters"),
    ("TAGS = {'k': '%s'}" % ("v" * 257), "at most 256 characters"),
    ("TAGS = {%s}" % ", ".join(f"'k{i}': 'v'" for i in range(51)), "A table may have at most 50 tags"),
]


@pytest.mark.parametrize("what, words", REFUSED, ids=range(len(REFUSED)))
def test_what_is_wrong_is_refused_in_words_and_nothing_is_made(session, table, what, words):
    with pytest.raises((InvalidRequest, SyntaxException), match=re.escape(words)):
        session.execute(f"CREATE TABLE {table} {COLUMNS} WITH {what}")
    assert row(session, table) is None
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    before = properties(session, table)
    with pytest.raises((InvalidRequest, SyntaxException), match=re.escape(words)):
        alter(session, table, what)
    assert properties(session, table) == before


ARN = "arn:aws:kms:eu-west-1:1:key/x"
EVERY_KEY = {  # of settings/setting.def: a statement that gives it, and where it is shown
    "capacity_mode.throughput_mode": ("'capacity_mode': {'throughput_mode': 'PAY_PER_REQUEST'}", "PAY_PER_REQUEST"),
    "capacity_mode.read_capacity_units": (PROVISIONED, "5"), "capacity_mode.write_capacity_units": (PROVISIONED, "7"),
    "cdc_specification.view_type": ("'cdc_specification': {'view_type': 'old_image'}", "OLD_IMAGE"),
    "cdc_specification.propagate_tags": ("'cdc_specification': {'propagate_tags': 'TABLE'}", "TABLE"),
    "cdc_specification.tags.*": ("'cdc_specification': {'tags': {'team': 'a'}}", None),
    "client_side_timestamps.status": ("'client_side_timestamps': {'status': 'enabled'}", "enabled"),
    "encryption_specification.encryption_type": ("'encryption_specification': {'encryption_type': 'AWS_OWNED_KMS_KEY'}", "AWS_OWNED_KMS_KEY"),
    "encryption_specification.kms_key_identifier": ("'encryption_specification': {'encryption_type': 'CUSTOMER_MANAGED_KMS_KEY', 'kms_key_identifier': '%s'}" % ARN, ARN),
    "point_in_time_recovery.status": ("'point_in_time_recovery': {'status': '" + stores.in_use.recovery + "'}", stores.in_use.recovery),
    "replica_updates.*.read_capacity_units": (None, None),  # test_system_tables.py: test_keyspaces_of_several_regions
    "ttl.status": ("'ttl': {'status': 'enabled'}", "enabled"),
    "warm_throughput.read_units_per_second": ("'warm_throughput': {'read_units_per_second': 13000, 'write_units_per_second': 5000}", "13000"),
    "warm_throughput.write_units_per_second": ("'warm_throughput': {'read_units_per_second': 13000, 'write_units_per_second': 5000}", "5000"),
}


def test_every_key_is_taken_stored_and_shown(session, table):
    text = (ROOT / "settings" / "setting.def").read_text()
    maps = {"MAP": ".*"}
    rows = [name + maps.get(kind, "") for name, kind in re.findall(r'^PROPERTY\(\w+, "([^"]+)", (\w+),', text, re.M)]
    rows += ["replica_updates.*." + name for name in re.findall(r'^REGION\(\w+, "([^"]+)"', text, re.M)]
    assert sorted(rows) == sorted(EVERY_KEY)
    for key, (given, shown) in EVERY_KEY.items():
        if given is None:
            continue
        group, _, name = key.partition(".")
        cdc = "cdc = true AND " if group == "cdc_specification" else ""
        session.execute(f"CREATE TABLE {table} {COLUMNS} WITH {cdc}{custom(given)}")
        assert properties(session, table)[group].get(name) == shown, key
        await_active(session, *table.split("."))  # on a cluster it awaits the end of the rows of the one before
        session.execute(f"DROP TABLE {table}")


def test_a_stream_shows_both_images_unless_it_is_told_otherwise(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH cdc = true")
    assert properties(session, table)["cdc_specification"]["view_type"] == "NEW_AND_OLD_IMAGES"


def test_recovery_that_is_switched_off_forgets_its_history(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    alter(session, table, custom("'point_in_time_recovery': {'status': 'enabled'}"))
    eventually(lambda: properties(session, table)["point_in_time_recovery"].get("earliest_restorable_timestamp"))
    assert properties(session, table)["point_in_time_recovery"]["status"] == "enabled"
    alter(session, table, custom("'point_in_time_recovery': {'status': 'disabled'}"))
    assert properties(session, table)["point_in_time_recovery"] == {"status": "disabled"}
    with pytest.raises(InvalidRequest, match="point-in-time recovery is not enabled"):
        session.execute(f"RESTORE TABLE {table}_back FROM TABLE {table}")


def test_a_default_time_to_live_ends_rows(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH default_time_to_live = 500 AND " + custom("'ttl': {'status': 'enabled'}"))
    session.execute(f"INSERT INTO {table} (p, v) VALUES (1, 1)")
    assert 400 < session.execute(f"SELECT TTL(v) FROM {table}").one()[0] <= 500
    alter(session, table, "default_time_to_live = 0")
    session.execute(f"INSERT INTO {table} (p, v) VALUES (2, 1)")
    assert session.execute(f"SELECT TTL(v) FROM {table} WHERE p = 2").one()[0] is None
    assert row(session, table).default_time_to_live == 0


def test_capacity_changes_back_and_forth(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    first = properties(session, table)["capacity_mode"]["last_update_to_pay_per_request_timestamp"]
    scaling = ("AUTOSCALING_SETTINGS = {'provisioned_read_capacity_autoscaling_update': {'autoscaling_disabled': false, 'minimum_units': 5, 'maximum_units': 50, "
               + POLICY % "'target_value': 70, 'scale_in_cooldown': 60" + "}}")
    alter(session, table, custom(PROVISIONED) + " AND " + scaling)
    assert properties(session, table)["capacity_mode"] == {"throughput_mode": "PROVISIONED", "read_capacity_units": "5", "write_capacity_units": "7"}
    alter(session, table, "AUTOSCALING_SETTINGS = {'provisioned_write_capacity_autoscaling_update': {'autoscaling_disabled': true}}")
    shown = session.execute("SELECT * FROM system_schema_mcs.autoscaling WHERE keyspace_name = %s AND table_name = %s", table.split(".")).one()
    assert shown.provisioned_read_capacity_autoscaling_update == (  # the write settings did not replace them
        "{'autoscaling_disabled': false, 'maximum_units': 50, 'minimum_units': 5, "
        "'scaling_policy': {'target_tracking_scaling_policy_configuration': "
        "{'scale_in_cooldown': 60, 'target_value': 70}}}")
    assert shown.provisioned_write_capacity_autoscaling_update == "{'autoscaling_disabled': true}"
    set_clock(session, advance_ms=24 * 3600 * 1000)  # back to on-demand a day after the creation
    alter(session, table, custom("'capacity_mode': {'throughput_mode': 'pay_per_request'}"))
    set_clock(session, state="free")
    again = properties(session, table)["capacity_mode"]
    assert again["throughput_mode"] == "PAY_PER_REQUEST" and int(again["last_update_to_pay_per_request_timestamp"]) > int(first)
    assert session.execute("SELECT * FROM system_schema_mcs.autoscaling WHERE keyspace_name = %s AND table_name = %s", table.split(".")).one() is None
    alter(session, table, "comment = 'x'")
    assert properties(session, table)["capacity_mode"] == again


@pytest.mark.parametrize("name", ["ttl", "client_side_timestamps"])
def test_what_is_turned_on_stays_on(started, session, table, name):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    alter(session, table, custom(f"'{name}': {{'status': 'enabled'}}"))
    with pytest.raises(InvalidRequest, match=f"{name} (is|are) enabled and cannot be disabled"):
        alter(session, table, custom(f"'{name}': {{'status': 'disabled'}}"))
    assert properties(session, table)[name] == {"status": "enabled"}
    session.execute(f"INSERT INTO {table} (p, v) VALUES (1, 1) USING {'TTL 60' if name == 'ttl' else 'TIMESTAMP 1'}" if name == "ttl" else f"SELECT WRITETIME(v) FROM {table}")


def test_warm_throughput_only_grows(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    with pytest.raises(InvalidRequest, match="warm_throughput may not become less: it is 12000 read_units_per_second and 4000"):
        alter(session, table, custom("'warm_throughput': {'read_units_per_second': 11999, 'write_units_per_second': 8000}"))
    alter(session, table, custom("'warm_throughput': {'read_units_per_second': 20000, 'write_units_per_second': 8000}"))
    with pytest.raises(InvalidRequest, match="it is 20000"):
        alter(session, table, custom("'warm_throughput': {'read_units_per_second': 12000, 'write_units_per_second': 8000}"))


def test_a_stream_has_a_name_and_keeps_its_view(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    assert row(session, table).latest_stream_arn is None
    alter(session, table, "cdc = true AND " + custom("'cdc_specification': {'view_type': 'KEYS_ONLY'}"))
    shown = row(session, table)
    assert shown.cdc is True
    assert re.fullmatch(rf"arn:aws:cassandra:eu-west-1:\d{{12}}:/keyspace/k/table/{table[2:]}/stream/\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}", shown.latest_stream_arn)
    assert properties(session, table)["cdc_specification"] == {"status": "Enabled", "view_type": "KEYS_ONLY", "latest_stream_arn": shown.latest_stream_arn}
    with pytest.raises(InvalidRequest, match="The view_type of a stream cannot be changed: it is KEYS_ONLY"):
        alter(session, table, custom("'cdc_specification': {'view_type': 'NEW_IMAGE'}"))
    alter(session, table, "cdc = false")
    assert properties(session, table)["cdc_specification"]["status"] == "Disabled"


def test_a_table_whose_stream_was_turned_off_can_be_altered(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH cdc = true AND "
                    + custom("'cdc_specification': {'view_type': 'KEYS_ONLY'}"))
    alter(session, table, "cdc = false")
    session.execute(f"ALTER TABLE {table} ADD more int")
    alter(session, table, "TAGS = {'a': 'b'}")
    alter(session, table, "comment = 'c'")
    with pytest.raises(InvalidRequest, match="cdc_specification is for tables with cdc = true"):
        alter(session, table, custom("'cdc_specification': {'view_type': 'NEW_IMAGE'}"))
    alter(session, table, "cdc = true AND " + custom("'cdc_specification': {'view_type': 'NEW_IMAGE'}"))  # a new stream
    assert properties(session, table)["cdc_specification"]["view_type"] == "NEW_IMAGE"


def test_a_table_with_half_a_warm_throughput_can_be_altered(session, table):
    """What was not said of warm throughput follows from the capacity, which may become less."""
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH "
                    + custom("'warm_throughput': {'read_units_per_second': 13000}"))
    alter(session, table, custom(PROVISIONED))
    less = "'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, 'write_capacity_units': 1}"
    alter(session, table, custom(less))
    assert properties(session, table)["capacity_mode"]["write_capacity_units"] == "1"
    assert properties(session, table)["warm_throughput"] == {"read_units_per_second": "13000"}
    with pytest.raises(InvalidRequest, match="may not become less: it is 13000"):
        alter(session, table, custom("'warm_throughput': {'write_units_per_second': 5000}"))


def test_a_table_whose_other_region_is_gone_can_be_altered(new_server):
    """Amazon Keyspaces removes no Region from a keyspace; a server that only reports what it refuses does."""
    server = new_server("--ddl-delay", "none", "--region", "eu-west-1", "--compatibility", "report")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        alter_where_a_region_went(cluster.connect())


def alter_where_a_region_went(session):
    regions = "'eu-west-1': 3, 'us-east-1': 3"
    session.execute("CREATE KEYSPACE two WITH replication = {'class': 'NetworkTopologyStrategy', %s}" % regions)
    more = "'replica_updates': {'us-east-1': {'read_capacity_units': 3}}"
    session.execute(f"CREATE TABLE two.t {COLUMNS} WITH " + custom(PROVISIONED + ", " + more))
    session.execute("ALTER KEYSPACE two WITH replication = {'class': 'SingleRegionStrategy'}")
    alter(session, "two.t", "comment = 'c'")
    with pytest.raises(InvalidRequest, match="replica_updates are for multi-Region keyspaces"):
        alter(session, "two.t", custom("'replica_updates': {'us-east-1': {'read_capacity_units': 4}}"))


def test_two_settings_at_once_are_refused_unless_they_are_allowed(session, table, new_server):
    session.execute(f"CREATE TABLE {table} {COLUMNS}")
    two = custom("'client_side_timestamps': {'status': 'enabled'}, 'ttl': {'status': 'enabled'}")
    with pytest.raises(InvalidRequest, match="ALTER TABLE changes client_side_timestamps and ttl; one statement may change one setting"):
        alter(session, table, two)
    alter(session, table, "gc_grace_seconds = 5 AND compaction = {'class': 'LeveledCompactionStrategy'} AND comment = 'what Keyspaces ignores does not count'")
    server = new_server("--ddl-delay", "none", "--compatibility", "off")
    with server.cluster(schema_metadata_enabled=False) as cluster:
        other = cluster.connect()
        create_keyspace(other, "k")
        other.execute(f"CREATE TABLE k.t {COLUMNS}")
        alter(other, "k.t", two)
        assert properties(other, "k.t")["ttl"] == {"status": "enabled"}


def tags(session, table):
    found = session.execute("SELECT * FROM system_schema_mcs.tags WHERE keyspace_name = %s AND resource_name = %s ALLOW FILTERING", table.split(".")).one()
    return dict(found.tags) if found else None


def test_tags_come_and_go(session, table):
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH TAGS = {{'Team': 'a', 'cost': 'b'}}")
    assert tags(session, table) == {"Team": "a", "cost": "b"}
    session.execute(f"ALTER TABLE {table} ADD TAGS {{'cost': 'c', 'new': 'd'}}")
    assert tags(session, table) == {"Team": "a", "cost": "c", "new": "d"}
    session.execute(f"ALTER TABLE {table} DROP TAGS {{'cost': 'c', 'Team': 'a', 'new': 'd'}}")
    assert tags(session, table) is None


def test_they_are_there_after_a_restart(started, session, table):
    server, _ = started
    session.execute(f"CREATE TABLE {table} {COLUMNS} WITH cdc = true AND TAGS = {{'a': 'b'}} AND " + custom(PROVISIONED + ", 'ttl': {'status': 'enabled'}"))
    before = properties(session, table), tags(session, table), row(session, table).latest_stream_arn
    server.kill9()
    server.start()
    with server.cluster(schema_metadata_enabled=False) as cluster:
        again = cluster.connect()
        assert (properties(again, table), tags(again, table), row(again, table).latest_stream_arn) == before
