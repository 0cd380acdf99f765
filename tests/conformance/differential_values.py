"""Random CQL values, as literals and as what the Python driver binds for them.

A literal in a statement stands between marks, with its type, so that one statement can be sent with its literals in the text or
prepared with a bind marker in place of each.
"""
import decimal
import json
import re
import uuid

from cassandra.cqltypes import CompositeType, DynamicCompositeType, IntegerType
from cassandra.marshal import varint_pack
from cassandra.query import UNSET_VALUE
from cassandra.util import Date, Duration, SortedSet, Time

# A few literals of each type, in no order; the key space stays small on purpose.
LITERALS = {
    "int": ["-2147483648", "-1", "0", "7", "2147483647"],
    "bigint": ["-9223372036854775808", "-5", "0", "300", "9223372036854775807"],
    "smallint": ["-32768", "-2", "0", "9"],
    "tinyint": ["-128", "-3", "0", "127"],
    "text": ["''", "'a'", "'ab'", "'b'", "'é'", "'zz'", "'a\0b'", "'😀'"],
    "ascii": ["'A'", "'a'", "'aa'", "'~'", "'a\0'"],
    "blob": ["0x", "0x00", "0x0001", "0xff", "0xff00"],
    "boolean": ["true", "false"],
    "double": ["-1.5", "0.0", "-0.0", "1e300", "NaN", "-Infinity"],
    "float": ["-2.5", "0.0", "3.25", "Infinity"],
    "decimal": ["-1.50", "0", "10", "0.001", "123456789012345678901234567890.5"],
    "varint": ["-129", "-128", "0", "127", "0127", "128", "99999999999999999999"],
    "timestamp": ["'1969-12-31T23:59:59.999Z'", "0", "'2026-11-21T00:00:00Z'", "1700000000000", "'2024-7-1 9:05'", "'2024-01-15 12:00:00 CET'", "'2024-07-01 12:00:00 CET'",
                  "'2024-03-31 02:30 CEST'", "'2024-11-03 01:30 America/New_York'", "'2055-07-01 12:00 Pacific Time'"],
    "date": ["'1969-12-31'", "'1970-01-01'", "'2026-11-21'"],
    "time": ["'00:00:00'", "'12:30:00.123456789'", "'23:59:59.999999999'"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "8e14e760-7fa8-11eb-bc66-000000000001", "f47ac10b-58cc-4372-a567-0e02b2c3d479"],
    "timeuuid": ["8e14e760-7fa8-11eb-bc66-000000000001", "8e14e760-7fa8-11eb-bc66-ff0000000001", "13814000-1dd2-11b2-8080-808080808080"],
    "inet": ["'127.0.0.1'", "'10.0.0.1'", "'::ffff:10.0.0.1'", "'::1'", "'2001:db8::1'"],
}
# Types that a class in quotes names: each literal with its bytes. Equal values have equal bytes.
COMPOSITE, DYNAMIC, LEXICAL = "'CompositeType(Int32Type,UTF8Type)'", "'DynamicCompositeType(i=>Int32Type,t=>UTF8Type)'", "'LexicalUUIDType'"
CLASSES = {
    LEXICAL: {u: u.replace("-", "") for u in LITERALS["uuid"]} | {"'f-1-1-f000-1'": "0000000f00010001f000000000000001"},
    COMPOSITE: {"'1:a'": "0004000000010000016100", "'-1:b'": "0004ffffffff0000016200", "'7'": "00040000000700", "'7:a:!'": "0004000000070000016101",
                "'7:_'": "000400000007ff", "0xffff00040000000700": "ffff00040000000700", "':'": "000000000000"},
    DYNAMIC: {"'i@1:t@a'": "80690004000000010080740001" + "6100", "'t@b'": "807400016200", "'i@-1'": "80690004ffffffff00", "'LongType@5:!'": "00084c6f6e675479706500080000000000000005" + "01",
              "'i'": "8069000000", "0x807400016101": "807400016101"},
}
DURATIONS = {"1y2mo3d": Duration(14, 3, 0), "-12h30m": Duration(0, 0, -45000000000000), "PT5S": Duration(0, 0, 5000000000), "1mo": Duration(1, 0, 0)}  # are in no order
MILLISECONDS = {"'1969-12-31T23:59:59.999Z'": -1, "'2026-11-21T00:00:00Z'": 1795219200000, "'2024-7-1 9:05'": 1719824700000,
                "'2024-01-15 12:00:00 CET'": 1705316400000, "'2024-07-01 12:00:00 CET'": 1719828000000, "'2024-03-31 02:30 CEST'": 1711848600000,
                "'2024-11-03 01:30 America/New_York'": 1730611800000, "'2055-07-01 12:00 Pacific Time'": 2698081200000}
MARKED = re.compile("\x01([^\x03]*?)\x02([^\x03]*)\x03", re.DOTALL)


