"""Random statements, and what each costs by a model of its own: rows as dictionaries, sizes by the words of docs/metering.md.

Both figures of a write (by the row, by what is written) and its units, charges of reads, and at the end the table's billable size are compared, under
both size models and both write sizes, on a plain table, one with TTL and one with client-side timestamps, in one, two and three Regions. Capacities, default times to
live and Regions change in between, and a plain table gets TTL or timestamps. Values are literals, bound to markers or JSON. What is unset (a marker, or a column that JSON ... DEFAULT UNSET leaves out) is not written: it counts neither as null nor as a write of static data.
"""
import json
import random
import re

import pytest
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement

from tally_server import Server, await_active
from test_metering import charge, pages

COLUMNS = "pk int, ck int, a blob, b int, l list<int>, m map<int, blob>, s blob static, u int static, PRIMARY KEY (pk, ck)"
REGULAR, STATIC = ("a", "b", "l", "m"), ("s", "u")
KINDS = {"plain": "", "ttl": " WITH CUSTOM_PROPERTIES = {'ttl': {'status': 'enabled'}}",
         "stamped": " WITH CUSTOM_PROPERTIES = {'client_side_timestamps': {'status': 'enabled'}}"}
REGIONS = ["us-east-1", "eu-west-1", "ap-northeast-1"]
LONG = 1000000
MOST = 10 ** 6  # of places: n is that before the row of clustering key n, which is that behind the one of n - 1


def number(n, model):
    digits = str(abs(n)).rstrip("0") or "0"
    return 4 if model == "documented-2022" else (len(digits) + 1) // 2 + 1


def value_size(column, v, model):
    """Of a value, without its column's id; elements are (value, ttl) or key: (value, ttl)."""
    current = model == "current"
    if v is None:
        return 1 if current else 0
    if column == "l":
        return 3 * current + sum(number(x, model) + current for x, _ in v)
    if column == "m":
        return 3 * current + sum(number(k, model) + len(x) + current for k, (x, _) in v.items())
    return number(v[0], model) if column in ("b", "u") else len(v[0])


def cells(column, v):
    """The times to live of the cells that a value is."""
    if v is None:
        return []
    return [t for _, t in (v if column == "l" else v.values())] if column in ("l", "m") else [v[1]]


