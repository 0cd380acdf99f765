"""The live page of the admin port, in a real browser: a hot partition, throttles, a restart, statements, logins, and what a foreign page may not do.

Screenshots go to build/page.
"""
import concurrent.futures
import contextlib
import json
import math
import re
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cassandra import DriverException, ReadTimeout, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy
from cassandra.query import SimpleStatement
from playwright.sync_api import expect, sync_playwright

from page_api import ask, post
from ports import free_port
from programs import chromium, program
from tally_server import HANG, ROOT, TALLY, Server, create_keyspace, create_table, eventually

PICTURES = ROOT / "build" / "page"
expect.set_options(timeout=HANG * 1000)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")
HOT = "pk = -1"  # the partition of the stress profile single


class Stress:
    """tally stress on the server until the block ends."""

    def __init__(self, server, profile, rate):
        self.command = [TALLY, "stress", "--server", f"{server.host}:{server.port}", "--profile", profile, "--rate", rate, "--seconds", HANG, "--quiet"]

    def __enter__(self):
        self.process = subprocess.Popen([str(c) for c in self.command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp("page"), "--admin-port", str(free_port()), "--ddl-delay", "none", "--limits", "enforce",
               "--ddl-rules", "CREATE TABLE shop.waits = held").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        create_table(session, "shop", "orders", 'customer int, "Day" text, id int, note text, PRIMARY KEY ((customer, "Day"), id)')
        for i in range(30):
            session.execute('INSERT INTO shop.orders (customer, "Day", id, note) VALUES (%s, %s, %s, %s)', (1, "it's", i, "x" * 1500))
        session.execute("CREATE TABLE shop.waits (id int PRIMARY KEY)")
    yield s
    s.stop()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as p:
        b = p.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield b
        b.close()


class Page:
    """A tab that notes what its console says and where its requests go."""

    def __init__(self, browser, server, scheme="light", width=1280, height=900):
        self.host = server.admin
        self.said, self.hosts = [], set()
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, locale="en-GB")
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(HANG * 1000)
        self.tab.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.tab.on("pageerror", lambda e: self.said.append(str(e)))
        self.tab.on("request", lambda r: self.hosts.add(r.url.split("/")[2]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def go(self, address):
        self.tab.goto(f"http://{self.host}{address}")
        self.tab.wait_for_selector("html[data-ready]", timeout=HANG * 1000)
        return self.tab

    def barriers(self):
        """What axe finds."""
        self.tab.evaluate(Path(program("page")[1]).read_text())
        found = self.tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [(v["id"], [n["html"] for n in v["nodes"]]) for v in found["violations"]]


def hot_row(tab):
    return tab.get_by_role("button", name=HOT, exact=True)


def test_a_hot_partition_appears_with_its_key_its_statements_and_its_throttles(server, browser):
    with Stress(server, "single", 4000), Page(browser, server) as page:
        tab = page.go("/")
        tab.get_by_role("link", name="stress.rows").click()
        expect(hot_row(tab)).to_be_visible(timeout=HANG * 1000)
        finding = tab.locator("[data-finding]")
        expect(finding).to_have_attribute("data-finding", "throttled_by_partition", timeout=HANG * 1000)
        expect(finding).to_contain_text("Partition limit")
        expect(finding).to_contain_text("Refused")
        expect(finding).to_contain_text(HOT)
        expect(finding.get_by_role("link")).to_have_attribute("href", "https://docs.aws.amazon.com/keyspaces/latest/devguide/bp-partition-key-sharding.html")

        def is_throttled():
            hot_row(tab).click()
            detail = tab.locator(".detail")
            expect(detail).to_be_visible(timeout=HANG * 1000)
            return "partition:" in detail.inner_text()

        eventually(is_throttled, "the partition is not throttled")
        detail = tab.locator(".detail")
        expect(detail).to_contain_text(HOT)
        expect(detail).to_contain_text("INSERT INTO stress.rows")
        expect(tab.get_by_role("rowheader", name="partition-write")).to_be_visible()
        expect(finding).to_have_attribute("data-limit", "partition-write")
        tab.get_by_label("Write units").check(force=True)
        expect(tab).to_have_url(f"http://{server.admin}/?table=stress.rows&metric=write_units")

        def refused_cell():
            """A cell of the map in which requests were refused, by the keyboard."""
            rows = ask(server, "GET", "/api/map?keyspace=stress&table=rows&by=partition")[2]
            at = [r["token"] for r in rows["rows"] if r["key"] == HOT]
            return at and any(rows["rows"][c[0]]["token"] == at[0] and c[7] > 0 for column in rows["columns"] for c in column["cells"])

        eventually(refused_cell, "no cell has refusals")
        canvas = tab.get_by_role("application", name="Heaviest partitions over time")
        canvas.focus()
        canvas.press("ArrowLeft")
        expect(tab.locator(".tip").first).to_contain_text(HOT)
        ranges = ask(server, "GET", "/api/map?keyspace=stress&table=rows&by=range")[2]
        token = int(next(r["token"] for r in ask(server, "GET", "/api/map?keyspace=stress&table=rows&by=partition")[2]["rows"] if r["key"] == HOT))
        heavy = {c[0] for column in ranges["columns"] for c in column["cells"] if c[6] > 300}
        assert heavy == {(token >> 56) + 128}
        assert page.said == [] and page.hosts == {server.admin}


VIEWS = {"overview": "/", "table": "/?table=stress.rows&metric=write_units&window=1", "statement": "/?view=statement", "cost": "/?view=cost",
         "migration": "/?view=migration", "data": "/?view=data&of=shop.orders"}


@pytest.mark.parametrize("name, scheme, width, views", [("light", "light", 1280, VIEWS), ("dark", "dark", 1280, ("overview", "table")),
                                                        ("narrow", "light", 400, ("overview", "table"))])
def test_the_views_have_no_barriers(server, browser, name, scheme, width, views):
    PICTURES.mkdir(parents=True, exist_ok=True)
    with Page(browser, server, scheme, width) as page:
        for view in views:
            page.go(VIEWS[view])
            page.tab.screenshot(path=PICTURES / f"{view}-{name}.png", full_page=True)
            assert page.tab.evaluate("document.documentElement.scrollWidth") <= width, f"{view} is wider than {width} pixels"
            assert page.barriers() == [], view
            assert "[object" not in page.tab.locator("body").inner_text(), view
        assert page.said == [] and page.hosts == {server.admin}


def test_a_restart_keeps_history(server, browser):
    with Page(browser, server) as page:  # whose numbers are dimmed while no server answers
        main = page.go("/").locator("main")
        server.stop()
        expect(main).to_have_class("old")
        server.start()
        expect(main).not_to_have_class("old")
    with Page(browser, server) as page:
        tab = page.go("/?table=stress.rows&window=1")
        expect(hot_row(tab)).to_be_visible(timeout=HANG * 1000)
        expect(tab.get_by_label("Window")).to_have_value("1")
        points = ask(server, "GET", "/api/history?keyspace=stress&table=rows&window=1")[2]
        at = [s["name"] for s in points["series"]].index("write_units") + 1
        assert max(p[at + len(points["series"])] for p in points["points"]) > 300
        assert page.said == []
    assert (server.folder / "data" / "history.tally").stat().st_mode & 0o777 == 0o600


def test_the_overview_names_tables_changes_in_progress_and_storage(server, browser):
    with Page(browser, server) as page:
        tab = page.go("/")
        expect(tab.get_by_role("link", name="shop.orders")).to_be_visible()
        change = tab.locator("[data-ddl]")
        expect(change).to_contain_text("shop.waits")
        expect(change.locator("[aria-current]")).to_have_text("CREATING")
        expect(tab.get_by_role("row", name="shop.orders").get_by_text("KB")).to_be_visible(timeout=HANG * 1000)
        tab.get_by_label("Find a table").fill("orders")
        expect(tab.get_by_role("link", name="stress.rows")).to_have_count(0)
        tab.get_by_role("button", name="Switch between dark and light").click()
        expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
        page.go("/?table=shop.waits")
        expect(tab.locator("[data-finding]")).to_have_attribute("data-finding", "not_watched")
        assert page.said == []


def test_the_statement_box_explains_and_runs_and_changes_nothing(server, browser):
    with Page(browser, server) as page:
        tab = page.go("/?view=statement")
        box = tab.get_by_label("CQL statement")
        box.fill("""SELECT * FROM shop.orders WHERE customer = 1 AND "Day" = 'it''s'""")
        tab.get_by_role("button", name="Run SELECT").click()
        expect(tab.get_by_text("Rows (30)")).to_be_visible()
        expect(tab.locator(".tile", has_text="Query class")).to_contain_text("row range")
        expect(tab.locator(".tile", has_text="Units")).to_contain_text("12")  # 30 rows of 1.5 KB and more: started steps of 4 KB
        expect(tab.get_by_text("1 read unit per started 4 KiB")).to_be_visible()
        box.fill("""DELETE FROM shop.orders WHERE customer = 1 AND "Day" = 'it''s'""")
        tab.get_by_role("button", name="Run SELECT").click()
        expect(tab.get_by_role("alert")).to_contain_text("runs SELECT only")
        tab.get_by_role("button", name="Explain").click()
        expect(tab.get_by_text("write, not carried out")).to_be_visible()
        tab.get_by_role("link", name="Data", exact=True).click()
        tab.get_by_label("Table").select_option("shop.orders")
        tab.get_by_label("Rows a page").select_option("20 rows")
        tab.get_by_role("button", name="Show rows").click()
        expect(tab.get_by_text("Rows (20, and more)")).to_be_visible()
        expect(tab.get_by_text("(1,500 characters)").first).to_be_visible()  # the beginning of a long value; the rest on request
        tab.get_by_role("button", name="Next page").click()
        expect(tab.get_by_text("Rows (10)")).to_be_visible()
        assert [x for x in page.said if "400" not in x] == []  # the browser notes the refused statement


def test_the_finding_names_the_pattern(server):
    """Writes in ascending and descending order of the partition key, scans, and neither."""
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "found")
        for name in ("append", "prepend", "scanned", "spread"):
            create_table(session, "found", name, "k int PRIMARY KEY, v int")
        mixed = [i * 7919 % 100 for i in range(100)]
        for name, keys in (("append", range(100)), ("prepend", reversed(range(100))), ("scanned", mixed), ("spread", mixed)):
            for k in keys:
                session.execute(f"INSERT INTO found.{name} (k, v) VALUES (%s, 1)", (k,))

        def finding(name):
            """After another read, because a table's history begins with the requests that follow its first second."""
            session.execute("SELECT * FROM found.scanned" if name == "scanned" else f"SELECT * FROM found.{name} WHERE k = 1")
            status, _, answer = ask(server, "GET", f"/api/map?keyspace=found&table={name}&by=partition")
            return answer["finding"]["kind"] if status == 200 and answer["watched"] else None

        for name, kind in (("append", "append_only"), ("prepend", "prepend_only"), ("scanned", "scan"), ("spread", "none")):
            eventually(lambda: finding(name) == kind, lambda: (name, finding(name)))  # noqa: B023


@pytest.mark.parametrize("flags, definition, expected, verdict, advice", [
    # what a stranger should read: which limit refuses, or that none does
    (["--limits", "enforce"], "k int PRIMARY KEY, v int|{'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 1}}",
     {"kind": "throttled_by_table", "limit": "provisioned-write", "limit_rate": 1, "shadow": False},
     "Table limit: ", "Raise write_capacity_units to {low} to {high}:"),
    (["--limits", "shadow"], "k int PRIMARY KEY, v int|{'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 1}}",
     {"kind": "throttled_by_table", "limit": "provisioned-write", "limit_rate": 1, "shadow": True},
     "Table limit: ", "Raise write_capacity_units to {low} to {high}:"),
    (["--limits", "enforce", "--limit-values", "connection=50"], "k int PRIMARY KEY, v int|",
     {"kind": "throttled_by_connection", "limit": "connection", "limit_rate": 50, "shadow": False},
     "Connection limit: ", "which takes {connections} connections of 50/s each"),
    (["--limits", "enforce", "--limit-values", "partition-write=2"], "k int PRIMARY KEY, v int|",
     {"kind": "throttled_by_partition", "limit": "partition-write", "limit_rate": 2, "shadow": False, "key": "k = 1"},
     "Partition limit: ", "Change the key: "),
    (["--limits", "enforce", "--limit-values", "on-demand-write=5"], "k int PRIMARY KEY, v int|",
     {"kind": "throttled_by_table", "limit": "on-demand-write", "limit_rate": 5, "shadow": False},
     "Table limit: ", "Warm the table to {low} to {high} write units/s:"),
])
def test_refusals_are_the_finding_with_the_limit_that_refuses(tmp_path, flags, definition, expected, verdict, advice):
    """All writes go to one key, which is hot only if its limit is the one that refuses."""
    s = Server(tmp_path, "--admin-port", str(free_port()), "--ddl-delay", "none", *flags).start()
    columns, properties = definition.split("|")
    begun = int(time.time())
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        session.execute(f"CREATE TABLE shop.t ({columns})" + (f" WITH CUSTOM_PROPERTIES = {properties}" if properties else ""))
        write = SimpleStatement("INSERT INTO shop.t (k, v) VALUES (1, 1)", retry_policy=FallthroughRetryPolicy())

        def finding():
            for future in [session.execute_async(write) for _ in range(200)]:
                try:
                    future.result()
                except WriteTimeout:
                    pass
            status, _, answer = ask(s, "GET", "/api/map?keyspace=shop&table=t&by=partition")
            return answer["finding"] if status == 200 else {}

        eventually(lambda: expected.items() <= finding().items(), finding)
        found = finding()
        assert found["refused"] > 0 and 0 < found["refused_share"] <= 1 and ("key" in found) == ("key" in expected)
        assert found["words"].startswith(verdict)
        peak = found["peak"]  # of one-unit writes; three digits
        assert peak >= found["refused_rate"] > 0 and begun <= found["since"] <= found["until"] <= time.time()
        numbers = {"low": math.ceil(peak * 1.2), "high": math.ceil(peak * 1.3), "connections": math.ceil(peak / expected["limit_rate"])}
        assert advice.format(**numbers) in found["advice"]
    s.stop()


@pytest.mark.parametrize("guidance", ["off", "warn"])
def test_entities_count_only_under_the_guidance(tmp_path, browser, guidance):
    """A read of 3,000 entities in one second, which only the guidance limits to 2,000."""
    s = Server(tmp_path, "--admin-port", str(free_port()), "--ddl-delay", "none", "--guidance", guidance,
               "--limit-values", "partition-read=100000,partition-write=100000").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        create_table(session, "shop", "t", "k int, c int, PRIMARY KEY (k, c)")
        for begin in range(0, 3000, 30):
            rows = "".join(f"INSERT INTO shop.t (k, c) VALUES (1, {c}); " for c in range(begin, begin + 30))
            session.execute(f"BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
        read = SimpleStatement("SELECT * FROM shop.t WHERE k = 1", fetch_size=5000)

        def answer():
            for _ in range(5):
                session.execute(read)
            return ask(s, "GET", "/api/map?keyspace=shop&table=t&by=partition")[2]

        heavy = lambda a: any(c[8] > 2000 for column in a["columns"] for c in column["cells"])  # noqa: E731
        eventually(lambda: heavy(answer()), "no second has more than 2,000 entities")
        found = answer()
        assert found["limits"]["entities"] == (None if guidance == "off" else 2000)
        assert found["finding"]["kind"] == ("none" if guidance == "off" else "hot_key")
        with Page(browser, s) as page:
            tab = page.go("/?table=shop.t&metric=entities")
            expect(tab.locator("[data-finding]")).to_have_attribute("data-finding", found["finding"]["kind"], timeout=HANG * 1000)
            expect(tab.get_by_label("Entities", exact=True)).to_have_count(0 if guidance == "off" else 1)
            assert page.said == []
    s.stop()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """120 tables with charges, of which 16 at most have a history. The last one has 6,000 rows."""
    s = Server(tmp_path_factory.mktemp("many"), "--admin-port", str(free_port()), "--ddl-delay", "none").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "many")
        for i in range(120):
            session.execute(f"CREATE TABLE many.t{i:03} (k int, c int, PRIMARY KEY (k, c))")
            session.execute(f"INSERT INTO many.t{i:03} (k, c) VALUES (0, 0)")
        for begin in range(0, 6000, 30):
            rows = "".join(f"INSERT INTO many.t119 (k, c) VALUES (1, {c}); " for c in range(begin, begin + 30))
            session.execute(f"BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
        session.execute('CREATE TABLE many."Late_One" (k int PRIMARY KEY)')
    yield s
    s.stop()


def tables_of(server, **arguments):
    """All pages of the overview."""
    found, after = [], None
    while True:
        answer = ask(server, "GET", "/api/tables?" + urlencode({**arguments, **({"after": after} if after else {})}))[2]
        found += answer["tables"]
        after = answer["next"]
        if not after:
            return found


def test_a_price_is_that_of_all_pages_as_tally_explain_has_it(many, browser):
    statement = "SELECT * FROM many.t119 WHERE k = 1"
    done = subprocess.run([TALLY, "explain", statement, "--server", f"{many.host}:{many.port}", "--json"], capture_output=True, text=True, timeout=HANG)
    told = json.loads(done.stdout)
    price = post(many, "/api/explain", statement)[2]
    assert told["pages"] == 2 and (price["units"], price["pages"]) == (told["units"], told["pages"]) and price["complete"]
    assert (price["rows_read"], price["rows_returned"]) == (6000, 6000)
    page = post(many, "/api/query?rows=100", statement)[2]
    assert len(page["rows"]) == 100 and page["pages"] == 1 and page["units"] < price["units"] and page["next"]
    with Page(browser, many) as p:
        tab = p.go("/?view=statement")
        tab.get_by_label("CQL statement").fill(statement)
        tab.get_by_role("button", name="Explain").click()
        expect(tab.locator(".tile", has_text="Pages")).to_contain_text("2")
        expect(tab.locator(".tile dt", has_text="Units")).to_have_text("Units")
        tab.get_by_role("button", name="Run SELECT").click()
        expect(tab.locator(".tile dt", has_text="Units")).to_have_text("Units of this page")


def test_a_table_is_found_among_all_in_either_case(many, browser):
    assert [t["table"] for t in tables_of(many, find="late_one")] == ["Late_One"]
    assert sorted(t["table"] for t in tables_of(many, find="MANY.T11")) == [f"t{i}" for i in range(110, 120)]
    assert tables_of(many, find="nosuch") == [] and len(tables_of(many, find="many.")) == 121
    with Page(browser, many) as page:
        tab = page.go("/")
        tab.get_by_label("Find a table").fill("late_ONE")
        expect(tab.get_by_role("link", name="many.Late_One")).to_be_visible()
        expect(tab.get_by_role("link", name="many.t119")).to_have_count(0)
        tab.get_by_label("Find a table").fill("nosuch")
        expect(tab.get_by_text("No table has that name.")).to_be_visible()
        tab.get_by_label("Find a table").fill("")
        expect(tab.get_by_text("No table has that name.")).to_have_count(0)
        tab.get_by_role("button", name="idle tables").click()
        expect(tab.get_by_role("link", name="many.t").first).to_be_visible()  # which of the 121 are shown depends on their traffic
        assert page.said == []


def test_idle_tables_fold_into_one_line(many, browser):
    with Page(browser, many) as page:
        tab = page.go("/")
        fold = tab.get_by_role("button", name="idle tables")
        links = tab.get_by_role("link", name="many.t")
        expect(fold).to_have_attribute("aria-expanded", "false")
        assert links.count() <= 16  # the watched ones
        fold.click()
        expect(fold).to_have_attribute("aria-expanded", "true")
        expect(tab.get_by_role("region", name="Tables").get_by_role("link")).to_have_count(100)
        assert page.barriers() == [] and page.said == []


def test_a_refused_table_without_history_is_not_among_the_idle_ones(tmp_path, browser):
    """40 tables, of which 16 have a history, are refused all the time."""
    n = 40
    capacity = "WITH CUSTOM_PROPERTIES = {'capacity_mode': {'throughput_mode': 'PROVISIONED', 'read_capacity_units': 1, 'write_capacity_units': 1}}"
    server = Server(tmp_path, "--admin-port", str(free_port()), "--ddl-delay", "none", "--limits", "enforce").start()
    done = threading.Event()

    def write(session):
        while not done.is_set():
            for i in range(n):
                with contextlib.suppress(DriverException, NoHostAvailable):
                    session.execute(SimpleStatement(f"INSERT INTO many.t{i:03} (k) VALUES (0)", retry_policy=FallthroughRetryPolicy()))

    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "many")
        for i in range(n):
            session.execute(f"CREATE TABLE many.t{i:03} (k int PRIMARY KEY) {capacity}")
        writer = threading.Thread(target=write, args=[session])
        writer.start()
        try:
            eventually(lambda: all(t["throttled"] for t in tables_of(server)))
            assert sum(not t["watched"] for t in tables_of(server)) >= n - 16
            with Page(browser, server) as page:
                tab = page.go("/")
                shown = tab.get_by_role("region", name="Tables").locator("tbody td:nth-child(2)")
                expect(shown.filter(has_text=re.compile(r"^now .*provisioned-write"))).not_to_have_count(0)
                assert page.said == []
        finally:
            done.set()
            writer.join()
    server.stop()


def test_the_overview_begins_with_what_is_refused_and_changes_in_place(server, browser):
    with Stress(server, "single", 4000), Page(browser, server) as page:
        tab = page.go("/")
        first = tab.get_by_role("region", name="Tables").locator("tbody tr").first
        expect(first.get_by_role("rowheader")).to_have_text("stress.rows")
        expect(first.locator("td").first).to_contain_text("partition-write")
        link = first.get_by_role("link")
        link.focus()
        seen = first.inner_text()
        first.evaluate("row => { row.marked = true }")
        eventually(lambda: first.inner_text() != seen, "no cell changes")
        assert first.evaluate("row => row.marked && row.contains(document.activeElement)")
        tab.get_by_role("button", name="Table", exact=True).click()
        expect(tab.get_by_role("region", name="Tables").locator("thead th").first).to_have_attribute("aria-sort", "ascending")
        names = tab.get_by_role("region", name="Tables").locator("tbody th").all_inner_texts()
        assert names == sorted(names) and len(names) > 1
        assert page.said == []


def test_tables_with_charges_but_no_history_are_named(many, browser):
    def unwatched():
        return [t["table"] for t in tables_of(many) if not t["watched"] and t["counted"]]

    eventually(lambda: sum(t["watched"] or t["counted"] for t in tables_of(many)) == 120, unwatched)
    left_out = unwatched()
    assert len(left_out) >= 120 - 16
    assert {t["table"]: t["counted"] for t in tables_of(many, find="Late_One")} == {"Late_One": False}
    with Page(browser, many) as page:
        tab = page.go("/")
        tab.get_by_label("Find a table").fill("Late_One")
        expect(tab.get_by_text("no request yet")).to_be_visible()
        tab.get_by_label("Find a table").fill(left_out[0])
        expect(tab.get_by_text("has charges, but no history yet")).to_be_visible()
        page.go("/?view=cost")
        expect(tab.locator("[data-left-out]")).to_have_attribute("data-left-out", str(len(left_out)))
        expect(tab.get_by_role("rowheader", name="These tables")).to_be_visible()
        assert int(tab.locator("[data-price-age]").get_attribute("data-price-age")) >= 0
        assert page.said == []


@pytest.mark.parametrize("address", ["/?view=table", "/?view=nosuch", "/?view=table&window=9&metric=nosuch"])
def test_an_address_without_a_view_shows_the_overview(server, browser, address):
    with Page(browser, server) as page:
        expect(page.go(address).get_by_role("heading", name="Overview")).to_be_visible()
        assert page.said == []


@pytest.mark.parametrize("cql", ["DROP TABLE shop.orders", "TRUNCATE shop.orders", "CREATE ROLE r", "/* */ DROP TABLE shop.orders", "USE shop", ""])
def test_only_reads_run_and_only_writes_of_rows_are_explained(server, cql):
    assert post(server, "/api/query", cql)[0] == post(server, "/api/explain", cql)[0] == 400
    read = post(server, "/api/query", "SELECT * FROM shop.orders LIMIT 1")[2]
    assert read["rows"] != [] and read["guidance"]["class"] == "table scan"


def test_a_foreign_page_can_neither_read_nor_drive_it(server):
    for path in ("/", "/page.js", "/api/tables", "/api/session"):
        assert ask(server, "GET", path)[0] == 200
        assert ask(server, "GET", path, Host="evil.example")[0] == 403
        assert ask(server, "GET", path, Origin="http://evil.example")[0] == 403
        assert ask(server, "GET", path, Sec_Fetch_Site="cross-site")[0] == 403
    statement = "SELECT * FROM shop.orders"
    assert post(server, "/api/query", statement, Origin="http://evil.example")[0] == 403
    assert ask(server, "POST", "/api/query", statement)[0] == 403  # a form can send this
    assert ask(server, "GET", "/api/query")[0] == 405
    policy = ask(server, "GET", "/")[1].getheader("Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'") and "unsafe" not in policy
    assert ask(server, "GET", "/nothing")[0] == 404 and ask(server, "GET", "/api/nothing")[0] == 404
    assert post(server, "/api/query", "x" * 100_000)[0] == 413
    assert ask(server, "GET", "/api/history?keyspace=shop&table=nothing")[0] == 404
    assert ask(server, "GET", "/api/rows?of=nothing")[0] == 404
    assert post(server, "/api/query?next=zz", statement)[0] == 400
    for rows in ("-1", "0", "abc", "1x", "4294967296", ""):
        assert ask(server, "GET", f"/api/rows?of=limits&rows={rows}")[0] == 400


def test_probes_are_answered_beside_statements_that_take_long(server):
    slow = "SELECT count(*) FROM stress.rows"
    with concurrent.futures.ThreadPoolExecutor(24) as threads:
        answers = [threads.submit(post, server, "/api/query", slow) for _ in range(24)]
        while not all(a.done() for a in answers):
            assert ask(server, "GET", "/health")[0] == ask(server, "GET", "/ready")[0] == 200
    assert {a.result()[0] for a in answers} <= {200, 503}  # 503: more wait than may
    assert post(server, "/api/query", slow)[0] == 200


def test_statements_of_the_page_are_outside_the_limits(tmp_path):
    """A driver's read of a table without capacity is refused; the page reads the table, and the server goes on."""
    s = Server(tmp_path, "--admin-port", str(free_port()), "--ddl-delay", "none", "--limits", "enforce", "--limit-values", "on-demand-read=1").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "shop")
        create_table(session, "shop", "orders", "id int PRIMARY KEY, note text")
        session.execute("INSERT INTO shop.orders (id, note) VALUES (1, 'a')")
        read = SimpleStatement("SELECT * FROM shop.orders", retry_policy=FallthroughRetryPolicy())

        def is_refused():
            try:
                session.execute(read)
            except ReadTimeout:
                return True
            return False

        eventually(is_refused, "a read of 1 unit a second is never refused")
        for _ in range(3):
            assert post(s, "/api/query", "SELECT * FROM shop.orders")[2]["rows"] == [["1", "a"]]
            assert post(s, "/api/explain", "DELETE FROM shop.orders WHERE id = 1")[0] == 200
    s.stop()


