"""Clients of a storm (storm.py) with rows of their own: values that are read and changed in one statement, and values that live for seconds."""
import time

from cassandra.query import SimpleStatement

from storm import Worker
from tally_server import create_table

WIDE = 120


def make_tables(session):
    create_table(session, "storm", "cells", "p int, c int, s int static, v int, l list<int>, e set<int>, m map<int, int>, PRIMARY KEY (p, c)")
    create_table(session, "storm", "expiring", "p int, c int, v int, PRIMARY KEY (p, c)")


class Row:
    def __init__(self):
        self.there, self.v, self.l, self.e, self.m = False, None, [], set(), {}

    def shown(self):
        """As a client sees its values; None: there is no row."""
        values = (self.v, self.l or None, self.e or None, self.m or None)
        return values if self.there or any(v is not None for v in values) else None


class Cells(Worker):
    """One statement after the other on a partition that no other client uses, so that each read is what a plain model holds. The times are those of servers
    and driver. After a statement with an unknown outcome it goes on with a new partition."""

    def __init__(self, *args):
        super().__init__(*args)
        self.p, self.n = self.number * 1_000_000, 0
        self.begin()

    def begin(self):
        self.p += 1
        self.static, self.rows, self.history = None, {}, []

    def step(self):
        kinds = [self.change_list, self.change_set, self.change_map, self.change_value, self.insert, self.fill, self.delete, self.condition, self.conditional_batch, self.read]
        self.rng.choices(kinds, [14, 5, 5, 6, 4, 2, 5, 10, 6, 25])[0]()

    def send(self, statement, then):
        """then: what it does to the model, of the statement's rows."""
        answer = self.try_once(statement)
        self.history.append(f"{statement} -- {answer}")
        if answer is None:
            self.begin()
        elif answer is not False:  # else it says that nothing was written
            then(answer)

    def differ(self, what):
        raise AssertionError(f"{what}\n" + "\n".join(self.history))

    # keys and values

    def c(self):
        return self.rng.randrange(WIDE) if self.rng.random() < 0.3 else self.rng.randrange(3)

    def x(self):
        self.n += 1
        return self.n

    def row(self, c):
        return self.rows.setdefault(c, Row())

    def shown(self, c):
        return self.row(c).shown()

    # writes

    def update(self, c, change, then):
        using = self.rng.choice(["", "", " USING TTL 1000000"])
        self.send(f"UPDATE storm.cells{using} SET {change} WHERE p = {self.p} AND c = {c}", then)

    def change_list(self):
        c, x, kind = self.c(), self.x(), self.rng.choice(["append", "append", "prepend", "assign", "remove", "at", "at", "delete"])
        values = self.row(c).l
        at = self.rng.randrange(len(values) or 1)
        if kind == "append":
            self.update(c, f"l = l + [{x}, {-x}]", lambda _: values.extend([x, -x]))
        elif kind == "prepend":
            self.update(c, f"l = [{x}] + l", lambda _: values.insert(0, x))
        elif kind == "assign":
            self.update(c, f"l = [{x}, {x}]", lambda _: values.__setitem__(slice(None), [x, x]))
        elif not values:
            return
        elif kind == "remove":
            gone = values[at]
            self.update(c, f"l = l - [{gone}]", lambda _: values.__setitem__(slice(None), [v for v in values if v != gone]))
        elif kind == "at":
            self.update(c, f"l[{at}] = {x}", lambda _: values.__setitem__(at, x))
        else:
            self.send(f"DELETE l[{at}] FROM storm.cells WHERE p = {self.p} AND c = {c}", lambda _: values.pop(at))

    def change_set(self):
        c, x = self.c(), self.rng.randrange(5)
        values = self.row(c).e
        if self.rng.random() < 0.6:
            self.update(c, f"e = e + {{{x}}}", lambda _: values.add(x))
        else:
            self.update(c, f"e = e - {{{x}}}", lambda _: values.discard(x))

    def change_map(self):
        c, k, x = self.c(), self.rng.randrange(5), self.x()
        values = self.row(c).m
        if self.rng.random() < 0.6:
            self.update(c, self.rng.choice([f"m[{k}] = {x}", f"m = m + {{{k}: {x}}}"]), lambda _: values.update({k: x}))
        else:
            self.update(c, f"m = m - {{{k}}}", lambda _: values.pop(k, None))

    def change_value(self):
        c, x = self.c(), self.x()
        if self.rng.random() < 0.5:
            self.update(c, f"v = {x}", lambda _: setattr(self.row(c), "v", x))
        else:
            self.send(f"UPDATE storm.cells SET s = {x} WHERE p = {self.p}", lambda _: setattr(self, "static", x))

    def put(self, c, x):
        self.row(c).there, self.row(c).v = True, x

    def insert(self):
        c, x = self.c(), self.x()
        self.send(f"INSERT INTO storm.cells (p, c, v) VALUES ({self.p}, {c}, {x})", lambda _: self.put(c, x))

    def fill(self):
        x, low = self.x(), self.rng.randrange(WIDE - 40)
        texts = [f"INSERT INTO storm.cells (p, c, v) VALUES ({self.p}, {c}, {x})" for c in range(low, low + 40)]
        self.send(f"BEGIN UNLOGGED BATCH {'; '.join(texts)}; APPLY BATCH", lambda _: [self.put(c, x) for c in range(low, low + 40)])

    def delete(self):
        c, kind = self.c(), self.rng.choice(["row", "row", "range", "range", "partition"])
        high = c + self.rng.choice([2, 30])
        where, gone = {"row": (f"p = {self.p} AND c = {c}", [c]), "range": (f"p = {self.p} AND c >= {c} AND c < {high}", range(c, high)),
                       "partition": (f"p = {self.p}", list(self.rows))}[kind]

        def remove(_):
            for c in gone:
                self.rows.pop(c, None)
            self.static = None if kind == "partition" else self.static
        self.send(f"DELETE FROM storm.cells WHERE {where}", remove)

    # conditions

    def decided(self, holds, then):
        """Compares whether it was applied with whether its condition holds."""
        def look(rows):
            if rows[0].applied != holds:
                self.differ(f"applied: {rows[0].applied}")
            if holds:
                then()
        return look

    def condition(self):
        c, x, kind = self.c(), self.x(), self.rng.choice(["insert", "delete", "exists", "value", "list", "static"])
        shown = self.shown(c)
        if kind == "insert":
            self.send(f"INSERT INTO storm.cells (p, c, v) VALUES ({self.p}, {c}, {x}) IF NOT EXISTS", self.decided(shown is None, lambda: self.put(c, x)))
        elif kind == "delete":
            self.send(f"DELETE FROM storm.cells WHERE p = {self.p} AND c = {c} IF EXISTS", self.decided(shown is not None, lambda: self.rows.pop(c)))
        else:
            held = {"exists": None, "value": self.row(c).v, "list": (self.row(c).l or [None])[0], "static": self.static}[kind]
            wanted = held if held is not None and self.rng.random() < 0.7 else -1
            condition = {"exists": "EXISTS", "value": f"v = {wanted}", "list": f"l[0] = {wanted}", "static": f"s = {wanted}"}[kind]
            holds = shown is not None if kind == "exists" else wanted == held
            then = self.decided(holds, lambda: self.row(c).l.append(x))
            self.send(f"UPDATE storm.cells SET l = l + [{x}] WHERE p = {self.p} AND c = {c} IF {condition}", then)

    def conditional_batch(self):
        """Over rows of the partition and its static row."""
        a, b, x = self.c(), self.c(), self.x()
        holds = self.rng.random() < 0.7 or self.static is None
        wanted = "null" if self.static is None else self.static if holds else -1

        def then():
            self.static = x
            self.put(a, x)
            self.row(b).l.append(x)
        self.send(f"BEGIN BATCH UPDATE storm.cells SET s = {x} WHERE p = {self.p} IF s = {wanted}; INSERT INTO storm.cells (p, c, v) VALUES ({self.p}, {a}, {x}); "
                  f"UPDATE storm.cells SET l = l + [{x}] WHERE p = {self.p} AND c = {b}; APPLY BATCH", self.decided(holds, then))

    def read(self):
        down, limit = self.rng.random() < 0.5, self.rng.choice([2, 1000])
        rows = [(c, self.static, *row.shown()) for c, row in sorted(self.rows.items(), reverse=down) if row.shown()]
        if not rows and self.static is not None:
            rows = [(None, self.static, None, None, None, None)]
        order = self.rng.choice(["", "ORDER BY c DESC"]) if down else ""
        if down and not order:
            rows.reverse()
        statement = f"SELECT c, s, v, l, e, m FROM storm.cells WHERE p = {self.p} {order} LIMIT {limit}"
        answer = self.try_once(SimpleStatement(statement, fetch_size=self.rng.choice([3, 20, 5000])))
        if answer is None:
            return
        found = [(r.c, r.s, r.v, r.l and list(r.l), r.e and set(r.e), r.m and dict(r.m)) for r in answer]
        if found != rows[:limit]:
            self.differ(f"{statement}\n got      {found}\n expected {rows[:limit]}")


