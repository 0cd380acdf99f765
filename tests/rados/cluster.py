#!/usr/bin/python3
"""A Ceph cluster for tests: one monitor and some OSDs on loopback, on free ports, all files in one folder.

    tests/rados/cluster.py install                    the Debian packages, when they are missing
    tests/rados/cluster.py start FOLDER [--osds N] [--store memstore|bluestore]
    tests/rados/cluster.py stop|again FOLDER          ends the daemons and keeps the data; starts them again
    tests/rados/cluster.py wipe FOLDER                kills the daemons and removes the data
    tests/rados/cluster.py kill|start-osd|pause|resume FOLDER OSD
    tests/rados/cluster.py make-pool FOLDER NAME [--groups N] [--copies N]   another pool than POOL
    tests/rados/cluster.py wait-up FOLDER             until the monitor says that all OSDs are up

One OSD in memory holds one copy and serves tests of function. Three with bluestore hold three copies of which two must be
written, for tests of failures. There is no manager daemon, no authentication and no systemd. It needs the system's own
python3, which has Ceph's rados module. Clients use FOLDER/ceph.conf and the pool named POOL.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
from ports import free_port  # noqa: E402

PACKAGES = ["ceph-mon", "ceph-osd", "ceph-common", "librados-dev", "python3-rados"]
POOL = "tally"
PLACEMENT_GROUPS = 16
HANG_S = 120  # a daemon that has not started or ended by then hangs

CONF = """\
[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{port_v2},v1:127.0.0.1:{port_v1}]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
keyring = /dev/null
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
ms_bind_ipv6 = false
run_dir = {folder}/run
admin_socket = {folder}/run/$name.asok
pid_file = {folder}/run/$name.pid
log_file = {folder}/log/$name.log
crash_dir = {folder}/crash
mon_data = {folder}/$name
osd_data = {folder}/$name
debug_ms = 0/0
# All OSDs are on one host, so the copies of an object go to different OSDs and not to different hosts.
osd_crush_chooseleaf_type = 0
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_max_pg_per_osd = 5000
# The monitors judge by these, too: they must not stand under [osd].
osd_heartbeat_interval = {heartbeat_s}
osd_heartbeat_grace = {grace_s}
mon_osd_adjust_heartbeat_grace = false
[mon]
# One OSD's word is enough: the default waits for reporters on two hosts, and a hung OSD would stay "up".
mon_osd_min_down_reporters = 1
mon_cluster_log_to_file = false
paxos_propose_interval = 0.05
paxos_min_wait = 0.02
[osd]
osd_objectstore = {store}
osd_memory_target = 939524096
memstore_device_bytes = 1073741824
bluestore_block_size = 4294967296
bluestore_block_preallocate_file = false
bluestore_fsck_on_mkfs = false
[client]
admin_socket =
log_file = /dev/null
"""


def install():
    """Installs the packages that are missing."""
    def missing(package):
        query = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", package], capture_output=True, text=True)
        return query.stdout != "installed"

    wanted = [p for p in PACKAGES if missing(p)]
    if not wanted:
        return
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run([*as_root, "apt-get", "update", "-qq"], check=True)
    subprocess.run([*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
                   check=True, stdout=subprocess.DEVNULL)


def wait_for(what, condition):
    """Waits until condition() is true."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {HANG_S} s")
        time.sleep(0.02)


