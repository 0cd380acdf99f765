"""Ports for servers under test."""
import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

CLAIMS = Path(tempfile.gettempdir(), f"tally-test-ports-{os.getuid()}")
claimed = []  # open files: each holds the lock of a port of this process


def free_port():
    """A port that no other test uses as long as this process lives. Test programs run at the same time, and a server may start long after its port was
    chosen, or be started again: therefore the port is claimed by a lock on a file. It is below those that the system gives to clients."""
    CLAIMS.mkdir(mode=0o700, exist_ok=True)
    above = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("", random.SystemRandom().randrange(10000, above) if above > 12000 else 0))  # on every address: servers of one cluster share a port
            port = s.getsockname()[1]
            if claim(port):
                return port


def claim(port):
    """False: another test has it."""
    file = open(CLAIMS / str(port), "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    claimed.append(file)
    return True
