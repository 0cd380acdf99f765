"""The tarball as a stranger gets it: unpacked into a root in which there is nothing but glibc, to the first charge."""
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tally_server import HANG, PRESET, ROOT, SLOWER

pytestmark = pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")
BUILD = ROOT / "tools" / "package" / "build.sh"
GLIBC = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2")


def build(dist, *kinds):
    subprocess.run([BUILD, "--preset", PRESET, "--dist", dist, *kinds], check=True, capture_output=True, timeout=5 * HANG)
    (tarball,) = dist.glob("tally-*.tar.gz")
    return tarball


def libraries_of_glibc():
    """name -> file, of a program that is linked with all of them."""
    shown = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    return {name: path for name, path in re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", shown, re.M)[::-1] if name in GLIBC}


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"), "tarball")


@pytest.fixture
def root(tmp_path, tarball):
    """An empty root: the tarball, glibc, the time zones."""
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    subprocess.run(["tar", "-xzf", tarball, "-C", root, "--strip-components", "1"], check=True)
    for name, path in libraries_of_glibc().items():
        for folder in (root / "lib64", root / "lib") if name.startswith("ld-") else (root / "usr" / "lib",):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)
    shutil.copytree("/usr/share/zoneinfo", root / "usr" / "share" / "zoneinfo")
    return root


def test_first_charge_where_there_is_only_glibc(root):
    def command(*arguments):
        """As a container is run: /proc is there, and nothing else of the machine."""
        return ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"', root, *arguments]

    server = subprocess.Popen(command("/bin/tallyd", "--mode", "cassandra", "--data-dir", "/data", "--port", "0", "--admin-port", "0", "--api-port", "0"),
                              stdout=subprocess.PIPE, text=True)
    try:
        ready = next((line for line in server.stdout if line.startswith("tallyd ready: ")), "")
        host, port = re.search(r"cql=(\S+):(\d+)", ready).groups()
        script = ("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; CREATE TABLE app.t (p int PRIMARY KEY, v text);"
                  " INSERT INTO app.t (p, v) VALUES (1, 'one'); SELECT v FROM app.t WHERE p = 1;")
        done = subprocess.run(command("/bin/tally", "cql", host, port, "--charge", "-e", script), capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stderr
        assert re.search(r"\bone\b", done.stdout) and "0 RU  1 WU" in done.stdout and "0.5 RU" in done.stdout, done.stdout
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=HANG) == 0


def test_tarball_is_equal_if_it_is_built_again(tmp_path, tarball):
    assert build(tmp_path, "tarball").read_bytes() == tarball.read_bytes()


def test_each_library_has_its_licence_and_the_tarball_its_sum(tarball):
    tree = Path(str(tarball)[: -len(".tar.gz")])
    licences = tree / "share" / "doc" / "tally" / "licences"
    paths = dict(re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout, re.M)[::-1])
    owners = set()
    for library in (tree / "lib").iterdir():
        path = os.path.realpath(paths[library.name])
        shown = [subprocess.run(["dpkg-query", "-S", p], capture_output=True, text=True).stdout for p in (path, path.removeprefix("/usr"))]
        owners.add("".join(shown).split(":")[0])
    assert {f.name for f in licences.iterdir() if f.stat().st_size} == owners and "libssl3" in owners
    sums = dict(reversed(line.split()) for line in (tarball.parent / "SHA256SUMS").read_text().splitlines())
    assert list(sums) == [tarball.name]


def test_an_unknown_kind_is_refused(tmp_path):
    done = subprocess.run([BUILD, "--dist", tmp_path, "snap"], capture_output=True, text=True)
    assert done.returncode == 2 and "KIND" in done.stderr
