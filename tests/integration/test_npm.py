"""The npm package as `npm install` gets it: into an empty project, with npx, vitest and jest, to the first charge.

The package is made of package_tree."""
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tally_server import HANG, ROOT, SLOWER, eventually

pytestmark = pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")
README = ROOT / "tools" / "package" / "npm" / "README.md"
DRIVER, VITEST = "cassandra-driver@4.10.0", "vitest@3.2.4"


def run(*command, **options):
    options.setdefault("check", True)
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=5 * HANG, **options)


@pytest.fixture(scope="module")
def project(package_tree, tmp_path_factory):
    """A project with the package, the driver and vitest; its files are those of the package's page."""
    if shutil.which("npm") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not run: no npm on this machine")
    folder = tmp_path_factory.mktemp("npm")
    run(ROOT / "tools" / "package" / "npm" / "build.sh", package_tree, folder / "dist")
    (package,) = (folder / "dist").iterdir()
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text("{}")
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline", package, DRIVER, VITEST, cwd=project)
    for name, text in re.findall(r"^```js\n// (\S+\.m?js)\n(.*?)^```$", README.read_text(), re.M | re.S):
        (project / name).write_text(text)
    return project


def test_npx_runs_the_server(project):
    version = run("npx", "--no-install", "tally-keyspaces", "--version", cwd=project).stdout
    assert version.startswith("tallyd ")
    command = ["node_modules/.bin/tally-keyspaces", "--data-dir", ":memory:", "--port", "0", "--admin-port", "0", "--api-port", "0"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout.readline().startswith("tallyd ready: ")
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=HANG) == 0


def test_the_first_test_of_its_page_passes_in_vitest(project):
    done = run("npx", "--no-install", "vitest", "run", cwd=project, env={**os.environ, "TALLY_DDL_DELAY": "none"}, check=False)
    assert done.returncode == 0 and re.search(r"Tests .*1 passed", done.stdout), done.stdout + done.stderr


def test_the_globals_of_jest_are_addresses_of_a_server(project):
    """jest's own part is calling the two functions in one process; the tests' processes get its environment."""
    program = """
      const teardown = require("tally-keyspaces/jest-teardown");
      require("tally-keyspaces/jest-setup")().then(async () => {
        const { KEYSPACES_HOST, KEYSPACES_PORT, KEYSPACES_ADMIN } = process.env;
        const { Client } = require("cassandra-driver");
        const client = new Client({ contactPoints: [`${KEYSPACES_HOST}:${KEYSPACES_PORT}`], localDataCenter: "us-east-1" });
        const { rows } = await client.execute("SELECT cluster_name FROM system.local");
        console.log(rows[0].cluster_name, (await fetch(`http://${KEYSPACES_ADMIN}/ready`)).status);
        await client.shutdown();
        await teardown();
      });"""
    assert run("node", "-e", program, cwd=project).stdout == "Amazon Keyspaces 200\n"


def test_a_server_that_does_not_start_says_why(project):
    program = """import("tally-keyspaces").then(t => t.startServer({ flags: ["--limits", "maybe"] })).catch(e => console.log(e.message))"""
    text = run("node", "-e", program, cwd=project).stdout
    assert text.startswith("tallyd did not start (status 2). Command: ") and "maybe" in text.splitlines()[-1], text


def test_the_server_ends_with_a_killed_process(project):
    program = """require("tally-keyspaces").startServer().then(s => { console.log(s.pid); setTimeout(() => {}, 1e9); })"""
    with subprocess.Popen(["node", "-e", program], cwd=project, stdout=subprocess.PIPE, text=True) as parent:
        server = Path("/proc") / parent.stdout.readline().strip() / "cmdline"
        assert b"tallyd" in server.read_bytes()
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not server.exists() or not server.read_bytes(), "the server still runs")
