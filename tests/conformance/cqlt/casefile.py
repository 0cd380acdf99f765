"""Reading and writing *.cqlt files. The format is described in tests/conformance/README.md."""
import re

OUTCOME = ("|", "=", "!", "~", "?")
MODES = ("keyspaces", "cassandra")


class BadCase(Exception):
    pass


class Statement:
    """One block: the statement, how it is sent, and what comes back."""
    def __init__(self, line):
        self.line = line
        self.batch = None          # kind of a batch message, then `entries` are its parts
        self.open_batch = False    # until `apply` is read
        self.entries = []          # per part (one, but for batches): its lines
        self.binds = []            # per part: the texts of its @bind lines
        self.head = []             # the lines above the outcome, as written
        self.options = {}
        self.marks = {}            # column -> None for any value, (low, high) for a range
        self.outcome = []
        self.differs = []          # [(modes, reason, header line, outcome lines)]

    def started(self):
        return self.outcome or self.differs or (self.binds and self.binds[-1]) or (self.options and not self.batch)

    def cql(self, part=0):
        return "\n".join(self.entries[part])

    def expected(self, mode):
        for modes, _, _, outcome in self.differs:
            if mode in modes:
                return outcome
        return self.outcome

    def lines(self):
        out = self.head + self.outcome
        for _, _, header, outcome in self.differs:
            out += [header] + outcome
        return out


class Case:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.options = {}
        self.modes = MODES
        self.items = []            # str for a line that is kept as it is, or Statement

    def statements(self):
        return [i for i in self.items if isinstance(i, Statement)]


class CaseFile:
    def __init__(self, path):
        self.path = path
        self.preamble = []
        self.cases = []
        self.read()

    def fail(self, number, why):
        raise BadCase(f"{self.path}:{number}: {why}")

    def read(self):
        case = statement = None
        target = None
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            if line.startswith("== "):
                case = Case(line[3:].strip(), number)
                if any(c.name == case.name for c in self.cases):
                    self.fail(number, f"a second case called {case.name}")
                self.cases.append(case)
                statement = None
            elif case is None:
                self.preamble.append(line)
            elif line.startswith(":"):
                self.case_option(case, line, number)
            elif line.startswith(("> ", "batch ")) or line == ">":
                if not (statement and statement.open_batch):
                    statement = Statement(number)
                    case.items.append(statement)
                    target = statement.outcome
                self.statement_line(statement, line)
            elif line.startswith(". ") and statement and not statement.started():
                statement.entries[-1].append(line[2:])
                statement.head.append(line)
            elif line.startswith("@") and statement:
                self.option(statement, line, number)
            elif line.startswith("differs") and statement:
                target = self.differs(statement, line, number)
            elif line.startswith(OUTCOME) and statement:
                target.append(line)
            elif not line.strip() or line.startswith("#"):
                case.items.append(line)
                if not (statement and statement.open_batch):
                    statement = target = None
            elif line == "apply" and statement and statement.open_batch:
                statement.open_batch = False
                statement.head.append(line)
            else:
                self.fail(number, f"not understood: {line}")

    def case_option(self, case, line, number):
        name, _, value = line[1:].strip().partition(" ")
        if name == "only":
            mode, _, reason = value.partition(": ")
            if mode not in MODES or not reason:
                self.fail(number, "write `: only MODE: REASON`")
            case.modes = (mode,)
        elif name in ("protocol", "keyspace"):
            case.options[name] = value
        else:
            self.fail(number, f"no such case option: {name}")
        case.items.append(line)

    def statement_line(self, statement, line):
        if line.startswith("batch "):
            statement.batch, statement.open_batch = line.split()[1], True
        else:
            statement.entries.append([line[2:]])
            statement.binds.append([])
        statement.head.append(line)

    def option(self, statement, line, number):
        name, _, value = line[1:].partition(" ")
        value = value.strip()
        if name == "bind":
            statement.binds[-1].append(value)
        elif name == "any":
            statement.marks.update((c.strip(), None) for c in value.split(";"))
        elif name == "range":
            m = re.fullmatch(r"(.+?) (-?\d+)\.\.(-?\d+)", value)
            if not m:
                self.fail(number, "write `@range COLUMN LOW..HIGH`")
            statement.marks[m[1]] = (int(m[2]), int(m[3]))
        elif name in ("query", "prepare", "page", "consistency", "serial", "timestamp", "keyspace", "now", "pages"):
            statement.options[name] = value or True
        else:
            self.fail(number, f"no such option: @{name}")
        statement.head.append(line)

    def differs(self, statement, line, number):
        m = re.fullmatch(r"differs(?: in (keyspaces|cassandra) mode)?: (.+)", line)
        if not m:
            self.fail(number, "write `differs: REASON` or `differs in MODE mode: REASON`")
        entry = ((m[1],) if m[1] else MODES, m[2], line, [])
        statement.differs.append(entry)
        return entry[3]

    def write(self):
        out = list(self.preamble)
        for case in self.cases:
            out.append("== " + case.name)
            for item in case.items:
                out += item.lines() if isinstance(item, Statement) else [item]
        self.path.write_text("\n".join(out).rstrip("\n") + "\n")
