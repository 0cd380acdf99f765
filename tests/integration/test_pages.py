"""The pages that a newcomer reads first: their examples run as they stand, on a server whose ports are put in, and their links lead somewhere."""
import re

import pytest

from cqlsh_shell import Shell
from tally_server import ROOT, await_active, eventually, free_port

PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


@pytest.fixture
def ports(new_server):
    """What the pages' ports are on a server of the test's own."""
    api = free_port()
    server = new_server("--api-port", str(api), "--compatibility", "strict")
    return server, {"9042": str(server.port), "9181": str(api)}


def with_ports(text, ports):
    for shown, real in ports.items():
        text = text.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{real}")
    return text.replace('Cluster(["127.0.0.1"],', f'Cluster(["127.0.0.1"], port={ports["9042"]},')


@pytest.mark.parametrize("page", ["README.md", "docs/connecting.md"])
def test_python_examples_run(ports, page):
    _, numbers = ports
    found = blocks(page, "python")
    assert found
    for block in found:
        names = {}
        exec(with_ports(block, numbers), names)  # pylint: disable=exec-used
        if "session" in names:
            assert names["session"].execute("SELECT release_version FROM system.local").one().release_version == "3.11.2"
            names["session"].cluster.shutdown()
        if "keyspaces" in names:
            eventually(lambda: "mykeyspace" in [k["keyspaceName"] for k in names["keyspaces"].list_keyspaces()["keyspaces"]])


def test_the_first_statements_of_the_readme_run_in_cqlsh(ports, expansion, tmp_path):
    server, _ = ports
    lines = blocks("README.md", "sql")[0].strip().splitlines()
    shell = Shell(expansion, server, tmp_path)
    with server.cluster() as cluster:
        session = cluster.connect()
        for line in lines:
            out = shell.do(line)
            assert "Error" not in out and "Invalid" not in out, (line, out)
            if line.startswith("CREATE KEYSPACE"):
                eventually(lambda: session.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'app'").one())
            if line.startswith("CREATE TABLE"):
                await_active(session, "app", "users")
            if line.startswith("SELECT status"):
                assert "ACTIVE" in out
        assert session.execute("SELECT name FROM app.users WHERE id = 1").one().name == "Ada"
    assert shell.leave() == 0


def test_links_lead_to_files_and_headings():
    wrong = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?:|mailto:", target):
                continue
            name, _, heading = target.partition("#")
            file = (ROOT / page).parent / name if name else ROOT / page
            anchors = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)", file.read_text(), re.M)] if file.is_file() else []
            if not file.exists() or (heading and heading not in anchors):
                wrong.append((page, target))
    assert not wrong
