"""A Ceph cluster of tests/rados/cluster.py."""
import json
import subprocess
from contextlib import contextmanager
from pathlib import Path

import programs

SCRIPT = Path(__file__).resolve().parents[1] / "rados" / "cluster.py"


def ceph_do(*arguments):
    """Runs an action of the script, by the system's own Python, which has Ceph's module."""
    subprocess.run(["/usr/bin/python3", str(SCRIPT), *map(str, arguments)], check=True)


def objects_in(folder, pool):
    """The names of a pool's objects."""
    return set(subprocess.run(["rados", "-c", folder / "ceph.conf", "-p", pool, "ls"], check=True, capture_output=True, text=True).stdout.split())


def osd_of(folder, pool, name):
    """The OSD of an object, whether it exists or not."""
    found = subprocess.run(["ceph", "-c", folder / "ceph.conf", "osd", "map", pool, name, "-f", "json"], check=True, capture_output=True, text=True).stdout
    return json.loads(found)["acting_primary"]


@contextmanager
def cluster_in(folder, *flags):
    """A cluster in the folder; one OSD in memory unless the flags say otherwise."""
    programs.ceph()
    ceph_do("start", folder, *flags)
    try:
        yield folder
    finally:
        ceph_do("wipe", folder)
