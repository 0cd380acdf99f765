#!/usr/bin/env python3
"""Writes docs/compatibility.md from the tables of rules: what is refused, the published numbers, what is charged, what is limited, each with its source and test.

usage: rules.py [--check]     --check writes nothing, and fails when the page is not what the tables say, or a rule has no test
"""
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from refusals import ELSEWHERE, cases  # noqa: E402 the cases are read as the tests read them

HEAD = """# What Amazon Keyspaces refuses, charges and limits, and where each rule comes from

`tools/docs/rules.py` writes this page from the tables of rules in the code, and the step `layers` of `tools/test.sh` fails if it is out of date. To change it, change a table and run the script.

`--compatibility` selects what happens to a statement that Amazon Keyspaces refuses:

- `strict`, the default in keyspaces mode, refuses it. The error begins with the words of Keyspaces and ends with what to do instead.
- `report` executes what Tally can do, and lists every use in `system_metering.compatibility`. It works in cassandra mode, too.
- `off` executes what Tally can do.

Tally itself has no indexes, materialized views, functions, aggregates and triggers. They fail in every mode; `report` lists their use, too.

```
 rule      | keyspace_name | table_name | statement                                  | first_seen | last_seen | uses | instead
-----------+---------------+------------+--------------------------------------------+------------+-----------+------+--------
 aggregate | shop          | orders     | SELECT COUNT(*) FROM orders WHERE id = ?   | ...        | ...       |   42 | Count or sum up in the application, ...
```

- **A row of the report** stands for all statements that differ only in their values. Each rule keeps 64 statements; further ones share one row without statement and table. A prepared statement counts when it is prepared and at each execution, but not when a change of the schema compiles it again.
- **Size of a row, rows of a range deletion.** `strict` and `report` must read them: a write of a part of a row reads the row, and a range deletion reads its rows, whatever `--write-size` is.
- **Conditions of a logged batch.** With `strict` and `report` they may belong to several partitions and tables ([Use batch statements](https://docs.aws.amazon.com/keyspaces/latest/devguide/batchStatements.html)); if one is false, the batch fails. The result is then `[applied]` alone, because AWS does not say what else it contains. With `off` the conditions belong to one partition, as in Cassandra.

The column "words" gives the source of an error text: *documented* (published by AWS), *seen* (in a report or the source of a tool), *ours* (the rule is published, but not its text), or *inferred* (the rule itself follows from published grammars or lists).
"""

DDL_ERRORS = """## Errors of definitions

Statements that define something and are wrong for Cassandra, too, fail in keyspaces mode with these words (`keyspaces/ddl_error.def`). *seen*: the service answered
so to deployments to us-east-1 on 2026-10-01 ([cdk-preflight](https://github.com/badmintoncryer/cdk-preflight/tree/main/rules/cassandra)); *3.11*: the words of Apache
Cassandra 3.11, whose parser the service uses; *ours*: neither was found.
"""


# ---- tables ----

