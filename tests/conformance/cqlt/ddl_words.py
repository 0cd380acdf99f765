"""The words of errors of DDL in keyspaces mode from those of Cassandra: rows of keyspaces/ddl_error.def."""
import re
from pathlib import Path

TABLES = Path(__file__).resolve().parents[3]
FORMAT = re.compile(r"%(?:(\d)\$)?(?:\.0)?(?:s|d|zu|lld|f)")
STRING = r'"((?:[^"\\]|\\.)*)"'


def codes():
    text = (TABLES / "base" / "err.def").read_text(encoding="utf-8")
    return {name: int(code, 16) for name, code in re.findall(r"^ERR\((\w+), (0x[0-9a-fA-F]+)", text, re.M)}


def pattern_of(words):
    """A regular expression with a group a1, a2, ... for each argument; an argument may occur twice."""
    out, at, number, seen = "", 0, 0, set()
    for m in FORMAT.finditer(words):
        number = int(m[1]) if m[1] else number + 1
        out += re.escape(words[at:m.start()]) + (f"(?P=a{number})" if number in seen else f"(?P<a{number}>.*)")
        seen.add(number)
        at = m.end()
    return re.compile(out + re.escape(words[at:]))


def fits(words, arguments, text):
    """True if the text is the format with these arguments; of a list it may have the first alone, of a qualified name the last part; arguments that are not known may be any."""
    number = 0
    out, at = "", 0
    for m in FORMAT.finditer(words):
        number = int(m[1]) if m[1] else number + 1
        value = arguments.get(f"a{number}")
        fitting = value and "|".join(map(re.escape, (value, value.split(", ")[0], value.rsplit(".", 1)[-1])))
        out += re.escape(words[at:m.start()]) + (".*" if value is None else f"(?:{fitting})")
        at = m.end()
    return re.fullmatch(out + re.escape(words[at:]), text) is not None


def rows():
    text = (TABLES / "keyspaces" / "ddl_error.def").read_text(encoding="utf-8")
    text = re.sub(rf'^DDL_SAME\((\w+), (\w+),\s+{STRING}, ', r'DDL_ERROR(\1, \2, "\3", \2, "\3", ', text, flags=re.M)
    for _, other_code, other, code, words, _ in re.findall(rf'^DDL_ERROR\((\w+), (\w+), {STRING},\s+(\w+), {STRING}, {STRING}\)', text, re.M):
        if other:
            yield codes()[other_code], pattern_of(other.replace('\\"', '"')), codes()[code], words.replace('\\"', '"')


ROWS = list(rows())


def is_same_error(expected, got):
    was, is_ = (re.fullmatch(r"! (0x\w+) \w+: (.*)", line) for line in (expected, got))
    for other_code, pattern, code, words in ROWS if was and is_ else ():
        found = pattern.fullmatch(was[2])
        if found and (int(was[1], 16), int(is_[1], 16)) == (other_code, code) and fits(words, found.groupdict(), is_[2]):
            return True
    return False


def is_service_form(expected, got):
    """True if the answers differ in errors alone, which got has in the words of keyspaces mode."""
    return len(expected) == len(got) and all(a == b or is_same_error(a, b) for a, b in zip(expected, got))
