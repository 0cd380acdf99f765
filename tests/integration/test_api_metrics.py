"""CloudWatch's metrics of the namespace AWS/Cassandra, as boto3 and the AWS CLI ask for them: unmodified, with another endpoint; in each protocol of the service model."""
import datetime
import json
import struct
import subprocess

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement, SimpleStatement

from aws_api import ACCOUNT, REGION, Api, compare_with_model, refused
from control import read_clock, set_clock
from tally_server import await_active, create_keyspace

OPERATIONS = ["GetMetricData", "GetMetricStatistics", "ListMetrics"]
ALL = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"]
PROVISIONED = "CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 10, 'write_capacity_units': 20}}"


def test_the_table_of_shapes_is_the_service_model():
    compare_with_model("cloudwatch", "CLOUDWATCH", "shape_cloudwatch.def", "cw_", OPERATIONS)


def dimensions(**named):
    return [{"Name": k, "Value": v} for k, v in named.items()]


def of_table(table, **more):
    return dimensions(Keyspace="cw", TableName=table, **more)


class Metered:
    """A server whose clock stands, and what its clients were told that their statements cost."""

    def __init__(self, api):
        self.api = api
        self.told = {}
        self.connect()
        create_keyspace(self.s, "cw")
        for name, options in (("t", "comment = 'on demand'"), ("p", PROVISIONED), ("gone", PROVISIONED)):
            self.s.execute(f"CREATE TABLE cw.{name} (pk int, ck int, v blob, PRIMARY KEY (pk, ck)) WITH {options}")
            await_active(self.s, "cw", name)
        set_clock(self.s, state="frozen")

    def connect(self):
        self.cluster = self.api.server.cluster(protocol_version=4)
        self.s = self.cluster.connect()

    def restart(self):
        self.cluster.shutdown()
        self.api.server.stop()
        self.api.server.start()
        self.connect()

    def now(self):
        return read_clock(self.s).now.replace(tzinfo=datetime.timezone.utc)

    def run(self, table, kind, query, *values, level=ConsistencyLevel.LOCAL_QUORUM):
        """Adds what the payload says of it."""
        query = query if isinstance(query, BatchStatement) else SimpleStatement(query, consistency_level=level)
        future = self.s.execute_async(query, *values)
        future.result()
        units = struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
        self.told.setdefault((table, kind), []).append(units)

    def use(self, table, n):
        for i in range(n):
            self.run(table, "Write", f"INSERT INTO cw.{table} (pk, ck, v) VALUES (%s, 1, %s)", (i, bytes(700 * i)))
        for i in range(n):
            level = ConsistencyLevel.LOCAL_QUORUM if i % 2 else ConsistencyLevel.LOCAL_ONE
            self.run(table, "Read", f"SELECT * FROM cw.{table} WHERE pk = %s", (i,), level=level)
        batch = BatchStatement()
        for i in range(3):
            batch.add(f"INSERT INTO cw.{table} (pk, ck, v) VALUES (%s, 2, %s)", (i, bytes(1500)))
        self.run(table, "Write", batch)


@pytest.fixture(scope="module")
def metered(tmp_path_factory):
    m = Metered(Api(tmp_path_factory.mktemp("metrics"), "--ddl-delay", "none", "--control", "on"))
    m.use("t", 9)
    set_clock(m.s, advance_ms=60_000)
    m.use("t", 4)
    m.use("p", 3)
    m.s.execute("SELECT * FROM cw.t")
    m.told[("t", "Read")].append(None)  # not counted by what it told: the tests below use p
    yield m
    assert m.api.server.alive(), f"tallyd died:\n{m.api.server.log_tail()}"
    m.cluster.shutdown()
    m.api.server.stop()


@pytest.fixture(scope="module", params=["json", "cbor", "query"])
def client(request, metered):
    return metered.api.client(request.param, service="cloudwatch")


