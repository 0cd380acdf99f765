"""The image in the place of Cassandra's: what Testcontainers' modules, Compose files and init scripts do with it.

There is no container daemon here. A root file system like the image's is put together from the Debian package, the entry point
and the machine's own libraries; the server runs in it with namespaces of its own, as the user and with the variables that the Dockerfile names."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tally_server import HANG, ROOT, SLOWER, TALLYD, eventually

DOCKERFILE = (ROOT / "tools" / "package" / "Dockerfile").read_text()
USER = "9042"
OUTSIDE = "10.9.0.2"  # an address of the container that is not its loopback address
INIT = "docker-entrypoint-initdb.d"
pytestmark = pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")

# $1: the root. What else the image has comes from this machine; the image's own programs are in front of it in the PATH.
ENTER = """
set -e
root=$1; shift
ip link set lo up
ip address add %s/32 dev lo
for d in usr bin lib lib64 etc dev; do [ ! -e /$d ] || { mkdir -p $root/$d; mount --rbind /$d $root/$d; }; done
mount -t proc proc $root/proc
exec chroot --userspec=%s:%s $root "$@"
""" % (OUTSIDE, USER, USER)


def variables():
    """What ENV says in the Dockerfile's last stage."""
    return dict(word.split("=", 1) for line in re.findall(r"^ENV (.*)$", DOCKERFILE, re.M) for word in line.split())


class Container:
    """docker run, docker exec and docker stop of the image."""

    def __init__(self, root, log, *arguments, **env):
        self.root, self.log = root, log
        env = {**variables(), "PATH": "/image/usr/local/bin:/image/usr/bin:/usr/bin:/bin", **env}
        (entry,) = re.findall(r'^ENTRYPOINT \["(.*)"\]$', DOCKERFILE, re.M)
        self.env = ["env", "-i", *(f"{k}={v}" for k, v in env.items())]
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, "enter", root, *self.env, entry, *arguments]
        self.process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def pid(self):
        """Of the container's first process, as the machine numbers it; None: it has not begun or has ended."""
        p = self.process.pid
        children = Path(f"/proc/{p}/task/{p}/children")
        return children.read_text().split()[0] if children.exists() and children.read_text() else None

    def run(self, *command):
        pid = self.pid()
        inside = ["nsenter", "-t", str(pid), "--net", "--mount", "--pid", "--root", "--wd", "-S", USER, "-G", USER, *self.env, *command]
        return subprocess.run(inside if pid else ["false"], capture_output=True, text=True, timeout=HANG)

    def until(self, condition, what):
        eventually(lambda: condition() or self.process.poll() is not None, lambda: f"{what}: {self.log.read_text()}")
        assert condition(), f"the container has ended: {self.log.read_text()}"

    def logged(self, words):
        self.until(lambda: words in self.log.read_text(), words)

    def stop(self):
        """docker stop: the exit code after SIGTERM."""
        os.kill(int(self.pid()), 15)
        return self.process.wait(timeout=HANG)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    subprocess.run(["cpack", "--config", str(TALLYD.parents[1] / "CPackConfig.cmake"), "-B", folder], check=True, capture_output=True, timeout=10 * HANG)
    (deb,) = folder.glob("tally_*.deb")
    subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)
    return folder / "root"


