"""What people start the server by: the Debian package, the container's files, the dashboard, and the snippets of docs/testing.md."""
import json
import re
import subprocess
import sys
import urllib.request

import pytest
import yaml

from ports import free_port
from tally_server import HANG, PRESET, ROOT, SLOWER, TALLY, TALLYD

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


def test_the_dashboard_shows_metrics_that_there_are(new_server):
    shown = set(re.findall(r"tally_[a-z_]+", " ".join(t["expr"] for p in json.loads((PACKAGE / "dashboard.json").read_text())["panels"] for t in p["targets"])))
    assert len(shown) > 15
    s = new_server("--admin-port", str(free_port()))
    with urllib.request.urlopen(f"http://{s.admin}/metrics", timeout=300) as answer:
        there = set(re.findall(r"^# TYPE (\S+)", answer.read().decode(), re.M))
    assert shown <= there, shown - there


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