class Cluster:
    """The cluster of a folder."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.conf = self.folder / "ceph.conf"

    @property
    def osds(self):
        return sorted(int(p.name.split("-")[1].split(".")[0]) for p in self.folder.glob("osd-*.uuid"))

    # ---- daemons ----

    def run(self, *command):
        log = self.folder / "log" / "daemons.out"
        with open(log, "ab") as out:
            done = subprocess.run(list(map(str, command)), stdout=out, stderr=out, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{log.read_text(errors='replace')[-2000:]}")

    def as_user(self):
        return ["--setuser", "root", "--setgroup", "root"] if os.geteuid() == 0 else []

    def pid(self, name):
        """The process of a daemon that this folder started; None: it does not run."""
        try:
            pid = int((self.folder / "run" / f"{name}.pid").read_text())
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return pid if str(self.conf).encode() in f.read() else None
        except (OSError, ValueError):
            return None

    def signal(self, name, number, gone):
        pid = self.pid(name)
        if pid is None:
            return
        os.kill(pid, number)
        if gone:
            wait_for(f"{name} ends", lambda: self.pid(name) is None)

    def start_mon(self):
        self.run("ceph-mon", "-c", self.conf, "-i", "a", *self.as_user())

    def start_osd(self, osd):
        self.run("ceph-osd", "-c", self.conf, "-i", osd, *self.as_user())

    def kill(self, osd):
        self.signal(f"osd.{osd}", signal.SIGKILL, True)

    def pause(self, osd):
        """The OSD stops answering and keeps its connections, as a machine that hangs."""
        self.signal(f"osd.{osd}", signal.SIGSTOP, False)

    def resume(self, osd):
        self.signal(f"osd.{osd}", signal.SIGCONT, False)

    # ---- the monitor's commands ----

    def connect(self):
        import rados  # of the system's python3, after install
        client = rados.Rados(conffile=str(self.conf), conf={"client_mount_timeout": "60", "rados_osd_op_timeout": "60"})
        client.connect()
        return client

    def ask(self, client, **command):
        code, out, text = client.mon_command(json.dumps({"format": "json", **command}), b"")
        if code:
            raise RuntimeError(f"{command}: {code} {text}")
        return json.loads(out) if out.strip() else None

    def wait_up(self, client, n):
        def up():
            stat = self.ask(client, prefix="osd stat")
            return stat["num_up_osds"] >= n and stat["num_in_osds"] >= n

        wait_for(f"{n} OSDs are up", up)

    def wait_all_up(self):
        client = self.connect()
        self.wait_up(client, len(self.osds))
        client.shutdown()

    def wait_writable(self, client):
        """A write to every placement group (with great likelihood) is acknowledged."""
        client.wait_for_latest_osdmap()
        with client.open_ioctx(POOL) as io:
            for i in range(8 * PLACEMENT_GROUPS):
                io.write_full(f"probe {i}", b"x")
            for i in range(8 * PLACEMENT_GROUPS):
                io.remove_object(f"probe {i}")

    def make_pool(self, client, name, groups=PLACEMENT_GROUPS, copies=None):
        copies = copies or min(len(self.osds), 3)
        self.ask(client, prefix="osd pool create", pool=name, pg_num=groups, pgp_num=groups, pool_type="replicated",
                 size=copies, autoscale_mode="off")
        self.ask(client, prefix="osd pool set", pool=name, var="min_size", val=str(max(1, copies - 1)))
        self.ask(client, prefix="osd pool application enable", pool=name, app="tally")

    # ---- life ----

    def start(self, osds=1, store="memstore"):
        for part in ("run", "log", "crash"):
            (self.folder / part).mkdir(parents=True)
        fsid = str(uuid.uuid4())
        port_v1, port_v2 = free_port(), free_port()
        # An OSD without others that is stopped for longer than its read lease (0.8 of the grace) answers nothing ever after (Ceph 16.2).
        heartbeat_s, grace_s = (1, 4) if osds > 1 else (6, 60)
        self.conf.write_text(CONF.format(fsid=fsid, folder=self.folder, store=store, port_v1=port_v1, port_v2=port_v2,
                                         heartbeat_s=heartbeat_s, grace_s=grace_s))
        monmap = self.folder / "monmap"
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{port_v2},v1:127.0.0.1:{port_v1}]", monmap)
        self.run("ceph-mon", "-c", self.conf, "--mkfs", "-i", "a", "--monmap", monmap)
        self.start_mon()
        client = self.connect()
        made = []
        for osd in range(osds):
            name = str(uuid.uuid4())
            self.ask(client, prefix="osd new", uuid=name, id=osd)
            (self.folder / f"osd-{osd}.uuid").write_text(name)
            (self.folder / f"osd.{osd}").mkdir()
            out = open(self.folder / "log" / f"mkfs.{osd}", "wb")
            made.append(subprocess.Popen(["ceph-osd", "-c", self.conf, "-i", str(osd), "--mkfs", "--osd-uuid", name], stdout=out, stderr=out))
        if any(p.wait() for p in made):
            raise RuntimeError("ceph-osd --mkfs failed: " + "".join((self.folder / "log" / f"mkfs.{i}").read_text() for i in range(osds)))
        for osd in range(osds):
            self.start_osd(osd)
        self.wait_up(client, osds)
        self.make_pool(client, POOL)
        self.wait_writable(client)
        client.shutdown()
        return self

    def again(self):
        self.start_mon()
        for osd in self.osds:
            self.start_osd(osd)
        client = self.connect()
        self.wait_up(client, len(self.osds))
        self.wait_writable(client)
        client.shutdown()

    def end(self, number):
        names = [f"osd.{osd}" for osd in self.osds] + ["mon.a"]  # OSDs first: they tell the monitor that they leave
        for name in names:
            self.signal(name, signal.SIGCONT, False)
            self.signal(name, number, False)
        for name in names:
            wait_for(f"{name} ends", lambda: self.pid(name) is None)

    def stop(self):
        self.end(signal.SIGTERM)

    def wipe(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_s(self):
        """Processor seconds that the OSDs have used."""
        ticks = 0
        for osd in self.osds:
            pid = self.pid(f"osd.{osd}")
            if pid:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["install", "start", "stop", "again", "wipe", "wait-up", "make-pool", "kill", "start-osd", "pause", "resume"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("which", nargs="?", help="an OSD's number, or a pool's name")
    parser.add_argument("--osds", type=int, default=1)
    parser.add_argument("--store", choices=["memstore", "bluestore"], default="memstore")
    parser.add_argument("--groups", type=int, default=PLACEMENT_GROUPS, help="placement groups of a pool")
    parser.add_argument("--copies", type=int, help="of each object of a pool")
    a = parser.parse_args()
    if a.action == "install":
        return install()
    if not a.folder:
        parser.error("which folder?")
    cluster = Cluster(a.folder)
    if a.action == "start":
        cluster.start(a.osds, a.store)
    elif a.action in ("stop", "again", "wipe"):
        getattr(cluster, a.action)()
    elif a.action == "wait-up":
        cluster.wait_all_up()
    elif a.which is None:
        parser.error("which OSD or pool?")
    elif a.action == "make-pool":
        client = cluster.connect()
        cluster.make_pool(client, a.which, a.groups, a.copies)
        client.shutdown()
    else:
        {"kill": cluster.kill, "start-osd": cluster.start_osd, "pause": cluster.pause, "resume": cluster.resume}[a.action](int(a.which))


if __name__ == "__main__":
    sys.exit(main())