def statistics(client, metered, name, names, wanted=("Sum",), period=60, before=600, after=60, **more):
    """Datapoints by their time."""
    now = metered.now()
    got = client.get_metric_statistics(Namespace="AWS/Cassandra", MetricName=name, Dimensions=names, StartTime=now - datetime.timedelta(seconds=before),
                                       EndTime=now + datetime.timedelta(seconds=after), Period=period, Statistics=list(wanted), **more)
    assert got["Label"] == name
    return sorted(got["Datapoints"], key=lambda p: p["Timestamp"])


@pytest.mark.parametrize("kind", ["Read", "Write"])
def test_sums_are_what_clients_were_told(metered, client, kind):
    told = metered.told[("p", kind)]
    points = statistics(client, metered, f"Consumed{kind}CapacityUnits", of_table("p"), ALL)
    assert len(points) == 1 and points[0]["Unit"] == "Count"
    assert points[0]["Sum"] == sum(told) and points[0]["Timestamp"] == metered.now().replace(second=0, microsecond=0)
    assert points[0]["Average"] == points[0]["Sum"] / points[0]["SampleCount"]
    if kind == "Read":
        assert (points[0]["Minimum"], points[0]["Maximum"], points[0]["SampleCount"]) == (min(told), max(told), len(told))


def test_writes_of_a_keyspace_in_three_regions_are_what_each_region_takes(request, metered, client):
    keyspace = "regions_" + request.node.callspec.params["client"]
    metered.s.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'us-east-1': 3, 'eu-west-1': 3, 'ap-northeast-1': 3}}")
    metered.s.execute(f"CREATE TABLE {keyspace}.t (pk int PRIMARY KEY, v blob)")
    await_active(metered.s, keyspace, "t")
    for i in range(20):
        metered.s.execute(f"INSERT INTO {keyspace}.t (pk, v) VALUES (%s, %s)", (i, bytes(850)))
    points = statistics(client, metered, "ConsumedWriteCapacityUnits", dimensions(Keyspace=keyspace, TableName="t"), ALL)
    assert [(p["Sum"], p["Maximum"], p["SampleCount"]) for p in points] == [(20, 1, 20)]


def test_minutes_join_in_periods_and_the_end_is_not_in_them(metered, client):
    written = "ConsumedWriteCapacityUnits"
    minutes = statistics(client, metered, written, of_table("t"))
    assert len(minutes) == 2 and (minutes[1]["Timestamp"] - minutes[0]["Timestamp"]).seconds == 60
    joined = statistics(client, metered, written, of_table("t"), ALL, period=3600)
    assert [p["Sum"] for p in joined] == [sum(p["Sum"] for p in minutes)] == [sum(metered.told[("t", "Write")])]
    assert joined[0]["Timestamp"] == metered.now().replace(second=0, microsecond=0) - datetime.timedelta(seconds=600), "periods begin where the request does"
    assert [p["Sum"] for p in statistics(client, metered, written, of_table("t"), after=-61)] == [minutes[0]["Sum"]]
    assert [p["Sum"] for p in statistics(client, metered, written, of_table("t"), before=0)] == [minutes[1]["Sum"]]
    assert not statistics(client, metered, written, of_table("t"), before=600, after=-120)


@pytest.mark.parametrize("name, names", [
    ("ConsumedReadCapacityUnits", of_table("none")),
    ("ConsumedReadCapacityUnits", dimensions(Keyspace="cw")),
    ("ConsumedReadCapacityUnits", of_table("p", Operation="SELECT")),
    ("ConsumedReadCapacityUnits", of_table("p", Colour="red")),
    ("ConsumedReadCapacityUnits", []),
    ("SuccessfulRequestCount", of_table("p")),
    ("SuccessfulRequestCount", dimensions(Operation="OTHER")),
    ("NoSuchMetric", of_table("p")),
])
def test_what_is_not_kept_has_no_datapoints(metered, client, name, names):
    assert statistics(client, metered, name, names) == []


def test_another_namespace_or_unit_has_none(metered, client):
    assert statistics(client, metered, "ConsumedReadCapacityUnits", of_table("p"), Unit="Count")
    assert statistics(client, metered, "ConsumedReadCapacityUnits", of_table("p"), Unit="Bytes") == []
    assert client.get_metric_statistics(Namespace="AWS/DynamoDB", MetricName="ConsumedReadCapacityUnits", StartTime=metered.now() - datetime.timedelta(hours=1),
                                        EndTime=metered.now(), Period=60, Statistics=["Sum"])["Datapoints"] == []