def parameters(type_):
    """What stands between the angle brackets of a type, split at its outermost commas."""
    parts, depth, in_quotes = [""], 0, False
    for c in type_[type_.index("<") + 1:-1]:
        in_quotes ^= c == "'"
        depth += 0 if in_quotes else (c == "<") - (c == ">")
        if c == "," and depth == 0 and not in_quotes:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]


def is_multicell(type_):
    return type_.startswith(("list<", "set<", "map<"))


class Padded(int):
    """A varint that is bound with a byte more than it needs."""


def varint_bytes(value, _version):
    sign = b"\xff" if value < 0 else b"\0"
    return (sign if isinstance(value, Padded) else b"") + varint_pack(value)


IntegerType.serialize = staticmethod(varint_bytes)
for class_ in (CompositeType, DynamicCompositeType):  # bytes both ways
    class_.serialize_safe = class_.deserialize_safe = classmethod(lambda _class, value, _version: value)


def scalar_value(type_, text):
    if type_ in CLASSES:
        return bytes.fromhex(CLASSES[type_][text])
    if type_ == "varint" and text.startswith("0") and text != "0":
        return Padded(text)
    if type_ in ("int", "bigint", "smallint", "tinyint", "varint", "counter"):
        return int(text)
    if type_ in ("text", "ascii", "inet"):
        return text[1:-1]
    if type_ in ("double", "float"):
        return float(text)
    convert = {"duration": DURATIONS.get, "blob": lambda t: bytes.fromhex(t[2:]), "boolean": lambda t: t == "true", "decimal": decimal.Decimal, "uuid": uuid.UUID,
               "timeuuid": uuid.UUID, "date": lambda t: Date(t[1:-1]), "time": lambda t: Time(t[1:-1]),
               "timestamp": lambda t: MILLISECONDS[t] if t in MILLISECONDS else int(t)}
    return convert[type_](text)


def scalar_json(type_, text):
    if type_ == "varint":
        return str(int(text))
    if type_ == "blob":
        return json.dumps(text)
    if type_ == LEXICAL and text.startswith("'"):
        return json.dumps(str(uuid.UUID(CLASSES[type_][text])))
    if text.startswith("'"):
        return json.dumps(text[1:-1], ensure_ascii=len(text) == 3)  # half of the texts with escape sequences, some of them surrogate pairs
    if type_ == "decimal":  # as a JSON number it loses a zero, and which of two equal keys stays is a matter of luck
        return json.dumps(text)
    return json.dumps(text) if type_ in ("uuid", "timeuuid", "duration", LEXICAL, COMPOSITE, DYNAMIC) or text in ("NaN", "Infinity", "-Infinity") else text


