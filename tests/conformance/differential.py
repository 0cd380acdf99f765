#!/usr/bin/env python3
"""Runs the same seeded random schema and statements on Tally and on a Cassandra, and prints where their answers differ.

usage: differential.py --tally HOST:PORT --cassandra HOST:PORT [--seed N] [--rounds N] [--statements N]

Each round makes one table with random key and column types, then writes (explicit timestamps, a small key space, so that ties,
tombstones and overlaps are common) and reads it. A difference is printed with the statements that led to it; each is worth a case in
cases/. Start tallyd with --mode cassandra. Ends with "N passed, N failed" (statements); exits non-zero when one failed.
"""
import argparse
import random
import sys

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy
from cassandra.protocol import SyntaxException
from cassandra.query import tuple_factory

KEYSPACE = "differential"
SERVER_ERROR = "server error"

# A few literals of each type, in no order; the key space stays small on purpose.
LITERALS = {
    "int": ["-2147483648", "-1", "0", "7", "2147483647"],
    "bigint": ["-9223372036854775808", "-5", "0", "300", "9223372036854775807"],
    "smallint": ["-32768", "-2", "0", "9"],
    "tinyint": ["-128", "-3", "0", "127"],
    "text": ["''", "'a'", "'ab'", "'b'", "'é'", "'zz'"],
    "ascii": ["'A'", "'a'", "'aa'", "'~'"],
    "blob": ["0x", "0x00", "0x0001", "0xff", "0xff00"],
    "boolean": ["true", "false"],
    "double": ["-1.5", "0.0", "-0.0", "1e300", "NaN", "-Infinity"],
    "float": ["-2.5", "0.0", "3.25", "Infinity"],
    "decimal": ["-1.50", "0", "10", "0.001", "123456789012345678901234567890.5"],
    "varint": ["-129", "-128", "0", "127", "128", "99999999999999999999"],
    "timestamp": ["'1969-12-31T23:59:59.999Z'", "0", "'2026-11-21'", "1700000000000"],
    "date": ["'1969-12-31'", "'1970-01-01'", "'2026-11-21'"],
    "time": ["'00:00:00'", "'12:30:00.123456789'", "'23:59:59.999999999'"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "8e14e760-7fa8-11eb-bc66-000000000001", "f47ac10b-58cc-4372-a567-0e02b2c3d479"],
    "timeuuid": ["8e14e760-7fa8-11eb-bc66-000000000001", "8e14e760-7fa8-11eb-bc66-ff0000000001", "13814000-1dd2-11b2-8080-808080808080"],
    "inet": ["'127.0.0.1'", "'10.0.0.1'", "'::1'", "'2001:db8::1'"],
}
KEY_TYPES = [t for t in LITERALS if t != "duration"]


def literal(rng, type_):
    if type_.startswith("frozen<"):
        return literal(rng, type_[7:-1])
    if type_.startswith(("list<", "set<")):
        inner = type_[type_.index("<") + 1:-1]
        items = sorted({literal(rng, inner) for _ in range(rng.randrange(4))}) if type_[0] == "s" else [literal(rng, inner) for _ in range(rng.randrange(4))]
        return ("[%s]" if type_[0] == "l" else "{%s}") % ", ".join(items)
    if type_.startswith("map<"):
        key, value = type_[4:-1].split(", ", 1)
        keys = sorted({literal(rng, key) for _ in range(rng.randrange(4))})
        return "{%s}" % ", ".join(f"{k}: {literal(rng, value)}" for k in keys)
    return rng.choice(LITERALS[type_])


