#!/usr/bin/env python3
"""Runs the same seeded random schema and statements on Tally and on a Cassandra, and prints where their answers differ.

usage: differential.py (--tally HOST:PORT | --tallyd PROGRAM) --cassandra HOST:PORT [--keyspace NAME] [--seed N] [--rounds N] [--statements N]

Each round makes one table with random key and column types, then writes and reads it: in some rounds with explicit timestamps of a
small range, so that ties, tombstones and overlaps are common, in others with the servers' clocks and conditional updates. A part of
the statements is prepared and bound, reads are paged, and rows are compared page by page. A difference is printed with the
statements that led to it, and ends its round when the two hold different rows from there on; each is worth a case in cases/.

With --tally, a tallyd in --mode cassandra is running. With --tallyd one is started, and is stopped or killed and started again now and
then, also between the pages of a read. Ends with "N passed, N failed" (statements); exits non-zero when one failed.
"""
import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile

from cassandra import ConsistencyLevel, DriverException, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy
from cassandra.protocol import ErrorMessage
from cassandra.query import SimpleStatement, tuple_factory

from differential_table import Table
from differential_values import as_text

SIGNATURES = re.compile(r" \(known type signatures: .*\)")  # in no order
SERVER_ERROR = "server error"
FAILED_INSIDE = ("code=0000", "code=1300", "Invalid value for the paging state")  # of its own: Cassandra's pages of groups break at times
TTL_TOLERANCE = 20  # seconds between the two servers' runs of one statement


class Server:
    """A tallyd of our own, which can be started again."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        self.program, self.port = program, 0
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program, "--mode", "cassandra", "--data-dir", self.folder.name, "--port", str(self.port), "--admin-port", "0",
                                         "--write-size", random.choice(["row", "written"])],  # written by another path, with the same outcome
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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

    def close(self):
        self.process.terminate()
        self.process.wait(60)


class Answer:
    """What a statement answers: rows in order, page by page, or an error's text."""

    def __init__(self, error="", columns=(), pages=()):
        self.error, self.columns, self.pages = SIGNATURES.sub("", error), tuple(columns), [p for p in pages if p]
        self.server_error = error.startswith(SERVER_ERROR)

    def same(self, other):
        if (self.error, self.columns) != (other.error, other.columns):
            return False
        if list(map(len, self.pages)) != list(map(len, other.pages)):
            return False
        rows, others = [[r for p in pages for r in p] for pages in (self.pages, other.pages)]
        return len(rows) == len(others) and all(map(self.same_row, rows, others))

    def same_row(self, row, other):
        if repr(row) == repr(other):
            return True
        near = [name.startswith("ttl") and a is not None and b is not None and abs(a - b) <= TTL_TOLERANCE for (name, _), a, b in zip(self.columns, row, other)]
        return all(n or repr(a) == repr(b) for n, a, b in zip(near, row, other))

    def lines(self):
        if self.error:
            return [self.error]
        return [", ".join(f"{n} {t}" for n, t in self.columns)] + [line for p in self.pages for line in [repr(tuple(r)) for r in p[:20]] + ["--"]]


