"""Requests to the live page's addresses (docs/page.md)."""
import http.client
import json

from tally_server import HANG


def ask(server, method, path, body=None, **headers):
    """Status, response, and its JSON or text."""
    c = http.client.HTTPConnection(server.admin, timeout=HANG)
    c.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, r, json.loads(text) if r.getheader("Content-Type") == "application/json" else text.decode()


def post(server, path, body, **headers):
    return ask(server, "POST", path, body, X_Tally="test", **headers)