@pytest.fixture
def image(package, tmp_path):
    """image(*arguments, scripts={}, **variables): starts a container."""
    root = tmp_path / "root"
    shutil.copytree(package, root / "image", symlinks=True)
    (target, link), = re.findall(r"ln -s (\S+) (/usr/bin/\S+)", DOCKERFILE)
    (root / "image" / link.lstrip("/")).symlink_to(target)
    (source, to), = re.findall(r"^COPY (tools/\S+) (/usr/local/bin/\S+)$", DOCKERFILE, re.M)
    (root / "image/usr/local/bin").mkdir(parents=True)
    shutil.copy(ROOT / source, root / "image" / to.lstrip("/"))
    for folder in ("proc", "tmp", INIT, "var/lib/tally"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    root.chmod(0o755)
    os.chown(root / "var/lib/tally", int(USER), int(USER))
    started = []

    def start(*arguments, scripts=None, **env):
        for name, text in (scripts or {}).items():
            (root / INIT / name).write_text(text)
        started.append(Container(root, tmp_path / f"log{len(started)}", *arguments, **env))
        return started[-1]

    yield start
    for c in started:
        # chroot changes the user, after which --kill-child no longer ends what runs in the container
        for child in Path(f"/proc/{c.process.pid}/task/{c.process.pid}/children").read_text().split() if c.process.poll() is None else ():
            os.kill(int(child), signal.SIGKILL)
        c.process.kill()
        c.process.wait()


def local(container, column):
    """Of system.local, as cqlsh prints it in the container."""
    shown = container.run("cqlsh", "-e", f"SELECT {column} FROM system.local")
    assert shown.returncode == 0, shown.stderr
    return shown.stdout.splitlines()[3].strip()


# The environment that org.testcontainers.cassandra.CassandraContainer sets; its wait strategy asks for the version until cqlsh ends with 0.
JAVA = {"CASSANDRA_SNITCH": "GossipingPropertyFileSnitch", "JVM_OPTS": "-Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.initial_token=0",
        "HEAP_NEWSIZE": "128M", "MAX_HEAP_SIZE": "1024M", "CASSANDRA_ENDPOINT_SNITCH": "GossipingPropertyFileSnitch", "CASSANDRA_DC": "datacenter1"}
SCHEMA = """CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE shop.orders (id int PRIMARY KEY, note text);
INSERT INTO shop.orders (id, note) VALUES (1, 'first');
"""


@pytest.mark.parametrize("mode", ["keyspaces", "cassandra"])
def test_testcontainers_for_java_waits_and_runs_its_init_script(image, mode):
    c = image(**JAVA, TALLY_MODE=mode)
    login = ["-u", "cassandra", "-p", "cassandra"]
    c.until(lambda: c.run("cqlsh", *login, "-e", "SELECT release_version FROM system.local").returncode == 0, "the version")
    (c.root / "init.cql").write_text(SCHEMA)
    done = c.run("cqlsh", *login, "-f", "init.cql")
    assert done.returncode == 0, done.stderr
    assert "first" in c.run("cqlsh", *login, "-e", "SELECT note FROM shop.orders").stdout
    assert c.run("cqlsh", *login, "-e", "SELECT nosuch FROM shop.orders").returncode != 0
    assert local(c, "data_center") == "datacenter1"


def test_testcontainers_for_python_waits_for_a_line_of_the_log(image):
    c = image(**{k: v for k, v in JAVA.items() if k != "CASSANDRA_SNITCH"})
    c.logged("Startup complete")
    assert local(c, "bootstrapped") == "COMPLETED"


def test_the_data_centre_is_the_region_of_the_aws_sdks_examples(image):
    c = image()
    c.logged("Startup complete")
    assert local(c, "data_center") == "us-east-1"
    c.stop()
    c = image(TALLY_MODE="cassandra")
    c.logged("Startup complete")
    assert local(c, "data_center") == "datacenter1"


def test_testcontainers_for_go_waits_for_cqlsh_and_copies_scripts(image):
    c = image(CASSANDRA_SNITCH="GossipingPropertyFileSnitch", CASSANDRA_DC="datacenter1", CASSANDRA_ENDPOINT_SNITCH="GossipingPropertyFileSnitch")
    c.until(lambda: "COMPLETED" in c.run("cqlsh", "-e", "SELECT bootstrapped FROM system.local").stdout, "COMPLETED")
    (c.root / "init.cql").write_text(SCHEMA)
    assert c.run("cqlsh", "-f", "/init.cql").returncode == 0


def test_testcontainers_for_node_sets_data_centre_and_rack(image):
    c = image(CASSANDRA_DC="dc1", CASSANDRA_RACK="rack7", CASSANDRA_LISTEN_ADDRESS="auto", CASSANDRA_BROADCAST_ADDRESS="auto", CASSANDRA_RPC_ADDRESS="0.0.0.0",
              CASSANDRA_USERNAME="cassandra", CASSANDRA_PASSWORD="cassandra", CASSANDRA_SNITCH="GossipingPropertyFileSnitch")
    # Wait.forListeningPorts looks at the port from inside, with a shell; Wait.forHealthCheck runs the image's health check.
    c.until(lambda: c.run("/bin/sh", "-c", "cat /proc/net/tcp* | awk '{print $2}' | grep -i ':2352'").returncode == 0, "port 9042")
    (check,) = re.findall(r"CMD (\[.*\])", DOCKERFILE)
    assert c.run(*json.loads(check)).returncode == 0
    assert (local(c, "data_center"), local(c, "rack")) == ("dc1", "rack7")


def test_the_page_and_the_api_are_reached_from_outside(image):
    """A published port passes on the Host that the user has typed: localhost. Names that were not named are refused."""
    c = image(TALLY_HTTP_HOSTS="tally")
    c.logged("Startup complete")

    def status(port, method, host):
        type_ = "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: KeyspacesService.ListKeyspaces\r\nContent-Length: 2"
        more = f"{type_}\r\n\r\n{{}}" if method == "POST" else "\r\n"
        request = f"{method} / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}"
        done = c.run("bash", "-c", f'exec 3<>/dev/tcp/{OUTSIDE}/{port} && printf %s "$0" >&3 && head -1 <&3', request)
        return done.stdout.split()[1] if done.stdout else done.stderr

    for port, method in ((9180, "GET"), (9181, "POST")):
        found = {host: status(port, method, host) for host in (f"localhost:{port}", f"tally:{port}", "evil.example")}
        assert list(found.values()) == ["200", "200", "403"], found
    exposed = re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.M)[1].split()
    assert {"9180", "9181", "9182"} <= set(exposed)


