#!/usr/bin/env python3
"""Starts tallyd on a scratch folder, runs the founding examples through the Python driver, and prints what each statement cost, and what is refused or throttled.
At a terminal the server, with its page, stays until Ctrl-C.

usage: demo.py PATH_OF_TALLYD [tallyd options]
"""
import json
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from cassandra import ConsistencyLevel, InvalidRequest, WriteTimeout
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy
from cassandra.query import SimpleStatement

TABLE = """CREATE TABLE mykeyspace.mytable(pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static,
             PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2))"""
SMALL = """CREATE TABLE mykeyspace.small(pk int PRIMARY KEY, v text)
             WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 5, 'write_capacity_units': 5}}"""
WIDE = "CREATE TABLE mykeyspace.wide(pk int, ck int, reg text, st text static, PRIMARY KEY (pk, ck))"

QUORUM, ONE = ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.LOCAL_ONE


def text_for(total, model_overhead):
    return "x" * (total - model_overhead)


# (statement, parameters, consistency); sizes of the last two writes: 25.5 KB of row and 1.5 KB of static data, encoded.
STATEMENTS = [
    ("INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)", None, QUORUM),
    ("INSERT INTO mykeyspace.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (2, 3, 4, 5, 6, 7)", None, QUORUM),
    ("INSERT INTO mykeyspace.wide (pk, ck, reg, st) VALUES (1, 1, %s, %s)",
     (text_for(26112, 7 + 8 + 100), text_for(1536, 7 + 104)), QUORUM),
    ("SELECT * FROM mykeyspace.mytable WHERE pk_col1 = 2 AND pk_col2 = 3 AND ck_col1 = 4 AND ck_col2 = 5", None, QUORUM),
    ("SELECT * FROM mykeyspace.mytable WHERE pk_col1 = 2 AND pk_col2 = 3 AND ck_col1 = 4 AND ck_col2 = 5", None, ONE),
    ("SELECT ck, reg, st FROM mykeyspace.wide WHERE pk = 1", None, QUORUM),
    ("SELECT * FROM mykeyspace.mytable", None, QUORUM),
    ("UPDATE mykeyspace.mytable SET reg_col1 = 9 WHERE pk_col1 = 2 AND pk_col2 = 3 AND ck_col1 = 4 AND ck_col2 = 5 IF reg_col1 = 6", None, QUORUM),
]

# What Amazon Keyspaces refuses.
REFUSED = [
    ("SELECT COUNT(*) FROM mykeyspace.mytable", QUORUM),
    ("UPDATE mykeyspace.wide USING TTL 60 SET reg = 'x' WHERE pk = 1 AND ck = 1", QUORUM),
    ("INSERT INTO mykeyspace.wide (pk, ck) VALUES (2, 2)", ONE),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(tallyd, folder, options):
    command = [tallyd, "--data-dir", folder, "--port", "0", "--admin-port", free_port(), "--api-port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("tallyd ready: "):
            fields = dict(f.split("=", 1) for f in line[len("tallyd ready: "):].split())
            host, port = fields["cql"].rsplit(":", 1)
            return process, host, int(port), f"http://{fields['admin']}/"
    sys.exit("tallyd did not become ready")


def await_keyspace(session, name):
    """A keyspace, too, may be used only a moment after CREATE KEYSPACE has answered."""
    query, deadline = "SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = %s", time.time() + 60
    while not session.execute(query, (name,)).one():
        if time.time() > deadline:
            sys.exit(f"keyspace {name} was not created")
        time.sleep(0.05)


def await_active(session, table):
    """What an application does on Keyspaces: CREATE TABLE answers at once, the table is used once its status says so."""
    query = "SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = 'mykeyspace' AND table_name = %s"
    seen, deadline = [], time.time() + 60
    while time.time() < deadline:
        status = session.execute(query, (table,)).one().status
        if status not in seen:
            seen.append(status)
        if status == "ACTIVE":
            return " -> ".join(seen)
        time.sleep(0.05)
    sys.exit(f"mykeyspace.{table} did not become ACTIVE")


def run(session, text, parameters, consistency):
    statement = SimpleStatement(text, consistency_level=consistency)
    future = session.execute_async(statement, parameters, custom_payload={"capacity": b""})
    future.result()
    charge = struct.unpack(">d", future.custom_payload["RequestCharge"])[0]
    return charge, json.loads(future.custom_payload["capacity"])


def print_refusals(session):
    print("\nrefused, as on Amazon Keyspaces")
    for text, consistency in REFUSED:
        try:
            session.execute(SimpleStatement(text, consistency_level=consistency))
            words = "not refused: --compatibility is not strict"
        except InvalidRequest as e:
            words = str(e).split('message="', 1)[1].rsplit('"', 1)[0]
        print(f"{text.replace('mykeyspace.', '')}  at {ConsistencyLevel.value_to_name[consistency]}\n    {words}")


def bytes_of(c):
    parts = []
    if c["static_bytes"]:
        parts.append(f"{c['static_bytes']} static")
    if c["row_bytes"]:
        parts.append(f"{c['row_bytes']} row")
    return " + ".join(parts) or "0"


def shorten(text, width):
    return text if len(text) <= width else text[: width - 3] + "..."


def print_throttle(session):
    """Five write units a second, and none saved yet: a write of twenty has to wait."""
    print("\nthrottled, for the table is provisioned with 5 write units a second")
    statement = SimpleStatement("INSERT INTO mykeyspace.small (pk, v) VALUES (1, %s)", retry_policy=FallthroughRetryPolicy())
    try:
        session.execute(statement, ("x" * 20000,))
        words = "not throttled: --limits is off"
    except WriteTimeout as e:
        words = str(e).split('message="', 1)[1].rsplit('" info', 1)[0]
    print(f"INSERT INTO small (pk, v) VALUES (1, '{'x' * 10}...')  at LOCAL_QUORUM\n    {words}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = tempfile.mkdtemp(prefix="tally-demo-")
    process, host, port, page = start(sys.argv[1], folder, ["--table-limits", "mykeyspace.small=enforce", *sys.argv[2:]])
    print(f"the live page, while this runs: {page}\n", file=sys.stderr, flush=True)
    try:
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=QUORUM)
        with Cluster([host], port=port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}) as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE mykeyspace WITH replication = {'class': 'SingleRegionStrategy'}")
            await_keyspace(session, "mykeyspace")
            for name, ddl in (("mytable", TABLE), ("wide", WIDE), ("small", SMALL)):
                session.execute(ddl)
                print(f"mykeyspace.{name}: {await_active(session, name)}")
            width = 60
            print(f"\n{'statement':{width}} {'at':13} {'encoded bytes':>23} {'units':>6}  why")
            for text, parameters, consistency in STATEMENTS:
                charge, c = run(session, text, parameters, consistency)
                level = ConsistencyLevel.value_to_name[consistency]
                short = shorten(text.replace("mykeyspace.", ""), width)
                print(f"{short:{width}} {level:13} {bytes_of(c):>23} {charge:6g}  {', '.join(c['rules'])}")
            print_refusals(session)
            print_throttle(session)
        if sys.stdin.isatty() and sys.stdout.isatty():
            print(f"\nThe page of all this is at {page} until you press Ctrl-C.", flush=True)
            process.wait()
    except KeyboardInterrupt:
        print()
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
