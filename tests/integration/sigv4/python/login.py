"""Logs in to Tally by AWS's SigV4 plugin for the Python driver: login.py HOST PORT TLS-PORT CA

A login a line on stdin, a JSON array of transport (plain or tls), region, key, secret and token; a line each of what came of it; test_sigv4.py says what is right."""
import json
import ssl
import sys

from cassandra.cluster import Cluster, NoHostAvailable
from cassandra_sigv4.auth import SigV4AuthProvider

host, port, tls_port, ca = sys.argv[1:]


def login(transport, region, key, secret, token):
    provider = SigV4AuthProvider(aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token or None, region_name=region)
    tls = {"ssl_context": ssl.create_default_context(cafile=ca), "ssl_options": {"server_hostname": host}} if transport == "tls" else {}
    try:
        with Cluster([host], port=int(tls_port if tls else port), auth_provider=provider, **tls) as cluster:
            return ["ok", cluster.connect().execute("SELECT key FROM system.local").one().key]
    except NoHostAvailable as e:
        (cause,) = e.errors.values()
        return [type(cause).__name__, str(cause)]


for line in sys.stdin:
    print(json.dumps(login(*json.loads(line))), flush=True)
