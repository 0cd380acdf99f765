"""One connection to a CQL server through the DataStax driver, with requests and responses at the level of the protocol.

The driver connects, negotiates, frames and checks; the bodies of QUERY, PREPARE, EXECUTE and BATCH are written here and the
results read here, because a case pins column specifications, pages and warnings that the driver's session API folds away.
"""
import io
import re
import struct
import threading

from cassandra.connection import DefaultEndPoint
from cassandra.io.libevreactor import LibevConnection
from cassandra.protocol import _MessageType

from values import UNSET

SIMPLE_TYPES = {
    0x01: "ascii", 0x02: "bigint", 0x03: "blob", 0x04: "boolean", 0x05: "counter", 0x06: "decimal", 0x07: "double",
    0x08: "float", 0x09: "int", 0x0B: "timestamp", 0x0C: "uuid", 0x0D: "text", 0x0E: "varint", 0x0F: "timeuuid",
    0x10: "inet", 0x11: "date", 0x12: "time", 0x13: "smallint", 0x14: "tinyint", 0x15: "duration",
}
CONSISTENCY = {"ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6, "EACH_QUORUM": 7,
               "SERIAL": 8, "LOCAL_SERIAL": 9, "LOCAL_ONE": 10}
ERRORS = {0x0000: "ServerError", 0x000A: "ProtocolError", 0x0100: "BadCredentials", 0x1000: "Unavailable",
          0x1001: "Overloaded", 0x1002: "IsBootstrapping", 0x1003: "TruncateError", 0x1100: "WriteTimeout",
          0x1200: "ReadTimeout", 0x1300: "ReadFailure", 0x1400: "FunctionFailure", 0x1500: "WriteFailure",
          0x2000: "SyntaxError", 0x2100: "Unauthorized", 0x2200: "Invalid", 0x2300: "ConfigError",
          0x2400: "AlreadyExists", 0x2500: "Unprepared"}
QUERY, PREPARE, EXECUTE, BATCH = 0x07, 0x09, 0x0A, 0x0D


class Lost(Exception):
    """The connection broke or no answer came."""


class Request(_MessageType):
    name = "REQUEST"
    opcode = -1                # the driver registers the class by it; each request has its own

    def __init__(self, opcode, body):
        self.opcode, self.body = opcode, body

    def send_body(self, f, protocol_version):
        f.write(self.body)


class Cursor:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, n):
        if self.pos + n > len(self.data):
            raise ValueError("response body too short")
        out = self.data[self.pos:self.pos + n]
        self.pos += n
        return out

    def unpack(self, fmt):
        return struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0]

    def int(self):
        return self.unpack(">i")

    def short(self):
        return self.unpack(">H")

    def byte(self):
        return self.unpack(">B")

    def string(self):
        return self.take(self.short()).decode()

    def bytes(self):
        n = self.int()
        return None if n < 0 else self.take(n)

    def short_bytes(self):
        return self.take(self.short())

    def type(self):
        option = self.short()
        if option in SIMPLE_TYPES:
            return SIMPLE_TYPES[option]
        if option == 0:
            return f"custom({self.string()})"
        if option == 0x20:
            return f"list<{self.type()}>"
        if option == 0x22:
            return f"set<{self.type()}>"
        if option == 0x21:
            key = self.type()
            return f"map<{key}, {self.type()}>"
        if option == 0x31:
            return "tuple<" + ", ".join(self.type() for _ in range(self.short())) + ">"
        if option == 0x30:
            name = f"{self.string()}.{plain_word(self.string())}"
            return f"udt<{', '.join([name] + [f'{plain_word(self.string())}:{self.type()}' for _ in range(self.short())])}>"
        raise ValueError(f"type option 0x{option:04x}")


def plain_word(name):
    """A name of a user type or a field, what is no letter, digit or underscore as %xx."""
    return "".join(ch if re.fullmatch(r"\w", ch, re.ASCII) else f"%{ord(ch):02x}" for ch in name)


class Columns:
    """Column specifications: [(keyspace, table, name, type)], with the paging state that travels beside them."""
    def __init__(self, c, version, prepared=False):
        flags, count = c.int(), c.int()
        self.key_indexes = [c.short() for _ in range(c.int())] if prepared and version >= 4 else []
        self.paging_state = c.bytes() if not prepared and flags & 2 else None
        if not prepared and flags & 8:
            c.short_bytes()
        self.specs = []
        self.count = count
        if not prepared and flags & 4:
            return
        where = (c.string(), c.string()) if flags & 1 and count else None
        for _ in range(count):
            ks, table = where or (c.string(), c.string())
            name = c.string()
            self.specs.append((ks, table, name, c.type()))


