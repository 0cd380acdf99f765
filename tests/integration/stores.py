"""Where the servers of the tests keep their rows: in their data folders, or with `pytest --store rados` in pools of a Ceph cluster that lives as long as the session."""
import shutil
import tempfile
from pathlib import Path

import programs
from ceph_cluster import ceph_do
from ports import free_port


class Local:
    has_history = True  # point-in-time recovery, saved states and backups
    recovery = "enabled"  # the point-in-time recovery that a table can have
    replays_late = False  # a logged batch that a kill has cut off is whole some time after the start, and not at once
    last_step = "The log is on disk"  # of the trace of a write
    resident_beside = 128  # MB that a process has resident beside --memory at most: code, stacks, indexes of table files, what malloc keeps (docs/operation.md)

    def flags(self, data, others):
        """What a server on this data folder is started with, beside its other flags."""
        return ["--port", "0"]

    def place(self, data):
        """How `tally verify` is told where the rows of a server on this data folder are."""
        return ["--data-dir", str(data)]

    def close(self):
        """Removes what the session has made."""


class Rados:
    """One OSD in memory, started with the first server. Each data folder has a pool: a server that starts on it again finds its rows, and one whose folder was removed has a new pool.
    It has its port again, too: the others know a server by its address, and one at another port waits until the one that was killed counts as dead."""

    has_history = False
    replays_late = True
    recovery = "disabled"
    last_step = "the cluster has acknowledged them"
    resident_beside = 128 + 64 * 10  # what librados holds for 64 workers at work (docs/scale.md)

    def __init__(self):
        self.folder = None
        self.pools, self.ports = {}, {}
        self.made = 0

    def flags(self, data, others):
        data = Path(data)
        if data not in self.pools or not data.exists():
            self.pools[data], self.ports[data] = self.make_pool(), free_port()
        address = ["--broadcast-address", "127.0.0.1"] if {"::", "0.0.0.0"} & set(others) else []
        return ["--store", "rados", *self.place(data), "--port", str(self.ports[data]), *address]

    def place(self, data):
        return ["--rados-conf", str(self.folder / "ceph.conf"), "--rados-pool", self.pools[Path(data)]]

    def make_pool(self):
        if not self.folder:
            programs.ceph()
            self.folder = Path(tempfile.mkdtemp(prefix="tally-ceph-"))
            ceph_do("start", self.folder)
        self.made += 1
        name = f"tally-{self.made}"
        ceph_do("make-pool", self.folder, name, "--groups", 4)
        return name

    def close(self):
        if self.folder:
            ceph_do("wipe", self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)


in_use = Local()
