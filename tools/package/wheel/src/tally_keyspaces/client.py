"""What tests need of cassandra-driver. It is imported when it is used, so the package installs without it."""
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cassandra.cluster import Cluster, ResultSet, Session

POLL = 0.02  # seconds


def cluster(host: str, port: int, **options: Any) -> "Cluster":
    try:
        from cassandra import ConsistencyLevel
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import RoundRobinPolicy
    except ImportError as e:
        raise ImportError(f"cassandra-driver is needed: pip install 'tally-keyspaces[driver]' ({e})") from e
    if "execution_profiles" not in options:
        profile = ExecutionProfile(RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=60)
        options["execution_profiles"] = {EXEC_PROFILE_DEFAULT: profile}
    options.setdefault("connect_timeout", 60)
    options.setdefault("control_connection_timeout", 60)
    return Cluster([host], port=port, **options)


def wait_active(session: "Session", keyspace: "str | None" = None, timeout: float = 60) -> None:
    """Waits until the keyspace (default: the session's) exists and all its tables are ACTIVE. Raises TimeoutError.

    As on Amazon Keyspaces, CREATE and ALTER return before the keyspace or table can be used. In cassandra mode they do not,
    and this returns at once.
    """
    keyspace = keyspace or session.keyspace
    if not keyspace:
        raise ValueError("the session has no keyspace: name it, wait_active(session, keyspace)")
    keyspaces = "SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = %s"
    tables = "SELECT table_name, status FROM system_schema_mcs.tables WHERE keyspace_name = %s"
    deadline = time.monotonic() + timeout
    while True:
        created = session.execute(keyspaces, [keyspace]).one() is not None
        waiting = {row.table_name: row.status for row in session.execute(tables, [keyspace]) if row.status != "ACTIVE"}
        if created and not waiting:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:g} s, " + (f"not ACTIVE: {waiting}" if created else f"there is no keyspace {keyspace}"))
        time.sleep(POLL)


def charge(result: "ResultSet") -> float:
    """The capacity units of the response: of a page, if the result has several."""
    payload = result.response_future.custom_payload or {}
    if "RequestCharge" not in payload:
        raise ValueError("the response has no charge (--capacity-payload off?)")
    return float(struct.unpack(">d", payload["RequestCharge"])[0])