def test_what_is_no_count(metered, client):
    def one(name, names=()):
        (point,) = statistics(client, metered, name, list(names), ["Maximum", "Average"])
        assert point["Average"] == point["Maximum"]
        return point["Maximum"], point["Unit"]

    assert one("ProvisionedReadCapacityUnits", of_table("p")) == (10, "Count")
    assert one("ProvisionedWriteCapacityUnits", of_table("p")) == (20, "Count")
    assert one("AccountMaxTableLevelReads") == (40000, "Count")
    assert one("AccountProvisionedReadCapacityUtilization")[1] == "Percent"
    size = metered.s.execute("SELECT billable_bytes FROM system_metering.storage WHERE keyspace_name = 'cw' AND table_name = 'p'").one()[0]
    assert one("BillableTableSizeInBytes", of_table("p")) == (size, "Bytes") and size > 0
    (requests,) = statistics(client, metered, "SuccessfulRequestCount", of_table("p", Operation="SELECT"))
    assert requests["Sum"] == len(metered.told[("p", "Read")])
    (latency,) = statistics(client, metered, "SuccessfulRequestLatency", of_table("p", Operation="INSERT"), ALL)
    assert latency["Unit"] == "Milliseconds" and 0 <= latency["Minimum"] <= latency["Average"] <= latency["Maximum"] and latency["SampleCount"] == 3
    assert sum(p["Sum"] for p in statistics(client, metered, "SuccessfulRequestCount", dimensions(Operation="BATCH"))) == 3


def test_metrics_are_listed_by_what_is_asked(metered, client):
    def listed(**asked):
        return [(m["MetricName"], {d["Name"]: d["Value"] for d in m["Dimensions"]})
                for page in client.get_paginator("list_metrics").paginate(**asked) for m in page["Metrics"]]

    everything = listed(Namespace="AWS/Cassandra")
    assert everything == listed() and len(everything) == len({json.dumps(m) for m in everything})
    assert ("ConsumedReadCapacityUnits", {"Keyspace": "cw", "TableName": "p"}) in everything and ("AccountMaxReads", {}) in everything
    assert ("SuccessfulRequestCount", {"Operation": "BATCH"}) in everything and not [m for m in everything if m[1].get("Operation") == "OTHER"]
    mine = listed(MetricName="BillableTableSizeInBytes", Dimensions=[{"Name": "Keyspace", "Value": "cw"}], RecentlyActive="PT3H")
    assert [m[1]["TableName"] for m in mine] == ["gone", "p", "t"]
    assert {m[1]["Operation"] for m in listed(Dimensions=[{"Name": "Operation"}, {"Name": "TableName", "Value": "p"}])} == {"SELECT", "INSERT"}
    assert listed(Namespace="AWS/EC2") == [] == listed(MetricName="NoSuch")
    refused(lambda: client.list_metrics(NextToken="?"), "InvalidParameterValue", 400, "NextToken")


# ---------------------------------------------------------------- GetMetricData

def query(id, table="p", name="ConsumedWriteCapacityUnits", stat="Sum", period=60, names=None, **more):
    return {"Id": id, "MetricStat": {"Metric": {"Namespace": "AWS/Cassandra", "MetricName": name, "Dimensions": of_table(table) if names is None else names},
                                     "Period": period, "Stat": stat}, **more}


def data(client, metered, *queries, **more):
    now = metered.now().replace(second=0, microsecond=0)
    return client.get_metric_data(MetricDataQueries=list(queries), StartTime=now - datetime.timedelta(minutes=10), EndTime=now + datetime.timedelta(minutes=1), **more)