class Expiring(Worker):
    """Rows of wide partitions that live for seconds, some written again over what has expired. rows has for each the times, by the machine's clock, until which
    it is there and from which on it is gone; none whose last write is unknown."""
    PARTITIONS = 2

    def __init__(self, *args):
        super().__init__(*args)
        self.first, self.rows = self.number * 1_000_000, {}

    def step(self):
        self.rng.choices([self.write, self.read], [3, 1])[0]()

    def write(self):
        p, c, ttl = self.rng.randrange(self.PARTITIONS), self.first + self.rng.randrange(200), self.rng.choice([1, 2, 3, 1000])
        self.rows.pop((p, c), None)
        begun = int(time.time())  # servers count whole seconds
        if self.try_once("INSERT INTO storm.expiring (p, c, v) VALUES (?, ?, ?) USING TTL ?", (p, c, c, ttl)) is not None:
            self.rows[p, c] = begun + ttl, int(time.time()) + ttl

    def read(self):
        p, begun = self.rng.randrange(self.PARTITIONS), int(time.time())
        answer = self.try_once("SELECT c, v FROM storm.expiring WHERE p = ? AND c >= ? AND c < ?", (p, self.first, self.first + 200), size=self.rng.choice([10, 1000]))
        if answer is None:
            return
        ended, found = time.time(), {r.c for r in answer}
        for (at, c), (until, gone_from) in self.rows.items():
            if at == p and (ended < until and c not in found or begun >= gone_from and c in found):
                raise AssertionError(f"row {c} of {p}: there until {until}, gone from {gone_from}, read from {begun} to {ended}: {'found' if c in found else 'not found'}")