class Values:
    """Makes literals; remembers what the driver binds, and the JSON, for each."""

    def __init__(self, rng):
        self.rng, self.known, self.texts = rng, {("null", "null"): (None, "null")}, {}
        self.user_types = {}  # name -> [(field, type)]
        self.one_form = False  # equal values are bound with equal bytes

    def plain(self, type_, least=0):
        """The text of a random literal; a collection has at least so many elements."""
        if type_.startswith("frozen<"):
            return self.plain(type_[7:-1], least)
        if type_ in self.user_types:
            return self.user_value(type_)
        if type_ in CLASSES or "<" not in type_:
            text = self.rng.choice(list(DURATIONS) if type_ == "duration" else list(CLASSES.get(type_) or LITERALS[type_]))
            value = scalar_value(type_, text)
            self.known[type_, text] = (int(value) if self.one_form and isinstance(value, Padded) else value, scalar_json(type_, text))
            return text
        kind, inner = type_[:type_.index("<")], parameters(type_)
        if kind == "tuple":
            items = [self.plain(t) for t in inner]
            values = [self.known[self.key(t, i)] for t, i in zip(inner, items)]
            text, value, js = f"({', '.join(items)})", tuple(v for v, _ in values), f"[{', '.join(j for _, j in values)}]"
        elif kind == "map":
            pairs = {self.plain(inner[0]): self.plain(inner[1]) for _ in range(self.rng.randrange(least, 4))}
            both = [(self.known[self.key(inner[0], k)], self.known[self.key(inner[1], v)]) for k, v in pairs.items()]
            text, value = "{%s}" % ", ".join(f"{k}: {v}" for k, v in pairs.items()), {k[0]: v[0] for k, v in sorted(both, key=lambda pair: pair[0][0])}
            js = "{%s}" % ", ".join(f"{k[1] if k[1].startswith(chr(34)) else json.dumps(k[1])}: {v[1]}" for k, v in both)
        else:
            items = [self.plain(inner[0]) for _ in range(int(inner[1]) if kind == "vector" else self.rng.randrange(least, 4))]
            items = list(dict.fromkeys(items)) if kind == "set" else items
            values = [self.known[self.key(inner[0], i)] for i in items]
            text, value = ("{%s}" if kind == "set" else "[%s]") % ", ".join(items), [v for v, _ in values]
            value = SortedSet(value) if kind == "set" else value  # Cassandra keeps what is bound in the order it came in
            js = f"[{', '.join(j for _, j in values)}]"
        self.known[type_, text] = (value, js)
        return text

    def user_value(self, type_):
        """Of a user type: any of its fields, in any order; those that are left out are null."""
        fields = self.user_types[type_]
        given = {n: (t, self.plain(t)) for n, t in fields if self.rng.random() < 0.8}
        values = [self.known[self.key(*given[n])] if n in given else (None, "null") for n, _ in fields]
        order = self.rng.sample(sorted(given), len(given)) or [fields[0][0]]
        text = "{%s}" % ", ".join(f"{n}: {given[n][1] if n in given else 'null'}" for n in order)
        js = "{%s}" % ", ".join(f'"{n}": {v[1]}' for (n, _), v in zip(fields, values))
        self.known[type_, text] = (tuple(v for v, _ in values), js)
        return text

    @staticmethod
    def key(type_, text):
        while type_.startswith("frozen<"):
            type_ = type_[7:-1]
        return type_, text

    def marked(self, type_, text):
        return f"\x01{type_}\x02{text}\x03"

    def literal(self, type_, least=0):
        return self.marked(type_, self.plain(type_, least))

    def number(self, type_, n):
        """A literal of this number."""
        self.known[type_, str(n)] = (n, str(n))
        return self.marked(type_, str(n))

    def json_text(self, text):
        """A literal of this text, which has no quote in it."""
        self.known["text", f"'{text}'"] = (text, "")
        return self.marked("text", f"'{text}'")

    def together(self, literals):
        """A tuple of these literals, as one."""
        found = [MARKED.fullmatch(x).groups() for x in literals]
        type_, text = f"tuple<{', '.join(t for t, _ in found)}>", f"({', '.join(x for _, x in found)})"
        self.known[type_, text] = (tuple(self.known[self.key(t, x)][0] for t, x in found), "")
        return self.marked(type_, text)

    def list_of(self, literals):
        """What stands to the right of IN, of these literals of one type, as one."""
        found = [MARKED.fullmatch(x).groups() for x in literals]
        type_, text = f"list<{found[0][0]}>", f"({', '.join(x for _, x in found)})"
        self.known[type_, text] = ([self.known[self.key(t, x)][0] for t, x in found], "")
        return self.marked(type_, text)

    def computed(self, type_):
        """A term that is computed from literals."""
        a, b = self.literal(type_, 1), self.literal(type_, 1)
        if "'" in type_:
            return a  # Tally reads no class in quotes as a hint of a value
        choices = [f"({type_}){a}"]
        if type_ in ("int", "bigint", "smallint", "tinyint", "varint", "double", "float", "decimal"):
            source = self.rng.choice(["int", "bigint", "double", "varint"])
            choices += [f"CAST(({source}){self.literal(source)} AS {type_})"]
            choices += [f"{a} {self.rng.choice('+-*')} {b}", f"-{a}", f"({type_}){a} {self.rng.choice('+-*/%')} ({type_}){b}"]
        if type_ in ("timestamp", "date"):
            choices += [f"{a} + {self.literal('duration')}", f"({type_}){a} - 1d"]
        if type_ == "text":
            choices += [f"CAST({self.literal('int')} AS text)", f"CAST((date){self.literal('date')} AS text)"]
        if "<" not in type_ and type_ not in self.user_types and type_ != "blob":
            choices += [f"blobAs{type_}({type_}AsBlob({a}))", f"blob_as_{type_}({type_}_as_blob(({type_}){a}))"]
        if type_ in LITERALS:
            choices += [f"fromJson({self.json_text(self.json_of(a))})"]
        return self.rng.choice(choices)

    def maybe(self, type_):
        if self.rng.random() < 0.04:
            return self.computed(type_)
        return self.marked(type_, "null") if self.rng.random() < 0.15 else self.literal(type_)

    def several(self, type_):
        """The right side of IN."""
        items = [self.plain(type_, 1) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        if self.rng.random() < 0.5:
            return f"({', '.join(self.marked(type_, i) for i in items)})"
        text = f"({', '.join(items)})"
        self.known[f"list<{type_}>", text] = ([self.known[self.key(type_, i)][0] for i in items], "")
        return self.marked(f"list<{type_}>", text)

    def json_of(self, marked):
        match = MARKED.fullmatch(marked)
        if not match:  # is computed
            return "null"
        type_, text = match.groups()
        return "null" if text == "null" else self.known[self.key(type_, text)][1]

    def bound(self, statement):
        """The statement with bind markers, and what to bind."""
        found = MARKED.findall(statement)
        return MARKED.sub("?", statement), [self.null() if x == "null" else self.known[self.key(t, x)][0] for t, x in found]

    def null(self):
        return UNSET_VALUE if self.rng.random() < 0.3 else None


def as_text(statement):
    return MARKED.sub(lambda m: m.group(2), statement)