def test_no_other_request_waits_for_a_count_of_storage(many):
    """Counts have a queue of their own: while it is full, other system tables are read."""
    with concurrent.futures.ThreadPoolExecutor(24) as threads:
        counts = [threads.submit(ask, many, "GET", "/api/rows?of=storage") for _ in range(24)]
        assert [ask(many, "GET", "/api/rows?of=limits")[0] for _ in range(20)] == [200] * 20
    assert {c.result()[0] for c in counts} <= {200, 503}
    status, _, answer = ask(many, "GET", "/api/rows?of=storage")
    assert status == 200 and len(answer["rows"]) == 121


def test_rows_of_system_tables_say_where_they_end(many):
    every = ask(many, "GET", "/api/rows?of=columns")[2]
    assert len(every["rows"]) > 242 and every["next"] is None
    pages, state = [], None
    while True:
        page = ask(many, "GET", "/api/rows?of=columns&rows=100" + (f"&next={state}" if state else ""))[2]
        pages += page["rows"]
        state = page["next"]
        assert len(page["rows"]) == 100 or state is None
        if state is None:
            break
    assert pages == every["rows"]


def test_the_bound_of_an_answer_holds_within_a_row(tmp_path):
    mib = 1 << 20
    s = Server(tmp_path, "--admin-port", str(free_port()), "--mode", "cassandra").start()
    with s.cluster() as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE k.t (k int PRIMARY KEY, a text, b text, c text, d text, e text, l list<int>, x blob)")
        session.execute("INSERT INTO k.t (k, a, b, c, d, e, x) VALUES (1, %s, %s, %s, %s, %s, %s)", (*["y" * mib] * 5, b"z" * 3 * mib))
        session.execute(session.prepare("INSERT INTO k.t (k, l) VALUES (2, ?)"), ([1] * 60000,))
    assert len(post(s, "/api/query", "SELECT a, b, c FROM k.t WHERE k = 1")[2]["rows"][0]) == 3
    assert len(post(s, "/api/query", "SELECT l FROM k.t WHERE k = 2")[2]["rows"][0][0]) == 3 * 60000
    for columns in ("a, b, c, d, e", "x"):  # the text of a blob is twice as long
        status, _, answer = post(s, "/api/query", f"SELECT {columns} FROM k.t WHERE k = 1")
        assert status == 400 and "larger than 4 MiB" in answer["error"]
    s.stop()


