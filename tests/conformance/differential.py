#!/usr/bin/env python3
"""Runs the same seeded random schema and statements on Tally and on a Cassandra, and prints where their answers differ.

usage: differential.py (--tally HOST:PORT | --tallyd PROGRAM) --cassandra HOST:PORT [--keyspace NAME] [--seed N] [--rounds N] [--statements N] [--jobs N]

Each round has a seed, the next number, and makes one table with random key and column types, then writes and reads it: in some rounds with explicit timestamps of a
small range, of statements and of requests, so that ties, tombstones and overlaps are common, in others with the servers' clocks and conditional updates. A part of
the statements is prepared and bound; some of those are kept and executed again later, the table's columns and types changed between.
A second table has keys and values that now() makes, in batches, too: they are compared by their order. Reads are paged, at sizes that change from page to page, and rows are compared page by page. Each statement is sent to both at once,
with version 4 of the protocol where the seed is even and 5 where it is odd. A difference is printed with the
statements that led to it, and ends its round when the two hold different rows from there on; each is worth a case in cases/.

With --tally, a tallyd in --mode cassandra is running. With --tallyd one is started, for each of --jobs processes that share the
rounds. Now and then it is stopped or killed and started
again, also between the pages of a read, with much memory or the least that it takes, or made to flush what it has in memory, so that reads meet several table files and what
compactions made of them. Some statements meet a fault on Tally (system_control.faults): before they are applied, and then leave nothing behind and are sent again; or after,
and then have been applied once. Known differences stand in differential_explained.py with their reasons, and are counted apart. Ends with
"N passed, N explained, N failed" (statements) and how often each reason was met; exits non-zero when one failed.

A Cassandra that runs for nothing else is quicker with JDK_JAVA_OPTIONS=-Dcassandra.test.flush_local_schema_changes=false, which saves
it the flush of its schema's tables at every change, and with CASSANDRA_DIR and TMPDIR in memory.
"""
import argparse
import collections
import multiprocessing
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from cassandra import ConsistencyLevel, DriverException, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy
from cassandra.protocol import ErrorMessage
from cassandra.query import BatchStatement, BatchType, SimpleStatement, tuple_factory

sys.path.append(str(pathlib.Path(__file__).parent / "cqlt"))
from differential_explained import explanation
from differential_table import Table
from differential_values import as_text
from render import same_answer

