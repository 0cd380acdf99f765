"""Keyspaces' refusals through a real driver, table by table: refusals.txt has the cases."""
import itertools
from datetime import datetime, timedelta, timezone

import pytest
from cassandra import InvalidRequest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType

from control import set_clock
from refusal_run import Run
from refusals import ELSEWHERE, cases, now_us, rules
from tally_server import Server, await_active, create_keyspace, create_table

KEYSPACE = "refusals"
CASES = cases()
numbers = itertools.count()


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Keyspaces mode as a newcomer meets it: nothing said of compatibility but what is the default."""
    s = Server(tmp_path_factory.mktemp("strict"), "--compatibility", "strict", "--ddl-delay", "none").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module")
def session(strict):
    """It reads no metadata: some cases make tables of seven thousand columns, and a driver would read them after each case."""
    with strict.cluster(schema_metadata_enabled=False) as cluster:
        s = cluster.connect()
        create_keyspace(s, KEYSPACE)
        yield s


def code_of(error):
    """The protocol's code: the driver keeps it in the text of what it raises."""
    return int(str(error).split("code=")[1][:4], 16)


def words_of(error):
    return str(error).split('message="', 1)[1].rsplit('"', 1)[0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_refused(session, case):
    run = Run(session, KEYSPACE, case, next(numbers))
    with pytest.raises(Exception) as caught:
        run.refused()
    assert code_of(caught.value) == case.code, caught.value
    if case.words.endswith("..."):
        assert words_of(caught.value).startswith(case.words[:-3])
    else:
        assert words_of(caught.value) == case.words
    for query, rows in case.after:
        assert str([tuple(r) for r in session.execute(run.named(query))]) == rows


def refused(session, statement, words, parameters=None):
    with pytest.raises(InvalidRequest) as caught:
        session.execute(statement, parameters)
    assert words_of(caught.value) == words


def test_a_range_deletion_of_more_than_a_thousand_rows(session):
    create_table(session, KEYSPACE, "ranges", "p int, c int, s text static, v int, PRIMARY KEY (p, c)")
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.ranges (p, c, v, s) VALUES (?, ?, 0, 'x')")
    execute_concurrent_with_args(session, insert, [(1, c) for c in range(1001)])
    words = ("Range delete requests are limited by the amount of items that can be deleted in a single range. "
             "Delete in smaller ranges: at most 1,000 rows each.")
    refused(session, f"DELETE FROM {KEYSPACE}.ranges WHERE p = 1", words)
    refused(session, f"DELETE FROM {KEYSPACE}.ranges WHERE p = 1 AND c >= 0", words)
    assert len(list(session.execute(f"SELECT c FROM {KEYSPACE}.ranges WHERE p = 1"))) == 1001
    session.execute(f"DELETE FROM {KEYSPACE}.ranges WHERE p = 1 AND c > 0")
    assert [r.c for r in session.execute(f"SELECT c FROM {KEYSPACE}.ranges WHERE p = 1")] == [0]
    execute_concurrent_with_args(session, insert, [(1, c) for c in range(1000)])
    session.execute(f"DELETE FROM {KEYSPACE}.ranges WHERE p = 1")
    assert list(session.execute(f"SELECT c FROM {KEYSPACE}.ranges WHERE p = 1")) == []


def test_what_a_driver_exports_of_a_table_can_be_run(strict, session):
    create_table(session, KEYSPACE, "exported", "p int, c text, s text static, v map<text, int>, PRIMARY KEY (p, c)")
    with strict.cluster() as cluster:
        other = cluster.connect()
        text = cluster.metadata.keyspaces[KEYSPACE].tables["exported"].export_as_string()
        other.execute(text.replace("exported", "exported2"))
        await_active(other, KEYSPACE, "exported2")
        cluster.refresh_table_metadata(KEYSPACE, "exported2")
        assert cluster.metadata.keyspaces[KEYSPACE].tables["exported2"].export_as_string() == text.replace("exported", "exported2")


def test_batches_of_the_protocol_have_the_limits_of_batches_in_text(session):
    create_table(session, KEYSPACE, "batches", "p int PRIMARY KEY, v int")
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.batches (p, v) VALUES (?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for i in range(30):
        batch.add(insert, (i, i))
    session.execute(batch)
    batch.add(insert, (30, 30))
    refused(session, batch, "Batches with more than 30 statements are not supported. Split it into several batches.")
    assert session.execute(f"SELECT * FROM {KEYSPACE}.batches WHERE p = 30").one() is None
    twice = BatchStatement(BatchType.LOGGED)
    twice.add(insert, (40, 1))
    twice.add(insert, (40, 2))
    refused(session, twice, "A logged batch cannot hold several statements on the same row. Write the row in one statement.")
    conditional = BatchStatement(BatchType.UNLOGGED)
    conditional.add(f"UPDATE {KEYSPACE}.batches SET v = 1 WHERE p = 1 IF v = 1")
    refused(session, conditional, "Conditions are not yet supported in unlogged batches. Use a logged batch.")


def test_a_conditional_logged_batch_spans_partitions_and_tables(session):
    """As AWS's page has it: conditions and several tables are allowed, and a condition that does not hold fails all."""
    for name in ("spanned", "spanned_too"):
        create_table(session, KEYSPACE, name, "p int, c int, v int, PRIMARY KEY (p, c)")
    one, two = f"{KEYSPACE}.spanned", f"{KEYSPACE}.spanned_too"

    def run(*statements):
        return [tuple(r) for r in session.execute(f"BEGIN BATCH {'; '.join(statements)}; APPLY BATCH")]

    def rows():
        return sorted(tuple(r) for t in (one, two) for r in session.execute(f"SELECT p, c, v FROM {t}"))

    first = (f"INSERT INTO {one} (p, c, v) VALUES (1, 1, 1) IF NOT EXISTS",
             f"INSERT INTO {one} (p, c, v) VALUES (2, 1, 2)",
             f"INSERT INTO {two} (p, c, v) VALUES (1, 1, 3) IF NOT EXISTS")
    assert run(*first) == [(True,)]
    assert rows() == [(1, 1, 1), (1, 1, 3), (2, 1, 2)]
    assert run(f"INSERT INTO {one} (p, c, v) VALUES (3, 1, 9) IF NOT EXISTS",
               f"UPDATE {two} SET v = 9 WHERE p = 1 AND c = 1 IF v = 4") == [(False,)]
    assert run(f"UPDATE {one} SET v = 9 WHERE p = 1 AND c = 1", f"DELETE FROM {one} WHERE p = 2 AND c = 1 IF EXISTS",
               f"DELETE FROM {one} WHERE p = 5 AND c = 1 IF EXISTS") == [(False,)]
    assert rows() == [(1, 1, 1), (1, 1, 3), (2, 1, 2)]
    assert run(f"UPDATE {one} SET v = 10 WHERE p = 1 AND c = 1 IF v = 1",
               f"DELETE FROM {one} WHERE p = 2 AND c = 1 IF v > 1",
               f"UPDATE {two} SET v = 30 WHERE p = 1 AND c = 1 IF v = 3") == [(True,)]
    assert rows() == [(1, 1, 10), (1, 1, 30)]
    assert run(f"UPDATE {one} SET v = 11 WHERE p = 1 AND c = 1 IF v = 1") == [(False, 1, 1, 10)]


def test_cassandras_thresholds_of_batches_do_not_apply(session):
    """60 KB in one batch would be Batch too large, and 11 partitions a warning."""
    create_table(session, KEYSPACE, "large_batches", "p int PRIMARY KEY, v text")
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.large_batches (p, v) VALUES (?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for i in range(20):
        batch.add(insert, (i, "x" * 3000))
    future = session.execute_async(batch)
    future.result()
    assert not future.warnings


def test_a_drivers_timestamp_counts_only_with_client_side_timestamps(session):
    """Without them it must not shadow a later write; with them it must, and lies within the window."""
    for name, options in (("server_times", ""), ("client_times", " WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}")):
        session.execute(f"CREATE TABLE {KEYSPACE}.{name} (p int PRIMARY KEY, v int){options}")
        await_active(session, KEYSPACE, name)

    def write(table, value, timestamp):
        generator, session.cluster.timestamp_generator = session.cluster.timestamp_generator, lambda: timestamp
        try:
            session.execute(f"INSERT INTO {KEYSPACE}.{table} (p, v) VALUES (1, {value})")
        finally:
            session.cluster.timestamp_generator = generator

    write("server_times", 1, now_us(100 * 365 * 86400))
    write("server_times", 2, 1)
    assert session.execute(f"SELECT v FROM {KEYSPACE}.server_times").one().v == 2
    write("client_times", 1, now_us(200))
    write("client_times", 2, now_us(0))
    assert session.execute(f"SELECT v FROM {KEYSPACE}.client_times").one().v == 1
    with pytest.raises(InvalidRequest, match="is out of bounds"):
        write("client_times", 3, 1)


def test_keyspaces_and_tables_are_256(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        for i in range(256):
            session.execute(f"CREATE KEYSPACE k{i} WITH replication = {{'class': 'SingleRegionStrategy'}}")
        refused(session, "CREATE KEYSPACE k256 WITH replication = {'class': 'SingleRegionStrategy'}",
                "The quota of 256 keyspaces has been exceeded. Drop one, or ask AWS for a higher quota.")
        for i in range(256):
            session.execute(f"CREATE TABLE k{i % 3}.t{i} (p int PRIMARY KEY)")
        refused(session, "CREATE TABLE k5.t256 (p int PRIMARY KEY)",
                "The quota of 256 tables has been exceeded. Drop one, or ask AWS for a higher quota.")
        session.execute("DROP KEYSPACE k255")
        session.execute("CREATE KEYSPACE k256 WITH replication = {'class': 'SingleRegionStrategy'}")
    s.stop()


def test_fifty_changes_of_the_schema_at_once(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "held").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        for i in range(50):
            session.execute(f"CREATE KEYSPACE k{i} WITH replication = {{'class': 'SingleRegionStrategy'}}")
        refused(session, "CREATE KEYSPACE k50 WITH replication = {'class': 'SingleRegionStrategy'}",
                "The quota of 50 concurrent DDL operations has been exceeded. Wait until tables are ACTIVE.")
    s.stop()


def provisioned(read, write):
    return f"WITH CUSTOM_PROPERTIES = {{'capacity_mode': {{'throughput_mode': 'PROVISIONED', 'read_capacity_units': {read}, 'write_capacity_units': {write}}}}}"


def account_words(units, asked, quota=80000):
    return (f"The quota of {quota} {units} units per second for all provisioned tables together has been exceeded (asked: {asked}). "
            "Provision tables with less, or ask AWS for a higher quota.")


def test_all_tables_together_are_provisioned_with_80_000_units(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        for name, read, write in (("a", 40000, 30000), ("b", 40000, 30000), ("c", 0, 0)):
            session.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY) {provisioned(read, write) if read else ''}")
            await_active(session, "k", name)
        refused(session, f"CREATE TABLE k.d (p int PRIMARY KEY) {provisioned(1, 1)}", account_words("read", 80001))
        refused(session, f"ALTER TABLE k.c {provisioned(1, 20001)}", account_words("read", 80001))
        session.execute(f"ALTER TABLE k.a {provisioned(39999, 40000)}")
        await_active(session, "k", "a")
        refused(session, f"ALTER TABLE k.c {provisioned(1, 10001)}", account_words("write", 80001))
        session.execute(f"ALTER TABLE k.c {provisioned(1, 10000)}")
        await_active(session, "k", "c")
        session.execute("ALTER TABLE k.c WITH comment = 'what a table has it keeps'")
        await_active(session, "k", "c")
        session.execute("DROP TABLE k.b")
        session.execute(f"CREATE TABLE k.d (p int PRIMARY KEY) {provisioned(40000, 30000)}")
    s.stop()


def scaling(kind, most, region=None):
    """AUTOSCALING_SETTINGS of reads or writes: of the table, or of one of its Regions beside 100 units of the table."""
    of = f"'autoscaling_disabled': false, 'maximum_units': {100 if region else most}, 'scaling_policy': {{'target_tracking_scaling_policy_configuration': {{'target_value': 50}}}}"
    there = f", 'replica_updates': {{'{region}': {{'maximum_units': {most}}}}}" if region else ""
    return f"AUTOSCALING_SETTINGS = {{'provisioned_{kind}_capacity_autoscaling_update': {{{of}{there}}}}}"


def test_the_quota_of_a_table_holds_in_each_of_its_regions(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none").start()

    def words(kind, asked):
        return f"The quota of 40000 {kind} units per second for a table has been exceeded (asked: {asked}). Ask for less, or ask AWS for a higher quota."

    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': '3', 'eu-west-1': '3', 'ap-southeast-1': '3'}")
        session.execute(f"CREATE TABLE k.a (p int PRIMARY KEY) {provisioned(5, 5)}")
        await_active(session, "k", "a")
        for region in ("eu-west-1", "ap-southeast-1"):
            for kind in ("write", "read"):
                refused(session, f"ALTER TABLE k.a WITH {scaling(kind, 40001, region)}", words(kind, 40001))
                refused(session, f"CREATE TABLE k.b (p int PRIMARY KEY) {provisioned(5, 5)} AND {scaling(kind, 41000, region)}", words(kind, 41000))
            session.execute(f"ALTER TABLE k.a WITH {scaling('write', 40000, region)}")
            await_active(session, "k", "a")
        refused(session, "ALTER TABLE k.a WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, "
                "'write_capacity_units': 5}, 'replica_updates': {'eu-west-1': {'read_capacity_units': 40002}}}", words("read", 40002))
        refused(session, f"ALTER TABLE k.a {provisioned(5, 40003)}", words("write", 40003))
        # the units of Regions are not added up
        session.execute(f"ALTER TABLE k.a WITH {scaling('write', 40000)}")
        await_active(session, "k", "a")
    s.stop()


def test_a_region_keeps_the_write_capacity_that_it_has(tmp_path):
    """A quota that was higher once: what exceeds it stays, and may become less, but not more."""
    options = "--compatibility", "strict", "--ddl-delay", "none"
    s = Server(tmp_path, *options, "--limit-values", "table-write=50000").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'us-east-1': '3', 'eu-west-1': '3'}")
        session.execute(f"CREATE TABLE k.a (p int PRIMARY KEY) {provisioned(5, 5)} AND {scaling('write', 45000, 'eu-west-1')}")
        await_active(session, "k", "a")
        refused(session, f"ALTER TABLE k.a WITH {scaling('write', 50001, 'eu-west-1')}",
                "The quota of 50000 write units per second for a table has been exceeded (asked: 50001). Ask for less, or ask AWS for a higher quota.")
    s.stop()
    s = Server(tmp_path, *options).start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        session.execute("ALTER TABLE k.a WITH comment = 'what a table has it keeps'")
        await_active(session, "k", "a")
        session.execute(f"ALTER TABLE k.a WITH {scaling('write', 44000, 'eu-west-1')}")
        await_active(session, "k", "a")
        refused(session, f"ALTER TABLE k.a WITH {scaling('write', 44001, 'eu-west-1')}",
                "The quota of 40000 write units per second for a table has been exceeded (asked: 44001). Ask for less, or ask AWS for a higher quota.")
    s.stop()


def test_quotas_of_capacity_are_settings(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none", "--limit-values", "table-read=100000,account-read=100001").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute(f"CREATE TABLE k.a (p int PRIMARY KEY) {provisioned(100000, 40000)}")
        await_active(session, "k", "a")
        refused(session, f"CREATE TABLE k.b (p int PRIMARY KEY) {provisioned(2, 1)}", account_words("read", 100002, 100001))
        session.execute(f"CREATE TABLE k.b (p int PRIMARY KEY) {provisioned(1, 1)}")
    s.stop()


NOON = datetime(2026, 5, 6, 12)
ON_DEMAND = "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PAY_PER_REQUEST'}}"
SWITCHED = ("A table can be switched from provisioned to on-demand capacity only once in 24 hours, and not within 24 "
            "hours of its creation as an on-demand table. Wait, or provision more units meanwhile.")
DECREASED = ("Provisioned capacity has been decreased %s times today (UTC), the last time less than an hour ago; 4 "
             "decreases a day and then one an hour are allowed. Wait for an hour.")


@pytest.fixture
def timed(tmp_path):
    """(server, session, function that sets the server's clock to so many hours from noon); k is a keyspace."""
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none", "--control", "on").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()

        def at(hours):
            set_clock(session, state="frozen", now=NOON + timedelta(hours=hours))

        at(0)
        create_keyspace(session, "k")
        yield s, session, at
    s.stop()


def test_provisioned_to_on_demand_once_in_24_hours(timed):
    s, session, at = timed
    for name, options in (("guilty", ""), ("innocent", provisioned(5, 5))):
        session.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY) {options}")
        await_active(session, "k", name)
    at(1)
    session.execute(f"ALTER TABLE k.guilty {provisioned(10, 10)}")
    at(23.9)
    refused(session, f"ALTER TABLE k.guilty {ON_DEMAND}", SWITCHED)
    session.execute(f"ALTER TABLE k.innocent {ON_DEMAND}")  # created as a provisioned table, it was never switched
    at(24)
    session.execute(f"ALTER TABLE k.guilty {ON_DEMAND}")
    session.execute(f"ALTER TABLE k.guilty {provisioned(10, 10)}")
    s.stop()
    s.start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        set_clock(session, state="frozen", now=NOON + timedelta(hours=47.9))
        refused(session, f"ALTER TABLE k.guilty {ON_DEMAND}", SWITCHED)
        set_clock(session, state="frozen", now=NOON + timedelta(hours=48))
        session.execute(f"ALTER TABLE k.guilty {ON_DEMAND}")
        shown = session.execute("SELECT custom_properties FROM system_schema_mcs.tables "
                                "WHERE keyspace_name = 'k' AND table_name = 'guilty'").one()[0]
        assert sorted(shown["capacity_mode"]) == ["last_update_to_pay_per_request_timestamp", "throughput_mode"]


def test_decreases_of_capacity_in_a_day(timed):
    _, session, at = timed
    for name in ("guilty", "innocent"):
        session.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY) {provisioned(100, 100)}")
        await_active(session, "k", name)
    for i, (read, write) in enumerate(((99, 100), (99, 99), (98, 98), (98, 200), (97, 201))):
        at(i / 60)
        session.execute(f"ALTER TABLE k.guilty {provisioned(read, write)}")
    refused(session, f"ALTER TABLE k.guilty {provisioned(96, 300)}", DECREASED % 4)
    session.execute(f"ALTER TABLE k.guilty {provisioned(97, 202)}")  # no decrease
    session.execute(f"ALTER TABLE k.innocent {provisioned(1, 1)}")
    at(1 + 4 / 60)
    session.execute(f"ALTER TABLE k.guilty {provisioned(96, 202)}")
    at(2)
    refused(session, f"ALTER TABLE k.guilty {provisioned(95, 202)}", DECREASED % 5)
    at(12)  # another day
    for read in (95, 94, 93, 92):
        session.execute(f"ALTER TABLE k.guilty {provisioned(read, 202)}")
    refused(session, f"ALTER TABLE k.guilty {provisioned(91, 202)}", DECREASED % 4)


def several(*regions):
    return "{'class': 'NetworkTopologyStrategy', " + ", ".join(f"'{r}': 3" for r in regions) + "}"


def test_a_region_is_added_to_tables_with_client_side_timestamps(timed):
    _, session, _ = timed
    timestamps = "WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}"
    for name, options in (("with_them", timestamps), ("without", "")):
        session.execute(f"CREATE TABLE k.{name} (p int PRIMARY KEY) {options}")
        await_active(session, "k", name)
    add = f"ALTER KEYSPACE k WITH replication = {several('us-east-1', 'eu-west-1')}"
    refused(session, add, "The table without has no client-side timestamps, which the tables of a keyspace of several "
                          "Regions need. Turn them on with the same statement: "
                          "AND CLIENT_SIDE_TIMESTAMPS = {'status': 'ENABLED'}.")
    session.execute(f"ALTER TABLE k.without {timestamps}")
    session.execute(add)
    create_keyspace(session, "at_once")
    session.execute("CREATE TABLE at_once.t (p int PRIMARY KEY)")
    await_active(session, "at_once", "t")
    with pytest.raises(InvalidRequest, match="status of client_side_timestamps must be ENABLED"):
        session.execute(f"{add} AND CLIENT_SIDE_TIMESTAMPS = {{'status': 'off'}}")
    add = add.replace("KEYSPACE k", "KEYSPACE at_once")
    session.execute(f"{add} AND CLIENT_SIDE_TIMESTAMPS = {{'status': 'ENABLED'}}")
    now_us = int(NOON.replace(tzinfo=timezone.utc).timestamp() * 1_000_000)
    session.execute("INSERT INTO at_once.t (p) VALUES (1) USING TIMESTAMP %s", (now_us,))


def test_no_region_is_taken_out_of_a_keyspace(timed):
    _, session, _ = timed
    session.execute(f"CREATE KEYSPACE three WITH replication = {several('us-east-1', 'eu-west-1', 'ap-east-1')}")
    words = "The Region %s cannot be removed from the keyspace. Create a keyspace without it, and create its tables there."
    alter = "ALTER KEYSPACE three WITH replication = "
    refused(session, alter + several("us-east-1", "ap-east-1"), words % "eu-west-1")
    refused(session, alter + "{'class': 'SingleRegionStrategy'}", words % "ap-east-1")
    session.execute(alter + several("us-east-1", "eu-west-1", "ap-east-1", "sa-east-1"))


def test_quotas_of_user_types_are_settings(tmp_path):
    """AWS's numbers are not known: without the settings nothing is refused."""
    for flags in ((), ("--limit-values", "types=3,type-depth=2")):
        s = Server(tmp_path / str(len(flags)), "--compatibility", "strict", "--ddl-delay", "none", *flags)
        s.folder.mkdir()
        s.start()
        with s.cluster(schema_metadata_enabled=False) as cluster:
            session = cluster.connect()
            create_keyspace(session, "k")
            session.execute("CREATE TYPE k.a (x int)")
            session.execute("CREATE TYPE k.b (x frozen<a>)")
            if flags:
                refused(session, "CREATE TYPE k.c (x frozen<list<frozen<b>>>)",
                        "User types are nested 3 deep; at most 2 levels are supported. Flatten the type.")
                session.execute("CREATE TYPE k.d (x frozen<a>)")
                refused(session, "CREATE TYPE k.e (x int)",
                        "The quota of 3 user types has been exceeded. Drop one, or ask AWS for a higher quota.")
                session.execute("DROP TYPE k.d")
                session.execute("CREATE TYPE k.e (x int)")
            else:
                session.execute("CREATE TYPE k.c (x frozen<list<frozen<b>>>)")
                session.execute("CREATE TYPE k.d (x frozen<c>)")
        s.stop()


def test_four_restores_at_once(tmp_path):
    s = Server(tmp_path, "--compatibility", "strict", "--ddl-delay", "none", "--ddl-rules", "RESTORE TABLE * = held").start()
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY) WITH CUSTOM_PROPERTIES = {'point_in_time_recovery': {'status': 'enabled'}}")
        await_active(session, "k", "t")
        for i in range(4):
            session.execute(f"RESTORE TABLE k.r{i} FROM TABLE k.t")
        refused(session, "RESTORE TABLE k.r4 FROM TABLE k.t",
                "The quota of 4 concurrent restores has been exceeded. Wait until restored tables are ACTIVE.")
    s.stop()


def test_every_rule_has_a_case():
    assert sorted(set(rules()) - {c.rule for c in CASES} - set(ELSEWHERE)) == []
    assert [name for name in ELSEWHERE.values() if name not in globals()] == []


def test_every_case_has_a_rule():
    assert sorted({c.rule for c in CASES} - set(rules())) == []