class Model:
    def __init__(self, model, kind, regions=1):
        self.model, self.kind, self.regions = model, kind, regions
        self.written = 0  # units in each Region
        self.default_ttl = 0
        # (pk, ck): row; pk: static row. A row: {"": marker's ttl or absent, "#": its deletions that are stored, column: value}
        self.rows, self.statics = {}, {}
        self.moment = 0        # of the request: what it deletes has one timestamp
        self.swept, self.ranges = {}, []  # moments of deletions of partitions; (moment, pk, first place, place behind) of ranges

    def row_size(self, pk, ck, values, marker_ttl=0, deletions=()):
        """Of columns with values; explicit nulls are columns, too. With client-side timestamps columns and deletions have one."""
        current = self.model == "current"
        p, c = number(pk, self.model), number(ck, self.model)
        size = 2 * p + 1 + 3 + 2 * c + -(-c // 5) + 1 if current else p + 3 + c + 4 + 100
        size += sum(value_size(k, v, self.model) + current for k, v in values.items())
        size += 20 * (len(values) + len(deletions)) * (self.kind == "stamped")
        ttls = [t for k, v in values.items() for t in cells(k, v)]
        if current and (self.kind == "ttl" or marker_ttl or any(ttls)):
            size += 8 * (1 + 2 + (len(ttls) if self.kind == "ttl" else sum(1 for t in ttls if t)))
        return size

    def markers(self, pk, first=-MOST, behind=MOST):
        """Deletions of ranges that show between two places of a partition, and that of the partition; neighbours of one moment are one."""
        if self.kind != "stamped":
            return 0
        of_partition = self.swept.get(pk, 0)
        mine = [r for r in self.ranges if r[1] == pk and r[0] > of_partition]
        bounds = sorted({first, behind, *(p for r in mine for p in r[2:] if first < p < behind)})
        newest = [max((r[0] for r in mine if r[2] <= p < r[3]), default=0) for p in bounds[:-1]]
        return (of_partition > 0) + sum(1 for before, n in zip([0, *newest], newest) if n and n != before)

    def markers_size(self, pk, n):
        return n * (number(pk, self.model) * 2 + 1 + 3 + 20 if self.model == "current" else number(pk, self.model) + 3 + 100 + 20)

    def key_size(self, pk, ck=None):
        """What a deletion writes: the key and what a row adds."""
        current, p = self.model == "current", number(pk, self.model)
        c = None if ck is None else number(ck, self.model)
        size = 2 * p + 1 + 3 if current else p + 3 + 100
        return size if c is None else size + (2 * c + -(-c // 5) + 1 if current else c + 4)

    def static_size(self, values):
        old = "documented-2022"
        return 4 + 3 + 104 + sum(value_size(k, v, old) for k, v in values.items())

    def stored_row(self, pk, ck):
        row = self.rows.get((pk, ck))
        if row is None or not (self.kind == "stamped" or self.is_alive((pk, ck))):
            return None
        return self.row_size(pk, ck, {k: v for k, v in row.items() if k not in ("", "#")}, row.get("", 0), row.get("#", ()))

    def is_alive(self, key):
        return any(k != "#" for k in self.rows[key])

    def delete(self, pk, ck, column):
        """Of a column, or of the row."""
        row = self.rows.setdefault((pk, ck), {})
        row.pop(column, None)
        if column == "row":
            row.clear()
        row.setdefault("#", set()).add(column)  # counts with client-side timestamps, also if the table gets these later

    def stored_static(self, pk):
        values = self.statics.get(pk)
        return self.static_size(values) if values else None

    def settle(self, pk, ck=None):
        for store, key in ((self.rows, (pk, ck)), (self.statics, pk)):
            if key in store and not store[key].get("#", True):
                del store[key]["#"]
            if key in store and not store[key]:
                del store[key]


def kib(size):
    return max(1, -(-size // 1024))


class Figure:
    """What writes come to by one way of sizing."""
    def __init__(self):
        self.rows = self.statics = self.units = 0

    def add(self, rows, static, factor):
        """rows: sizes, each rounded alone, or None: no row is written; static likewise, one."""
        if rows is not None:
            self.rows += sum(rows)
            self.units += factor * max(1, sum(kib(r) for r in rows))
        if static is not None:
            self.statics += static
            self.units += factor * kib(static)

    def told(self):
        return {"row_bytes": self.rows, "static_bytes": self.statics, "units": self.units}


class Write:
    """A statement: its text, and how it changes and is sized by a model."""
    def __init__(self, rng, model):
        self.rng, self.model = rng, model
        self.pk, self.ck = rng.randrange(1, 4), rng.choice([1, 22, 333])
        self.ttl = rng.choice([0, 0, LONG])
        self.using = f" USING TTL {self.ttl}" if self.ttl else ""
        self.ttl = self.ttl or model.default_ttl
        self.touched, self.values = set(), None

    def blob(self):
        return self.rng.randbytes(self.rng.choice([0, 5, 300, 900, 1500]))

    def value(self, column):
        if self.rng.random() < 0.1:
            return None
        if column in ("b", "u"):
            return (self.rng.choice([0, 7, -120, 4500, 123456]), self.ttl)
        if column == "l":
            return [(n, self.ttl) for n in self.rng.choices([1, 20, 300], k=self.rng.randrange(1, 4))]
        if column == "m":
            return {k: (self.blob(), self.ttl) for k in self.rng.sample([1, 2, 30], self.rng.randrange(1, 3))}
        return (self.blob(), self.ttl)

    @staticmethod
    def bound(column, v):
        if v is None:
            return None
        if column == "l":
            return [x for x, _ in v]
        return {k: x for k, (x, _) in v.items()} if column == "m" else v[0]

    @staticmethod
    def json(column, v):
        if v is None:
            return None
        if column == "l":
            return [x for x, _ in v]
        if column == "m":
            return {str(k): "0x" + x.hex() for k, (x, _) in v.items()}
        return v[0] if column in ("b", "u") else "0x" + v[0].hex()

    @staticmethod
    def literal(column, v):
        if v is None:
            return "null"
        if column == "l":
            return "[" + ", ".join(str(x) for x, _ in v) + "]"
        if column == "m":
            return "{" + ", ".join(f"{k}: 0x{x.hex()}" for k, (x, _) in v.items()) + "}"
        return str(v[0]) if column in ("b", "u") else "0x" + v[0].hex()

    def choose(self, columns, at_least):
        n = self.rng.choice([at_least, len(columns), self.rng.randrange(at_least, len(columns) + 1)])
        chosen = self.rng.sample(columns, n)
        return {c: self.value(c) for c in columns if c in chosen}

    def apply_values(self, values, statics, insert):
        m = self.model
        if insert or any(v is not None for v in values.values()):
            row = m.rows.setdefault((self.pk, self.ck), {})
            if insert:
                row[""] = self.ttl
        for store, key, given in ((m.rows, (self.pk, self.ck), values), (m.statics, self.pk, statics)):
            for column, v in given.items():
                if v is None and column in REGULAR:
                    m.delete(self.pk, self.ck, column)
                elif v is None:
                    store.get(key, {}).pop(column, None)
                else:
                    store.setdefault(key, {})[column] = v
                    store[key].get("#", set()).discard(column)
        m.settle(self.pk, self.ck)


def insert_or_update(rng, model):
    w, insert = Write(rng, model), rng.random() < 0.5
    form = rng.choice(["literal", "bound", "json", "json unset"] if insert else ["literal", "bound"])
    statics = w.choose(STATIC, 1) if rng.random() < 0.3 else {}
    values = w.choose(REGULAR, 0 if insert or statics else 1)
    unset = [c for c in REGULAR + STATIC if c not in {**values, **statics} and rng.random() < 0.3] if form == "bound" else []
    if form == "bound" and rng.random() < 0.1:  # nothing is given
        values, statics, unset = {}, {}, [*values, *statics, *unset]
    if form == "json":
        values, statics = {c: values.get(c) for c in REGULAR}, {c: statics.get(c) for c in STATIC}
    given = {**values, **statics}
    if form == "bound":
        columns = [*given, *unset]
        rng.shuffle(columns)
        w.values = [w.bound(c, given[c]) if c in given else UNSET_VALUE for c in columns]
        if insert:
            w.text = f"INSERT INTO w.t (pk, ck{''.join(', ' + c for c in columns)}) VALUES ({w.pk}, {w.ck}{', ?' * len(columns)}){w.using}"
        else:
            names_row = any(c in REGULAR for c in columns)
            w.text = f"UPDATE w.t{w.using} SET {', '.join(f'{c} = ?' for c in columns)} WHERE pk = {w.pk}{f' AND ck = {w.ck}' if names_row else ''}"
    elif insert and form.startswith("json"):
        row = json.dumps({"pk": w.pk, "ck": w.ck, **{c: w.json(c, v) for c, v in given.items() if form != "json" or v is not None}})
        w.text = f"INSERT INTO w.t JSON '{row}'{' DEFAULT UNSET' if form == 'json unset' else ''}{w.using}"
    elif insert:
        names, literals = ", ".join(["pk", "ck", *given]), ", ".join([str(w.pk), str(w.ck), *(w.literal(c, v) for c, v in given.items())])
        w.text = f"INSERT INTO w.t ({names}) VALUES ({literals}){w.using}"
    elif values:
        w.text = f"UPDATE w.t{w.using} SET {', '.join(f'{c} = {w.literal(c, v)}' for c, v in given.items())} WHERE pk = {w.pk} AND ck = {w.ck}"
    else:
        w.text = f"UPDATE w.t{w.using} SET {', '.join(f'{c} = {w.literal(c, v)}' for c, v in given.items())} WHERE pk = {w.pk}"
    writes_row = insert or bool(values) or (not statics and any(c in REGULAR for c in unset))
    writes_static = bool(statics) or not writes_row
    nothing = not insert and not given  # costs as its key
    whole = (not writes_row or len(values) == len(REGULAR)) and len(statics) in (0, len(STATIC)) and not unset and form != "json unset"
    if not insert and model.model == "current" and model.kind != "ttl":
        whole = False  # the row's marker may have a TTL
    w.touched = {(w.pk, w.ck, c) for c in values} | {(w.pk, None, c) for c in statics} | ({(w.pk, w.ck, "")} if writes_row else set())
    w.touched |= {(w.pk, w.ck, "insert")} if insert else set()  # of two markers of one moment the one with the longer life wins

    def apply(row, written, factor):
        w.apply_values(values, statics, insert)
        factor *= 2 if writes_row and writes_static else 1
        as_written = ([model.row_size(w.pk, w.ck, values, w.ttl)] if writes_row else None, model.static_size(statics) if writes_static else None)
        written.add(*as_written, factor)
        if nothing:
            row.add(*as_written, factor)
            return
        stand = {c: v for c, v in values.items() if v is not None}
        markers = {c for c in values if c not in stand} if model.kind == "stamped" else ()
        static = 0 if all(v is None for v in statics.values()) else model.static_size(statics)
        as_it_stands = ([model.row_size(w.pk, w.ck, stand, w.ttl, markers)] if writes_row else None, static if writes_static else None)
        size, static = model.stored_row(w.pk, w.ck), model.stored_static(w.pk)
        after = (([] if size is None else [size]) if writes_row else None, (static or 0) if writes_static else None)
        row.add(*(as_it_stands if whole else after), factor)

    w.apply = apply
    return w


def delete_row_or_columns(rng, model):
    w = Write(rng, model)
    columns = rng.sample(REGULAR, rng.randrange(1, 3)) if rng.random() < 0.4 else []
    w.text = f"DELETE {', '.join(columns)} FROM w.t WHERE pk = {w.pk} AND ck = {w.ck}"
    w.touched = {(w.pk, w.ck, c) for c in ("", *REGULAR)}

    def apply(row, written, factor):
        before = model.stored_row(w.pk, w.ck)
        row.add([] if before is None else [before], None, factor)
        written.add([model.key_size(w.pk, w.ck)], None, factor)
        for c in columns or ["row"]:
            model.delete(w.pk, w.ck, c)
        model.settle(w.pk, w.ck)

    w.apply = apply
    return w


def delete_statics(rng, model):
    w = Write(rng, model)
    w.text = f"DELETE s FROM w.t WHERE pk = {w.pk}"
    w.touched = {(w.pk, None, "s")}

    def apply(row, written, factor):
        row.add(None, model.stored_static(w.pk) or 0, factor)
        written.add(None, model.static_size({}), factor)
        model.statics.get(w.pk, {}).pop("s", None)
        model.settle(w.pk)

    w.apply = apply
    return w


def delete_range(rng, model):
    w = Write(rng, model)
    low, high = sorted(rng.sample([0, 1, 22, 333, 400], 2))
    text, first, behind = rng.choice([
        ("", -MOST, MOST), (f" AND ck > {low}", low + 1, MOST), (f" AND ck <= {high}", -MOST, high + 1), (f" AND ck < {high}", -MOST, high),
        (f" AND ck >= {low} AND ck < {high}", low, high), (f" AND ck > {low} AND ck <= {high}", low + 1, high + 1)])
    partition = not text
    w.text = f"DELETE FROM w.t WHERE pk = {w.pk}{text}"
    w.touched = {(w.pk, ck, c) for ck in (1, 22, 333) for c in ("", *REGULAR)} | {(w.pk, None, c) for c in STATIC}

    def apply(row, written, factor):
        gone = [k for k in model.rows if k[0] == w.pk and first <= k[1] < behind]
        sizes, static = [model.stored_row(*k) for k in gone if model.is_alive(k)], model.stored_static(w.pk) if partition else None
        row.add(sizes or (None if static else []), static, factor)  # a partition of static data alone costs what these do
        written.add([model.key_size(w.pk)], None, factor)
        for k in gone:
            del model.rows[k]
        if partition:
            model.statics.pop(w.pk, None)
            model.swept[w.pk] = model.moment
        else:
            model.ranges.append((model.moment, w.pk, first, behind))

    w.apply = apply
    return w


MAKERS = [insert_or_update] * 6 + [delete_row_or_columns] * 2 + [delete_statics] + [delete_range] * 3


def run_writes(session, rng, model, write_size):
    """One statement, or a batch of some that touch no column twice."""
    kind, statements, touched = rng.choice([None, None, None, BatchType.UNLOGGED, BatchType.LOGGED]), [], set()
    for _ in range(1 if kind is None else rng.randrange(2, 5)):
        w = rng.choice(MAKERS)(rng, model)
        if not w.touched & touched:
            statements.append(w)
            touched |= {t for t in w.touched if t[2]} if w.text.startswith(("INSERT", "UPDATE")) else w.touched
    requests = [SimpleStatement(w.text) if w.values is None else session.prepare(w.text).bind(w.values) for w in statements]
    if kind is None:
        request = requests[0]
    else:
        request = BatchStatement(batch_type=kind)
        for r in requests:
            request.add(r)
    row, written = Figure(), Figure()
    model.moment += 1
    for w in statements:
        w.apply(row, written, model.regions * (2 if kind == BatchType.LOGGED else 1))
    c = charge(session, request)
    text = re.sub(r"0x(\w*)", lambda m: f"blob({len(m[1]) // 2})", "; ".join(w.text for w in statements)) + f" {[w.values for w in statements]}"
    assert c["written"] == written.told(), text
    if write_size == "row":
        assert c["row"] == row.told(), text
    assert c.units == (row if write_size == "row" else written).units, text
    model.written += c.units / model.regions


def run_read(session, rng, model):
    """Of a row, a partition, or a range of it, which is often one that was deleted before."""
    pk, ck = rng.randrange(1, 4), rng.choice([1, 22, 333])
    text, first, behind = rng.choice([
        ("", -MOST, MOST), (f" AND ck = {ck}", ck, ck + 1), (f" AND ck > {ck}", ck + 1, MOST), (f" AND ck >= {ck}", ck, MOST),
        (f" AND ck <= {ck}", -MOST, ck + 1), (f" AND ck >= 20 AND ck <= {max(ck, 21)}", 20, max(ck, 21) + 1),
        (f" AND ck < {ck}", -MOST, ck), (f" AND ck > 1 AND ck < {max(ck, 22)}", 2, max(ck, 22))])
    if " AND ck = " not in text and rng.random() < 0.3:
        text += " ORDER BY ck DESC"
    c = charge(session, f"SELECT * FROM w.t WHERE pk = {pk}{text}")
    rows = [size for k in model.rows if k[0] == pk and first <= k[1] < behind for size in [model.stored_row(*k)] if size is not None]
    if " AND ck < " in text and (pk, behind) in model.rows and model.is_alive((pk, behind)):
        rows.append(model.stored_row(pk, behind))  # the row at an excluded upper bound is read, too
    markers, static = model.markers(pk, first, behind), model.stored_static(pk)
    size = sum(rows) + model.markers_size(pk, markers)
    assert (c["row_bytes"], c["static_bytes"]) == (size, static or 0), text
    assert c["rows_read"] == len(rows) + markers + (static is not None)
    assert c.units == max(1, -(-(size + (static or 0)) // 4096))
    dead = [k for k in model.rows if k[0] == pk and first <= k[1] < behind and not model.is_alive(k)] if model.kind == "stamped" else []
    assert ("read-deletion-marker" in c["rules"]) == (markers + len(dead) > 0)
    if model.kind == "stamped":
        return
    page, limit = rng.randrange(1, 4), rng.choice(["", " LIMIT 1", " LIMIT 2"])
    got = pages(session, f"SELECT * FROM w.t WHERE pk = {pk}{text}{limit}", page)
    read = [p["rows_read"] - (p["static_bytes"] > 0) for p in got]
    assert all(n <= page for n in read), f"{text}{limit}: pages of {page} read {read} rows"
    assert sum(read) == len(rows) or (limit and sum(read) <= len(rows)), text


def change(session, rng, model):
    """A property of the table or of its keyspace: what was written before keeps its cost, and what comes next has that of the new one."""
    kinds = ["capacity", "turn", "regions" if model.kind == "stamped" else "turn", "default" if model.kind == "ttl" else "capacity"]
    kind = rng.choice(kinds)
    if kind == "regions":
        model.regions = min(model.regions + 1, len(REGIONS))
        factors = ", ".join(f"'{r}': 3" for r in REGIONS[:model.regions])
        session.execute(f"ALTER KEYSPACE w WITH replication = {{'class': 'NetworkTopologyStrategy', {factors}}} AND client_side_timestamps = {{'status': 'enabled'}}")
    elif kind == "default":
        model.default_ttl = rng.choice([0, LONG])
        session.execute(f"ALTER TABLE w.t WITH default_time_to_live = {model.default_ttl}")
    elif kind == "turn" and model.kind == "plain" and rng.random() < 0.4:  # once
        model.kind = rng.choice(["ttl", "stamped"])
        session.execute(f"ALTER TABLE w.t{KINDS[model.kind]}")
    else:
        units = f"'read_capacity_units': {rng.randrange(1, 40)}, 'write_capacity_units': {rng.randrange(1, 40)}"
        mode = rng.choice(["'PAY_PER_REQUEST'", f"'PROVISIONED', {units}"])
        session.execute(f"ALTER TABLE w.t WITH CUSTOM_PROPERTIES = {{'capacity_mode': {{'throughput_mode': {mode}}}}}")
    await_active(session, "w", "t")


@pytest.mark.parametrize("write_size", ["row", "written"])
@pytest.mark.parametrize("size_model", ["documented-2022", "current"])
def test_random_charges_are_those_of_a_model(tmp_path, size_model, write_size):
    server = Server(tmp_path, "--ddl-delay", "none", "--size-model", size_model, "--write-size", write_size).start()
    with server.cluster(protocol_version=4) as cluster:
        s = cluster.connect()
        for kind, regions in [*((k, 1) for k in KINDS), ("stamped", 2), ("stamped", 3)]:  # tables in several Regions always have timestamps
            factors = ", ".join(f"'{r}': 3" for r in REGIONS[:regions])
            s.execute(f"CREATE KEYSPACE w WITH replication = {{'class': 'NetworkTopologyStrategy', {factors}}}")
            s.execute(f"CREATE TABLE w.t ({COLUMNS}){KINDS[kind] if regions == 1 else ''}")
            await_active(s, "w", "t")  # on a cluster it awaits the end of the rows of the one before
            model, rng = Model(size_model, kind, regions), random.Random(f"{size_model} {write_size} {kind} {regions}")
            for _ in range(200 if regions == 1 else 60):
                run_writes(s, rng, model, write_size)
                if rng.random() < 0.4:
                    run_read(s, rng, model)
                if rng.random() < 0.05:
                    change(s, rng, model)
            stored = sum(size + 100 * (size_model == "current") for k in model.rows for size in [model.stored_row(*k)] if size is not None)
            stored += sum(model.stored_static(pk) for pk in model.statics)
            stored += sum(model.markers_size(pk, n) + 100 * (size_model == "current") * n for pk in (1, 2, 3) for n in [model.markers(pk)])
            size = s.execute("SELECT billable_bytes FROM system_metering.storage WHERE keyspace_name = 'w' AND table_name = 't'").one()[0]
            assert size == stored
            units = s.execute("SELECT write_units FROM system_metering.tables WHERE keyspace_name = 'w' AND table_name = 't'").one()[0]
            assert units == model.written, "capacity counts what each Region takes"
            s.execute("DROP KEYSPACE w")
    server.stop()