class Side:
    def __init__(self, name, address):
        self.name, self.host, self.port = name, *address.rsplit(":", 1)
        self.connect()

    def connect(self):
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                                   row_factory=tuple_factory, request_timeout=120)
        self.cluster = Cluster([self.host], port=int(self.port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, schema_metadata_enabled=False)
        self.session = self.cluster.connect()
        self.session.use_client_timestamp = False

    def reconnect(self):
        self.cluster.shutdown()
        self.connect()

    def guarded(self, action):
        try:
            return action()
        except NoHostAvailable as e:  # the server failed inside: Cassandra's defects are not ours to copy
            return Answer(f"{SERVER_ERROR}: {list(e.errors.values())}")
        except (DriverException, RequestExecutionException, ErrorMessage) as e:
            text = str(e)
            return Answer(f"{SERVER_ERROR if any(c in text for c in FAILED_INSIDE) else 'error'}: {text}")
        except Exception as e:  # the driver cannot read what was answered; it must not read it on either side
            return Answer(f"driver: {type(e).__name__}: {e}")

    def first_page(self, statement, bound, page):
        if bound is None:
            result = self.session.execute(SimpleStatement(statement, fetch_size=page))
        else:
            prepared = self.session.prepare(statement)
            prepared.fetch_size = page
            result = self.session.execute(prepared.bind(bound))
        columns = [(n, t.cql_parameterized_type()) for n, t in zip(result.column_names or [], result.column_types or [])]
        return columns, list(result.current_rows), result.paging_state

    def run(self, statement, bound, page, between_pages=None):
        """between_pages: called once behind the first page, where there is another."""
        def all_pages():
            columns, rows, state = self.first_page(statement, bound, page)
            pages = [rows]
            if state and between_pages:
                between_pages()
            while state:
                query = SimpleStatement(statement, fetch_size=page) if bound is None else self.session.prepare(statement).bind(bound)
                query.fetch_size = page
                result = self.session.execute(query, paging_state=state)
                pages.append(list(result.current_rows))
                state = result.paging_state
            return Answer("", columns, pages)
        return self.guarded(all_pages)


class Round:
    """One table on both sides."""

    def __init__(self, sides, server, keyspace, seed):
        self.rng, self.sides, self.server, self.seed = random.Random(seed), sides, server, seed
        self.table = Table(self.rng, f"{keyspace}.t{seed}")
        self.history = self.table.ddl()
        for side in sides:
            for statement in self.history:
                try:
                    side.session.execute(statement)
                except NoHostAvailable:  # the driver has given the connection up
                    side.reconnect()
                    side.session.execute(statement)

    def restart(self):
        self.server.restart(self.rng.choice([signal.SIGTERM, signal.SIGKILL]))
        self.sides[0].reconnect()

    def step(self):
        """One statement on both sides: "agreed", "differs", "lost" where the two hold different rows now, or "failed" where Cassandra failed inside."""
        statement, bound = self.table.statement(), None
        reading = statement.startswith("SELECT")
        page = self.rng.choice([None, None, 1, 2, 3]) if reading else None
        if self.rng.random() < 0.25:
            statement, bound = self.table.values.bound(statement)
        else:
            statement = as_text(statement)
        restart = self.server and self.rng.random() < 0.02
        if restart and not page:
            self.restart()
        answers = [side.run(statement, bound, page, self.restart if restart and side is self.sides[0] else None) for side in self.sides]
        shown = statement if bound is None else f"{statement}  -- {bound}"
        if answers[1].server_error:
            return "agreed" if reading else "failed"
        if not reading and not answers[1].error:
            self.history.append(f"{shown}{self.applied(answers[1])}")
        if answers[0].same(answers[1]):
            return "agreed"
        print(f"---- seed {self.seed}, page size {page}{', restarted' if restart else ''}: {shown}")
        for side, answer in zip(self.sides, answers):
            print(f"  {side.name}:", *answer.lines(), sep="\n    ")
        if reading or answers[0].error and answers[1].error:  # the two still hold the same rows
            print("  table:", *self.history[:None if all(a.error == "" for a in answers) else 1], sep="\n    ", flush=True)
            return "differs"
        print("  after:", *self.history, sep="\n    ", flush=True)
        return "lost"

    @staticmethod
    def applied(answer):
        return f"  -- {answer.pages[0][0][0]}" if answer.pages else ""


def run_rounds(options, sides, server):
    passed = failed = 0
    for seed in range(options.seed, options.seed + options.rounds):
        this = Round(sides, server, options.keyspace, seed)
        for _ in range(options.statements):
            outcome = this.step()
            passed, failed = passed + (outcome == "agreed"), failed + (outcome in ("differs", "lost"))
            if outcome in ("lost", "failed"):
                break
        print(f"\rseed {seed}: {passed} agreed, {failed} differ ", end="", file=sys.stderr, flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tally")
    parser.add_argument("--tallyd")
    parser.add_argument("--cassandra", required=True)
    parser.add_argument("--keyspace", default="differential")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--statements", type=int, default=100)
    options = parser.parse_args()
    if bool(options.tally) == bool(options.tallyd):
        parser.error("one of --tally and --tallyd is needed")
    server = Server(options.tallyd) if options.tallyd else None
    sides = [Side("tally", options.tally or f"127.0.0.1:{server.port}"), Side("cassandra", options.cassandra)]
    for side in sides:
        side.session.execute(f"DROP KEYSPACE IF EXISTS {options.keyspace}")
        side.session.execute(f"CREATE KEYSPACE {options.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    passed, failed = run_rounds(options, sides, server)
    if server:
        server.close()
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