class Table:
    """A random table and the statements that can be made for it."""

    def __init__(self, rng, name):
        self.rng, self.name = rng, f"{KEYSPACE}.{name}"
        self.pk = [(f"p{i}", rng.choice(KEY_TYPES)) for i in range(rng.choice([1, 1, 2]))]
        keys = KEY_TYPES + ["frozen<list<int>>", "frozen<set<text>>", "frozen<map<int, text>>"]
        self.ck = [(f"c{i}", rng.choice(keys)) for i in range(rng.choice([0, 1, 1, 2, 3]))]
        self.desc = [rng.random() < 0.4 for _ in self.ck]
        simple = list(LITERALS)
        kinds = simple + ["list<int>", "set<text>", "map<text, int>", "frozen<list<text>>", "frozen<map<int, text>>"]
        self.regular = [(f"r{i}", rng.choice(kinds)) for i in range(rng.randrange(4))]
        self.static = [(f"s{i}", rng.choice(kinds)) for i in range(rng.randrange(3))] if self.ck else []
        self.partitions = [tuple(literal(rng, t) for _, t in self.pk) for _ in range(3)]
        if any(k == "''" or k == "0x" for p in self.partitions for k in p):
            self.partitions = [tuple("'k'" if k == "''" else "0x01" if k == "0x" else k for k in p) for p in self.partitions]
        self.clusterings = [tuple(literal(rng, t) for _, t in self.ck) for _ in range(4)]

    def ddl(self):
        columns = [f"{n} {t}" for n, t in self.pk + self.ck + self.regular] + [f"{n} {t} static" for n, t in self.static]
        key = f"({', '.join(n for n, _ in self.pk)})" + "".join(f", {n}" for n, _ in self.ck)
        order = ", ".join(f"{n} {'DESC' if d else 'ASC'}" for (n, _), d in zip(self.ck, self.desc))
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))" + (f" WITH CLUSTERING ORDER BY ({order})" if order else "")

    def timestamp(self):
        return self.rng.randrange(1, 12)

    def equals(self, columns, values):
        return [f"{n} = {v}" for (n, _), v in zip(columns, values)]

    def some(self, columns):
        return [c for c in columns if self.rng.random() < 0.6]

    def value(self, type_):
        return "null" if self.rng.random() < 0.15 else literal(self.rng, type_)

    def insert(self):
        p, c = self.rng.choice(self.partitions), self.rng.choice(self.clusterings)
        with_row = not self.static or self.rng.random() < 0.8
        names = list(zip([n for n, _ in self.pk], p)) + (list(zip([n for n, _ in self.ck], c)) if with_row else [])
        columns = (self.some(self.regular) if with_row else []) + self.some(self.static)
        if not with_row and not columns:
            columns = self.static[:1]
        names += [(n, self.value(t)) for n, t in columns]
        using = f" USING TIMESTAMP {self.timestamp()}" + (" AND TTL 100000" if self.rng.random() < 0.1 else "")
        return f"INSERT INTO {self.name} ({', '.join(n for n, _ in names)}) VALUES ({', '.join(v for _, v in names)}){using}"

    def assignment(self, name, type_):
        if type_.startswith("set<") and self.rng.random() < 0.5:
            return f"{name} = {name} {self.rng.choice('+-')} {literal(self.rng, type_)}"
        if type_.startswith("map<") and self.rng.random() < 0.5:
            return f"{name}[{literal(self.rng, type_[4:-1].split(', ')[0])}] = {self.value(type_[4:-1].split(', ')[1])}"
        return f"{name} = {self.value(type_)}"

    def update(self):
        statics_only = self.static and (not self.regular or self.rng.random() < 0.2)
        columns = self.static if statics_only else self.regular
        if not columns:
            return self.insert()
        chosen = self.some(columns) or columns[:1]
        where = self.equals(self.pk, self.rng.choice(self.partitions)) + ([] if statics_only else self.equals(self.ck, self.rng.choice(self.clusterings)))
        sets = ", ".join(self.assignment(n, t) for n, t in chosen)
        return f"UPDATE {self.name} USING TIMESTAMP {self.timestamp()} SET {sets} WHERE {' AND '.join(where)}"

    def slice(self):
        """Relations on a prefix of the clustering columns, the last maybe a range."""
        if not self.ck:
            return []
        depth = self.rng.randrange(len(self.ck) + 1)
        relations = self.equals(self.ck[:depth], self.rng.choice(self.clusterings))
        if depth < len(self.ck) and self.rng.random() < 0.6:
            name = self.ck[depth][0]
            low, high = self.rng.choice(self.clusterings)[depth], self.rng.choice(self.clusterings)[depth]
            relations += self.rng.choice([[f"{name} > {low}"], [f"{name} <= {high}"], [f"{name} >= {low}", f"{name} < {high}"]])
        return relations

    def delete(self):
        what = ""
        where = self.equals(self.pk, self.rng.choice(self.partitions))
        if self.rng.random() < 0.3 and (self.regular or self.static):
            statics = self.static and (not self.regular or self.rng.random() < 0.4)
            what = self.rng.choice(self.static if statics else self.regular)[0] + " "
            where += [] if statics else self.equals(self.ck, self.rng.choice(self.clusterings))
        else:
            where += self.slice()
        return f"DELETE {what}FROM {self.name} USING TIMESTAMP {self.timestamp()} WHERE {' AND '.join(where)}"

    def select(self):
        r = self.rng.random()
        columns = "*"
        cells = [n for n, t in self.regular + self.static if not t.startswith(("list<", "set<", "map<"))]
        if cells and self.rng.random() < 0.3:
            n = self.rng.choice(cells)
            columns = f"{n}, WRITETIME({n})"
        if r < 0.3:
            distinct = self.static and self.rng.random() < 0.2
            columns = "DISTINCT " + ", ".join(n for n, _ in self.pk + self.static) if distinct else columns
            return f"SELECT {columns} FROM {self.name}" + (f" LIMIT {self.rng.randrange(1, 6)}" if self.rng.random() < 0.3 else "")
        where = self.equals(self.pk, self.rng.choice(self.partitions)) + self.slice()
        order = ""
        if self.ck and self.rng.random() < 0.4:
            flip = self.rng.random() < 0.5
            order = " ORDER BY " + ", ".join(f"{n} {'DESC' if d != flip else 'ASC'}" for (n, _), d in zip(self.ck, self.desc))
        limit = f" LIMIT {self.rng.randrange(1, 6)}" if self.rng.random() < 0.3 else ""
        return f"SELECT {columns} FROM {self.name} WHERE {' AND '.join(where)}{order}{limit}"

    def statement(self):
        return self.rng.choices([self.insert, self.update, self.delete, self.select], [35, 20, 15, 30])[0]()


