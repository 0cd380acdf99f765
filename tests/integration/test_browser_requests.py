"""Both HTTP ports refuse what a browser sends for a foreign web page, and answer programs, probes and own pages."""
import http.client
import json
import socket
import subprocess

import pytest

from aws_api import Api
from ports import free_port
from tally_server import TALLYD

JSON = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "KeyspacesService.ListKeyspaces"}
CBOR = {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PATH = "/service/KeyspacesService/operation/"
KEYSPACE = b"\xa1\x6ckeyspaceName\x63ks1"  # {"keyspaceName": "ks1"}
EVIL = {"Origin": "http://evil.example"}


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    admin = free_port()
    with Api(tmp_path_factory.mktemp("browser"), "--admin-port", str(admin), "--http-hosts",
             "tally.example,10.1.2.3") as api:
        api.admin = admin
        yield api


def ask(port, method, path, headers, body=None, host=None, address="127.0.0.1"):
    """(status, error type or None, body). host: another Host than the address that is connected to; "" is none."""
    c = http.client.HTTPConnection(address, port, timeout=300)
    c.putrequest(method, path, skip_host=host is not None)
    for name, value in {**({"Host": host} if host else {}),
                        **({"Content-Length": str(len(body))} if body is not None else {}), **headers}.items():
        c.putheader(name, value)
    c.endheaders(body)
    r = c.getresponse()
    answer = r.read()
    c.close()
    return r.status, r.getheader("x-amzn-ErrorType"), answer


def keyspaces(api):
    status, _, body = ask(api.port, "POST", "/", JSON, b"{}")
    assert status == 200
    return {k["keyspaceName"] for k in json.loads(body)["keyspaces"]}


# ---------------------------------------------------------------- Origin and Sec-Fetch-Site

@pytest.mark.parametrize("foreign", [EVIL, {"Origin": "null"}, {"Origin": "http://localhost:3000"},
                                     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
def test_a_page_cannot_create_or_drop(ports, foreign):
    before = keyspaces(ports)
    simple = {"Content-Type": "text/plain", **foreign}  # what needs no preflight
    for headers in (simple, {**CBOR, **foreign}):
        status, error, body = ask(ports.port, "POST", PATH + "CreateKeyspace", headers, KEYSPACE)
        assert (status, error) == (403, "AccessDeniedException") and b"web page" in body
    assert keyspaces(ports) == before


@pytest.mark.parametrize("foreign", [EVIL, {"Sec-Fetch-Site": "cross-site"}])
def test_a_page_cannot_read(ports, foreign):
    for method, path in (("GET", "/metrics"), ("GET", "/version"), ("GET", "/nowhere"), ("POST", "/metrics")):
        status, _, body = ask(ports.admin, method, path, foreign)
        assert status == 403 and b"web page" in body
    status, _, body = ask(ports.port, "POST", "/", {**JSON, **foreign}, b"{}")
    assert status == 403 and "web page" in json.loads(body)["message"]
    status, error, body = ask(ports.port, "POST", "/", {**FORM, **foreign}, b"Action=ListMetrics&Version=2010-08-01")
    assert (status, error) == (403, "AccessDeniedException") and b"<Code>AccessDenied</Code>" in body
    preflight = {**foreign, "Access-Control-Request-Method": "POST"}
    assert ask(ports.port, "OPTIONS", "/", preflight)[0] == 403


def test_own_pages_and_typed_addresses_are_answered(ports):
    own = {"Origin": f"http://127.0.0.1:{ports.port}", "Sec-Fetch-Site": "same-origin"}
    assert ask(ports.port, "POST", "/", {**JSON, **own}, b"{}")[0] == 200
    assert ask(ports.admin, "GET", "/metrics", {"Sec-Fetch-Site": "none"})[0] == 200
    assert ask(ports.port, "POST", "/", {**JSON, "Origin": "https://tally.example"}, b"{}",
               host="tally.example")[0] == 200


# ---------------------------------------------------------------- Host

@pytest.mark.parametrize("host", ["evil.example", "evil.example:9181", "127.0.0.1.evil.example", "10.1.2.4",
                                  "localhost.evil.example:9181"])
def test_a_name_that_resolves_to_here_reads_nothing(ports, host):
    """DNS rebinding: the page's own name resolves to 127.0.0.1, so that its requests are of its own origin."""
    origin = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, origin):
        status, _, body = ask(ports.admin, "GET", "/metrics", headers, host=host)
        assert status == 403 and b"--http-hosts" in body
        status, error, body = ask(ports.port, "POST", "/", {**JSON, **headers}, b"{}", host=host)
        assert (status, error) == (403, "AccessDeniedException") and "--http-hosts" in json.loads(body)["message"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.9:9180", "[::1]:9180",
                                  "tally.example", "Tally.Example:8080", "10.1.2.3:9180"])
def test_own_names_are_answered(ports, host):
    assert ask(ports.admin, "GET", "/ready", {}, host=host)[0] == 200
    assert ask(ports.port, "POST", "/", JSON, b"{}", host=host)[0] == 200


@pytest.mark.parametrize("listen, answers, refuses", [("127.0.0.9", ["127.0.0.9"], ["127.0.0.1"]), ("0.0.0.0", ["127.0.0.9", "127.0.0.1"], []),
                                                      pytest.param("::", ["127.0.0.9", "127.0.0.1"], [], marks=pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6"))])
def test_both_ports_listen_where_they_are_told_and_check_there(tmp_path, listen, answers, refuses):
    admin = free_port()
    with Api(tmp_path, "--admin-port", str(admin), "--admin-listen", listen, "--api-listen", listen, "--http-hosts", "tally.example") as api:
        for address in answers:
            for host in (None, "localhost:9180", "tally.example"):
                assert ask(admin, "GET", "/", {}, host=host, address=address)[0] == 200
                assert ask(api.port, "POST", "/", JSON, b"{}", host=host, address=address)[0] == 200
            for foreign, host in (({}, "evil.example"), ({}, "192.0.2.1"), (EVIL, None), ({"Sec-Fetch-Site": "cross-site"}, None)):
                assert ask(admin, "GET", "/", foreign, host=host, address=address)[0] == 403
                assert ask(api.port, "POST", "/", {**JSON, **foreign}, b"{}", host=host, address=address)[0] == 403
        for address in refuses:
            for port in (admin, api.port):
                with pytest.raises(ConnectionRefusedError):
                    ask(port, "GET", "/", {}, address=address)


@pytest.mark.parametrize("flag", ["--admin-listen", "--api-listen"])
def test_addresses_to_listen_on_are_numeric(flag):
    done = subprocess.run([str(TALLYD), "--check-config", flag, "localhost"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and f"{flag} must be a numeric address, not 'localhost'" in done.stderr


def test_a_probe_of_http_1_0_has_no_host(ports):
    connection = http.client.HTTPConnection("127.0.0.1", ports.admin, timeout=300)
    connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"
    connection.putrequest("GET", "/ready", skip_host=True)
    connection.endheaders()
    assert connection.getresponse().status == 200


@pytest.mark.parametrize("names", ["tally:9180", "http://tally", "a,,b", "*"])
def test_hosts_have_a_form(names):
    done = subprocess.run([str(TALLYD), "--check-config", "--http-hosts", names], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 2 and "--http-hosts" in done.stderr


# ---------------------------------------------------------------- Content-Type

@pytest.mark.parametrize("given", [None, "text/plain", "text/plain; application/cbor",
                                   "multipart/form-data; boundary=x", "application/x-www-form-urlencoded",
                                   "application/json", "application/cborx", ""])
@pytest.mark.parametrize("path, headers, body", [(PATH + "ListKeyspaces", CBOR, b"\xa0"), ("/", JSON, b"{}")])
def test_a_protocol_has_its_content_type(ports, path, headers, body, given):
    headers = {k: v for k, v in {**headers, "Content-Type": given}.items() if v is not None}
    status, error, answer = ask(ports.port, "POST", path, headers, body)
    assert (status, error) == (415, "UnsupportedMediaTypeException") and b"Content-Type" in answer


@pytest.mark.parametrize("path, headers, body", [
    (PATH + "ListKeyspaces", {**CBOR, "Content-Type": "Application/CBOR; x=y"}, b"\xa0"),
    ("/", {**JSON, "Content-Type": "application/x-amz-json-1.1 ; charset=utf-8"}, b"{}"),
    ("/", {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
     b"Action=ListMetrics&Version=2010-08-01"),
])
def test_parameters_and_capitals_of_a_content_type_do_not_count(ports, path, headers, body):
    assert ask(ports.port, "POST", path, headers, body)[0] == 200
