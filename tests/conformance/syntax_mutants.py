#!/usr/bin/env python3
"""Breaks valid statements of every production, one token at a time, and prints where Tally and a Cassandra answer differently.

usage: syntax_mutants.py --tally HOST:PORT --cassandra HOST:PORT [--words] [--only TEXT] [--seed N] [--random N] [--all] [--examples N] [FILE...]

Every statement of syntax_mutants.cql (or of FILE: one a line, # begins a comment) is cut off behind each of its tokens; each token is
left out, doubled, and swapped with the next; and with --random N each token is replaced by, and each gap filled with, N of the words and
signs of CQL. With --words the statements are those of syntax_words.cql, with every word of keyword.def in the place of %s. Statements
are only prepared, so nothing changes. Both servers use a keyspace that is made for the run and dropped at its end. Answers are compared
where either is a syntax error, with --all everywhere; of two rejected tokens only the code is compared. Differences are printed by class:
the two answers, without the words of the statement. Where Cassandra's parser fails inside (a null pointer behind its
own recovery, or any other of Java), or goes on reading behind a fault and tells first what it comes to there, or Tally does on purpose what it
does, the difference is counted as explained. Ends with "N passed, N explained, N failed"; exits non-zero when one failed.
"""
import argparse
import collections
import pathlib
import random
import re
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cqlt"))
from render import in_order, same_answer  # noqa: E402
from wire import ERRORS, Client, Lost  # noqa: E402

TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|\+=|-=|<=|>=|!=|\.\.|\S""")
FAILED_INSIDE = ("reason: NullPointerException", "ServerError: java.lang.")
# What Cassandra's parser looks at while it reads, behind a fault that it has passed over, too: keyspaces of functions, names of MBeans, whether a
# permission means anything on a resource, columns that are declared twice. To Tally the statement cannot be read, and that is all.
TOLD_WHILE_READING = ("ConfigError: Keyspace ks doesn't exist", "SyntaxError: x is not a valid JMX object name",
                      "SyntaxError: Resource type DataResource does not support any of the requested permissions", "Invalid: Duplicate column 'd' declaration for table 'a'")
# Refused on purpose as soon as they are read, by whatever name: docs/compatibility.md.
NOT_THERE = re.compile(r"Invalid: ((CREATE|ALTER) (MATERIALIZED VIEW|INDEX|TRIGGER) is|ANN ordering is|COMPACT STORAGE is|Custom index expressions are) not (yet supported|supported yet)\.$")
# What a role may, and what can be said of one, Tally asks when the statement runs, for whoever runs it; Cassandra asks who prepares it.
ASKED_OF_WHO_PREPARES = re.compile(r"(Unauthorized: You have to be logged in|Invalid: (org\.apache\.cassandra\.auth\.\w+ doesn't support |ALTER \[ROLE\|USER\] can't be empty))")
# SCHEMA is KEYSPACE in Cassandra 3.11, which Amazon Keyspaces has, and in every version's documentation.
OF_SCHEMA = re.compile(r"SyntaxError: line \d+:\d+ no viable alternative at input 'schema' \(\[?(CREATE|ALTER|DROP)\]? ", re.IGNORECASE)
KEYSPACE = "syntax_mutants"
SCHEMA = ["CREATE TYPE u (a int, b text)",
          "CREATE TABLE t (k int, c int, v int, w text, s int STATIC, l list<int>, m map<int, int>, e set<int>, f frozen<tuple<int, int>>, u u, PRIMARY KEY (k, c))",
          "CREATE TABLE n (k int PRIMARY KEY, v counter)"]
KEYWORDS = HERE.parents[1] / "cql" / "syntax" / "keyword.def"
OTHER_WORDS = "byte complex enum interval macaddr bitstring between generated superusers empty nosuch".split()
WORDS = ("a k t select from where and in is not null token as if exists values set with using timestamp distinct json cast count ttl contains key like "
         "limit per partition group by order primary create table on to of all role user type function keyspace desc drop add alter rename "
         "batch apply begin static frozen list map static or replace 1 -2 1.5 'x' \"q\" ? : . .. , ; ( ) [ ] { } < > = != += - + * / % true "
         "0xab 1h NaN 5f5c4fb0-b5c4-11ee-a506-0242ac120002").split()


def pieces(statement):
    """The tokens of a statement, each with the blanks before it."""
    found, at = [], 0
    for match in TOKEN.finditer(statement):
        found.append((statement[at:match.start()], match.group()))
        at = match.end()
    return found


def joined(tokens):
    return "".join(gap + text for gap, text in tokens)


def mutants(statement, chance, each):
    """Statements with one fault, each once."""
    tokens = pieces(statement)
    for i, (gap, text) in enumerate(tokens):
        if i:
            yield joined(tokens[:i])
        yield joined(tokens[:i] + tokens[i + 1:])
        yield joined(tokens[:i + 1] + [(" ", text)] + tokens[i + 1:])
        if i + 1 < len(tokens):
            yield joined(tokens[:i] + [(gap, tokens[i + 1][1]), (tokens[i + 1][0], text)] + tokens[i + 2:])
        for word in chance.sample(WORDS, each):
            yield joined(tokens[:i] + [(gap, word)] + tokens[i + 1:])
        for word in chance.sample(WORDS, each):
            yield joined(tokens[:i] + [(gap or " ", word), (" ", text)] + tokens[i + 1:])


def worded(template):
    """The statement with every word of CQL in the place of %s, and some that are none."""
    words = re.findall(r'^KEYWORD\("(\w+)"', KEYWORDS.read_text(), re.MULTILINE)
    return [template.replace("%s", word) for word in [*words, *OTHER_WORDS]]


class Pair:
    """A connection to each of the two."""

    def __init__(self, addresses):
        self.clients = [Client(*address, 4) for address in addresses]
        for client in self.clients:
            client.query(f"USE {KEYSPACE}")

    def answers(self, statement):
        return [self.shown(client, statement) for client in self.clients]

    def shown(self, client, statement):
        try:
            answer = client.prepare(statement)
        except Lost as e:
            return f"lost: {e}"
        return f"{ERRORS.get(answer.code, hex(answer.code))}: {in_order(answer.text)}" if answer.kind == "error" else answer.kind

    def close(self):
        for client in self.clients:
            client.close()


PLACE = re.compile(r"line \d+:-?\d+ ")
SEEN = re.compile(r"(input|character) '.*?'(?= expecting| \(|$)", re.DOTALL)
SNIPPET = re.compile(r" \((?:\.\.\.)?.*?\)$", re.DOTALL)


def shape(answer):
    return SNIPPET.sub("", SEEN.sub(r"\1 _", PLACE.sub("", answer)))


def class_of(tally, cassandra):
    """What two answers have in common with others that differ alike."""
    if shape(tally) == shape(cassandra):
        return shape(tally) + " (another place)"
    return f"{shape(tally)}  |  {shape(cassandra)}"


def is_explained(tally, cassandra):
    if any(words in cassandra for words in FAILED_INSIDE) or NOT_THERE.match(tally):
        return True
    if tally == "prepared":
        return bool(ASKED_OF_WHO_PREPARES.match(cassandra) or OF_SCHEMA.match(cassandra))
    return cassandra in TOLD_WHILE_READING and tally.startswith("SyntaxError: line ")


def compare(addresses, statements, everything, found):
    pair = Pair(addresses)
    for statement in statements:
        tally, cassandra = pair.answers(statement)
        if not everything and not any(a.startswith("SyntaxError") for a in (tally, cassandra)):
            continue
        outcome = "passed" if same_answer(tally, cassandra) else "explained" if is_explained(tally, cassandra) else "failed"
        found[outcome].append((statement, tally, cassandra))
    pair.close()


def make_schema(addresses, keyspace, schema):
    """The keyspace anew, with what is in it, on both servers."""
    for address in addresses:
        client = Client(*address, 4)
        for statement in [f"DROP KEYSPACE IF EXISTS {keyspace}",
                          f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}", f"USE {keyspace}"] + schema:
            answer = client.query(statement)
            if answer.kind == "error":
                raise SystemExit(f"{statement}: {answer.text}")
        client.close()


def drop_schema(addresses, keyspace):
    for address in addresses:
        client = Client(*address, 4)
        client.query(f"DROP KEYSPACE IF EXISTS {keyspace}")
        client.close()


def read_statements(paths, only):
    lines = [line.strip() for path in paths for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#") and only.lower() in line.lower()]


def report(failed, examples):
    classes = collections.defaultdict(list)
    for one in failed:
        classes[class_of(*one[1:])].append(one)
    for name, members in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"== {len(members)} x {name}")
        for statement, tally, cassandra in members[:examples]:
            print(f"> {statement}\n  tally:     {tally}\n  cassandra: {cassandra}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tally", required=True)
    parser.add_argument("--cassandra", required=True)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--examples", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    o = parser.parse_args()
    addresses = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in (o.tally, o.cassandra))]
    chance = random.Random(o.seed)
    given = read_statements(o.files or [HERE / ("syntax_words.cql" if o.words else "syntax_mutants.cql")], o.only)
    broken = list(dict.fromkeys(m for s in given for m in (worded(s) if o.words else [s, *mutants(s, chance, o.random)])))
    found = {"passed": [], "explained": [], "failed": []}
    make_schema(addresses, KEYSPACE, SCHEMA)
    threads = [threading.Thread(target=compare, args=(addresses, broken[i::o.jobs], o.all, found)) for i in range(o.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drop_schema(addresses, KEYSPACE)
    report(sorted(found["failed"]), o.examples)
    print(f"{len(found['passed'])} passed, {len(found['explained'])} explained, {len(found['failed'])} failed")
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