@pytest.mark.parametrize("arguments", [(), ("cassandra", "-f"), ("tallyd",), ("--cluster-name", "of the flag")])
def test_variables_and_commands_of_cassandras_image(image, arguments):
    c = image(*arguments, CASSANDRA_CLUSTER_NAME="of the variable", CASSANDRA_DATACENTER="dc9", CASSANDRA_SEEDS="somewhere", CASSANDRA_NUM_TOKENS="16",
              CASSANDRA_START_RPC="true", TALLY_RACK="r2", CASSANDRA_RACK="r1")
    c.logged("Startup complete")
    assert local(c, "cluster_name") == ("of the flag" if "--cluster-name" in arguments else "of the variable")
    assert (local(c, "data_center"), local(c, "rack")) == ("dc9", "r2")  # Tally's own variables count first
    assert c.stop() == 0 and "stopping: SIGTERM" in c.log.read_text()


def test_init_scripts_run_once_in_order_before_clients_connect(image):
    scripts = {"1-schema.cql": SCHEMA + "SOURCE 'third.txt'", "third.txt": "INSERT INTO shop.orders (id, note) VALUES (3, 'by source');", "2-more.sh": 'cqlsh -e "INSERT INTO shop.orders (id, note) VALUES (2, \'by shell\')"',
               "3-last.cql": "INSERT INTO shop.orders (id, note) VALUES (1, 'changed')", "notes.txt": "no script"}
    c = image(scripts=scripts)
    c.logged("Startup complete")
    assert c.log.read_text().count("Startup complete") == 1
    rows = "SELECT note FROM shop.orders WHERE id IN (1, 2, 3)"
    shown = c.run("cqlsh", "-e", rows).stdout
    assert "changed" in shown and "by shell" in shown and "by source" in shown
    assert c.run("cqlsh", "-e", "DELETE FROM shop.orders WHERE id = 2").returncode == 0
    assert c.stop() == 0
    again = image()
    again.logged("Startup complete")
    assert "running" not in again.log.read_text()
    shown = again.run("cqlsh", "-e", rows).stdout
    assert "changed" in shown and "by shell" not in shown


