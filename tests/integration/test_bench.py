"""tally-bench: what it reads as more is stored; a server beside; large data that stay; the report. No figure of time is judged here: tally-bench itself judges them."""
import json
import subprocess
import xml.etree.ElementTree

import pytest

from tally_server import SLOWER, TALLYD, Server

BENCH = TALLYD.parent / "tally-bench"


def bench(*flags, code=0, timeout=1200):
    """Results as JSON."""
    run = subprocess.run([str(BENCH), "--tallyd", str(TALLYD), "--json", *(str(f) for f in flags)], capture_output=True, text=True, timeout=timeout * SLOWER)
    assert run.returncode == code, (run.returncode, run.stdout[-2000:], run.stderr[-4000:])
    return json.loads(run.stdout) if code == 0 else run.stderr


def test_growth_reads_and_charges_the_same_at_every_size():
    """Rows and bytes that a request reads, at 1,000, 4,000 and 16,000 rows stored: the same, unless the request reads all of them."""
    rows = {r["what"]: r for r in bench("--growth", 16000, "--workload", "growth", "--seconds", 0.02)["growth"]}
    assert [s["stored"] for s in next(iter(rows.values()))["steps"]] == [1000, 4000, 16000]
    alike = [r for r in rows.values() if r["follows"] == "nothing"]
    assert len(alike) >= 15
    for r in alike:
        assert len({(s["rows_read"], s["bytes_read"]) for s in r["steps"]}) == 1, r
    assert [s["rows_read"] for s in rows["COUNT of a wide partition"]["steps"]] == [1000, 4000, 16000]
    assert rows["deep page of 100"]["steps"][2]["rows_read"] == 100
    assert rows["COUNT of a small partition"]["steps"][2]["rows_read"] == 2


@pytest.fixture
def beside(tmp_path):
    s = Server(tmp_path, "--ddl-delay", "none", "--durability", "periodic").start()
    yield s
    s.stop()


def test_a_report_tells_of_all_runs_and_a_server_beside_and_large_data_stay(tmp_path, beside):
    flags = ("--workload", "slice of 100,slice over TLS,read of large data", "--rows", 24000, "--data-dir", tmp_path / "kept", "--beside", f"{beside.host}:{beside.port}", "--beside-name", "another",
             "--runs", 2, "--seconds", 0.1, "--connections", 4, "--report", tmp_path / "report")
    result = bench(*flags)
    assert (tmp_path / "kept" / "rows-2000").is_dir() and not (tmp_path / "kept" / "fdatasync").exists()
    assert json.loads((tmp_path / "report" / "report.json").read_text()) == result
    assert result["runs"] == 2 and "RocksDB" in result["machine"]
    measured = {(r["workload"], r["server"]): r for r in result["results"]}
    assert set(measured) == {("slice of 100", s) for s in ("loop, canned", "loop + RocksDB", "tallyd", "another")} | {("slice over TLS", "tallyd")} | {
        ("read of large data", s) for s in ("tallyd", "another")}
    for r in measured.values():
        assert r["failed"] == 0 and 0 < r["cpu_us"]["least"] <= r["cpu_us"]["median"] <= r["cpu_us"]["most"], r
    page = (tmp_path / "report" / "report.html").read_text()
    for svg in page.split("<svg")[1:]:
        xml.etree.ElementTree.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")
    tables = (tmp_path / "report" / "report.md").read_text()
    assert page.count("<svg") == 1 and page.count("<table>") == 2 and tables.count("| slice of 100 |") == 4 and "| another |" in tables
    newest = "SELECT max(writetime(c1)) FROM bench.large"
    with beside.cluster() as cluster:
        written = cluster.connect().execute(newest).one()[0]
    again = bench(*flags[2:10], "--seconds", 0.1, "--connections", 4, "--workload", "read of large data")
    assert [r["server"] for r in again["results"]] == ["tallyd", "another"] and all(r["failed"] == 0 for r in again["results"])
    with beside.cluster() as cluster:
        session = cluster.connect()
        assert session.execute("SELECT count(*) FROM bench.large").one()[0] == 2000
        assert session.execute(newest).one()[0] == written  # they were not written again


@pytest.mark.parametrize("flags, words", [
    (("--workload", "nothing"), "names nothing that is measured"),
    (("--beside", "127.0.0.1:1"), "no process to be seen behind --beside"),
    (("--runs", "99"), "--runs 1 to 20"),
    (("--growth", "5"), "16000 or more"),
])
def test_wrong_flags_are_said(flags, words):
    assert words in bench(*flags, code=2)


def test_a_promise_has_a_line_when_all_that_it_compares_was_measured():
    result = bench("--seconds", 0.1, "--connections", 4, "--workload", "page of 5000,insert on 4 loops,durable insert alone")
    assert {r["what"] for r in result["ratios"]} == {"time that 4 inserting loops wait for rows : all", "CPU of an insert on 4 loops : on 1",  # the first is 0 mostly
                                                     "p50 of a durable insert alone : of an fdatasync alone", "p50 of a durable insert alone : of a loop that only syncs"}
    for least in ("an fdatasync", "loop + fdatasync"):
        disk = next(r for r in result["results"] if r["server"] == least)
        assert disk["workload"] == "durable insert alone" and disk["requests"] >= 10 and disk["p50_ms"]["median"] > 0
