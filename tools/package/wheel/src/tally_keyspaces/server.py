"""A tallyd on free ports, which ends with the process that started it."""
import collections
import shlex
import socket
import subprocess
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Sequence, Type, Union

from . import programs

if TYPE_CHECKING:
    from cassandra.cluster import Cluster

# The standard input of this script is a pipe of the process that starts the server. The pipe ends when that process
# ends, even by SIGKILL; then the script stops the server.
GUARD = 'trap "" INT HUP TERM; read -r _; kill "$1"'
LOG_LINES = 50
START_ATTEMPTS = 5  # another process can take a free port before tallyd listens on it


class StartError(RuntimeError):
    """The server did not start; the message ends with its log."""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """A running server; a context manager that stops it.

    mode: "keyspaces" or "cassandra". flags: further settings of tallyd, as a list or as one string. data_dir: where rows
    are kept; None keeps them in memory. program: another tallyd than the package's. timeout: seconds to start and to stop.

    After the constructor returned, host and port are the CQL address, admin and api are the addresses ("HOST:PORT") of the
    live page and of the AWS API, or None if flags close it. Raises StartError.
    """

    def __init__(self, mode: str = "keyspaces", flags: Union[str, Sequence[str]] = (), data_dir: Optional[str] = None,
                 program: Optional[str] = None, timeout: float = 60) -> None:
        self.mode = mode
        self.flags: List[str] = shlex.split(flags) if isinstance(flags, str) else [str(f) for f in flags]
        self.data_dir = data_dir
        self.timeout = timeout
        self._program = program or programs.path("tallyd")
        self._log: Deque[str] = collections.deque(maxlen=LOG_LINES)
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self._start()
                return
            except StartError as e:
                if "in use" not in str(e) or attempt == START_ATTEMPTS:
                    raise

    def _start(self) -> None:
        self._log.clear()
        command = [self._program, "--data-dir", str(self.data_dir or ":memory:"), "--mode", self.mode, "--listen", "127.0.0.1",
                   "--port", "0", "--admin-port", str(free_port()), "--api-port", str(free_port()), *self.flags]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, universal_newlines=True, errors="replace")
        except OSError as e:
            raise StartError(f"{self._program} cannot be run: {e}") from e
        self._guard = subprocess.Popen(["/bin/sh", "-c", GUARD, "tally-guard", str(self._process.pid)],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._log_reader = threading.Thread(target=self._read_log, name="tallyd log", daemon=True)
        self._log_reader.start()
        late = threading.Timer(self.timeout, self._process.kill)
        late.start()
        ready = self._read_ready()
        late.cancel()
        if ready is None:
            status = self.stop()
            raise StartError(f"tallyd did not start (status {status}). Command: {' '.join(map(shlex.quote, command))}\n{self.log}")
        address = ready["tls"] if ready["cql"] == "off" else ready["cql"]
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.admin: Optional[str] = None if ready["admin"] == "off" else ready["admin"]
        self.api: Optional[str] = None if ready["api"] == "off" else ready["api"]
        threading.Thread(target=self._drain, name="tallyd output", daemon=True).start()

    def _read_ready(self) -> Optional[Dict[str, str]]:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("tallyd ready: "):
                return dict(field.split("=", 1) for field in line.split() if "=" in field)
        return None

    def _drain(self) -> None:
        assert self._process.stdout
        for _ in self._process.stdout:
            pass

    def _read_log(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._log.append(line)

    @property
    def log(self) -> str:
        """The last lines of the server's log."""
        return "".join(list(self._log)).rstrip()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def alive(self) -> bool:
        return self._process.poll() is None

    def cluster(self, **options: Any) -> "Cluster":
        """A Cluster of cassandra-driver at LOCAL_QUORUM, the level that Amazon Keyspaces requires for writes.

        options are those of Cluster, and take precedence.
        """
        from .client import cluster
        return cluster(self.host, self.port, **options)

    def stop(self) -> int:
        """Stops the server, if it runs, and returns its exit status."""
        self._guard.kill()
        self._guard.communicate()
        self._process.terminate()
        try:
            status = self._process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._log_reader.join(self.timeout)
        return status

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.stop()
