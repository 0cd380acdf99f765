"""Clients of a storm (storm.py) that share tables: conditions for Porcupine, plain rows, logged batches, counters, and the model of CQL over all servers."""
import itertools
import time

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.query import BatchStatement, SimpleStatement

import test_model
from storm import UNKNOWN, Worker, read_all
from tally_server import create_table, eventually, let_pass

PARTITIONS, BATCH_PARTITIONS, COUNTERS = 40, 4, 3


def make_tables(session):
    create_table(session, "storm", "lin", "k text PRIMARY KEY, v text")
    create_table(session, "storm", "rows", "p int, c int, v text, PRIMARY KEY (p, c)")
    create_table(session, "storm", "batches", "p int, id int, PRIMARY KEY (p, id)")
    create_table(session, "storm", "counts", "p int PRIMARY KEY, n counter")


class Conditions(Worker):
    """Conditional statements and serial reads, for Porcupine. Every failure brings new keys, so that few statements of a key have an unknown outcome."""
    numbers = itertools.count()

    def __init__(self, *args):
        super().__init__(*args)
        self.seen, self.n, self.client = {}, 0, next(self.numbers)

    def step(self):
        key, kind = f"{self.rng.choice('ab')}{self.work.epoch}", self.rng.choice(["read", "cas", "cas", "cas", "insert", "delete"])
        self.n += 1
        to, seen = f"{self.number}.{self.n}", self.seen.get(key) or "nothing"
        statement, values = {"read": (f"SELECT v FROM storm.lin WHERE k = '{key}'", {}),
                             "insert": (f"INSERT INTO storm.lin (k, v) VALUES ('{key}', '{to}') IF NOT EXISTS", {"to": to}),
                             "delete": (f"DELETE FROM storm.lin WHERE k = '{key}' IF EXISTS", {}),
                             "cas": (f"UPDATE storm.lin SET v = '{to}' WHERE k = '{key}' IF v = '{seen}'", {"from": seen, "to": to})}[kind]
        call = time.monotonic_ns()
        rows = self.try_once(SimpleStatement(statement, consistency_level=ConsistencyLevel.SERIAL) if kind == "read" else statement)
        if rows is None:
            if kind != "read":
                self.work.history.record(self.client, key, kind, call, None, **values)
            self.client = next(self.numbers)
        elif rows:
            value, applied = getattr(rows[0], "v", None), kind == "read" or rows[0].applied
            self.work.history.record(self.client, key, kind, call, (applied, value), **values)
            self.seen[key] = values.get("to") if applied and kind != "read" else value
        elif kind == "read" and rows is not False:
            self.work.history.record(self.client, key, kind, call, (True, None), **values)
            self.seen[key] = None