def test_data_of_several_metrics(metered, client):
    got = data(client, metered, query("w", "t", Label="written"), query("r", name="ConsumedReadCapacityUnits"), query("none", "nowhere"),
               query("hidden", ReturnData=False), ScanBy="TimestampAscending")
    assert [(r["Id"], r["Label"], r["StatusCode"]) for r in got["MetricDataResults"]] == [
        ("w", "written", "Complete"), ("r", "ConsumedReadCapacityUnits", "Complete"), ("none", "ConsumedWriteCapacityUnits", "Complete")]
    written, read, none = got["MetricDataResults"]
    assert sum(written["Values"]) == sum(metered.told[("t", "Write")]) and read["Values"] == [sum(metered.told[("p", "Read")])] and none["Values"] == []
    assert written["Timestamps"] == sorted(written["Timestamps"]) and len(written["Timestamps"]) == 2
    newest_first = data(client, metered, query("w", "t"))["MetricDataResults"][0]
    assert newest_first["Values"] == written["Values"][::-1] and newest_first["Timestamps"] == written["Timestamps"][::-1]
    foreign, own = (data(client, metered, query("w", AccountId=a))["MetricDataResults"][0]["Values"] for a in ("999999999999", ACCOUNT))
    assert foreign == [] and own


def test_data_comes_in_pages(metered, client):
    queries = query("a", "t"), query("b", "p"), query("c", "t", "ConsumedReadCapacityUnits")
    whole = {r["Id"]: r["Values"] for r in data(client, metered, *queries)["MetricDataResults"]}
    assert [len(whole[k]) for k in "abc"] == [2, 1, 2]
    seen, token, statuses = {}, {}, []
    for _ in range(3):
        page = data(client, metered, *queries, MaxDatapoints=2, **token)
        statuses.append([r["StatusCode"] for r in page["MetricDataResults"]])
        for r in page["MetricDataResults"]:
            seen.setdefault(r["Id"], []).extend(r["Values"])
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else None
        if token is None:
            break
    assert token is None and seen == whole
    assert statuses == [["Complete", "PartialData", "PartialData"], ["Complete", "Complete", "PartialData"], ["Complete", "Complete", "Complete"]]
    refused(lambda: data(client, metered, *queries, NextToken="eA=="), "InvalidNextToken", 400)


@pytest.mark.parametrize("queries, text", [
    ([query("W")], r"MetricDataQueries.member.1.Id is not matching the expected pattern \^\[a-z\]"),
    ([query("w"), query("w")], "not unique"),
    ([{"Id": "w"}], "member.1 must have either MetricStat or Expression"),
    ([query("w", Expression="r")], "member.1 must have either MetricStat or Expression"),
    ([query("w", ReturnData=False)], "ReturnData"),
    ([query("w", stat="p99")], "p99 for parameter Stat is not supported: Tally keeps no samples"),
    ([query("w", period=61)], "Period must be a value in the set"),
    ([query("w", period=0)], "'metricDataQueries.1.member.metricStat.period' failed to satisfy constraint: Member must have value greater than or equal to 1"),
    ([], "from 1 to 500 members"),
    ([query("w"), {"Id": "e", "Expression": "w / PERIOD(w)"}], "Error in expression 'e': Tally evaluates no metric math"),
])
def test_data_that_cannot_be_had(metered, client, queries, text):
    refused(lambda: data(client, metered, *queries), "ValidationError", 400, text)


@pytest.mark.parametrize("asked, error, text", [
    ({"Statistics": []}, "ValidationError", "statistics"),
    ({"Statistics": None}, "InvalidParameterCombination", "At least one of the parameters Statistics and ExtendedStatistics"),
    ({"ExtendedStatistics": ["p99"]}, "InvalidParameterValue", "Tally keeps no samples"),
    ({"Statistics": ["Median"]}, "ValidationError", r"'Median' at 'statistics.1.member'.*enum value set: \[SampleCount, Average, Sum, Minimum, Maximum\]"),
    ({"Period": 90}, "InvalidParameterValue", "Period must be a value in the set"),
    ({"EndTime": datetime.datetime(2020, 1, 1)}, "InvalidParameterValue", "The parameter StartTime must be less than the parameter EndTime"),
    ({"StartTime": datetime.datetime(2020, 1, 1)}, "InvalidParameterCombination", "You have requested up to [0-9]+ datapoints, which exceeds the limit of 1440"),
    ({"MetricName": None}, "ValidationError", "Value null at 'metricName' failed to satisfy constraint: Member must not be null"),
    ({"Namespace": ":x"}, "ValidationError", "'namespace'"),
])
def test_statistics_that_cannot_be_had(metered, client, asked, error, text):
    request = {"Namespace": "AWS/Cassandra", "MetricName": "ConsumedReadCapacityUnits", "Period": 60, "Statistics": ["Sum"],
               "StartTime": metered.now() - datetime.timedelta(minutes=5), "EndTime": metered.now(), **asked}
    refused(lambda: client.get_metric_statistics(**{k: v for k, v in request.items() if v is not None}), error, 400, text)


