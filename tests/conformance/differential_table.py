"""A random table, and random statements for it. See differential.py."""
import json

from differential_functions import NUMBERS, OF_TIMES, call
from differential_values import CLASSES, COMPOSITE, DYNAMIC, LEXICAL, LITERALS, Values, is_multicell, parameters

KEY_TYPES = list(LITERALS)
FROZEN_KEYS = ["frozen<list<int>>", "frozen<set<text>>", "frozen<map<int, text>>", "frozen<tuple<int, text>>",
               "vector<smallint, 2>", "vector<date, 1>", "vector<vector<tinyint, 2>, 2>"]
COLLECTIONS = ["list<int>", "set<text>", "map<text, int>", "list<text>", "set<int>", "map<int, text>", "frozen<list<text>>",
               "frozen<map<int, text>>", "frozen<set<int>>", "frozen<tuple<int, text>>", "list<frozen<tuple<int, text>>>",
               "map<int, frozen<list<text>>>", "set<frozen<list<int>>>", "vector<float, 2>", "vector<smallint, 3>",
               "vector<time, 2>", "vector<text, 2>", "duration", "list<duration>", "list<frozen<vector<tinyint, 2>>>"]
CLASS_TYPES = list(CLASSES) + [f"list<{LEXICAL}>", f"set<{LEXICAL}>", f"map<{LEXICAL}, int>", f"frozen<list<{COMPOSITE}>>", f"tuple<{LEXICAL}, {DYNAMIC}>", f"set<{COMPOSITE}>",
                               f"map<int, {COMPOSITE}>", f"vector<{LEXICAL}, 2>"]
CASTS = {t: NUMBERS + ["text", "ascii"] for t in NUMBERS} | {"text": ["text"]}
CASTS["decimal"].remove("varint")  # Cassandra keeps the low 64 bits of what a varint could hold
BYTES = ["text", "blob"]


def nested_type(rng, levels):
    """A type of so many levels; now and then one that is refused, because what is inside is not frozen. Vectors of large vectors Tally refuses: they
    would have more than 2^31 elements in all."""
    if levels == 0:
        return rng.choice(KEY_TYPES)
    inner = nested_type(rng, levels - 1)
    if inner.startswith(("list<", "set<", "map<")) and rng.random() < 0.97:
        inner = f"frozen<{inner}>"
    other = rng.choice(KEY_TYPES)
    return rng.choice([f"list<{inner}>", f"set<{inner}>", f"map<{other}, {inner}>", f"map<{inner}, {other}>", f"tuple<{inner}>",
                       f"tuple<{inner}, {other}>", f"tuple<{other}, {inner}, {other}>", f"vector<{inner}, {rng.choice([1, 3, 8192, 1 if 'vector<' in inner else 65537])}>",
                       f"frozen<list<{inner}>>", f"frozen<tuple<{inner}>>"])


class UserTypes:
    """The user types of a table: one of plain fields, one that has it within it."""

    def __init__(self, rng, values, table):
        keyspace, name = table.split(".")
        self.rng, self.values, self.keyspace, self.inner, self.outer, self.fields = rng, values, keyspace, f"u{name}", f"w{name}", 0
        values.user_types = {}
        values.user_types[self.inner] = [self.field(KEY_TYPES) for _ in range(rng.choice([1, 2, 3]))]
        values.user_types[self.outer] = [self.field(KEY_TYPES), self.field([f"frozen<{self.inner}>", f"frozen<list<{self.inner}>>", "frozen<set<int>>"])]

    def field(self, types):
        self.fields += 1
        return f"f{self.fields}", self.rng.choice(types)

    def ddl(self):
        return [f"CREATE TYPE {self.keyspace}.{u} ({', '.join(f'{n} {t}' for n, t in fields)})" for u, fields in self.values.user_types.items()]

    def columns(self):
        u, w = self.inner, self.outer
        return [u, w, f"frozen<{u}>", f"frozen<{w}>", f"list<frozen<{u}>>", f"map<int, frozen<{w}>>", f"set<frozen<{u}>>", f"tuple<int, frozen<{u}>>"]

    def keys(self):
        return [f"frozen<{self.inner}>"]

    def is_multicell(self, type_):
        return type_ in self.values.user_types

    def a_field(self, type_):
        return self.rng.choice(self.values.user_types[type_])

    def alter(self, keys):
        """In keys an older value and one with the new field left out are one to Tally, and two to Cassandra."""
        u = self.outer if any(self.inner in t for _, t in keys) else self.rng.choice([self.inner, self.outer])
        name, type_ = self.field(KEY_TYPES)
        self.values.user_types[u].append((name, type_))
        return f"ALTER TYPE {self.keyspace}.{u} ADD {name} {type_}"

    def rename(self):
        """Of a field; now and then of one that is not there, or to the name of another."""
        u = self.rng.choice([self.inner, self.outer])
        fields = self.values.user_types[u]
        i, if_exists = self.rng.randrange(len(fields)), self.rng.choice(["", " IF EXISTS"])
        if self.rng.random() < 0.2:
            return f"ALTER TYPE {self.keyspace}.{u} RENAME{if_exists} nope TO x"
        new = fields[0][0] if self.rng.random() < 0.1 and i else f"{fields[i][0]}n"
        old = fields[i][0]
        if new != fields[0][0]:
            fields[i] = (new, fields[i][1])
        return f"ALTER TYPE {self.keyspace}.{u} RENAME{if_exists} {old} TO {new}"


