"""tools/run.sh --demo: what docs/metering.md shows of it is what it prints."""
import re
import subprocess
import sys

from tally_server import ROOT, TALLYD


def test_the_demo_prints_what_its_page_shows():
    demo = subprocess.run([sys.executable, ROOT / "tools" / "demo" / "demo.py", TALLYD], capture_output=True, text=True, timeout=300, check=False)
    assert demo.returncode == 0, demo.stderr
    shown = re.search(r"```\n(mykeyspace\.mytable: CREATING.*?)```", (ROOT / "docs/metering.md").read_text(), re.S)[1]
    printed = re.sub(r"retry in \d+ ms", "retry in 3000 ms", demo.stdout)
    printed = re.sub(r"^(mykeyspace\.\w+): ACTIVE$", r"\1: CREATING -> ACTIVE", printed, flags=re.M)  # a loaded machine may see it late
    assert [line.rstrip() for line in printed.strip().splitlines()] == [line.rstrip() for line in shown.strip().splitlines()]
    for part in ("refused, as on Amazon Keyspaces", "countRows is not yet supported.", "throttled, for the table", "provisioned-write: 5 write units per second"):
        assert part in printed
