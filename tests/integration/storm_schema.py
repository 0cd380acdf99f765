"""Clients of a storm (storm.py) that use a table while another one empties it: by TRUNCATE, by DROP and CREATE of the same name, or a column of it by ALTER."""
import itertools
import threading

from cassandra import AlreadyExists, InvalidRequest
from cassandra.protocol import ProtocolException

from storm import UNKNOWN, Worker, now
from tally_server import eventually, let_pass

DEFINITION = "p int, c int, v int, x int, PRIMARY KEY (p, c)"
PARTITIONS = 5
EFFECTS = 30  # acknowledged ones, of all clients, between two changes of a table
ROWS = 200  # that a client remembers


class Emptying:
    """A table or column is emptied. What was acknowledged before begun is gone from answered on. What was sent after answered stays, and each server that knows the
    change shows it: all do from known on."""

    def __init__(self):
        self.begun, self.answered, self.known = now(), float("inf"), float("inf")


class Table:
    """A table under a name, in all its lives, until a change of it has an unknown outcome: such a change may take place later."""

    def __init__(self, name):
        self.name, self.emptied, self.lock = name, [], threading.Lock()

    def empty(self):
        with self.lock:
            self.emptied.append(Emptying())
        return self.emptied[-1]

    def must_be_gone(self, written, read):
        return any(e.begun > written[1] and e.answered < read[0] for e in list(self.emptied))

    def may_be_gone(self, written, read):
        return any(e.begun < read[1] and (e.answered > written[0] or e.known > read[0]) for e in list(self.emptied))


class Changer(Worker):
    """Empties a table again and again. Each of its classes has a way of its own."""
    numbers = itertools.count()

    def __init__(self, *args):
        super().__init__(*args)
        self.kind, self.changes = type(self).__name__.lower(), 0
        self.table = self.new_table()

    def new_table(self):
        while not self.work.stop.is_set():
            name = f"storm.{self.kind}{next(self.numbers)}"
            if self.create(name) and self.work.await_active(name) and self.known(name):
                break
        return Table(name)

    def create(self, name):
        """Whether it was made. A server to which the name is not free yet is asked again."""
        while not self.work.stop.is_set():
            try:
                return self.try_once(f"CREATE TABLE {name} ({DEFINITION})") is not None
            except AlreadyExists:
                let_pass(0.01)
            except InvalidRequest as e:
                if "is DELETING: wait until it is gone" not in str(e):
                    raise
                let_pass(0.01)
        return False

    def step(self):
        goal = self.work.done() + EFFECTS
        eventually(lambda: self.work.stop.is_set() or self.work.done() >= goal)
        table = self.table
        emptied = table.empty()
        changed = self.change(table.name) and self.work.await_active(table.name)
        if changed:
            emptied.answered = now()
        if changed and self.known(table.name):
            emptied.known = now()
            self.changes += 1
        elif not self.work.stop.is_set():
            self.table = self.new_table()
            self.retry(f"DROP TABLE IF EXISTS {table.name}")

    def retry(self, statement):
        """The server that answered it; None: the end has come first."""
        while not self.work.stop.is_set():
            front = self.work.front(self.rng)
            try:
                if self.try_once(statement, front=front) is not None:
                    return front
            except InvalidRequest:  # it does not know the newest schema
                let_pass(0.01)
        return None

    def known(self, name):
        """Waits until each server shows a row that was written after the change."""
        mark = next(self.numbers)
        if not self.retry(f"INSERT INTO {name} (p, c, x) VALUES (-1, {mark}, {mark})"):
            return False
        return self.work.everywhere(lambda f: f.attempt(f"SELECT x FROM {name} WHERE p = -1 AND c = {mark}"), lambda: f"{name} is not known everywhere")


class Truncated(Changer):
    def change(self, name):
        return self.try_once(f"TRUNCATE {name}") is not None