SIGNATURES = re.compile(r" \((?:known type|can be matched by following) signatures: .*\)")  # in no order
SERVER_ERROR = "server error"
FAILED_INSIDE = ("code=0000", "code=1300", "Invalid value for the paging state")  # of its own: Cassandra's pages of groups break at times
EXPIRED = 2.5  # seconds after which a time to live of one has ended everywhere
TTL_TOLERANCE = 20  # seconds between the two servers' runs of one statement
NUMBER = re.compile(r"\d+")
OF_TIME = re.compile(r"(?<=UUID\(')[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TODAY = uuid.uuid1().time - 10**7 * 3600  # what now() makes is newer than this, and other literals are older
TIMESTAMP = re.compile(" USING TIMESTAMP \x01bigint\x02\\d+\x03(?! AND)")
KEPT = 12  # prepared statements of a round that are executed again
TABLES = 20  # in a keyspace, before it is dropped and made anew

SMALL = ["--block-cache", "1", "--memtables", "1", "--row-cache", "1"]  # MB: most blocks are read from files, and there are many files
FAULTS = ["WriteTimeout", "ReadTimeout", "WriteFailure", "Unavailable", "Overloaded", "ServerError", "Invalid", None]  # errors; None: the connection is closed
APPLIED = "applied, and its answer lost"

THREADS = ThreadPoolExecutor(2)
OUTCOMES = {"agreed": "passed", "explained": "explained", "parted": "explained", "differs": "failed", "lost": "failed", "failed": "given up"}


class Server:
    """A tallyd of our own, which can be started again."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        self.program, self.port, self.log = program, 0, tempfile.TemporaryFile("w+")
        refusal = subprocess.run([program, "--data-dir", ":memory:", "--memory", "1", *SMALL], stderr=subprocess.PIPE, text=True).stderr
        self.least = ["--memory", re.search(r"--memory must be (\d+) or more", refusal).group(1), *SMALL]
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program, "--mode", "cassandra", "--data-dir", self.folder.name, "--port", str(self.port), "--admin-port", "0", "--api-port", "0", "--control", "on",
                                         "--write-size", random.choice(["row", "written"]),  # written by another path, with the same outcome
                                         *random.choice([[], self.least])],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        for line in self.process.stdout:
            if line.startswith("tallyd ready"):
                self.port = int(line.split("cql=")[1].split()[0].rsplit(":", 1)[1])
                return
        raise RuntimeError("tallyd has not started")

    def restart(self, how):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()
        self.start()

    def check(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise RuntimeError(f"tallyd has ended with {self.process.returncode}:\n{self.log.read()[-20000:]}")

    def close(self):
        self.process.terminate()
        self.process.wait(60)


class Answer:
    """What a statement answers: rows in order, page by page, or an error's text."""

    def __init__(self, error="", columns=(), pages=()):
        self.error, self.columns, self.pages = SIGNATURES.sub("", error), tuple(columns), [p for p in pages if p]
        self.server_error = error.startswith(SERVER_ERROR)

    def same(self, other):
        if self.columns != other.columns or not same_answer(self.error, other.error):
            return False
        if list(map(len, self.pages)) != list(map(len, other.pages)):
            return False
        rows, others = self.texts(), other.texts()
        return len(rows) == len(others) and all(map(self.same_row, rows, others))

    def texts(self):
        """The values of the rows. What now() made is its place among what it made of the column: two servers' values differ, but are in the same order, and as many."""
        rows = [[repr(value) for value in row] for page in self.pages for row in page]
        made = [{u for value in column for u in OF_TIME.findall(value) if uuid.UUID(u).time > TODAY} for column in zip(*rows)]
        if not any(made):
            return rows
        places = [{u: f"now {i}" for i, u in enumerate(sorted(us, key=lambda u: (uuid.UUID(u).time, u)))} for us in made]
        told = [[OF_TIME.sub(lambda m, of=of: of.get(m.group(), m.group()), value) for of, value in zip(places, row)] for row in rows]
        return told + [[f"{len(set().union(*made))} from now()"]]

    def same_row(self, row, other):
        return all(a == b or "ttl(" in name and near(a, b) for (name, _), a, b in zip(self.columns, row, other))

    def lines(self):
        if self.error:
            return [self.error]
        return [", ".join(f"{n} {t}" for n, t in self.columns)] + [line for p in self.pages for line in [repr(tuple(r)) for r in p[:20]] + ["--"]]


def near(text, other):
    """Whether two values differ in nothing but seconds to live."""
    numbers, others = NUMBER.findall(text), NUMBER.findall(other)
    return NUMBER.sub("", text) == NUMBER.sub("", other) and len(numbers) == len(others) and all(abs(int(a) - int(b)) <= TTL_TOLERANCE for a, b in zip(numbers, others))


class BatchMessage:
    """A batch that is sent as a BATCH message: its statements, each with what to bind or None."""

    def __init__(self, statement, parts):
        kind = statement.split()[1]
        self.kind, self.parts = BatchType.UNLOGGED if kind == "UNLOGGED" else BatchType.COUNTER if kind == "COUNTER" else BatchType.LOGGED, parts

    def __repr__(self):
        return f"as a message: {[bound for _, bound in self.parts]}"

    def query(self, session):
        batch = BatchStatement(self.kind)
        for statement, bound in self.parts:
            batch.add(SimpleStatement(statement) if bound is None else session.prepare(statement).bind(bound))
        return batch


class Side:
    def __init__(self, name, address):
        self.name, self.host, self.port, self.protocol, self.time = name, *address.rsplit(":", 1), 5, None
        self.connect()

    def connect(self):
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                                   row_factory=tuple_factory, request_timeout=120)
        self.cluster = Cluster([self.host], port=int(self.port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, schema_metadata_enabled=False,
                               protocol_version=self.protocol, compression=False)
        self.session = self.cluster.connect()
        self.stamp(self.time)

    def stamp(self, time):
        """The time that requests bear from now on; None: none."""
        self.time, self.session.use_client_timestamp, self.cluster.timestamp_generator = time, time is not None, lambda: time

    def reconnect(self):
        self.cluster.shutdown()
        self.connect()

    def speak(self, protocol):
        if self.protocol != protocol:
            self.protocol = protocol
            self.reconnect()

    def change(self, statement):
        """A change of the schema that both must take."""
        try:
            self.session.execute(statement)
        except NoHostAvailable:  # the driver has given the connection up
            self.reconnect()
            self.session.execute(statement)

    def guarded(self, action):
        try:
            try:
                return action()
            except AttributeError:  # the driver fails where a server has forgotten a statement of a batch that was just prepared
                return action()
        except NoHostAvailable as e:  # the server failed inside: Cassandra's defects are not ours to copy
            return Answer(f"{SERVER_ERROR}: {list(e.errors.values())}")
        except (DriverException, RequestExecutionException, ErrorMessage) as e:
            text = str(e)
            return Answer(f"{SERVER_ERROR if any(c in text for c in FAILED_INSIDE) else 'error'}: {text}")
        except Exception as e:  # the driver cannot read what was answered; it must not read it on either side
            return Answer(f"driver: {type(e).__name__}: {e}")

    def query(self, statement, bound, kept, page):
        """kept: a statement that was prepared before, or None."""
        if isinstance(bound, BatchMessage):
            return bound.query(self.session)
        query = SimpleStatement(statement) if bound is None else (kept or self.session.prepare(statement)).bind(bound)
        query.fetch_size = page
        return query

    def run(self, statement, bound, sizes, kept=None, between_pages=None):
        """sizes: of the pages, in turn; between_pages: called once behind the first page, where there is another, with what sends the next."""
        def page(number, state=None):
            return self.session.execute(self.query(statement, bound, kept, sizes[number % len(sizes)]), paging_state=state)

        def all_pages():
            result = page(0)
            columns = [(n, t.cql_parameterized_type()) for n, t in zip(result.column_names or [], result.column_types or [])]
            pages, state = [list(result.current_rows)], result.paging_state
            if state and between_pages:
                between_pages(lambda: self.guarded(lambda: page(1, state) and Answer()))
            while state:
                result = page(len(pages), state)
                pages.append(list(result.current_rows))
                state = result.paging_state
            return Answer("", columns, pages)
        return self.guarded(all_pages)


def on_all(sides, action, *more):
    """Calls action(side, ...) for all of them at once, with an item of each list; what they answered."""
    return list(THREADS.map(action, sides, *more))


class Round:
    """One table on both sides."""

    def __init__(self, sides, server, keyspace, seed):
        self.rng, self.beside, self.sides, self.server, self.seed = random.Random(seed), random.Random(-seed), sides, server, seed
        self.table = Table(self.rng, f"{keyspace}.t{seed}")
        self.history, self.kept = self.table.ddl(), []
        on_all(sides, lambda side: (side.speak(5 if seed % 2 else 4), [side.change(statement) for statement in self.history]))

    def restart(self, _):
        self.server.restart(self.rng.choice([signal.SIGTERM, signal.SIGKILL]))
        self.sides[0].reconnect()

    def flush(self, _):
        """What is in memory becomes a table file; several of them are compacted."""
        self.sides[0].session.execute("INSERT INTO system_control.snapshots (name) VALUES ('flushed')")
        self.sides[0].session.execute("DELETE FROM system_control.snapshots WHERE name = 'flushed'")

    def fault(self, send):
        """What is sent meets a fault: an error or the loss of its connection, before it is applied or after. What Tally answers from then on, where it is not to
        be sent again, or None."""
        error, moment = self.beside.choice(FAULTS), self.beside.choice(["before", "after"])
        what = f"error, message) VALUES ('f', 1, '{moment}', '{error}', 'injected')" if error else f"close) VALUES ('f', 1, '{moment}', true)"
        self.sides[0].session.execute(f"INSERT INTO system_control.faults (name, nth, moment, {what}")
        answer = send()
        if not error:
            self.sides[0].reconnect()
        hit = self.sides[0].session.execute("SELECT hits FROM system_control.faults WHERE name = 'f'").one()[0]
        self.sides[0].session.execute("DELETE FROM system_control.faults WHERE name = 'f'")
        if not answer.error:
            return Answer(f"answered beside a fault with {hit} hits")
        refused = answer.error.startswith("error") and "injected" not in answer.error  # in its own words, also a change of the schema that was hit
        return Answer(APPLIED) if hit and moment == "after" and not refused else None

    def expire(self):
        """Rows beside static values that stay; nothing is read until they have expired on both sides."""
        for statement in map(as_text, self.table.expiring()):
            on_all(self.sides, lambda side: side.run(statement, None, [None], None))
            self.history.append(statement)
        time.sleep(EXPIRED)
        self.table.expired = True
        self.history.append(f"-- {EXPIRED} seconds")

    def page_sizes(self):
        kind = self.rng.random()
        return [None] if kind < 0.4 else [self.rng.choice([1, 2, 3])] if kind < 0.7 else [self.rng.randrange(1, 12) for _ in range(4)]

    def next_statement(self):
        """A statement, what to bind if it is prepared, and the two sides' prepared statements if they were kept."""
        if self.beside.random() < 0.01:
            return self.table.description(self.beside), None, (None, None)
        if self.kept and self.rng.random() < 0.1:
            return self.rng.choice(self.kept)
        statement = self.table.statement()
        if self.beside.random() < 0.3:
            statement = TIMESTAMP.sub("", statement)  # the request has one
        if statement.startswith("BEGIN") and "BATCH USING" not in statement and self.rng.random() < 0.4:
            parts = statement.partition("BATCH ")[2].removesuffix("; APPLY BATCH").split("; ")
            parts = [self.table.values.bound(part) if self.rng.random() < 0.5 else (as_text(part), None) for part in parts]
            return as_text(statement), BatchMessage(statement, parts), (None, None)
        if self.rng.random() >= 0.25:
            return as_text(statement), None, (None, None)
        statement, bound = self.table.values.bound(statement)
        if len(self.kept) < KEPT and self.rng.random() < 0.2 and not statement.startswith(("ALTER", "BEGIN", "TRUNCATE", "DROP", "CREATE")):
            prepared = on_all(self.sides, lambda side: side.guarded(lambda: side.session.prepare(statement)))
            if not any(isinstance(p, Answer) for p in prepared):
                self.kept.append((statement, bound, prepared))
        return statement, bound, (None, None)

    def disturb(self, statement):
        """What is done to Tally meanwhile: the function, or None. Faults do not meet what drivers read for themselves."""
        if not self.server or self.rng.random() > 0.02:
            return self.fault if self.server and self.beside.random() < 0.02 and "system_schema." not in statement else None
        return self.rng.choice([self.restart, self.flush, self.flush])

    def answers(self, statement, bound, sizes, kept, disturb):
        """Of the two sides."""
        given = disturb(lambda: self.sides[0].run(statement, bound, sizes, kept[0])) if disturb and sizes == [None] else None
        if not given or given.error == APPLIED and statement.startswith(("SELECT", "DESCRIBE")):
            return on_all(self.sides, lambda side, k: side.run(statement, bound, sizes, k, disturb if side is self.sides[0] else None), kept)
        other = self.sides[1].run(statement, bound, sizes, kept[1])
        return [other if given.error == APPLIED and not other.error else given, other]

    def step(self, reasons):
        """One statement on both sides: "agreed", "explained", "differs", "lost" where the two hold different rows now, "parted" where they do for a known
        reason (counted in reasons), or "failed" where Cassandra failed inside."""
        statement, bound, kept = self.next_statement()
        at = self.beside.randrange(1, 12) if self.table.clock == "explicit" and not self.table.counters else None
        for side in self.sides:
            side.stamp(at)
        if self.table.static and not self.table.counters and self.beside.random() < 0.02:
            self.expire()
        reading = statement.startswith(("SELECT", "DESCRIBE"))
        sizes = self.page_sizes() if reading else [None]
        if statement.startswith("DESCRIBE"):  # other rounds change Cassandra's schema, which it does not allow between pages
            sizes = [None]
        if " LIMIT " in statement:  # where a page is as large as the limit, Cassandra begins anew
            sizes = sizes[:1]
        disturb = self.disturb(statement)
        answers = self.answers(statement, bound, sizes, kept, disturb)
        shown = f"{statement}{f' -- at {at}' if at else ''}" + ("" if bound is None else f"  -- {bound}{', kept' if kept[0] else ''}")
        for side, answer in zip(self.sides, answers):
            if "Failed decoding" in answer.error:  # nulls where the driver takes none; it has given the connection up
                side.reconnect()
        if answers[1].server_error or all("Failed decoding" in answer.error for answer in answers):
            return "agreed" if reading else "failed"
        if not reading and not answers[1].error:
            self.history.append(f"{shown}{self.applied(answers[1])}")
        if answers[0].same(answers[1]):
            return "agreed"
        if self.server and answers[0].server_error:
            self.server.check()
        reason = explanation(self.table, statement, *answers)
        same_rows = reading or answers[0].error and answers[1].error
        if reason:
            reasons[reason] += 1
            print(f"---- seed {self.seed}, explained: {reason}: {shown}", flush=True)
            return "explained" if same_rows else "parted"
        lines = [f"---- seed {self.seed}, page sizes {sizes}{', ' + disturb.__name__ if disturb else ''}: {shown}"]
        for side, answer in zip(self.sides, answers):
            lines += [f"  {side.name}:"] + [f"    {line}" for line in answer.lines()]
        history = self.history if not same_rows or not any(a.error for a in answers) else self.history[:1]
        print(*lines, "  after:", *[f"    {statement}" for statement in history], sep="\n", flush=True)  # at once: other jobs print, too
        return "differs" if same_rows else "lost"

    @staticmethod
    def applied(answer):
        return f"  -- {answer.pages[0][0][0]}" if answer.pages else ""


def counted(count):
    return ", ".join(f"{count[what]} {what}" for what in ("passed", "explained", "failed"))


def make_keyspace(side, keyspace):
    side.change(f"DROP KEYSPACE IF EXISTS {keyspace}")
    side.change(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")


def run_round(options, sides, server, keyspace, seed):
    count, this = collections.Counter(), Round(sides, server, keyspace, seed)
    for _ in range(options.statements):
        outcome = this.step(count)
        count[OUTCOMES[outcome]] += 1
        if outcome in ("lost", "parted", "failed"):
            break
    return count


def run_job(options, job, counts):
    """The rounds of one process; puts each one's count into counts, and None behind the last."""
    server = Server(options.tallyd) if options.tallyd else None
    try:
        keyspace = f"{options.keyspace}{job}" if options.jobs > 1 else options.keyspace
        sides = [Side("tally", options.tally or f"127.0.0.1:{server.port}"), Side("cassandra", options.cassandra)]
        for i, seed in enumerate(range(options.seed + job, options.seed + options.rounds, options.jobs)):
            if i % TABLES == 0:
                on_all(sides, lambda side: make_keyspace(side, keyspace))
            counts.put((seed, run_round(options, sides, server, keyspace, seed)))
    finally:
        counts.put(None)
        if server:
            server.close()


def run_jobs(options):
    """All rounds, in so many processes; the sum of their counts."""
    counts, total, running = multiprocessing.Queue(), collections.Counter(), options.jobs
    jobs = [multiprocessing.Process(target=run_job, args=(options, job, counts)) for job in range(options.jobs)]
    for job in jobs:
        job.start()
    while running:
        done = counts.get()
        if done is None:
            running -= 1
            continue
        total += done[1]
        print(f"\rseed {done[0]}: {counted(total)} ", end="", file=sys.stderr, flush=True)
    for job in jobs:
        job.join()
        total["failed"] += job.exitcode != 0
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tally")
    parser.add_argument("--tallyd")
    parser.add_argument("--cassandra", required=True)
    parser.add_argument("--keyspace", default="differential")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--statements", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if bool(options.tally) == bool(options.tallyd):
        parser.error("one of --tally and --tallyd is needed")
    count = run_jobs(options)
    print("\n" + "\n".join(f"{n} explained: {reason}" for reason, n in count.items() if reason not in OUTCOMES.values()))
    print(counted(count))
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
