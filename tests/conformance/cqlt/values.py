"""CQL values as text and as bytes of the native protocol (section 6 of its specification), for case files.

Written apart from the driver's own types on purpose: a case shows exactly what crossed the wire. A value whose bytes are not
what its text would be encoded to is shown as `raw 0x...`, so nothing is lost by printing it.
"""
import datetime
import decimal
import ipaddress
import re
import struct
import uuid

INTEGERS = {"tinyint": ">b", "smallint": ">h", "int": ">i", "bigint": ">q", "counter": ">q"}
TEXTS = ("text", "ascii")
EPOCH_DATE = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)
UNSET = object()
DURATION_CLASS = "custom(org.apache.cassandra.db.marshal.DurationType)"     # how v3 and v4 call the type


class BadValue(Exception):
    pass


def split_type(name):
    """'map<int, list<text>>' -> ('map', ['int', 'list<text>'])"""
    name = name.strip()
    if "<" not in name:
        return {"varchar": "text", DURATION_CLASS: "duration"}.get(name, name), []
    head, inner = name[:name.index("<")], name[name.index("<") + 1:-1]
    if head == "frozen":
        return split_type(inner)
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(inner):
        depth += (ch == "<") - (ch == ">")
        if ch == "," and depth == 0:
            parts.append(inner[start:i].strip())
            start = i + 1
    parts.append(inner[start:].strip())
    return head, parts


# ---------------------------------------------------------------- text -> bytes

class Reader:
    """Reads values of known types from one line of text."""
    WORD = re.compile(r"[^\s,\[\]{}():']+")

    def __init__(self, text):
        self.text, self.pos = text, 0

    def space(self):
        while self.pos < len(self.text) and self.text[self.pos].isspace():
            self.pos += 1

    def peek(self):
        self.space()
        return self.text[self.pos] if self.pos < len(self.text) else ""

    def take(self, ch):
        if self.peek() == ch:
            self.pos += 1
            return True
        return False

    def expect(self, ch):
        if not self.take(ch):
            raise BadValue(f"expected {ch!r} at {self.text[self.pos:]!r}")

    def word(self):
        self.space()
        m = self.WORD.match(self.text, self.pos)
        if not m:
            raise BadValue(f"expected a value at {self.text[self.pos:]!r}")
        self.pos = m.end()
        return m.group()

    def quoted(self):
        self.expect("'")
        out = []
        while True:
            if self.pos >= len(self.text):
                raise BadValue("unfinished string")
            ch = self.text[self.pos]
            self.pos += 1
            if ch == "\\":
                ch = self.text[self.pos]
                self.pos += 1
                if ch == "x":
                    out.append(chr(int(self.text[self.pos:self.pos + 2], 16)))
                    self.pos += 2
                else:
                    out.append({"n": "\n", "r": "\r", "t": "\t"}.get(ch, ch))
            elif ch == "'":
                if self.pos < len(self.text) and self.text[self.pos] == "'":
                    self.pos += 1
                    out.append("'")
                else:
                    return "".join(out)
            else:
                out.append(ch)

    def type_name(self):
        self.space()
        start, depth = self.pos, 0
        while self.pos < len(self.text):
            ch = self.text[self.pos]
            depth += (ch == "<") - (ch == ">")
            if depth == 0 and (ch.isspace() or (ch == "," )):
                break
            self.pos += 1
        return self.text[start:self.pos]

    def value(self, type_name):
        """The bytes of the value that comes next, None for null."""
        head, params = split_type(type_name)
        nxt = self.peek()
        if nxt not in "'[{(":
            mark = self.pos
            word = self.word()
            if word == "null":
                return None
            if word == "empty":
                return b""
            if word == "raw":
                return bytes.fromhex(self.word()[2:])
            self.pos = mark
        if head in ("list", "set", "map"):
            return self.collection(head, params)
        if head == "tuple":
            self.expect("(")
            out = b""
            for i, p in enumerate(params):
                if i:
                    self.expect(",")
                out += with_length(self.value(p))
            self.expect(")")
            return out
        if head == "udt":
            return self.user_value(params)
        text = self.quoted() if nxt == "'" else self.scalar_word(head)
        return encode_scalar(head, text)

    def user_value(self, params):
        self.expect("{")
        out = b""
        for i, (field, type_name) in enumerate(p.split(":", 1) for p in params[1:]):
            if i:
                self.expect(",")
            if self.word() != field:
                raise BadValue(f"expected field {field}")
            self.expect(":")
            out += with_length(self.value(type_name))
        self.expect("}")
        return out

    def scalar_word(self, head):
        if head in ("timestamp", "time"):
            self.space()
        return self.word()

    def collection(self, head, params):
        opening, closing = ("[", "]") if head == "list" else ("{", "}")
        self.expect(opening)
        out, count = b"", 0
        while not self.take(closing):
            if count:
                self.expect(",")
            out += with_length(self.value(params[0]))
            if head == "map":
                self.expect(":")
                out += with_length(self.value(params[1]))
            count += 1
        return struct.pack(">i", count) + out


