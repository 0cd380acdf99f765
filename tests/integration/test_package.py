"""What people start the server by: the Debian package, the container's files, the dashboard, and the snippets of docs/testing.md."""
import json
import re
import subprocess
import sys
import urllib.request

import promql_parser
import pytest
import yaml

from ports import free_port
from tally_server import HANG, PRESET, ROOT, SLOWER, TALLY, TALLYD, create_keyspace

PACKAGE = ROOT / "tools" / "package"


def blocks(language):
    """The code of that language in docs/testing.md, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / "testing.md").read_text(), re.M | re.S)


@pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")
def test_the_debian_package_holds_all_and_names_what_it_needs(tmp_path):
    preset = TALLYD.parents[1]
    subprocess.run(["cpack", "--config", str(preset / "CPackConfig.cmake"), "-B", str(tmp_path)], check=True, capture_output=True, timeout=10 * HANG)
    (package,) = tmp_path.glob("tally_*.deb")
    fields = subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout
    source = PRESET == "release-source"  # has a RocksDB of its own, and so what that needs
    for needed in ("libc6", "liblz4-1" if source else "librocksdb", "libssl3", "libev4"):
        assert re.search(rf"^Depends:.*\b{re.escape(needed)}", fields, re.M), needed
    assert not source or "librocksdb" not in fields
    files = subprocess.run(["dpkg-deb", "-c", package], check=True, capture_output=True, text=True).stdout
    names = {line.split()[5] for line in files.splitlines()}
    assert ("./usr/share/doc/tally/LICENSE.rocksdb" in names) == source
    assert {"./usr/bin/tallyd", "./usr/bin/tally", "./etc/default/tally", "./usr/lib/systemd/system/tallyd.service", "./usr/share/man/man8/tallyd.8"} <= names
    assert all(n.startswith(("./usr/", "./etc/")) for n in names - {"./"}), names
    subprocess.run(["dpkg-deb", "-R", package, tmp_path / "x"], check=True)
    assert (tmp_path / "x/DEBIAN/conffiles").read_text() == "/etc/default/tally\n"
    for script in ("postinst", "prerm"):
        subprocess.run(["sh", "-n", tmp_path / "x/DEBIAN" / script], check=True)
    version = subprocess.run([tmp_path / "x/usr/bin/tallyd", "--version"], check=True, capture_output=True, text=True).stdout
    assert version.split()[1] == re.search(r"^Version: (\S+)", fields, re.M)[1]


def queries():
    """(title, query) of each panel, variable and alert; the variables of queries have values."""
    dashboard = json.loads((PACKAGE / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", ()))
    for variable in dashboard["templating"]["list"]:
        labels = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if labels:
            yield variable["name"], f"sum by ({labels[2]}) ({labels[1]})"
    for rule in yaml.safe_load((PACKAGE / "alerts.yaml").read_text())["groups"][0]["rules"]:
        assert rule["annotations"]["summary"] and rule["labels"]["severity"] in ("warning", "critical")
        yield rule["alert"], rule["expr"]


def samples(text):
    """name of a sample -> the names of its labels in any sample."""
    found = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.M):
        found.setdefault(name, {"instance", "job"}).update(re.findall(r'(\w+)="', labels))
    return found


def test_the_dashboard_and_the_alerts_use_metrics_and_labels_that_there_are(new_server):
    s = new_server("--admin-port", str(free_port()), "--ddl-delay", "none", "--mode", "keyspaces", "--limits", "enforce")
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        session.execute("CREATE TABLE k.t (p int PRIMARY KEY) WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 1}}")
        with pytest.raises(Exception, match="capacity|limit|throughput"):
            while True:
                session.execute("SELECT * FROM k.t WHERE p = 1")
        session.execute("SELECT * FROM system_metering.storage")
    with urllib.request.urlopen(f"http://{s.admin}/metrics?per=table", timeout=300) as answer:
        there = samples(answer.read().decode())
    remote = re.findall(r'^STORE_STAT\(\w+, "(\w+)"', (ROOT / "engine/store_stat.def").read_text(), re.M)
    remote += [name + end for name, kind in re.findall(r'^FAMILY\(\w+, "(\w+)", "(\w+)".*remote stores', (ROOT / "server/family.def").read_text(), re.M)
               for end in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))]
    there.update({name: {"instance", "job", "le", "use"} for name in remote} | {"up": {"instance", "job"}})
    used = set()
    for title, query in queries():
        for variable, value in (("$__rate_interval", "1m"), (r"$server", "a"), ("$keyspace", "k"), ("$table", "t"), ("$operation", "SELECT")):
            query = query.replace(variable, value)
        nodes = []
        promql_parser.walk(promql_parser.parse(query), nodes.append)
        selectors = [n for n in nodes if isinstance(n, promql_parser.VectorSelector)]
        assert selectors, title
        for selector in selectors:
            assert selector.name in there, (title, selector.name)
            assert {m.name for m in selector.matchers.matchers} <= there[selector.name], (title, selector.name)
            used.add(selector.name)
    assert len(used) > 50


def test_the_containers_files_agree_with_the_server():
    docker = (PACKAGE / "Dockerfile").read_text()
    help_text = subprocess.run([TALLYD, "--help", "all"], capture_output=True, text=True).stdout
    assert "--preset release-source" in docker
    for variable in re.findall(r"\bTALLY_([A-Z_]+)=", docker):
        if variable not in ("TESTS", "COMMIT", "CQL_WAIT"):  # cmake's, and tally cql's
            assert "--" + variable.lower().replace("_", "-") + " " in help_text, variable
    assert re.search(r"^USER tally$", docker, re.M) and "HEALTHCHECK" in docker
    compose = yaml.safe_load((PACKAGE / "compose.yaml").read_text())
    (flags,) = [service["command"] for service in compose["services"].values() if "command" in service]
    assert {"tally:9180", "http://prometheus:9090"} <= set(re.findall(r"http://\w+:\d+|tally:\d+", json.dumps(compose["configs"]))) and "tally" in flags
    assert subprocess.run([TALLYD, "--check-config", *flags], capture_output=True).returncode == 0
    assert all(port.startswith("127.0.0.1:") for service in compose["services"].values() for port in service["ports"])
    for part in compose["configs"].values():
        assert yaml.safe_load(part["content"])


def test_the_containers_health_check_asks_the_server(new_server):
    (line,) = re.findall(r"CMD (\[.*\])", (PACKAGE / "Dockerfile").read_text())
    port = str(free_port())
    check = [str(TALLY), *(word.replace("9180", port) for word in json.loads(line)[1:])]
    assert json.loads(line)[0] == "tally"
    assert subprocess.run(check, capture_output=True).returncode != 0
    new_server("--admin-port", port)
    assert subprocess.run(check, capture_output=True).returncode == 0


def test_the_python_snippet_starts_a_server(tmp_path):
    snippet, use = blocks("python")
    program = tmp_path / "snippet.py"
    program.write_text(snippet.replace('program="tallyd"', f'program="{TALLYD}"') + "\n" + use)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "Test Cluster\n"), done.stderr