# ---------------------------------------------------------------- the AWS CLI

def test_the_aws_cli(metered, aws):
    def run(*words):
        done = subprocess.run([aws, "cloudwatch", *words, "--endpoint-url", metered.api.url, "--region", REGION, "--output", "json"], capture_output=True, text=True,
                              timeout=300, check=False, env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    now = metered.now()
    times = ["--start-time", (now - datetime.timedelta(minutes=10)).isoformat(), "--end-time", (now + datetime.timedelta(minutes=1)).isoformat()]
    code, got, error = run("get-metric-statistics", "--namespace", "AWS/Cassandra", "--metric-name", "ConsumedWriteCapacityUnits", "--period", "60", "--statistics", "Sum",
                           "--dimensions", "Name=Keyspace,Value=cw", "Name=TableName,Value=p", *times)
    assert code == 0, error
    assert [p["Sum"] for p in got["Datapoints"]] == [sum(metered.told[("p", "Write")])]
    code, got, error = run("get-metric-data", "--metric-data-queries", json.dumps([query("w")]), *times)
    assert code == 0 and got["MetricDataResults"][0]["Values"] == [sum(metered.told[("p", "Write")])], error
    code, got, error = run("list-metrics", "--namespace", "AWS/Cassandra", "--metric-name", "AccountMaxReads")
    assert code == 0 and got["Metrics"] == [{"Namespace": "AWS/Cassandra", "MetricName": "AccountMaxReads", "Dimensions": []}], error


# ---------------------------------------------------------------- what time does to them; these change the server

def test_a_restart_and_a_drop(metered):
    client = metered.api.client("cbor", service="cloudwatch")
    asked = ("ConsumedWriteCapacityUnits", "t"), ("ConsumedReadCapacityUnits", "p"), ("ConsumedWriteCapacityUnits", "gone")
    metered.use("gone", 2)

    def all_of_them():
        return [statistics(client, metered, name, of_table(table), ALL) for name, table in asked]

    before = all_of_them()
    assert [sum(p["Sum"] for p in points) for points in before] == [sum(metered.told[("t", "Write")]), sum(metered.told[("p", "Read")]), sum(metered.told[("gone", "Write")])]
    now = metered.now()
    metered.restart()
    metered.now = lambda: now
    assert all_of_them() == before
    assert statistics(client, metered, "SuccessfulRequestCount", of_table("p", Operation="SELECT"))[0]["Sum"] == len(metered.told[("p", "Read")])
    assert len(statistics(client, metered, "ProvisionedReadCapacityUnits", of_table("gone"), after=600)) == 1
    metered.s.execute("DROP TABLE cw.gone")
    assert statistics(client, metered, "ProvisionedReadCapacityUnits", of_table("gone"), after=600) == []
    assert all_of_them() == before, "what was counted is there as long as other metrics are"
    metered.restart()
    assert all_of_them() == before
    create_table = "CREATE TABLE cw.gone (pk int, ck int, v blob, PRIMARY KEY (pk, ck))"
    metered.s.execute(create_table)
    await_active(metered.s, "cw", "gone")
    metered.run("gone", "Write", "INSERT INTO cw.gone (pk, ck) VALUES (1, 1)")
    (total,) = statistics(client, metered, "ConsumedWriteCapacityUnits", of_table("gone"), period=3600, after=600)
    assert total["Sum"] == sum(metered.told[("gone", "Write")]), "a metric is its names, whichever table had them"