def with_length(value):
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def int_bytes(n):
    return n.to_bytes((n + (n < 0)).bit_length() // 8 + 1, "big", signed=True)


def vint(n):
    """A signed vint: zigzag, then as many leading one bits as there are further bytes."""
    z = (n << 1) ^ (n >> 63)
    for extra in range(9):
        if extra == 8:
            return b"\xff" + z.to_bytes(8, "big")
        if z < 1 << (7 * (extra + 1)):
            body = bytearray(z.to_bytes(extra + 1, "big"))
            body[0] |= (0xff << (8 - extra)) & 0xff
            return bytes(body)


def read_vint(b, pos):
    first, extra = b[pos], 0
    while extra < 8 and first & (0x80 >> extra):
        extra += 1
    z = first & (0xff >> extra) if extra < 8 else 0
    for i in range(extra):
        z = z << 8 | b[pos + 1 + i]
    return (z >> 1) ^ -(z & 1), pos + 1 + extra


def encode_scalar(head, text):
    if head in INTEGERS:
        return struct.pack(INTEGERS[head], int(text))
    if head in TEXTS:
        return text.encode()
    if head == "blob":
        return bytes.fromhex(text[2:])
    if head == "boolean":
        return {"true": b"\1", "false": b"\0"}[text]
    if head == "float":
        return struct.pack(">f", float(text))
    if head == "double":
        return struct.pack(">d", float(text))
    if head == "varint":
        return int_bytes(int(text))
    if head == "decimal":
        sign, digits, exponent = decimal.Decimal(text).as_tuple()
        unscaled = int("".join(map(str, digits)))
        return struct.pack(">i", -exponent) + int_bytes(-unscaled if sign else unscaled)
    if head in ("uuid", "timeuuid"):
        return uuid.UUID(text).bytes
    if head == "inet":
        return ipaddress.ip_address(text).packed
    if head == "date":
        days = int(text) if re.fullmatch(r"-?\d+", text) else (datetime.date.fromisoformat(text) - EPOCH_DATE).days
        return struct.pack(">I", days + (1 << 31))
    if head == "time":
        if re.fullmatch(r"-?\d+", text):
            return struct.pack(">q", int(text))
        h, m, s = text.split(":")
        whole, _, frac = s.partition(".")
        return struct.pack(">q", ((int(h) * 60 + int(m)) * 60 + int(whole)) * 10 ** 9 + int((frac + "0" * 9)[:9]))
    if head == "timestamp":
        if re.fullmatch(r"-?\d+", text):
            return struct.pack(">q", int(text))
        delta = datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%fZ") - EPOCH
        return struct.pack(">q", delta // datetime.timedelta(milliseconds=1))
    if head == "duration":
        m = re.fullmatch(r"(-?\d+)mo(-?\d+)d(-?\d+)ns", text)
        if not m:
            raise BadValue(f"a duration is written 1mo2d3ns, not {text!r}")
        return b"".join(vint(int(g)) for g in m.groups())
    raise BadValue(f"no such type: {head}")


# ---------------------------------------------------------------- bytes -> text

def show(type_name, value):
    """The text of a value; read back by Reader.value it gives the same bytes."""
    if value is None:
        return "null"
    head, params = split_type(type_name)
    if value == b"" and head not in TEXTS and head != "blob":
        return "empty"
    try:
        text = show_known(head, params, value)
        if Reader(text).value(type_name) == value:
            return text
    except (ValueError, struct.error, IndexError, KeyError, OverflowError, BadValue, decimal.DecimalException):
        pass
    return "raw 0x" + value.hex()


def quote(text):
    out = []
    for ch in text:
        if ch == "'":
            out.append("''")
        elif ch == "\\":
            out.append("\\\\")
        elif ch in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[ch])
        elif ord(ch) < 32 or 127 <= ord(ch) < 160:
            out.append(f"\\x{ord(ch):02x}")
        else:
            out.append(ch)
    return "'" + "".join(out) + "'"


def show_float(value, fmt, digits):
    number = struct.unpack(fmt, value)[0]
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    for d in range(1, digits + 1):
        text = f"{number:.{d}g}"
        if struct.pack(fmt, float(text)) == value:
            return text
    return repr(number)


def items(value, params, pairs):
    count, pos = struct.unpack_from(">i", value)[0], 4
    out = []
    for _ in range(count):
        item = []
        for p in params:
            n = struct.unpack_from(">i", value, pos)[0]
            pos += 4
            item.append(show(p, None if n < 0 else value[pos:pos + n]))
            pos += max(n, 0)
        out.append(": ".join(item))
    return ", ".join(out)


def show_fields(types, value):
    pos, out = 0, []
    for t in types:
        n = struct.unpack_from(">i", value, pos)[0]
        pos += 4
        out.append(show(t, None if n < 0 else value[pos:pos + n]))
        pos += max(n, 0)
    return out


def show_known(head, params, value):
    if head in INTEGERS:
        return str(struct.unpack(INTEGERS[head], value)[0])
    if head in TEXTS:
        return quote(value.decode())
    if head == "blob":
        return "0x" + value.hex()
    if head == "boolean":
        return {b"\1": "true", b"\0": "false"}[value]
    if head == "float":
        return show_float(value, ">f", 9)
    if head == "double":
        return show_float(value, ">d", 17)
    if head == "varint":
        return str(int.from_bytes(value, "big", signed=True))
    if head == "decimal":
        scale, unscaled = struct.unpack_from(">i", value)[0], int.from_bytes(value[4:], "big", signed=True)
        return str(decimal.Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)))
    if head in ("uuid", "timeuuid"):
        return str(uuid.UUID(bytes=value))
    if head == "inet":
        return "'" + str(ipaddress.ip_address(value)) + "'"
    if head == "date":
        days = struct.unpack(">I", value)[0] - (1 << 31)
        try:
            return "'" + (EPOCH_DATE + datetime.timedelta(days=days)).isoformat() + "'"
        except OverflowError:
            return str(days)
    if head == "time":
        n = struct.unpack(">q", value)[0]
        seconds, nanos = divmod(n, 10 ** 9)
        return f"'{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{nanos:09d}'"
    if head == "timestamp":
        ms = struct.unpack(">q", value)[0]
        try:
            when = EPOCH + datetime.timedelta(milliseconds=ms)
            return f"'{when.year:04d}-{when:%m-%d %H:%M:%S}.{ms % 1000:03d}Z'"
        except OverflowError:
            return str(ms)
    if head == "duration":
        months, pos = read_vint(value, 0)
        days, pos = read_vint(value, pos)
        nanos, _ = read_vint(value, pos)
        return f"{months}mo{days}d{nanos}ns"
    if head in ("list", "set", "map"):
        body = items(value, params, head == "map")
        return f"[{body}]" if head == "list" else "{" + body + "}"
    if head == "tuple":
        return "(" + ", ".join(show_fields(params, value)) + ")"
    if head == "udt":
        fields, types = zip(*(p.split(":", 1) for p in params[1:]))
        return "{" + ", ".join(f"{f}: {v}" for f, v in zip(fields, show_fields(types, value))) + "}"
    raise BadValue(head)


# ---------------------------------------------------------------- bound values

def read_bound(text):
    """`int 1, text 'x', null, unset, raw 0x00, :name int 2` -> [(name or None, bytes / None / UNSET)]"""
    r, out = Reader(text), []
    while r.peek():
        if out:
            r.expect(",")
        name = None
        if r.take(":"):
            name = r.word()
        r.space()
        mark = r.pos
        kind = r.type_name()
        if kind == "null":
            out.append((name, None))
        elif kind == "unset":
            out.append((name, UNSET))
        elif kind == "raw":
            r.pos = mark
            out.append((name, r.value("blob")))
        else:
            out.append((name, r.value(kind)))
    return out
