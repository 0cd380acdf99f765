"""Runs cases against a server: each in a keyspace of its own, several at a time."""
import concurrent.futures
import hashlib
import threading
import time

from render import Page, outcome
from values import BadValue, read_bound
from wire import Client, Lost

MAX_PAGES = 200


class Target:
    """A server and how to treat it: `asynchronous` waits for DDL to become visible, as Amazon Keyspaces' clients must."""
    def __init__(self, host, port, asynchronous=False, wait=30):
        self.host, self.port, self.asynchronous, self.wait = host, port, asynchronous, wait


class Session:
    """One thread's connections, by protocol version, and the keyspace of the case at hand."""
    def __init__(self, target):
        self.target, self.clients = target, {}

    def client(self, version):
        if version not in self.clients:
            self.clients[version] = Client(self.target.host, self.target.port, version)
        return self.clients[version]

    def drop_client(self, version):
        client = self.clients.pop(version, None)
        if client:
            client.close()

    def settle(self, client, answer):
        """After a schema change, waits until it is visible."""
        if answer.kind != "schema" or not self.target.asynchronous:
            return
        if answer.target == "KEYSPACE":
            cql = f"SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = '{answer.keyspace}'"
        else:
            kind = answer.target.lower()
            cql = (f"SELECT status FROM system_schema_mcs.{kind}s WHERE keyspace_name = "
                   f"'{answer.keyspace}' AND {kind}_name = '{answer.object}'")
        end = time.monotonic() + self.target.wait
        while time.monotonic() < end:
            got = client.query(cql)
            if got.kind != "rows":
                raise Lost(f"while waiting for DDL: {got.text if got.kind == 'error' else got.kind}")
            gone = answer.change == "DROPPED"
            if gone and not got.rows:
                return
            if not gone and got.rows and (answer.target == "KEYSPACE" or got.rows[0][0] == b"ACTIVE"):
                return
            time.sleep(0.01)
        raise Lost(f"{answer.change} {answer.target} {answer.keyspace}.{answer.object} was not finished in {self.target.wait} s")

    def must(self, client, cql):
        answer = client.query(cql)
        if answer.kind == "error":
            raise Lost(f"{cql}: {answer.text}")
        self.settle(client, answer)


def keyspace_of(path, case):
    """Always the same name, because error positions and tokens depend on it."""
    return "k_" + hashlib.sha1(f"{path.stem}/{case.name}".encode()).hexdigest()[:10]


class Run:
    """One case on one server; `results` holds (statement, outcome lines)."""
    def __init__(self, session, path, case):
        self.session, self.case = session, case
        self.keyspace = keyspace_of(path, case)
        self.version = int(case.options.get("protocol", 4))
        self.results = []

    def go(self):
        bare = self.case.options.get("keyspace") == "none"
        if bare:
            self.session.drop_client(self.version)
        client = self.session.client(self.version)
        self.session.must(client, f"DROP KEYSPACE IF EXISTS {self.keyspace}")
        if not bare:
            self.session.must(client, f"CREATE KEYSPACE {self.keyspace} WITH replication = "
                              "{'class': 'SimpleStrategy', 'replication_factor': 1}")
            self.session.must(client, f"USE {self.keyspace}")
        try:
            for statement in self.case.statements():
                self.results.append((statement, self.statement(client, statement)))
        finally:
            if bare:
                self.session.drop_client(self.version)
        client = self.session.client(self.version)
        self.session.must(client, f"DROP KEYSPACE IF EXISTS {self.keyspace}")

    def expand(self, text):
        return text.replace("{ks}", self.keyspace)

    def options(self, statement):
        return {k: self.expand(v) if isinstance(v, str) else v for k, v in statement.options.items()}

    def show(self, statement, answer, page):
        return outcome(answer, self.keyspace, statement.marks, page)

    def statement(self, client, statement):
        options = self.options(statement)
        if statement.batch:
            return self.batch(client, statement, options)
        cql = self.expand(statement.cql())
        binds = [read_bound(b) for b in statement.binds[0]]
        if options.get("prepare") or (binds and not options.get("query")):
            return self.prepared(client, statement, cql, binds, options)
        lines = []
        for bound in binds or [()]:
            lines += self.pages(client, statement, lambda state: client.query(cql, options, bound, state))
        return lines

    def prepared(self, client, statement, cql, binds, options):
        answer = client.prepare(cql)
        if options.get("prepare") or answer.kind == "error":
            lines = self.show(statement, answer, Page())
        else:
            lines = []
        if answer.kind == "error":
            return lines
        for bound in binds:
            lines += self.pages(client, statement, lambda state: client.execute(answer, options, bound, state))
        return lines

    def pages(self, client, statement, ask):
        lines, page, state = [], Page(), None
        for _ in range(int(statement.options.get("pages", MAX_PAGES))):
            answer = ask(state)
            self.session.settle(client, answer)
            shown = self.show(statement, answer, page)
            if lines and all(line.startswith("~ ") for line in shown):
                lines.pop()                  # the empty last page that the README speaks of
            else:
                lines += shown
            state = answer.columns.paging_state if answer.kind == "rows" else None
            if state is None:
                break
        return lines

    def batch(self, client, statement, options):
        entries = []
        for part, binds in enumerate(statement.binds):
            cql = self.expand(statement.cql(part))
            if not binds:
                entries.append((cql, ()))
                continue
            prepared = client.prepare(cql)
            if prepared.kind == "error":
                return self.show(statement, prepared, Page())
            entries += [(prepared, read_bound(b)) for b in binds]
        answer = client.batch(statement.batch, entries, options)
        return self.show(statement, answer, Page())


def run_case(session, path, case):
    run, error = Run(session, path, case), None
    try:
        run.go()
    except (Lost, BadValue, ValueError, OSError) as e:
        error = f"{type(e).__name__}: {e}"
        for version in list(session.clients):
            session.drop_client(version)
    except Exception as e:                       # the driver's own errors at connect have no common ancestor
        error = f"{type(e).__name__}: {e}"
    return run, error


def run_all(target, files, jobs, wanted):
    """Yields (file, case, run, error) in the order of the files. `wanted(case)` selects."""
    local = threading.local()

    def work(path, case):
        if not hasattr(local, "session"):
            local.session = Session(target)
        return run_case(local.session, path, case)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        todo = [(f, c, pool.submit(work, f.path, c)) for f in files for c in f.cases if wanted(c)]
        for f, c, future in todo:
            run, error = future.result()
            yield f, c, run, error
