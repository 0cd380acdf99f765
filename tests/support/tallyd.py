"""A tallyd of its own port, data folder and log, for tests."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
READY = re.compile(r"tallyd ready: cql=(\S+):(\d+) admin=(\S+) data=(.+) pid=(\d+)")


def default_binary():
    """TALLYD, or the first build that is there."""
    if os.environ.get("TALLYD"):
        return pathlib.Path(os.environ["TALLYD"])
    for preset in ("release", "debug", "asan"):
        path = ROOT / "build" / preset / "bin" / "tallyd"
        if path.exists():
            return path
    raise FileNotFoundError("no tallyd in build/*/bin: build it first, or set TALLYD")


class Tallyd:
    """Use with `with`, or start() and stop(). kill() is kill -9; a start() after it takes the same data folder."""
    def __init__(self, binary=None, mode="keyspaces", folder=None, wait=30, **flags):
        self.binary = pathlib.Path(binary) if binary else default_binary()
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="tallyd-"))
        self.own_folder = folder is None
        self.wait = wait
        self.flags = {"mode": mode, "listen": "127.0.0.1", "port": 0, "admin_port": 0, **flags}
        self.process = None
        self.log = self.folder / "tallyd.log"

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()
        if self.own_folder and exc[0] is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def command(self):
        out = [str(self.binary), "--data-dir", str(self.folder / "data")]
        for name, value in self.flags.items():
            out += ["--" + name.replace("_", "-"), str(value)]
        return out

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + self.wait
        while time.monotonic() < end:
            with open(self.log, "rb") as log:
                log.seek(begin)
                text = log.read().decode(errors="replace")
            ready = READY.search(text)
            if ready:
                self.host, self.port, self.admin = ready[1], int(ready[2]), ready[3]
                return self
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.binary} ended with {self.process.returncode} before it was ready:\n{text}")
            time.sleep(0.01)
        self.kill()
        raise RuntimeError(f"{self.binary} was not ready in {self.wait} s:\n{text}")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
        self.process = None

    def stop(self):
        """Asks it to end; what it returned is its exit code."""
        if not self.process:
            return None
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        code, self.process = self.process.returncode, None
        return code