class Dropped(Changer):
    """A role may read the table, and each new one of the name again: what servers take away when they hear of a drop is the right on the old one."""

    def __init__(self, *args):
        self.role = f"reader{next(self.numbers)}"
        self.granted = None
        super().__init__(*args)

    def change(self, name):
        if self.granted == name and self.may_read(self.work.front(self.rng), name) is False:
            raise AssertionError(f"{self.role} may not read {name} any more")
        changed = self.try_once(f"DROP TABLE {name}") is not None and self.create(name)
        if self.work.leaves_out("roles"):
            return changed
        self.granted = name if changed and self.grant(name) else None
        return changed

    def grant(self, name):
        """True: it was acknowledged, and each server knows of it."""
        made, granted = self.retry(f"CREATE ROLE IF NOT EXISTS {self.role}"), self.retry(f"GRANT SELECT ON {name} TO {self.role}")
        return made and granted and self.work.everywhere(lambda f: self.may_read(f, name), f"{self.role} may not read {name}")

    def may_read(self, front, name):
        """None: unknown."""
        answer = front.attempt(f"LIST ALL PERMISSIONS OF {self.role}")
        return None if answer is None else any(r.resource == f"<table {name}>" for r in answer)


class Altered(Changer):
    """Its other columns keep their values."""

    def change(self, name):
        return self.try_once(f"ALTER TABLE {name} DROP x") is not None and self.work.await_active(name) and self.retry_add(name) and self.shown_alike(name)

    def retry_add(self, name):
        while not self.work.stop.is_set():
            try:
                return self.try_once(f"ALTER TABLE {name} ADD x int") is not None
            except InvalidRequest:  # the server has not heard that the column is gone
                let_pass(0.01)
        return False

    def shown_alike(self, name):
        """Servers may show the old column until they know the new one."""
        table = name.split(".")[1]
        query = f"SELECT dropped_time FROM system_schema.dropped_columns WHERE keyspace_name = 'storm' AND table_name = '{table}'"
        columns = f"SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'storm' AND table_name = '{table}' AND column_name = 'x'"

        def times():
            answers = [f.attempt(query) for f in self.work.fronts]
            return all(answers) and all(f.attempt(columns) for f in self.work.fronts) and len({a[0].dropped_time for a in answers}) == 1
        eventually(lambda: self.work.stop.is_set() or times(), f"the servers differ about {name}")
        return not self.work.stop.is_set()


class User(Worker):
    """Writes rows of its own to the changer's table and reads them. rows has what it wrote, with the times when it was sent and acknowledged."""

    def __init__(self, work, number, seed, changer):
        super().__init__(work, number, seed)
        self.changer, self.n, self.table, self.rows, self.seen, self.missed = changer, number * 1_000_000, None, {}, 0, 0

    def step(self):
        if self.table is not self.changer.table:
            self.table, self.rows = self.changer.table, {}
        try:
            self.write() if self.rng.random() < 0.6 or not self.rows else self.read()
        except InvalidRequest:  # to this server there is no such table or column
            let_pass(0.01)
        except ProtocolException as e:  # a page behind one of the table that was dropped
            if not isinstance(self.changer, Dropped) or "paging state" not in str(e):
                raise

    def write(self):
        self.n += 1
        values, sent, into = (self.n % PARTITIONS, self.n, self.n, self.n), now(), f"INSERT INTO {self.table.name} (p, c, v, x) VALUES"
        prepared = self.rng.random() < 0.5
        if self.try_once(f"{into} (?, ?, ?, ?)" if prepared else f"{into} {values}", values if prepared else None) is not None:
            self.rows[self.n] = sent, now()
        if len(self.rows) > ROWS:
            del self.rows[min(self.rows)]

    def read(self):
        """One row, or all of a partition."""
        row, asked = self.rng.choice(list(self.rows)), now()
        where = f"p = {row % PARTITIONS}" + (f" AND c = {row}" if self.rng.random() < 0.5 else "")
        answer = self.try_once(f"SELECT c, v, x FROM {self.table.name} WHERE {where}", size=self.rng.choice([20, 5000]))
        if answer is not None:
            for n in [row] if "c =" in where else [n for n in self.rows if n % PARTITIONS == row % PARTITIONS]:
                self.look(n, {r.c: r for r in answer}.get(n), (asked, now()))

    def look(self, row, found, read):
        written = self.rows[row]
        is_there = found is not None if not isinstance(self.changer, Altered) else found is not None and found.x is not None
        if isinstance(self.changer, Altered) and (found is None or found.v != row):
            raise AssertionError(f"{self.table.name}: row {row}, written {written}, read {read}: {found}")
        if is_there and self.table.must_be_gone(written, read):
            raise AssertionError(f"{self.table.name}: row {row}, written {written}, read {read}, is not gone: {self.spans()}")
        if not is_there and not self.table.may_be_gone(written, read):
            raise AssertionError(f"{self.table.name}: row {row}, written {written}, read {read}, is lost: {self.spans()}")
        self.seen, self.missed = self.seen + is_there, self.missed + (not is_there)

    def spans(self):
        return [(e.begun, e.answered, e.known) for e in self.table.emptied]