def test_init_script_that_fails_stops_the_container_and_runs_again(image):
    c = image(scripts={"a.cql": SCHEMA.replace("CREATE KEYSPACE", "CREATE KEYSPACE IF NOT EXISTS").replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"), "b.cql": "SELEC"})
    assert c.process.wait(timeout=HANG) == 1
    assert re.search(r"entrypoint: /\S*/b.cql failed", c.log.read_text()) and "SELEC" in c.log.read_text()
    again = image(scripts={"b.cql": "INSERT INTO shop.orders (id, note) VALUES (3, 'mended')"})
    again.logged("Startup complete")
    assert "mended" in again.run("cqlsh", "-e", "SELECT note FROM shop.orders").stdout


def test_init_scripts_with_passwords_and_without_a_disk(image):
    c = image("--auth", "password", TALLY_MODE="cassandra", scripts={"a.cql": SCHEMA})
    c.logged("Startup complete")
    assert "first" in c.run("cqlsh", "-u", "cassandra", "-p", "cassandra", "-e", "SELECT note FROM shop.orders").stdout
    assert c.run("cqlsh", "-e", "SELECT note FROM shop.orders").returncode != 0
    assert c.stop() == 0
    refused = image("--data-dir", ":memory:")
    assert refused.process.wait(timeout=HANG) == 1 and "need a data directory on disk" in refused.log.read_text()


def test_settings_that_are_wrong_and_other_programs(image):
    wrong = image("--nosuch", scripts={"a.cql": SCHEMA})
    assert wrong.process.wait(timeout=HANG) != 0 and "unknown flag '--nosuch'" in wrong.log.read_text()
    other = image("tally", "--version")
    assert other.process.wait(timeout=HANG) == 0 and other.log.read_text().startswith("tally ")


EXAMPLES = {p.name: list(yaml.safe_load_all(p.read_text())) for p in sorted((ROOT / "tools/package/examples").glob("*.yaml"))}


def variables_of(name):
    """What the example sets in the container's environment, and asserts that it is a setting."""
    (first, *others) = EXAMPLES[name]
    found = {"compose.yaml": lambda: first["services"]["cassandra"]["environment"],
             "github.yaml": lambda: first["jobs"]["test"]["services"]["cassandra"]["env"],
             "gitlab.yaml": lambda: first["test"]["variables"],
             "kubernetes.yaml": lambda: {e["name"]: e["value"] for e in others[0]["spec"]["template"]["spec"]["containers"][0]["env"]}}[name]()
    settings = (ROOT / "docs/settings.md").read_text()
    assert all(f"`--{k.removeprefix('TALLY_').lower().replace('_', '-')} " in settings for k in found), found
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_tools_example_starts_the_image(image, name):
    """The files' variables, scripts and probes do what they are there for; their tools are not run."""
    first = EXAMPLES[name][0]
    assert len((ROOT / "tools/package/examples" / name).read_text().splitlines()) <= 40
    scripts = {"a.cql": SCHEMA} if name == "compose.yaml" else {}
    c = image(scripts=scripts, **variables_of(name))
    c.logged("Startup complete")
    if name == "compose.yaml":
        service = first["services"]["cassandra"]
        assert service["volumes"] == [f"./schema:/{INIT}:ro"] and service["ports"] == ["127.0.0.1:9042:9042", "127.0.0.1:9180:9180"]
        assert service["tmpfs"] == [f"/var/lib/tally:uid={USER},gid={USER},mode=700"]
        assert f"useradd --uid {USER} " in DOCKERFILE and "first" in c.run("cqlsh", "-e", "SELECT note FROM shop.orders").stdout
    if name == "github.yaml":
        (c.root / "schema.cql").write_text(SCHEMA)
        line = first["jobs"]["test"]["steps"][1]["run"]
        command = line.removeprefix("docker exec ${{ job.services.cassandra.id }} ")
        done = c.run("bash", "-c", command)
        assert command != line and done.returncode == 0, done.stderr
        assert "first" in c.run("cqlsh", "-e", "SELECT note FROM shop.orders").stdout
    if name == "kubernetes.yaml":
        pod = EXAMPLES[name][1]["spec"]["template"]["spec"]
        assert c.run(*pod["containers"][0]["readinessProbe"]["exec"]["command"]).returncode == 0
        assert set(pod["securityContext"].values()) == {int(USER)}
        assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == re.search(r"^VOLUME (\S+)$", DOCKERFILE, re.M)[1]


def test_the_page_names_each_example():
    page = (ROOT / "docs/testing.md").read_text()
    assert all(f"../tools/package/examples/{name}" in page for name in EXAMPLES) and len(EXAMPLES) == 4
