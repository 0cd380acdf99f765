"""The Python example of docs/testing.md: its own tests run as they are, against a server that they find in each of the ways that the page names."""
import os
import shutil
import subprocess
import sys

import pytest

from tally_server import HANG, ROOT, TALLYD

EXAMPLE = ROOT / "tools/package/examples/python"


@pytest.fixture
def environment(request, new_server):
    """The environment that tells the example where its server is."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("TALLY_ADDRESS", "TALLYD")}
    if request.param == "TALLY_ADDRESS":
        server = new_server("--compatibility", "strict")
        return {**inherited, "TALLY_ADDRESS": f"{server.host}:{server.port}"}
    return {**inherited, **({"TALLYD": str(TALLYD)} if request.param == "TALLYD" else {"PATH": f"{TALLYD.parent}:{os.environ['PATH']}"})}


@pytest.mark.parametrize("environment", ["TALLY_ADDRESS", "TALLYD", "PATH"], indirect=True)
def test_the_examples_tests_pass(environment, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/temporary"]
    done = subprocess.run(command, cwd=tmp_path / "app", env=environment, capture_output=True, text=True, timeout=5 * HANG)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_example_needs_the_versions_that_it_is_tested_with():
    assert set((EXAMPLE / "requirements.txt").read_text().split()) <= set((ROOT / "tests/integration/requirements.txt").read_text().split())


def test_the_page_names_the_example_and_its_variables():
    page = (ROOT / "docs/testing.md").read_text()
    conftest = (EXAMPLE / "conftest.py").read_text()
    assert "(../tools/package/examples/python)" in page
    assert all(name + "=" in page and name in conftest for name in ("TALLY_ADDRESS", "TALLYD"))