class Table:
    def __init__(self, rng, name):
        self.rng, self.name, self.values = rng, name, Values(rng)
        self.types, self.of_now = UserTypes(rng, self.values, name), f"{name}n"
        self.dropped, self.next, self.drop_time = [], [], 1
        self.clock = rng.choice(["explicit", "explicit", "server"])
        self.altered = self.created_again = self.expired = False
        self.counters = self.values.one_form = rng.random() < 0.1  # Cassandra's cache of counts knows a key by its bytes: see cases/differential.cqlt
        self.has_ttl = not self.counters and rng.random() < 0.1
        classes = rng.random() < 0.15
        key_types = KEY_TYPES + list(CLASSES) * 4 * classes
        self.pk = [(f"p{i}", rng.choice(key_types)) for i in range(rng.choice([1, 1, 2]))]
        self.ck = [(f"c{i}", rng.choice(key_types * 3 + FROZEN_KEYS + self.types.keys() * 4)) for i in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        self.desc = [rng.random() < 0.4 for _ in self.ck]
        kinds = ["counter"] if self.counters else KEY_TYPES + COLLECTIONS * 2 + self.types.columns() * 2 + CLASS_TYPES * 4 * classes
        self.regular = [(f"r{i}", rng.choice(kinds)) for i in range(rng.randrange(1 if self.counters else 0, 4))]
        self.static = [(f"s{i}", rng.choice(kinds)) for i in range(rng.randrange(3))] if self.ck else []
        self.partitions = [self.key(self.pk) for _ in range(3)]
        self.clusterings = [self.key(self.ck) for _ in range(4)]
        self.columns = self.pk + self.ck + self.regular + self.static
        self.added = 0
        self.in_batch = False
        self.dense = False  # many clauses and forms stand together in the statement that is made

    def key(self, columns):
        """A key as marked literals. Empty partition keys are refused, and an empty map fails inside Cassandra."""
        values = []
        for _, type_ in columns:
            text = self.values.plain(type_, 1)
            while text in ("''", "0x") and columns is self.pk and len(columns) == 1:
                text = self.values.plain(type_, 1)
            values.append(self.values.marked(type_, text))
        return tuple(values)

    def ddl(self):
        of_now = f"CREATE TABLE {self.of_now} (p int, c timeuuid, v int, w timeuuid, l list<timeuuid>, PRIMARY KEY (p, c))"
        return self.types.ddl() + [self.table_ddl(), of_now]

    def table_ddl(self):
        columns = [f"{n} {t}" for n, t in self.pk + self.ck + self.regular] + [f"{n} {t} static" for n, t in self.static]
        key = f"({', '.join(n for n, _ in self.pk)})" + "".join(f", {n}" for n, _ in self.ck)
        order = ", ".join(f"{n} {'DESC' if d else 'ASC'}" for (n, _), d in zip(self.ck, self.desc))
        options = ([f"CLUSTERING ORDER BY ({order})"] if order else []) + (["default_time_to_live = 300000"] if self.has_ttl else [])
        return f"CREATE TABLE {self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))" + (f" WITH {' AND '.join(options)}" if options else "")

    # Pieces

    def chance(self, p):
        return self.rng.random() < (p ** 0.6 if self.dense else p)

    def partition(self):
        return self.rng.choice(self.partitions)

    def clustering(self):
        return self.rng.choice(self.clusterings)

    def using(self, ttl=True, timestamp=True):
        parts = []
        if self.clock == "explicit" and timestamp:
            parts.append(f"TIMESTAMP {self.values.number('bigint', self.rng.randrange(1, 12))}")  # never unset: the clock's would be read back
        if ttl and not self.counters and self.chance(0.12):
            parts.append(f"TTL {self.number('int', self.rng.choice([0, 100000, 500000]))}")
        self.rng.shuffle(parts)
        return f" USING {' AND '.join(parts)}" if parts else ""

    def number(self, type_, n):
        """A number, seldom a null."""
        return self.values.marked(type_, "null") if self.chance(0.01) else self.values.number(type_, n)

    def equals(self, columns, values):
        return [f"{n} = {v}" for (n, _), v in zip(columns, values)]

    def some(self, columns):
        return [c for c in columns if self.chance(0.6)]

    def known_or_new(self, type_, index, keys):
        kind = self.rng.random()
        return self.rng.choice(keys)[index] if kind < 0.9 else self.values.literal(type_, 1) if kind < 0.97 else self.values.computed(type_)

    def several(self, type_, index, keys):
        if self.chance(0.3):
            return self.values.several(type_)
        return f"({', '.join(self.rng.choice(keys)[index] for _ in range(self.rng.choice([1, 2, 2, 3])))})"

    def partition_relations(self, full=True):
        """Equality, IN, and seldom a column too few."""
        relations = []
        for i, (name, type_) in enumerate(self.pk):
            if self.chance(0.2):
                relations.append(f"{name} IN {self.several(type_, i, self.partitions)}")
            else:
                relations.append(f"{name} = {self.known_or_new(type_, i, self.partitions)}")
        return relations if full or not self.chance(0.1) else relations[:-1]

    def token_relations(self):
        names = ", ".join(n for n, _ in self.pk)
        def bound():
            if self.chance(0.2):
                return self.number("bigint", self.rng.choice([-2**63, -2**62, 0, 2**62, 2**63 - 1]))
            return f"token({', '.join(self.partition())})"
        choices = [[f"token({names}) {self.rng.choice(['>', '>=', '<', '<=', '='])} {bound()}"],
                   [f"token({names}) {self.rng.choice(['>', '>='])} {bound()}", f"token({names}) {self.rng.choice(['<', '<='])} {bound()}"]]
        return self.rng.choice(choices)

    def tuple_relation(self, names, start):
        """A relation on several clustering columns together."""
        def one():
            values = self.clustering()[start:start + len(names)]
            return self.values.together(values) if as_one else f"({', '.join(values)})"
        as_one, columns = self.chance(0.3), f"({', '.join(names)})"
        op = self.rng.choice(["=", "IN", ">", ">=", "<", "<=", "range"])
        if op == "IN" and as_one and self.chance(0.5):
            return [f"{columns} IN {self.values.list_of([one() for _ in range(self.rng.choice([1, 2, 3]))])}"]
        if op == "IN":
            return [f"{columns} IN ({', '.join(one() for _ in range(self.rng.choice([1, 2, 3])))})"]
        if op == "range":
            return [f"{columns} >= {one()}", f"{columns} < {one()}"]
        return [f"{columns} {op} {one()}"]

    def clustering_relations(self):
        """Relations on a prefix of the clustering columns, the last maybe a range or an IN."""
        relations, i = [], 0
        while i < len(self.ck):
            name, type_ = self.ck[i]
            kind = self.rng.choices(["stop", "=", "IN", "range", "tuple"], [20, 40, 10, 20, 10])[0]
            if kind == "=":
                relations.append(f"{name} = {self.known_or_new(type_, i, self.clusterings)}")
            elif kind == "IN":
                relations.append(f"{name} IN {self.several(type_, i, self.clusterings)}")
            elif kind == "range":
                low, high = (self.known_or_new(type_, i, self.clusterings) for _ in range(2))
                return relations + self.rng.choice([[f"{name} > {low}"], [f"{name} <= {high}"], [f"{name} >= {low}", f"{name} < {high}"],
                                                    [f"{name} > {low}", f"{name} <= {high}"]])
            elif kind == "tuple":
                names = [n for n, _ in self.ck[i:self.rng.randrange(i, len(self.ck)) + 1]]
                return relations + self.tuple_relation(names, i)
            else:
                break
            i += 1
        return relations

    def filter_relation(self):
        """A relation on any column."""
        name, type_ = self.rng.choice(self.columns)
        descending = any(d and n == name for (n, _), d in zip(self.ck, self.desc))  # is no collection to Cassandra
        if descending and type_.startswith("frozen"):
            return f"{name} = {self.values.literal(type_, 1)}"
        if is_multicell(type_) or type_.startswith(("frozen<list", "frozen<set", "frozen<map")):
            bare = type_[7:-1] if type_.startswith("frozen<") else type_
            inner, kind = parameters(bare), self.rng.random()
            if kind < 0.4:
                return f"{name} CONTAINS {self.values.literal(inner[-1])}"
            if bare.startswith("map<") and kind < 0.6 and (bare != type_ or (name, type_) not in self.static):  # there Cassandra counts deleted keys, too
                return f"{name} CONTAINS KEY {self.values.literal(inner[0])}"
            if bare.startswith("map<") and kind < 0.8:
                return f"{name}[{self.values.literal(inner[0])}] = {self.values.literal(inner[1])}"
        if type_ == "counter":
            return f"{name} {self.rng.choice(['=', '>', '<='])} {self.rng.randrange(-2, 3)}"
        if self.chance(0.02):
            return self.rng.choice([f"{name} != {self.values.literal(type_, 1)}", f"{name} IS NOT NULL", f"{name} LIKE {self.values.literal('text')}",
                                    f"{name} CONTAINS {self.values.literal('int')}", f"{name}[{self.values.literal('int')}] = {self.values.literal('int')}"])
        op = self.rng.choice(["=", "=", "<", "<=", ">", ">=", "IN"])
        right = self.values.several(type_) if op == "IN" else self.values.literal(type_, 1)
        return f"{name} {op} {right}"

    # Writes

    def new_value(self, type_):
        return str(self.rng.randrange(-3, 4)) if type_ == "counter" else self.values.maybe(type_)

    def written(self):
        """The names and values of an INSERT."""
        p, c = self.partition(), self.clustering()
        with_row = not self.static or self.chance(0.8)
        pairs = list(zip([n for n, _ in self.pk], p)) + (list(zip([n for n, _ in self.ck], c)) if with_row else [])
        columns = (self.some(self.regular) if with_row else []) + self.some(self.static)
        if not with_row and not columns:
            columns = self.static[:1]
        return pairs + [(n, self.values.maybe(t)) for n, t in columns]

    def insert(self, condition=""):
        if self.counters:
            return self.update()
        pairs = self.written()
        using = self.using(timestamp=not condition)
        if self.chance(0.15):
            text = "{%s}" % ", ".join(f"{json.dumps(n)}: {self.values.json_of(v)}" for n, v in pairs)
            default = self.rng.choice(["", " DEFAULT NULL", " DEFAULT UNSET"])
            return f"INSERT INTO {self.name} JSON {self.values.json_text(text)}{default}{condition}{using}"
        return f"INSERT INTO {self.name} ({', '.join(n for n, _ in pairs)}) VALUES ({', '.join(v for _, v in pairs)}){condition}{using}"

    def expiring(self):
        """Writes of a few partitions: static values that stay, and rows that live for a second."""
        for _ in range(self.rng.randrange(2, 6)):
            p = self.partition()
            assigned = ", ".join(f"{n} = {self.values.maybe(t)}" for n, t in self.static)
            yield f"UPDATE {self.name} SET {assigned} WHERE {' AND '.join(self.equals(self.pk, p))}"
            for _ in range(self.rng.randrange(1, 3)):
                pairs = list(zip([n for n, _ in self.pk + self.ck], p + self.clustering()))
                pairs += [(n, self.values.maybe(t)) for n, t in self.some(self.regular)]
                names, values = ", ".join(n for n, _ in pairs), ", ".join(v for _, v in pairs)
                yield f"INSERT INTO {self.name} ({names}) VALUES ({values}) USING TTL 1"

    def assignment(self, name, type_, conditional=False):
        if type_ in NUMBERS + ["text", "ascii"] and self.chance(0.15 if conditional else 0.01):  # without conditions it is refused
            return f"{name} = {name} + {self.values.literal(type_)}"
        values, inner = self.values, parameters(type_) if "<" in type_ else []
        if type_ == "counter":
            amounts = [self.number("counter", self.rng.randrange(-3, 9)) for _ in range(self.rng.choice([1, 1, 1, 2]))]
            if self.chance(0.03):
                amounts[-1] = self.rng.choice(["null", "9223372036854775807", "9223372036854775808", "'1'"])
            return ", ".join(f"{name} = {name} {self.rng.choice('+-')} {amount}" for amount in amounts)
        if self.types.is_multicell(type_) and self.chance(0.6):
            field, of = self.types.a_field(type_)
            return f"{name}.{field} = {values.maybe(of)}"
        if not is_multicell(type_) or self.chance(0.25):
            return f"{name} = {values.maybe(type_)}"
        if type_.startswith("set<"):
            return f"{name} = {name} {self.rng.choice('+-')} {values.literal(type_)}"
        if type_.startswith("map<"):
            return self.rng.choice([f"{name}[{values.literal(inner[0])}] = {values.maybe(inner[1])}", f"{name} = {name} + {values.literal(type_)}",
                                    f"{name} = {name} - {values.literal(f'set<{inner[0]}>')}"])
        return self.rng.choice([f"{name} = {name} + {values.literal(type_)}", f"{name} = {values.literal(type_)} + {name}", f"{name} = {name} - {values.literal(type_)}",
                                f"{name}[{self.number('int', self.rng.randrange(-1, 4))}] = {values.maybe(inner[0])}", f"{name} += {values.literal(type_)}"])

    def condition(self):
        if self.chance(0.2):
            return " IF EXISTS"
        columns = self.regular + self.static
        if not columns:
            return " IF EXISTS"
        n = self.rng.choice([1, 1, 2])
        return " IF " + " AND ".join(self.one_condition(*self.rng.choice(columns), alone=n == 1 and not self.in_batch) for _ in range(n))

    def one_condition(self, name, type_, alone):
        """One that is an error stands alone: Cassandra goes through several in the order of a hash, until one does not hold."""
        values, op = self.values, self.rng.choice(["=", "=", "!=", "<", "<=", ">", ">=", "IN"])
        if type_ == "counter":
            return f"{name} = 1"
        if type_.replace("frozen<", "").replace(">", "") in self.values.user_types and self.chance(0.6):
            field, type_ = self.types.a_field(type_.replace("frozen<", "").replace(">", ""))
            name = f"{name}.{field}"
        if is_multicell(type_) and self.chance(0.5) and not type_.startswith("set<"):
            inner = parameters(type_)
            key = self.values.number("int", self.rng.randrange(-1 if alone else 0, 3)) if type_.startswith("list<") else values.literal(inner[0])
            if type_.startswith("map<") and (inner[1] in BYTES or "<" in inner[1]) and op in ("<", "<=", ">", ">="):
                op = "="  # Cassandra orders the bytes of a map's values as signed, here and nowhere else
            name, type_ = f"{name}[{key}]", inner[-1]
        if op == "IN":
            return f"{name} IN {values.several(type_)}"
        return f"{name} {op} {values.maybe(type_) if op in ('=', '!=') or alone and self.chance(0.05) else values.literal(type_, 1)}"

    def update(self, conditional=False):
        statics_only = self.static and (not self.regular or self.chance(0.2))
        columns = self.static if statics_only else self.regular
        if not columns:
            return self.insert(" IF NOT EXISTS" if conditional else "")
        chosen = self.some(columns) or columns[:1]
        if not statics_only and self.static and self.chance(0.2):
            chosen = chosen + self.static[:1]
        where = self.equals(self.pk, self.partition()) + ([] if statics_only else self.row_relations())
        sets = ", ".join(self.assignment(n, t, conditional) for n, t in chosen)
        using = self.using(timestamp=not conditional) if not self.counters else ""
        return f"UPDATE {self.name}{using} SET {sets} WHERE {' AND '.join(where)}{self.condition() if conditional else ''}"

    def row_relations(self):
        values = self.clustering()
        relations = self.equals(self.ck, values)
        if self.ck and self.chance(0.1):
            i = self.rng.randrange(len(self.ck))
            relations[i] = f"{self.ck[i][0]} IN {self.several(self.ck[i][1], i, self.clusterings)}"
        return relations

    def delete(self, conditional=False):
        if self.counters:  # what a counter holds behind its deletion is not defined
            return self.update(conditional)
        what = []
        where = self.equals(self.pk, self.partition()) if conditional or self.chance(0.9) else self.partition_relations()
        if self.chance(0.3) and (self.regular or self.static):
            statics = self.static and (not self.regular or self.chance(0.4))
            for name, type_ in self.some(self.static if statics else self.regular) or (self.static if statics else self.regular)[:1]:
                if type_.startswith(("map<", "set<")) and self.chance(0.6):
                    name = f"{name}[{self.values.literal(parameters(type_)[0])}]"
                elif type_.startswith("list<") and self.chance(0.6):
                    name = f"{name}[{self.number('int', self.rng.randrange(-1, 3))}]"
                elif self.types.is_multicell(type_) and self.chance(0.6):
                    name = f"{name}.{self.types.a_field(type_)[0]}"
                what.append(name)
            where += [] if statics else self.row_relations()
        else:
            where += self.row_relations() if conditional and self.chance(0.8) else self.clustering_relations()
        using = self.using(ttl=False, timestamp=not conditional)
        return f"DELETE {', '.join(what)}{' ' if what else ''}FROM {self.name}{using} WHERE {' AND '.join(where)}{self.condition() if conditional else ''}"

    def lwt(self):
        statement = self.rng.choice([lambda: self.insert(" IF NOT EXISTS"), lambda: self.update(True), lambda: self.delete(True)])()
        if self.chance(0.02) and " USING " not in statement:  # is refused
            at = f" USING TIMESTAMP {self.number('bigint', 5)}"
            return statement + at if statement.startswith("INSERT") else statement.replace(f" {self.name}", f" {self.name}{at}", 1)
        return statement

    def static_lwt(self):
        """A condition on static columns, of a statement that writes them or a row."""
        condition = " IF " + " AND ".join(self.one_condition(*self.rng.choice(self.static), alone=False) for _ in range(self.rng.choice([1, 1, 2])))
        where = self.equals(self.pk, self.partition())
        if self.regular and self.chance(0.4):
            where += self.equals(self.ck, self.clustering())
            return f"UPDATE {self.name} SET {self.assignment(*self.rng.choice(self.regular), True)} WHERE {' AND '.join(where)}{condition}"
        return f"UPDATE {self.name} SET {self.assignment(*self.rng.choice(self.static), True)} WHERE {' AND '.join(where)}{condition}"

    def batch(self):
        kind = "COUNTER " if self.counters != self.chance(0.02) else self.rng.choice(["", "UNLOGGED "])
        saved, partitions, using = self.clock, self.partitions, ""
        conditional = self.clock == "server" and self.chance(0.4)
        if self.clock == "explicit" and self.chance(0.4):
            self.clock, using = "server", f" USING TIMESTAMP {self.values.number('bigint', self.rng.randrange(1, 12))}"
        elif conditional and self.chance(0.03):  # is refused
            using = f" USING TIMESTAMP {self.number('bigint', 5)}"
        if conditional and self.chance(0.9):
            self.partitions = [self.partition()]
        makers, self.in_batch = [self.insert, self.update, self.delete], True
        parts = [self.rng.choice(makers)() for _ in range(self.rng.choice([1, 2, 3, 7] if self.counters else [1, 2, 3]))]
        if conditional:
            parts += [self.lwt() for _ in range(self.rng.choice([1, 2]))]
            if self.static and self.chance(0.5):
                parts += [self.static_lwt() for _ in range(self.rng.choice([1, 2]))]
        self.rng.shuffle(parts)
        self.clock, self.partitions, self.in_batch = saved, partitions, False
        return f"BEGIN {kind}BATCH{using} {'; '.join(parts)}; APPLY BATCH"

    # The table of now(). No value of it is written over: which of two stays at the same time depends on their bytes.

    def insert_now(self, condition="", p=None):
        """A row whose key nobody knows before."""
        pairs = [("p", p or self.number_of_now()), ("c", "now()")]
        pairs += self.some([("v", self.values.literal("int")), ("w", "now()"), ("l", self.rng.choice(["[now()]", "[now(), now()]"]))])
        self.rng.shuffle(pairs)
        using = self.using(timestamp=not condition)
        return f"INSERT INTO {self.of_now} ({', '.join(n for n, _ in pairs)}) VALUES ({', '.join(v for _, v in pairs)}){condition}{using}"

    def number_of_now(self):
        return self.values.number("int", self.rng.randrange(3))

    def append_now(self):
        c = self.values.literal("timeuuid")
        return f"UPDATE {self.of_now}{self.using()} SET l = l + {self.rng.choice(['[now()]', '[now(), now()]'])} WHERE p = {self.number_of_now()} AND c = {c}"

    def delete_now(self):
        where = self.rng.choice(["", " AND c > maxTimeuuid('2026-01-01')", " AND c < minTimeuuid('2026-01-01')", f" AND c = {self.values.literal('timeuuid')}"])
        return f"DELETE FROM {self.of_now}{self.using(ttl=False)} WHERE p = {self.number_of_now()}{where}"

    def batch_now(self):
        saved, using, kind = self.clock, "", self.rng.choice(["", "UNLOGGED "])
        if self.clock == "server" and self.chance(0.3):
            p = self.number_of_now()
            parts = [self.insert_now(self.rng.choice(["", " IF NOT EXISTS"]), p) for _ in range(self.rng.choice([1, 2, 3]))] + [self.insert_now(" IF NOT EXISTS", p)]
        else:
            if self.clock == "explicit" and self.chance(0.4):
                self.clock, using = "server", f" USING TIMESTAMP {self.values.number('bigint', self.rng.randrange(1, 12))}"
            parts = [self.insert_now() for _ in range(self.rng.choice([1, 2, 3, 5]))]
            parts += [make() for make in (self.append_now, self.append_now, self.insert) if self.chance(0.3)]
        self.rng.shuffle(parts)
        self.clock = saved
        return f"BEGIN {kind}BATCH{using} {'; '.join(parts)}; APPLY BATCH"

    def select_now(self):
        columns = self.rng.choice(["*", "*", "p, c, v", "c, w", "l, v", "c, w, l", "count(*)", "p, count(c), max(v)"])
        where = self.rng.choice(["", f" WHERE p = {self.number_of_now()}", f" WHERE p = {self.number_of_now()} AND c > maxTimeuuid('2026-01-01')",
                                 f" WHERE p IN ({self.number_of_now()}, {self.number_of_now()})"])
        tail = self.rng.choice(["", " ORDER BY c DESC"]) if " p = " in where and "count" not in columns else ""
        tail += self.rng.choice(["", "", f" PER PARTITION LIMIT {self.number_of_now()}"]) if "count" not in columns else ""
        return f"SELECT {columns} FROM {self.of_now}{where}{' GROUP BY p' if columns.startswith('p, count') else ''}{tail}{self.rng.choice(['', ' LIMIT 5'])}"

    # Reads

    def written_at(self, name, type_):
        """When something was written, or what it has left to live: of a column, of a field, of what a collection holds."""
        of = name
        if self.types.is_multicell(type_) and self.chance(0.6):
            of = f"{name}.{self.types.a_field(type_)[0]}"
        elif type_.startswith(("map<", "set<")) and self.chance(0.6) and not any(u in type_ for u in self.values.user_types):  # their fields are told in no order
            inner = parameters(type_)[0]
            low, high = self.values.literal(inner), self.values.literal(inner)
            of = self.rng.choice([f"{name}[{low}]", f"{name}[{low}..{high}]", f"{name}[{low}..]", f"{name}[..{high}]"])
        return f"{self.rng.choice(['TTL'] + ['WRITETIME', 'MAXWRITETIME'] * (self.clock == 'explicit' and not self.counters))}({of})"

    def time_selector(self, name, type_):
        """The same, wherever a selector may stand."""
        of = self.written_at(name, type_)
        if self.chance(0.5):
            return of
        number = "int" if of.startswith("TTL") else "bigint"
        choices = [f"CAST({of} AS text)", f"toJson({of})", f"{of} + 1", f"-{of}", f"[{of}]", f"({of}, {of})", f"{{{of}}}", f"{number}AsBlob({of})", f"({number}){of}",
                   f"abs({of})"]
        return self.rng.choice(choices[:1] + choices[2:4] + choices[8:10] if number == "int" else choices)

    def together(self):
        """A collection or a tuple of columns."""
        of_type = {}
        for name, type_ in self.columns:
            of_type.setdefault(type_, []).append(name)
        type_ = self.rng.choice(list(of_type))
        a, b, (c, other) = self.rng.choice(of_type[type_]), self.rng.choice(of_type[type_]), self.rng.choice(self.columns)
        choices = [f"[{a}, {b}]", f"{{{a}, {b}}}", f"({a}, {c})", f"[({a}, {c})]", f"({a}, ({b}, {c}))", f"[{a}]", f"[[{a}], [{b}]]", f"toJson([{a}, {b}])"]
        plain = not any("frozen" in t or u in t for t in (type_, other) for u in self.values.user_types)
        if plain and not self.ck:  # Cassandra takes a map of clustering columns for one of static ones
            key, value = (f"frozen<{t}>" if is_multicell(t) else t for t in (type_, other))
            choices.append(f"(map<{key}, {value}>){{{a}: {c}}}")
        return self.rng.choice(choices)

    def selector(self):
        name, type_ = self.rng.choice(self.columns)
        if self.chance(0.05):
            return self.together()
        if self.chance(0.08):
            return call(self.rng, name, type_)
        if self.chance(0.1):
            return self.time_selector(*self.rng.choice(self.columns if self.chance(0.1) else self.regular + self.static or self.columns))
        kind, writable = self.rng.random(), (name, type_) in self.regular + self.static
        bare, bare_collection = type_.replace("frozen<", "").replace(">", ""), type_[7:-1] if type_.startswith("frozen<") else type_
        if bare in self.values.user_types and kind < 0.6:
            part = f"{name}.{self.types.a_field(bare)[0]}"
            return self.rng.choice([part, part, f"toJson({name})"] + ([f"WRITETIME({part})", f"MAXWRITETIME({name})"] if writable and self.clock == "explicit" else []))
        if kind < 0.4 or bare in self.values.user_types:
            return name
        if kind < 0.55 and writable:
            return self.rng.choice([f"TTL({name})"] * (not is_multicell(type_)) + ([f"MAXWRITETIME({name})"] if self.clock == "explicit" and not self.counters else [name]) + ([f"WRITETIME({name})"] if self.clock == "explicit" and not self.counters else []))
        if kind < 0.65:
            casts = [c for c in CASTS.get(type_, ["text", "ascii"]) if c != type_] if "<" not in type_ and type_ != "blob" else []
            return f"CAST({name} AS {self.rng.choice(casts)})" if casts else name
        if kind < 0.7:
            return f"toJson({name})"
        if kind < 0.72 and "<" not in type_:
            return self.rng.choice([f"({type_}){name}", f"(blob){name}" if type_ != "counter" else name])
        if kind < 0.75:
            return f"token({', '.join(n for n, _ in self.pk)})"
        if kind < 0.8 and type_ != "blob":
            return f"{type_.split('<')[0]}AsBlob({name})" if "<" not in type_ else f"toJson({name})"
        if kind < 0.9 and type_ == f"map<int, frozen<{self.types.outer}>>":
            return f"{name}[{self.values.literal('int')}].{self.types.a_field(self.types.outer)[0]}"
        if kind < 0.9 and bare_collection.startswith(("map<", "set<")) and not any(u in type_ for u in self.values.user_types):
            return self.part(name, bare_collection)
        if kind < 0.95 and type_ in NUMBERS:
            other = self.rng.choice([n for n, t in self.columns if t in NUMBERS])
            return f"{name} {self.rng.choice('+-*/%')} {self.rng.choice(['2', '3', '-7', '1.5', other, other])}"
        return f"{name} AS x_{name}"

    def part(self, name, collection):
        """An element or a slice of a map or a set, or what a function or another subscript makes of it."""
        inner = parameters(collection)[0]
        low, high = self.values.literal(inner), self.values.literal(inner)
        element, piece = f"{name}[{low}]", self.rng.choice([f"{name}[{low}..{high}]", f"{name}[{low}..]", f"{name}[..{high}]"])
        if self.chance(0.6):
            return self.rng.choice([element, piece])
        of_piece = ["collection_count({})", "toJson({})", "{} AS x_part", f"{{}}[{low}]", f"{{}}[{low}..]"]
        of_piece += ["map_keys({})", "map_values({})"] if collection.startswith("map<") else ["collection_max({})"]
        return self.rng.choice([f"toJson({element})", f"{element} AS x_part"] + [f.format(piece) for f in of_piece])

    def aggregate(self):
        name, type_ = self.rng.choice(self.columns)
        numeric = [n for n, t in self.columns if t in NUMBERS or t == "counter"]
        choices = ["count(*)", f"count({name})", "count(1)", "max(7)", "min('a')", "sum(1.5)", "avg(-3)", "max([1, 2])", "min((1, 'a'))"]
        if type_ != "timeuuid":  # has an odd type there
            choices += [f"min({name})", f"max({name})"]
        writable = [c for c in self.regular + self.static if not is_multicell(c[1]) and not self.types.is_multicell(c[1])]
        if writable and self.clock == "explicit" and not self.counters and self.chance(0.3):
            of = self.rng.choice(writable)[0]
            return self.rng.choice([f"max(WRITETIME({of}))", f"min(WRITETIME({of}))", f"sum(WRITETIME({of}))", f"count(TTL({of}))", f"max(TTL({of}))", f"avg(MAXWRITETIME({of}))"])
        if numeric:
            choices += [f"sum({self.rng.choice(numeric)})", f"avg({self.rng.choice(numeric)})"]
        if self.chance(0.1):
            return f"{self.rng.choice(['count', 'min', 'max', 'sum', 'avg'])}({call(self.rng, name, type_)})"
        return self.rng.choice(choices)

    def selection(self, grouped, distinct):
        if distinct:
            chosen = [n for n, _ in self.pk + self.some(self.static)]
            if self.chance(0.3):
                chosen += self.rng.choice([[f"count({self.rng.choice(chosen)})"], ["count(*)"], [f"max({n})" for n, t in self.pk if t != "timeuuid"]])
            return ("JSON " if self.chance(0.05) else "") + "DISTINCT " + ", ".join(chosen)
        if grouped or self.chance(0.1):
            plain = [n for n, _ in self.some(self.pk + self.ck)] if grouped else []
            of_first_row = [self.selector() for _ in range(self.rng.choice([0, 0, 1, 2]))]  # their write times too, latched with the group's first row
            chosen = plain + of_first_row + [self.aggregate() for _ in range(self.rng.choice([0, 1, 1, 2] if grouped and plain + of_first_row else [1, 1, 2]))]
            self.rng.shuffle(chosen)
            columns = ", ".join(chosen)
            return columns if self.chance(0.95) or "TTL" in columns else f"JSON {columns}"
        if self.chance(0.45):
            return "*"
        columns = ", ".join(self.selector() for _ in range(self.rng.choice([1, 2, 3])))
        return columns if self.chance(0.9) or "TTL" in columns else f"JSON {columns}"

    def ordering(self):
        if not self.ck or not self.chance(0.35):
            return ""
        flip = self.chance(0.5)
        columns = list(zip(self.ck, self.desc))[:self.rng.randrange(len(self.ck)) + 1]
        orders = [f"{n} {'DESC' if d != flip else 'ASC'}" for (n, _), d in columns]
        if self.chance(0.1):  # one twice, the last wins; now and then in a direction or place that cannot be
            orders.insert(self.rng.randrange(len(orders) + 1), self.rng.choice(orders[:-1] + [f"{n} {self.rng.choice(['ASC', 'DESC'])}" for (n, _), _ in columns]))
        elif self.chance(0.03):
            orders.append(self.rng.choice(self.columns)[0])
        return " ORDER BY " + ", ".join(orders)

    def grouping(self, distinct):
        if not self.chance(0.15):
            return ""
        names = [n for n, _ in self.pk + ([] if distinct and self.chance(0.8) else self.ck)]
        taken = names[:self.rng.randrange(len(self.pk) - (self.chance(0.05)), len(names) + 1)] or names
        kind = dict(self.pk + self.ck)[taken[-1]]
        if kind in OF_TIMES and self.chance(0.6):
            taken[-1] = self.rng.choice(OF_TIMES[kind]).format(taken[-1])
        elif self.chance(0.05):
            taken[-1] = f"-{taken[-1]}" if kind in NUMBERS else f"toJson({taken[-1]})"
        return " GROUP BY " + ", ".join(taken)

    def select(self):
        distinct = bool(self.chance(0.08))
        grouping = self.grouping(distinct)
        where = []
        if self.chance(0.7):
            where = self.partition_relations(full=False) + ([] if distinct else self.clustering_relations())
        elif self.chance(0.3):
            where = self.token_relations()
        filtering = self.chance(0.3)
        if filtering:
            where += [self.filter_relation() for _ in range(self.rng.choice([1, 1, 2]))]
        order = self.ordering() if where or self.chance(0.05) else ""
        return (f"SELECT {self.selection(bool(grouping), distinct)} FROM {self.name}" + (f" WHERE {' AND '.join(where)}" if where else "") + grouping + order
                + (f" PER PARTITION LIMIT {self.number('int', self.rng.randrange(1, 4))}" if self.chance(0.15) else "")
                + (f" LIMIT {self.number('int', self.rng.randrange(1, 6))}" if self.chance(0.25) else "")
                + (" ALLOW FILTERING" if filtering and self.chance(0.95) or self.chance(0.1) else ""))

    def alter(self):
        """A field more of a user type, or another name of one; a column that goes and one that comes back; a key column's other name; the table goes and comes
        back; a column of any type, which no statement writes and every SELECT * reads."""
        self.altered = True
        kind = self.rng.random()
        if kind < 0.2:
            return self.types.alter(self.ck)
        if kind < 0.3:
            return self.types.rename()
        if 0.6 <= kind < 0.65:
            return self.rename_key()
        if 0.65 <= kind < 0.7:
            return f"ALTER TABLE {self.name} WITH default_time_to_live = {self.rng.choice([0, 200000])}"
        if 0.7 <= kind < 0.75:
            return self.drop_and_create()
        if kind < 0.6 and not self.counters and (self.dropped or self.regular):
            return self.drop_or_add()
        self.added += 1
        return f"ALTER TABLE {self.name} ADD a{self.added} {nested_type(self.rng, self.rng.choice([0, 1, 2, 3, 5, 12, 24]))}"

    def description(self, rng):
        """A statement that tells what the table and its types are."""
        keyspace, name = self.name.split(".")
        where = f"WHERE keyspace_name = '{keyspace}' AND"
        return rng.choice([f"DESCRIBE TABLE {self.name}", f"DESCRIBE TYPE {keyspace}.{rng.choice(list(self.values.user_types))}",
                           f"SELECT * FROM system_schema.columns {where} table_name = '{name}'", f"SELECT * FROM system_schema.types {where} type_name = '{self.types.outer}'",
                           f"SELECT column_name, kind, type FROM system_schema.dropped_columns {where} table_name = '{name}'"])

    def truncate(self):
        return f"TRUNCATE {self.rng.choice(['', 'TABLE '])}{self.name}"

    def rename_key(self):
        if_exists = self.rng.choice(["", " IF EXISTS"])
        if self.chance(0.3):  # what cannot be: no such column, no key, a name that is taken
            wrong = [("nope", "x"), (self.pk[0][0], self.columns[-1][0]), *((n, "x") for n, _ in self.regular[:1])]
            return f"ALTER TABLE {self.name} RENAME{if_exists} {' TO '.join(self.rng.choice(wrong))}"
        keys = self.rng.choice([self.pk, self.ck or self.pk])
        i = self.rng.randrange(len(keys))
        old, type_ = keys[i]
        keys[i] = (f"{old}n", type_)
        self.columns[self.columns.index((old, type_))] = keys[i]
        return f"ALTER TABLE {self.name} RENAME{if_exists} {old} TO {old}n"

    def drop_and_create(self):
        self.dropped = []
        self.created_again = True
        self.next = [self.table_ddl()]
        return f"DROP TABLE {self.name}"

    def drop_or_add(self):
        if self.dropped and self.chance(0.7):
            name, type_ = self.dropped.pop()
            self.regular.append((name, type_))
            self.columns.append((name, type_))
            return f"ALTER TABLE {self.name} ADD {name} {type_}"
        # User types turn into tuples; where durations were dropped Cassandra fails inside from then on.
        droppable = [c for c in self.regular if "duration" not in c[1] and not any(u in c[1] for u in self.values.user_types)]
        if not droppable:
            return f"ALTER TABLE {self.name} DROP {self.rng.choice(self.columns)[0]}_"
        column = self.rng.choice(droppable)
        self.regular.remove(column)
        self.columns.remove(column)
        self.dropped.append(column)
        self.drop_time = self.rng.randrange(self.drop_time, 12)  # what an earlier drop hid comes back with an older one in Cassandra, and not in Tally, which has let it go
        return f"ALTER TABLE {self.name} DROP {column[0]}" + (f" USING TIMESTAMP {self.drop_time}" if self.clock == "explicit" else "")

    def statement(self):
        if self.next:
            return self.next.pop()
        self.dense = False
        self.dense = self.chance(0.2)
        makers = [self.insert, self.update, self.delete, self.batch, self.select, self.alter, self.truncate]
        weights = [20, 18, 10, 8, 44, 1.2, 0.15]
        if self.clock == "server" and not self.counters:
            makers, weights = makers + [self.lwt], weights + [15]
        if not self.counters:
            makers, weights = makers + [self.batch_now, self.insert_now, self.append_now, self.delete_now, self.select_now], weights + [4, 1, 1, 1, 7]
        return self.rng.choices(makers, weights)[0]()