@pytest.mark.parametrize("path", ["/api/query", "/api/explain"])
def test_a_statement_that_is_not_utf8_is_refused(server, path):
    status, _, answer = post(server, path, b'SELECT id AS "\xff" FROM shop.orders')
    assert (status, answer) == (400, {"error": "Cannot decode string as UTF8"})
    assert post(server, path, 'SELECT id AS "é" FROM shop.orders'.encode())[0] == 200


def test_with_roles_the_page_asks_for_a_login(tmp_path, browser):
    s = Server(tmp_path, "--admin-port", str(free_port()), "--mode", "cassandra", "--auth", "password").start()
    with s.cluster(auth_provider=plain("cassandra", "cassandra")) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for t in ("mine", "other"):
            session.execute(f"CREATE TABLE shop.{t} (id int PRIMARY KEY)")
        session.execute("CREATE ROLE app WITH PASSWORD = 'secret' AND LOGIN = true")
        session.execute("GRANT SELECT ON shop.mine TO app")
    assert ask(s, "GET", "/api/tables")[0] == ask(s, "GET", "/api/rows?of=statements")[0] == 401
    assert post(s, "/api/query", "SELECT * FROM shop.mine")[0] == 401
    with Page(browser, s) as page:
        tab = page.go("/")
        tab.get_by_label("Role").fill("cassandra")
        tab.get_by_label("Password").fill("wrong")
        tab.get_by_role("button", name="Sign in").click()
        expect(tab.get_by_role("alert")).to_contain_text("incorrect")
        assert page.barriers() == []
        tab.get_by_label("Password").fill("cassandra")
        tab.get_by_role("button", name="Sign in").click()
        expect(tab.get_by_role("link", name="shop.mine")).to_be_visible()
        cookie, = page.context.cookies()
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
        tab.get_by_role("button", name="Sign out").click()
        expect(tab.get_by_role("button", name="Sign in")).to_be_visible()
        assert ask(s, "GET", "/api/tables", Cookie=f"tally_session={cookie['value']}")[0] == 401  # the session has ended
    status, answer, body = post(s, "/api/login", "app\nsecret")
    assert (status, body) == (200, {"role": "app"})
    mine = {"Cookie": answer.getheader("Set-Cookie").split(";")[0]}
    assert post(s, "/api/query", "SELECT * FROM shop.mine", **mine)[0] == 200
    assert post(s, "/api/query", "SELECT * FROM shop.other", **mine)[0] == 403  # with the role's rights
    assert post(s, "/api/explain", "INSERT INTO shop.mine (id) VALUES (1)", **mine)[0] == 403
    assert ask(s, "GET", "/api/tables", **mine)[0] == 403  # no SELECT on system_metering
    assert post(s, "/api/login", "app\nguess")[0] == post(s, "/api/login", "nobody\nguess")[0] == 401
    assert post(s, "/api/login", "app")[0] == post(s, "/api/login", "\n")[0] == 400
    s.stop()


def plain(name, password):
    from cassandra.auth import PlainTextAuthProvider
    return PlainTextAuthProvider(name, password)
