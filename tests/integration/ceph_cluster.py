"""A Ceph cluster of tests/rados/cluster.py."""
import subprocess
from contextlib import contextmanager
from pathlib import Path

import programs

SCRIPT = Path(__file__).resolve().parents[1] / "rados" / "cluster.py"


def ceph_do(*arguments):
    """Runs an action of the script, by the system's own Python, which has Ceph's module."""
    subprocess.run(["/usr/bin/python3", str(SCRIPT), *map(str, arguments)], check=True)


@contextmanager
def cluster_in(folder, *flags):
    """A cluster in the folder; one OSD in memory unless the flags say otherwise."""
    programs.ceph()
    ceph_do("start", folder, *flags)
    yield folder
    ceph_do("wipe", folder)