class Keyspaces(Worker):
    """Makes keyspaces with a type and a table, writes to the table, changes the type, and drops all of it, object by object or the keyspace alone."""

    def __init__(self, *args):
        super().__init__(*args)
        self.n = 0

    def do(self, statement, done=()):
        """Until it is acknowledged, or one of the refusals says that an earlier attempt was applied. Each other refusal is that of a server which does not know the
        newest schema yet."""
        refused = []

        def is_done():
            try:
                return self.work.stop.is_set() or self.try_once(statement) is not None
            except AlreadyExists:
                return True
            except InvalidRequest as e:
                refused.append(str(e))
                return any(words in str(e) for words in done)
        eventually(is_done, lambda: f"{statement}: {refused[-1:]}; the servers show {self.shown()}")

    def drop_table(self, statement, gone):
        """Until no server shows it: one that has not heard of the table yet says that it is gone, too."""
        def is_gone():
            self.do(statement, gone)
            return self.work.stop.is_set() or all(rows == [] for rows in self.shown())
        eventually(is_gone, lambda: f"{statement}: the servers show {self.shown()}")

    def shown(self):
        """The statuses of its tables at each server."""
        query = f"SELECT table_name, status FROM system_schema_mcs.tables WHERE keyspace_name = 'storm{self.number}_{self.n}'"
        return [rows and [tuple(r) for r in rows] for rows in (f.attempt(query) for f in self.work.fronts)]

    def step(self):
        self.n += 1
        k, gone = f"storm{self.number}_{self.n}", ["doesn't exist", "does not exist", "unconfigured"]
        self.do(f"CREATE KEYSPACE {k} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        self.do(f"CREATE TYPE {k}.u (a int)", ["already exists"])
        self.do(f"CREATE TABLE {k}.t (p int PRIMARY KEY, u frozen<u>)")
        self.do(f"INSERT INTO {k}.t (p, u) VALUES (1, {{a: 1}})")
        self.do(f"ALTER TYPE {k}.u ADD b int", ["already exists", "conflicts"])
        self.do(f"INSERT INTO {k}.t (p, u) VALUES (2, {{a: 1, b: 2}})")
        self.read(f"SELECT p, u FROM {k}.t")
        if self.rng.random() < 0.5:
            self.drop_table(f"DROP TABLE {k}.t", gone)
            self.do(f"DROP TYPE {k}.u", gone)
        self.do(f"DROP KEYSPACE {k}", gone)

    def read(self, statement):
        try:
            answer = self.try_once(statement)
        except InvalidRequest:
            return
        found = [(r.p, *r.u) for r in sorted(answer or [])]
        if answer is not None and not self.work.stop.is_set() and found not in ([(1, 1, None), (2, 1, 2)], [(1, 1), (2, 1)]):  # as the server knows the type; at the end something may be left out
            raise AssertionError(f"{statement}: {answer}")