def tokens(text):
    """Strings, words, numbers and punctuation of a .def file, without comments."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.findall(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e-\d+)?|[-+*(),]', text)


def value_of(part, macros):
    if all(t.startswith('"') for t in part):
        return "".join(ast.literal_eval(t) for t in part)
    text = " ".join(macros.get(t, t) for t in part)
    return str(eval(text)) if re.fullmatch(r"[\d\s*+-]+", text) else text  # a product of numbers


def rows(path, macro, same=None):
    """The arguments of each macro(...) of a table; same(id, code, words, known) stands for macro(id, code, words, code, words, known)."""
    text = path.read_text(encoding="utf-8")
    macros = {m[1]: ast.literal_eval(m[2]) for m in re.finditer(r'^#define (\w+) ("(?:[^"\\]|\\.)*")$', text, re.M)}
    found, all_tokens = [], tokens(re.sub(r"^#.*$", "", text, flags=re.M))
    at = 0
    while at < len(all_tokens):
        name = all_tokens[at]
        if name not in (macro, same):
            at += 1
            continue
        parts, depth, at = [[]], 1, at + 2
        while depth:
            t = all_tokens[at]
            depth += (t == "(") - (t == ")")
            if t == "," and depth == 1:
                parts.append([])
            elif depth:
                parts[-1].append(t)
            at += 1
        if name == same:
            parts = parts[:3] + parts[1:]
        found.append([value_of(p, macros) for p in parts])
    return found


# ---- tests ----

def functions():
    """(path, name of the test, its text) of every test."""
    for path in sorted((ROOT / "tests").rglob("*")):
        folder = path.relative_to(ROOT).parts[1]
        if path.suffix not in (".py", ".c", ".txt") or path.name in ("CMakeLists.txt", "refusals.txt") or folder in ("bench", "fuzz"):
            continue
        start = {".py": r"^(?=def test_|@pytest|class |def )", ".c": r"^(?=static |int main)", ".txt": r"(?!)"}[path.suffix]
        for part in re.split(start, path.read_text(encoding="utf-8"), flags=re.M):
            name = re.match(r"(?:@pytest[^\n]*\n)*(?:def|static [\w ]+?\*?) ?(\w+)\(", part)
            yield path.relative_to(ROOT), name[1] if name else None, part


# What is tested without its name being said.
UNNAMED = {
    "connection": "`tests/integration/test_limits.py`: `test_a_connection_over_its_rate_pays_and_no_other`",
    "on-demand-write": "`tests/integration/test_limits.py`: `test_a_write_over_an_on_demand_tables_capacity`",
    "on-demand-window": "`tests/unit/metering/limits/test_limiter.c`: `test_on_demand_doubles_the_previous_peak_every_window`",
}


# By number: the refusal of what is beyond it, where that is not called the same; and the number that nothing is refused for.
REFUSED_AS = {
    "NAME_LENGTH": "NAME", "FIELD_NAME_LENGTH": "FIELD_NAME", "REGIONS_MIN": "REGIONS", "WRITTEN_COLUMNS": "COLUMNS",
    "WRITTEN_COLUMNS_TTL": "COLUMNS", "FROZEN_NESTING": "NESTING", "RANGE_DELETE_ROWS": "RANGE_DELETE", "TIMESTAMP_PAST_SECONDS": "TIMESTAMP_WINDOW",
    "TIMESTAMP_AHEAD_SECONDS": "TIMESTAMP_WINDOW", "VARINT_DIGITS": "VARINT",
    "MODE_SWITCH_SECONDS": "MODE_SWITCH", "DECREASE_PAUSE_SECONDS": "DECREASES",
}
NOT_REFUSED = {"IN_PAGE_SUBQUERIES": "`tests/integration/test_metering.py`: `test_in_breaks_a_page_after_ten_subqueries`"}


def number_test(number, refusals, tests):
    """Where the number is tested; refusals: their names by id; tests: those of refusals by name."""
    return NOT_REFUSED.get(number) or tests.get(refusals.get(REFUSED_AS.get(number, number)), ("",))[0]


def tests_of(names, quoted=False):
    """By name of a rule: the first test that names it, or the file that does; quoted: where the name is a common word."""
    found = {name: test for name, test in UNNAMED.items() if name in names}
    for path, function, text in functions():
        for name in names:
            named = rf"[\"']{re.escape(name)}[\"'=]|\b{re.escape(name)}(?:=\d|: )" if quoted else rf"(?<![\w-]){re.escape(name)}(?![\w-])"
            if name not in found and re.search(named, text):
                found[name] = f"`{path}`" + (f": `{function}`" if function else "")
    return found


def refusal_tests():
    """By rule: where it is tested, and an example of its words."""
    found = {rule: (f"`tests/integration/test_refusals.py`: `{test}`", None) for rule, test in ELSEWHERE.items()}
    for case in cases():
        if not case.words.endswith("...") and case.rule not in found:
            found[case.rule] = (f"`tests/integration/refusals.txt`: `rule {case.rule}`", case.words)
    return found


def words_of(words, instead, example):
    """The words of a case in the place of a format, without what to do instead."""
    if example is None:
        return words
    return example[:-len(instead) - 1] if instead and example.endswith(instead) else example


# ---- the page ----

def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(map(cell, line)) + " |" for line in lines]) + "\n"


def link(title, address):
    return f"[{title}]({address})"


def linked(source):
    """"Title, address; title, address" as links."""
    return "; ".join(re.sub(r"^(.*), (https?://\S+)$", r"[\1](\2)", s) for s in source.split("; "))


def page():
    pages = {r[0]: link(r[1], r[2]) for r in rows(ROOT / "keyspaces" / "page.def", "PAGE")}
    codes = {r[0]: r[1] for r in rows(ROOT / "base" / "err.def", "ERR")}
    tests, missing, out = refusal_tests(), [], [HEAD]
    refusals = rows(ROOT / "keyspaces" / "refusal.def", "REFUSAL")
    missing += [r[1] for r in refusals if r[1] not in tests]
    out.append("## Refused\n")
    out.append(table(["rule", "what is refused", "error", "instead", "source", "words", "since", "test"],
                     [[f"`{n}`", checks, f"{codes[code]}: {words_of(words, instead, tests.get(n, ('', None))[1])}", instead, pages[at], confidence, since,
                       tests.get(n, ("",))[0]] for _, n, checks, words, instead, code, at, confidence, since in refusals]))
    out.append(DDL_ERRORS)
    out.append(table(["error in keyspaces mode", "in cassandra mode", "words"],
                     [[f"{codes[code]}: {words}", f"{codes[other_code]}: {other}" if other else "", known]
                      for _, other_code, other, code, words, known in rows(ROOT / "keyspaces" / "ddl_error.def", "DDL_ERROR", "DDL_SAME")]))
    out.append("## Numbers\n")
    numbers = [(row, number_test(row[0], {r[0]: r[1] for r in refusals}, tests)) for row in rows(ROOT / "keyspaces" / "quota.def", "QUOTA")]
    out.append(table(["number", "what", "source", "test"], [[f"{int(v):,}", what, pages[at], test] for (_, v, what, at), test in numbers]))
    missing += [row[0] for row, test in numbers if not test]
    charges = rows(ROOT / "metering" / "rule.def", "RULE")
    tests = tests_of([r[1] for r in charges])
    out.append("## Charged\n")
    out.append(table(["rule", "what it says", "source", "confidence", "test"],
                     [[f"`{n}`", text, linked(source), confidence, tests.get(n, "")] for _, n, _, text, source, confidence in charges]))
    missing += [r[1] for r in charges if r[1] not in tests]
    limits = ROOT / "metering" / "limits" / "limit.def"
    found = rows(limits, "LIMIT")
    tests = tests_of([r[1] for r in found], quoted=True)
    out.append("## Limited\n")
    out.append(table(["limit", "value", "what it says", "source", "confidence", "test"],
                     [[f"`{n}`", f"{int(v):,} {unit}", what, linked(source), confidence, tests.get(n, "")] for _, n, v, unit, what, confidence, source in found]))
    missing += [r[1] for r in found if r[1] not in tests]
    return "\n".join(out), missing


def publish(page, text, script, rows=1, problems=()):
    """Writes a generated page; with --check, only compares it with the text. Prints rows as passed if it is up to date. Returns the exit code. problems: of the tables."""
    if sys.argv[1:] != ["--check"]:
        page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)} written", *problems, sep="; ")
        return 0
    stale = not page.exists() or page.read_text(encoding="utf-8") != text
    if stale:
        print(f"{page.relative_to(ROOT)} differs from the tables: run tools/docs/{script}")
    print(*problems, sep="\n", end="\n" if problems else "")
    failed = stale + len(problems)
    print(f"{0 if stale else rows} passed, {failed} failed")
    return 1 if failed else 0


def main():
    text, missing = page()
    return publish(PAGE, text, "rules.py", problems=[f"the rule {name} has no test" for name in missing])


if __name__ == "__main__":
    sys.exit(main())