class Answer:
    """One response. kind: void, rows, keyspace, prepared, schema, error."""
    def __init__(self, version, flags, opcode, body):
        c = Cursor(body)
        if flags & 0x02:
            c.take(16)
        self.warnings = [c.string() for _ in range(c.short())] if flags & 0x08 else []
        self.payload = {c.string(): c.bytes() for _ in range(c.short())} if flags & 0x04 else {}
        if opcode == 0:
            self.read_error(c)
        elif opcode == 8:
            self.read_result(c, version)
        else:
            raise ValueError(f"unexpected opcode {opcode}")

    def read_error(self, c):
        self.kind, self.code, self.text = "error", c.int(), c.string()
        self.detail = f" [{c.string()}.{c.string()}]" if self.code == 0x2400 else ""

    def read_result(self, c, version):
        kind = c.int()
        self.kind = {1: "void", 2: "rows", 3: "keyspace", 4: "prepared", 5: "schema"}[kind]
        if kind == 2:
            self.columns = Columns(c, version)
            self.rows = [[c.bytes() for _ in range(self.columns.count)] for _ in range(c.int())]
        elif kind == 3:
            self.keyspace = c.string()
        elif kind == 4:
            self.id = c.short_bytes()
            self.metadata_id = c.short_bytes() if version >= 5 else b""
            self.binds = Columns(c, version, prepared=True)
            self.columns = Columns(c, version)
        elif kind == 5:
            self.change, self.target, self.keyspace = c.string(), c.string(), c.string()
            self.object = c.string() if self.target != "KEYSPACE" else ""


def long_string(text):
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack(">i", len(data)) + data


def value_bytes(value):
    if value is UNSET:
        return struct.pack(">i", -2)
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


class Client:
    TIMEOUT = 30

    def __init__(self, host, port, version):
        LibevConnection.initialize_reactor()
        self.version = version
        self.conn = LibevConnection.factory(DefaultEndPoint(host, port), 10, protocol_version=version)

    def close(self):
        self.conn.close()

    def call(self, opcode, body):
        done, box = threading.Event(), []

        def arrived(response):
            box.append(response)
            done.set()

        def decode(version, user_types, stream, flags, op, data, decompressor, metadata):
            if flags & 0x01:
                data = decompressor(data)
            return Answer(version, flags, op, data)
        with self.conn.lock:
            stream = self.conn.get_request_id()
        try:
            self.conn.send_msg(Request(opcode, body), stream, arrived, decoder=decode)
        except Exception as e:
            raise Lost(str(e)) from e
        if not done.wait(self.TIMEOUT):
            raise Lost(f"no answer in {self.TIMEOUT} s")
        if isinstance(box[0], Exception):
            raise Lost(str(box[0]))
        return box[0]

    def parameters(self, options, bound, paging_state):
        """The <query_parameters> of QUERY and EXECUTE."""
        flags, tail = 0, b""
        if bound:
            flags |= 0x01
            tail += struct.pack(">H", len(bound))
            named = all(name for name, _ in bound)
            flags |= 0x40 if named else 0
            for name, value in bound:
                if named:
                    tail += struct.pack(">H", len(name)) + name.encode()
                tail += value_bytes(value)
        if options.get("page"):
            flags |= 0x04
            tail += struct.pack(">i", int(options["page"]))
        if paging_state is not None:
            flags |= 0x08
            tail += struct.pack(">i", len(paging_state)) + paging_state
        if options.get("serial"):
            flags |= 0x10
            tail += struct.pack(">H", CONSISTENCY[options["serial"]])
        if options.get("timestamp"):
            flags |= 0x20
            tail += struct.pack(">q", int(options["timestamp"]))
        if options.get("keyspace"):
            flags |= 0x80
            tail += struct.pack(">H", len(options["keyspace"])) + options["keyspace"].encode()
        if options.get("now"):
            flags |= 0x100
            tail += struct.pack(">i", int(options["now"]))
        head = struct.pack(">H", CONSISTENCY[options.get("consistency", "LOCAL_QUORUM")])
        return head + struct.pack(">I" if self.version >= 5 else ">B", flags) + tail

    def query(self, cql, options=None, bound=(), paging_state=None):
        return self.call(QUERY, long_string(cql) + self.parameters(options or {}, bound, paging_state))

    def prepare(self, cql):
        return self.call(PREPARE, long_string(cql) + (struct.pack(">I", 0) if self.version >= 5 else b""))

    def execute(self, prepared, options, bound, paging_state=None):
        body = struct.pack(">H", len(prepared.id)) + prepared.id
        if self.version >= 5:
            body += struct.pack(">H", len(prepared.metadata_id)) + prepared.metadata_id
        return self.call(EXECUTE, body + self.parameters(options, bound, paging_state))

    def batch(self, kind, entries, options):
        """entries: [(statement text or Answer of its PREPARE, bound values)]"""
        out = io.BytesIO()
        out.write(struct.pack(">BH", {"logged": 0, "unlogged": 1, "counter": 2}[kind], len(entries)))
        for statement, bound in entries:
            if isinstance(statement, str):
                out.write(b"\0" + long_string(statement))
            else:
                out.write(b"\1" + struct.pack(">H", len(statement.id)) + statement.id)
            out.write(struct.pack(">H", len(bound)))
            for _, value in bound:
                out.write(value_bytes(value))
        flags, tail = 0, b""
        if options.get("timestamp"):
            flags |= 0x20
            tail += struct.pack(">q", int(options["timestamp"]))
        out.write(struct.pack(">H", CONSISTENCY[options.get("consistency", "LOCAL_QUORUM")]))
        out.write(struct.pack(">I" if self.version >= 5 else ">B", flags) + tail)
        return self.call(BATCH, out.getvalue())