class Side:
    def __init__(self, name, address):
        host, port = address.rsplit(":", 1)
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), consistency_level=ConsistencyLevel.LOCAL_QUORUM,
                                   row_factory=tuple_factory, request_timeout=30)
        self.name = name
        self.cluster = Cluster([host], port=int(port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, schema_metadata_enabled=False)
        self.session = self.cluster.connect()
        self.session.default_fetch_size = None

    def run(self, statement, page):
        """What the statement answers, as text: rows in order, or the error's text."""
        self.session.default_fetch_size = page
        try:
            return [repr(tuple(row)) for row in self.session.execute(statement)]
        except (InvalidRequest, SyntaxException) as e:
            return [f"error: {e}"]
        except NoHostAvailable as e:  # the server failed inside: Cassandra's defects are not ours to copy
            return [f"{SERVER_ERROR}: {e}"]


def round_of(sides, seed, count):
    """One table; the number of statements that agreed, and of those that did not."""
    rng = random.Random(seed)
    table = Table(rng, f"t{seed}")
    history, agreed = [table.ddl()], 0
    for side in sides:
        side.session.execute(table.ddl())
    for _ in range(count):
        statement = table.statement()
        page = rng.choice([None, None, 1, 2, 3]) if statement.startswith("SELECT") else None
        answers = [side.run(statement, page) for side in sides]
        history.append(statement)
        if answers[0] != answers[1] and not (answers[1] and answers[1][0].startswith(SERVER_ERROR)):
            print(f"---- seed {seed}, page size {page}: {statement}")
            for side, answer in zip(sides, answers):
                print(f"  {side.name}:", *answer[:20], sep="\n    ")
            print("  after:", *[h for h in history[:-1] if not h.startswith("SELECT")], sep="\n    ")
            return agreed, 1
        agreed += 1
    return agreed, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tally", required=True)
    parser.add_argument("--cassandra", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--statements", type=int, default=60)
    options = parser.parse_args()
    sides = [Side("tally", options.tally), Side("cassandra", options.cassandra)]
    for side in sides:
        side.session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        side.session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    passed = failed = 0
    for seed in range(options.seed, options.seed + options.rounds):
        good, bad = round_of(sides, seed, options.statements)
        passed, failed = passed + good, failed + bad
        print(f"\rseed {seed}: {passed} agreed, {failed} differ ", end="", file=sys.stderr, flush=True)
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
