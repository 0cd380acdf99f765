"""A server with AWS's API, and clients of it from the package registry: boto3's, unmodified, with another endpoint."""
import http.client
import re

import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from cassandra.auth import PlainTextAuthProvider

from ports import free_port
from tally_server import ROOT, Server

REGION, ACCOUNT = "us-east-1", "111122223333"
PROTOCOLS = {"json": "json", "cbor": "smithy-rpc-v2-cbor", "query": "query"}


class Api:
    """A server with its API, and clients of it. As a context it is alive at the end, and stops."""

    def __init__(self, folder, *flags, make=Server):
        self.port = free_port()
        self.server = make(folder, "--api-port", str(self.port), "--region", REGION, "--compatibility", "strict", *flags).start()
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        assert self.server.alive(), f"tallyd died:\n{self.server.log_tail()}"
        self.server.stop()

    def client(self, protocol="json", key="any", secret="any", token=None, region=REGION, service="keyspaces", **config):
        """boto3's, which speaks several protocols: protocol is the one that the model offers it."""
        core = botocore.session.get_session()
        loader = core.get_component("data_loader")
        load = loader.load_service_model

        def load_one(*what, **more):
            model = load(*what, **more)
            if "service-2" in what:
                model["metadata"]["protocols"] = [PROTOCOLS[protocol]]
            return model

        loader.load_service_model = load_one
        return boto3.Session(botocore_session=core).client(
            service, endpoint_url=self.url, region_name=region, aws_access_key_id=key, aws_secret_access_key=secret, aws_session_token=token,
            config=Config(retries={"total_max_attempts": 1}, parameter_validation=False, **config))

    def post(self, body, headers, path="/"):
        """(status, error type or None, answer)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        c.request("POST", path, body, headers)
        r = c.getresponse()
        answer = r.read()
        c.close()
        return r.status, r.getheader("x-amzn-ErrorType"), answer


def key_flags(folder, *lines):
    """The flags of a server whose clients sign with the keys of these lines of a credentials file."""
    file = folder / "credentials"
    file.write_text("".join(f"{line}\n" for line in lines))
    file.chmod(0o600)
    return "--auth", "sigv4", "--credentials", str(file)


def make_roles(folder, *statements):
    """In a server's folder: roles are made by statements, in cassandra mode."""
    server = Server(folder, "--mode", "cassandra", "--auth", "password").start()
    with server.cluster(auth_provider=PlainTextAuthProvider("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        for statement in statements:
            session.execute(statement)
    server.stop()


def refused(call, error, status, text=""):
    with pytest.raises(ClientError) as caught:
        call()
    response = caught.value.response
    assert (response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]) == (error, status), response
    assert re.search(text, response["Error"]["Message"]), response["Error"]["Message"]
    return response


# ---------------------------------------------------------------- service models

BOUND = {"INT32_MIN": None, "INT32_MAX": None, "INT64_MIN": None, "INT64_MAX": None, "UINT32_MAX": None}
PATTERN = {"NULL": None, "PRINTABLE": r"\p{Print}+", "XML_TEXT": r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*"}


def bound(text):
    return BOUND[text] if text in BOUND else int(text)


def rows(text, name, n):
    return [re.split(r", (?![^\"]*\"\))", r.replace('"\n     "', ""), maxsplit=n - 1) for r in re.findall(rf"^{name}\(([^()]*(?:\([^()]*\)[^()]*)*)\)$", text, re.M)]


def shapes_of_table(text):
    """Shapes, and the members of structures, as the rows of a .def have them."""
    found, members = {}, {}
    for name, least, most, pattern in rows(text, "TEXT", 4):
        found[name] = ("string", int(least), bound(most), PATTERN[pattern] if pattern in PATTERN else pattern.strip('"'))
    for name, values in rows(text, "ENUM", 2):
        found[name] = ("enum", values.strip('"').split(", "))
    for name, whole, least, most in rows(text, "NUMBER", 4):
        found[name] = ("number", whole == "true", bound(least), bound(most))
    for name, of, least, most in rows(text, "LIST", 4):
        found[name] = ("list", of, int(least), bound(most))
    for name, key, value in rows(text, "DICTIONARY", 3):
        found[name] = ("map", key, value)
    for kind in ("FLAG", "MOMENT", "STRUCTURE"):
        for (name,) in rows(text, kind, 1):
            found[name] = (kind,)
    for of, name, shape, required in rows(text, "MEMBER", 4):
        members.setdefault(of, {})[name] = (shape, required == "true")
    return found, members


def shape_of_model(s, prefix):
    if s["type"] == "string":
        return ("enum", s["enum"]) if "enum" in s else ("string", s.get("min", 0), s.get("max"), s.get("pattern"))
    if s["type"] in ("integer", "long", "double"):
        return ("number", s["type"] != "double", s.get("min"), s.get("max"))
    if s["type"] == "list":
        return ("list", prefix + s["member"]["shape"], s.get("min", 0), s.get("max"))
    if s["type"] == "map":
        return ("map", prefix + s["key"]["shape"], prefix + s["value"]["shape"])
    return ({"boolean": "FLAG", "timestamp": "MOMENT", "structure": "STRUCTURE"}[s["type"]],)


def input_shapes(model, operations):
    wanted = {}

    def visit(name):
        shape = model["shapes"][name]
        if name in wanted:
            return
        wanted[name] = shape
        below = list(shape.get("members", {}).values()) + [shape[k] for k in ("member", "key", "value") if k in shape]
        for x in below:
            visit(x["shape"])

    for name in operations:
        visit(model["operations"][name]["input"]["shape"])
    return wanted


def compare_with_model(service, row, table, prefix, operations=None):
    """Every input shape, member and bound of botocore's model is a row, and no row is of anything else; every error has its HTTP status."""
    model = botocore.session.get_session().get_component("data_loader").load_service_model(service, "service-2")
    operations = operations or list(model["operations"])
    wanted = input_shapes(model, operations)
    found, members = shapes_of_table((ROOT / "control_plane" / table).read_text())
    assert found == {prefix + name: shape_of_model(s, prefix) for name, s in wanted.items()}
    assert members == {prefix + name: {m: (prefix + x["shape"], m in s.get("required", [])) for m, x in s["members"].items()}
                       for name, s in wanted.items() if s.get("members")}
    inputs = re.findall(rf"^OPERATION\({row}, (\w+), (\w+),", (ROOT / "control_plane" / "operation.def").read_text(), re.M)
    assert dict(inputs) == {name: prefix + model["operations"][name]["input"]["shape"] for name in operations}
    errors = {name: (int(status), code) for name, status, code in
              re.findall(r'^API_ERROR\((\w+), (\d+), "(\w+)"', (ROOT / "control_plane" / "error.def").read_text(), re.M)}
    for name in {e["shape"] for n in operations for e in model["operations"][n].get("errors", [])} & set(errors):
        error = model["shapes"][name].get("error", {})
        assert errors[name][0] == error.get("httpStatusCode", errors[name][0]) and error.get("code") in (None, errors[name][1]), name
