"""What a newcomer pastes: the first block of the README, and tools/run.sh --demo, which prints what docs/metering.md shows of it."""
import os
import re
import shutil
import subprocess
import sys
import urllib.request

import pexpect
import pytest

from tally_server import HANG, ROOT, TALLYD

SETUP = """
tally_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
install_packages() { :; }
build_preset() { echo "build_preset $*"; }
"""


def test_the_demo_prints_what_its_page_shows():
    demo = subprocess.run([sys.executable, ROOT / "tools" / "demo" / "demo.py", TALLYD], capture_output=True, text=True, timeout=300, check=False)
    assert demo.returncode == 0, demo.stderr
    shown = re.search(r"```\n(mykeyspace\.mytable: CREATING.*?)```", (ROOT / "docs/metering.md").read_text(), re.S)[1]
    printed = re.sub(r"retry in \d+ ms", "retry in 3000 ms", demo.stdout)
    printed = re.sub(r"^(mykeyspace\.\w+): ACTIVE$", r"\1: CREATING -> ACTIVE", printed, flags=re.M)  # a loaded machine may see it late
    assert [line.rstrip() for line in printed.strip().splitlines()] == [line.rstrip() for line in shown.strip().splitlines()]
    for part in ("refused, as on Amazon Keyspaces", "countRows is not yet supported.", "throttled, for the table", "provisioned-write: 5 write units per second"):
        assert part in printed


def test_the_demo_keeps_its_page_until_ctrl_c_at_a_terminal(tmp_path):
    child = pexpect.spawn(sys.executable, [str(ROOT / "tools/demo/demo.py"), str(TALLYD)], env={**os.environ, "TMPDIR": str(tmp_path)},
                          encoding="utf-8", timeout=HANG, dimensions=(60, 250))
    child.expect(r"The page of all this is at (http://\S+) until you press Ctrl-C")
    with urllib.request.urlopen(child.match[1], timeout=HANG) as page:
        assert page.status == 200
    assert list(tmp_path.glob("tally-demo-*"))
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and not list(tmp_path.glob("tally-demo-*"))


@pytest.fixture
def clone(tmp_path):
    """A clone whose programs are built already: tools/setup.sh, which installs packages and builds, is replaced."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/run.sh", tmp_path / "tools")
    (tmp_path / "tools/setup.sh").write_text(SETUP)
    (tmp_path / "build/release").mkdir(parents=True)
    (tmp_path / "build/release/bin").symlink_to(TALLYD.parent)
    return tmp_path


def test_the_first_block_of_the_readme_shows_the_charge_that_it_promises(clone):
    """In a network of its own, where the block's ports are free."""
    block, promised = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1:3]
    command = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child", "bash", "-c", 'ip link set lo up && eval "$0" && kill $(sed -n "s/^Stop it with: kill \\([0-9]*\\).*/\\1/p" out)', block]
    with open(clone / "out", "w") as out:
        done = subprocess.run(command, cwd=clone, stdout=out, stderr=subprocess.PIPE, text=True, timeout=HANG)
    shown = (clone / "out").read_text()
    assert done.returncode == 0, done.stderr + shown
    assert "build_preset release tallyd tally\n" in shown and "0 RU  1 WU" in promised
    assert shown.endswith(promised), shown