class Writes(Worker):
    """Inserts rows and deletes some, one by one and in ranges, under timestamps of its own. rows has the value of each, None if it was deleted, and not those
    whose last write is unknown. A quarter is in one wide partition, which it reads by pages, in either order, while rows are moved."""

    def __init__(self, *args):
        super().__init__(*args)
        self.first = self.n = self.number * 1_000_000
        self.rows, self.tried = {}, set()

    def partition(self, row):
        return 0 if row % 4 == 0 else row % PARTITIONS

    def step(self):
        action = self.rng.random()
        if action < 0.15 and self.rows:
            self.read(self.rng.choice(list(self.rows)))
        elif action < 0.22:
            self.read_wide()
        elif action < 0.3 and self.rows:
            row = self.rng.choice(list(self.rows))
            self.write("DELETE FROM storm.rows USING TIMESTAMP 2 WHERE p = ? AND c = ?", [row], (self.partition(row), row), None)
        elif action < 0.32:
            low = self.first + self.rng.randrange(self.n - self.first + 1)
            high = low + self.rng.randrange(1, 40)
            inside = [row for row in range(low, min(high, self.n + 1)) if row in self.tried and self.partition(row) == 0]
            self.n = max(self.n, high)  # no later row is in it
            self.write("DELETE FROM storm.rows USING TIMESTAMP 2 WHERE p = 0 AND c >= ? AND c < ?", inside, (low, high), None)
        else:
            self.n += 1
            value = f"{self.n} " + "x" * self.rng.randrange(200)
            self.tried.add(self.n)
            self.write("INSERT INTO storm.rows (p, c, v) VALUES (?, ?, ?) USING TIMESTAMP 1", [self.n], (self.partition(self.n), self.n, value), value)

    def write(self, statement, rows, values, value):
        for row in rows:
            self.rows.pop(row, None)
        answer = self.try_once(statement, values)
        if answer is False:
            raise AssertionError("a write without a condition met a conflict")
        if answer is not None:
            self.rows.update((row, value) for row in rows)

    def read(self, row):
        answer = self.try_once("SELECT v FROM storm.rows WHERE p = ? AND c = ?", (self.partition(row), row))
        if answer is not None and [r.v for r in answer] != [v for v in [self.rows[row]] if v is not None]:
            raise AssertionError(f"row {row}: acknowledged {self.rows[row]}, read {answer}")

    def read_wide(self):
        """Its own rows of the wide partition, which nobody changes meanwhile, from some row on."""
        low, limit, down = self.rng.randrange(self.first, self.n + 1), self.rng.choice([3, 50, 10_000]), self.rng.random() < 0.5
        answer = self.try_once(f"SELECT c, v FROM storm.rows WHERE p = 0 AND c >= ? AND c < ? ORDER BY c {'DESC' if down else 'ASC'} LIMIT {limit}",
                               (low, self.first + 1_000_000), size=self.rng.choice([2, 7, 100]))
        if answer is None:
            return
        shown, whole = [r.c for r in answer], len(answer) < limit
        if shown != sorted(set(shown), reverse=down) or not self.tried.issuperset(shown):
            raise AssertionError(f"the wide partition from {low} on, {'down' if down else 'up'}: {shown}")
        reached = range(low, self.n + 1) if whole else range(shown[-1], self.n + 1) if down else range(low, shown[-1] + 1)
        expected = {row: self.rows[row] for row in reached if row % 4 == 0 and self.rows.get(row) is not None}
        found = {r.c: r.v for r in answer if r.c in self.rows}
        if found != expected:
            differ = sorted(row for row in found.keys() | expected.keys() if found.get(row) != expected.get(row))
            raise AssertionError(f"the wide partition from {low} on, {'down' if down else 'up'}, limit {limit}: {differ} of {len(expected)} rows differ")


class Batches(Worker):
    """Logged batches over partitions."""

    def __init__(self, *args):
        super().__init__(*args)
        self.n, self.whole = self.number * 1_000_000, set()

    def step(self):
        self.n += 1
        batch = BatchStatement()
        for p in range(BATCH_PARTITIONS):
            batch.add(SimpleStatement(f"INSERT INTO storm.batches (p, id) VALUES ({p}, {self.n})"))
        if self.try_once(batch) is not None:
            self.whole.add(self.n)


class Counts(Worker):
    """Adds to counters, to one or in a batch to all: each ends between what was acknowledged and that with what is unknown."""

    def __init__(self, *args):
        super().__init__(*args)
        self.least, self.most = [0] * COUNTERS, [0] * COUNTERS

    def step(self):
        by = self.rng.randrange(1, 5)
        some = [self.rng.randrange(COUNTERS)] if self.rng.random() < 0.8 else range(COUNTERS)
        texts = [f"UPDATE storm.counts SET n = n + {by} WHERE p = {c}" for c in some]
        answer = self.try_once(texts[0] if len(texts) == 1 else f"BEGIN COUNTER BATCH {'; '.join(texts)}; APPLY BATCH")
        for c in some:
            self.least[c] += by if answer not in (None, False) else 0
            self.most[c] += by if answer is not False else 0


