"""The Python wheel as `pip install` gets it: into an empty environment, with pytest and xdist, to the first charge.

The wheel is made of package_tree."""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tally_server import HANG, ROOT, SLOWER, TALLYD, eventually

pytestmark = pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")
README = ROOT / "tools" / "package" / "wheel" / "README.md"


def run(*command, **options):
    options.setdefault("check", True)
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=5 * HANG, **options)


@pytest.fixture(scope="module")
def environment(package_tree, tmp_path_factory):
    """An empty environment in which only the wheel is installed; libraries that it needs are those of build/venv."""
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "tools" / "package" / "wheel" / "build.sh", package_tree, folder / "dist")
    (wheel,) = (folder / "dist").iterdir()
    assert re.fullmatch(r"tally_keyspaces-[0-9.]+-py3-none-manylinux_2_[0-9]+_\w+\.whl", wheel.name)
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "-q", "--no-compile", "--disable-pip-version-check"]
    run(*pip, f"{wheel}[pytest]", "pytest-xdist", "--prefer-binary")
    return venv / "bin"


def test_the_first_test_of_its_page_passes_in_two_workers(environment, tmp_path):
    (first, *_) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S)
    (tmp_path / "test_orders.py").write_text(first)
    (tmp_path / "test_more.py").write_text(
        "import os\n\n\n"
        "def test_own_keyspace(keyspaces_server, keyspaces_session):\n"
        "    row = keyspaces_session.execute('SELECT cluster_name FROM system.local').one()\n"
        "    names = [k.keyspace_name for k in keyspaces_session.execute('SELECT keyspace_name FROM system_schema.keyspaces')]\n"
        "    assert len([n for n in names if n.startswith('test_')]) == 1\n"
        "    with open(f'ports-{os.environ[\"PYTEST_XDIST_WORKER\"]}', 'a') as f:\n"
        "        f.write(f'{keyspaces_server.port} {row.cluster_name}\\n')\n\n\n"
        "test_own_keyspace_again = test_own_keyspace\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nkeyspaces_flags = --cluster-name 'A name'\n")
    done = run(environment / "pytest", "-q", "-n", "2", "--dist", "each", "-p", "no:cacheprovider", cwd=tmp_path, check=False)
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr  # three tests in each worker
    seen = [set((tmp_path / f"ports-gw{n}").read_text().splitlines()) for n in (0, 1)]
    assert [len(s) for s in seen] == [1, 1] and seen[0] != seen[1]
    assert all(line.endswith(" A name") for s in seen for line in s)


def test_programs_run_by_their_names(environment):
    version = run(TALLYD, "--version").stdout
    if "TALLYTEST_TREE" not in os.environ:
        assert run(environment / "tallyd", "--version").stdout == version
    assert run(environment / "tally-keyspaces", "--version").stdout.startswith("tallyd ")
    assert "cql" in run(environment / "tally", "--help").stdout


def test_keyspaces_mode_is_an_option_of_pytest(environment, tmp_path):
    (tmp_path / "test_mode.py").write_text(
        "def test_mode(keyspaces_session):\n"
        "    keyspaces_session.execute('CREATE TABLE t (id int PRIMARY KEY)')\n"
        "    keyspaces_session.execute('INSERT INTO t (id) VALUES (1)')\n"
        "    row = keyspaces_session.execute('SELECT cluster_name FROM system.local').one()\n"
        "    assert row.cluster_name == 'Test Cluster'\n")
    done = run(environment / "pytest", "-q", "--keyspaces-mode", "cassandra", "-p", "no:cacheprovider", cwd=tmp_path, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_server_that_does_not_start_says_why(environment):
    program = "from tally_keyspaces import Server, StartError\ntry:\n    Server(flags='--limits maybe')\nexcept StartError as e:\n    print(e)"
    text = run(environment / "python", "-c", program).stdout
    assert text.startswith("tallyd did not start (status 2). Command: ") and "maybe" in text.splitlines()[-1], text


def test_the_server_ends_with_a_killed_process(environment):
    program = "import signal; from tally_keyspaces import Server; s = Server(); print(s._process.pid, flush=True); signal.pause()"
    with subprocess.Popen([environment / "python", "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        server = Path("/proc") / parent.stdout.readline().strip() / "cmdline"
        assert b"tallyd" in server.read_bytes()
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not server.exists() or not server.read_bytes(), "the server still runs")
