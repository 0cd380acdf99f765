"""What a server answered, as the outcome lines of a case file."""
import re

from values import show
from wire import ERRORS

# Cassandra says so now and then to whoever prepares without naming the keyspace, with a statement id in the text.
ADVICE = "`USE <keyspace>` with prepared statements"
# Cassandra lists signatures as a hash table happens to hold them.
SIGNATURES = re.compile(r"((?:known type|following) signatures: )(.*?)(\)(?:: use type casts to disambiguate)?)$")

REJECTED_TOKEN = re.compile(r"SyntaxError: line \d+:-?\d+ (mismatched input|no viable alternative at input) ")


# Behind it stand the words of Cassandra's JSON reader, with the names of Java's classes.
REJECTED_JSON = re.compile(r".*?(?:(?:Could not decode JSON string(?: as a map| '.*?')|Error decoding JSON string|is not a valid blob representation): |Expected [^:]*, but got )", re.DOTALL)


def same_answer(a, b):
    """Of a token that the grammar rejects, and of what is wrong in a JSON text, only what stands before the details must be the same: the words
    for the details are Tally's own."""
    if REJECTED_TOKEN.search(a) and REJECTED_TOKEN.search(b):
        return True
    json = [REJECTED_JSON.match(x) for x in (a, b)]
    return a == b or bool(all(json) and json[0][0] == json[1][0])


class Page:
    """Keeps what was already said about the columns, so that the next page of a result repeats nothing."""
    def __init__(self):
        self.header = None


def escape(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")


def in_order(text):
    """Lists of signatures sorted."""
    def sort(m):
        return m[1] + ", ".join(sorted(re.split(r", (?=system\.)", m[2]))) + m[3]
    return SIGNATURES.sub(sort, text)


def table_name(columns, keyspace):
    """The table that all columns name, `ks.table` where it is not in the case's own keyspace."""
    names = []
    for ks, table, _, _ in columns.specs:
        name = table if ks == keyspace else f"{ks}.{table}"
        if name not in names:
            names.append(name)
    return " and ".join(names)


def marked(text, mark):
    if text == "null":
        return text
    if mark is None:
        return "<any>"
    low, high = mark
    try:
        return f"<{low}..{high}>" if low <= int(text) <= high else text
    except ValueError:
        return text


def grid(rows):
    """Cells lined up, unless a long value would drive them apart."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))] if rows and rows[0] else []
    widths = [w if w <= 40 else 0 for w in widths]
    return [("| " + " | ".join(c.ljust(w) for c, w in zip(r, widths))).rstrip() for r in rows]


def rows(answer, keyspace, marks, page):
    columns = answer.columns
    header = [f"{name} {type_name}" for _, _, name, type_name in columns.specs]
    body = [[marked(show(spec[3], v), marks[spec[2]]) if spec[2] in marks else show(spec[3], v)
             for spec, v in zip(columns.specs, row)] for row in answer.rows]
    out = []
    if page.header != header:
        name = table_name(columns, keyspace)
        out.append(f"= rows {name}".rstrip())
        out += grid([header] + body)
    elif body:
        out += grid([header] + body)[1:]
    page.header = header
    if columns.paging_state is not None:
        out.append("= more pages")
    return out


def prepared(answer, keyspace):
    out = [f"= prepared {table_name(answer.binds, keyspace)}".rstrip()]
    keys = {column: i for i, column in enumerate(answer.binds.key_indexes)}
    for i, (_, _, name, type_name) in enumerate(answer.binds.specs):
        out.append(f"? {name} {type_name}" + (f", partition key {keys[i]}" if i in keys else ""))
    if answer.columns.specs:
        out.append("| " + " | ".join(f"{name} {type_name}" for _, _, name, type_name in answer.columns.specs))
    return out


def outcome(answer, keyspace, marks, page):
    """The lines for one response; `keyspace` is written {ks} wherever it occurs."""
    out = ["~ " + escape(w) for w in answer.warnings if not w.startswith(ADVICE)]
    if answer.kind == "void":
        out.append("= void")
    elif answer.kind == "keyspace":
        out.append(f"= keyspace {answer.keyspace}")
    elif answer.kind == "schema":
        name = f"{answer.keyspace}.{answer.object}" if answer.object else answer.keyspace
        out.append(f"= {answer.change} {answer.target} {name}")
    elif answer.kind == "rows":
        out += rows(answer, keyspace, marks, page)
    elif answer.kind == "prepared":
        out += prepared(answer, keyspace)
    else:
        code = ERRORS.get(answer.code, "Error")
        out.append(f"! 0x{answer.code:04X} {code}{answer.detail}: {escape(in_order(answer.text))}")
    return [line.replace(keyspace, "{ks}") for line in out]