class OfAllServers(test_model.Run):
    """The model's statements, each sent to any server until it is acknowledged: their timestamps make that the same as once. No time passes, and conditions
    and counts, which may not be sent twice, are the other clients'. Some partitions are wide, and what lives for a time lives longer than the test."""
    DISTURBANCES = ["alter"]
    SIZES = [None, 7, 50]
    LIFE = 10 ** 6  # seconds
    WIDE = 150

    def __init__(self, work, seed):
        self.work = work
        super().__init__(None, seed)
        self.times = self.rng.sample(range(1, 10 ** 9), 10 ** 5)  # a long run needs many

    def connect(self):
        self.session = self.work.fronts[0].session

    def clock(self, seconds):
        pass

    def ttl(self):
        return self.rng.choice([0, 0, self.LIFE])

    def c(self):
        return self.rng.randrange(self.WIDE if self.rng.random() < 0.3 else 6)

    def fill(self):
        """Many rows of a partition at once."""
        ts, p, low = self.times.pop(), self.p(), self.rng.randrange(self.WIDE - 40)
        inserts = [(c, self.some({"a": "plain", "b": "plain"})) for c in range(low, low + 40)]
        texts = [f"INSERT INTO {self.name} ({', '.join(['p', 'c', *v])}) VALUES ({', '.join([str(p), str(c), *map(test_model.literal, v.values())])})" for c, v in inserts]
        self.execute(f"BEGIN UNLOGGED BATCH USING TIMESTAMP {ts} {'; '.join(texts)}; APPLY BATCH")
        for c, values in inserts:
            self.model.insert(ts, p, c, values, {})

    def clear(self):
        """Many rows of a partition at once, too."""
        ts, p, low = self.times.pop(), self.p(), self.c()
        self.execute(f"DELETE FROM {self.name} USING TIMESTAMP {ts} WHERE p = {p} AND c >= {low} AND c < {low + 60}")
        self.model.delete_range(ts, p, low, low + 60)

    def execute(self, statement, size=None, bound=None):
        self.history.append(statement)
        while True:
            front = self.work.front(self.rng)
            try:
                query = SimpleStatement(statement) if bound is None else front.prepare(statement).bind(bound)
                query.fetch_size = size
                rows = list(front.session.execute(query))
                next(self.work.acknowledged)
                return [(*r[:-1], r[-1] and self.LIFE) for r in rows] if "TTL(" in statement else rows
            except InvalidRequest as e:
                if not statement.startswith("ALTER"):
                    raise
                if "already exists" in str(e) or "conflicts with an existing column" in str(e):
                    return []
                if "wait until it is ACTIVE" not in str(e):
                    raise
                let_pass(0.01)
            except UNKNOWN:
                next(self.work.unknown)
                let_pass(0.01)

    def read_by_page(self):
        self.read_rows()

    def read(self):
        """Mostly of one partition: a read of all of them takes as long as several."""
        if self.rng.random() < 0.2:
            super().read()
        else:
            self.rng.choice([self.read_elements, self.read_json, self.read_prepared, self.read_partition, self.read_partition])()

    def read_partition(self):
        self.read_rows(self.OF_ONE_PARTITION)

    def step(self):
        kinds = [self.insert, self.insert_json, self.update, self.delete, self.batch, self.fill, self.clear, self.read, self.disturb]
        self.rng.choices(kinds, [14, 3, 14, 10, 3, 4, 2, 45, 1])[0]()


class Model(Worker):
    def __init__(self, *args):
        super().__init__(*args)
        self.model = OfAllServers(self.work, self.seed * 100 + self.number)

    def step(self):
        try:
            self.model.step()
        except test_model.Difference as e:
            raise AssertionError(f"{e}\n" + "\n".join(h for h in self.model.history if not h.startswith("SELECT"))) from None


def verify(front, writes, batches, counts):
    found = {r.c: r.v for r in read_all(front, "SELECT c, v FROM storm.rows")}
    expected = {row: value for w in writes for row, value in w.rows.items()}
    lost = [row for row, value in expected.items() if found.get(row) != value]
    assert not lost, f"{len(lost)} of {len(expected)} acknowledged writes are lost: {lost[:10]}"
    assert found.keys() <= set().union(*(w.tried for w in writes)), "rows that nobody wrote"

    def torn():
        parts = {}
        for row in read_all(front, "SELECT id FROM storm.batches"):
            parts[row.id] = parts.get(row.id, 0) + 1
        missing = set().union(*(b.whole for b in batches)) - parts.keys()
        assert not missing, f"acknowledged batches are lost: {missing}"
        return {n: count for n, count in parts.items() if count != BATCH_PARTITIONS}
    eventually(lambda: not torn(), lambda: f"batches that are neither there nor gone: {torn()}")  # a server applies what a dead one has left
    totals = {r.p: r.n for r in read_all(front, "SELECT p, n FROM storm.counts")}
    for c in range(COUNTERS):
        least, most = sum(w.least[c] for w in counts), sum(w.most[c] for w in counts)
        assert least <= totals.get(c, 0) <= most, f"counter {c}: {totals.get(c, 0)}, acknowledged {least}, at most {most}"
