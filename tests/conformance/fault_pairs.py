#!/usr/bin/env python3
"""Sends statements with two faults each, all pairs of those of fault_pairs.json, and prints where Tally and a Cassandra tell another one.

usage: fault_pairs.py --tally HOST:PORT --cassandra HOST:PORT [--only KIND] [--single] [--examples N] [--jobs N]
       fault_pairs.py --cases FILE [--each N]

fault_pairs.json has for each kind of statement its text, with places in braces, and for each place what belongs there and what is wrong there.
A place may have several parts, which are written into places of the same name with a number. Every statement has two places that are wrong
(--single: one), and all others right. Both servers run them in a keyspace of their own, which is made for it and dropped again; what a statement
should have changed is undone. Differences are printed by class, as by syntax_mutants.py; where Cassandra fails inside, where Tally refuses on purpose, and where a
batch's later statement is looked at before its first one reads, they are counted as explained. Ends with "N passed, N explained, N failed"; exits non-zero when one failed. --cases writes every Nth statement as a case file.
"""
import argparse
import itertools
import json
import pathlib
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "cqlt"))
import syntax_mutants  # noqa: E402
from render import in_order  # noqa: E402
from wire import ERRORS, Client, Lost  # noqa: E402

KEYSPACE = "fault_pairs"
FAILED_INSIDE = ("ServerError: org.apache.", *syntax_mutants.FAILED_INSIDE)
# Cassandra binds the statements of a batch one by one, and reads what changes of lists need, or asks the conditions, before it comes to the next.
LISTS_ARE_READ = "Attempted to set an element on a list which is null"


def filled(kind, wrong):
    """The statement with what is wrong in some places: {place: index}."""
    text = kind["text"]
    for place, choices in kind["places"].items():
        chosen = choices[wrong.get(place, 0)]
        for name, part in zip([place], [chosen]) if isinstance(chosen, str) else zip((f"{place}{i}" for i in range(1, 9)), chosen):
            text = text.replace("{" + name + "}", part)
    return text


def statements_of(kind, single):
    places = kind["places"]
    for chosen in itertools.combinations(places, 1 if single else 2):
        for indexes in itertools.product(*(range(1, len(places[p])) for p in chosen)):
            yield filled(kind, dict(zip(chosen, indexes)))


def all_statements(kinds, only, single):
    """[(statement, what undoes it)], each once."""
    found = {}
    for name, kind in kinds.items():
        if only in name:
            found.update({s: kind.get("undo", []) for s in statements_of(kind, single)})
    return list(found.items())


def answer(client, statement):
    try:
        a = client.query(statement)
    except Lost as e:
        return f"lost: {e}"
    if a.kind != "error":
        return a.kind
    return f"{ERRORS.get(a.code, hex(a.code))}: {in_order(a.text)}"


def connect(address):
    client = Client(*address, 4)
    client.query(f"USE {KEYSPACE}")
    return client


def is_explained(statement, tally, cassandra):
    if any(words in cassandra for words in FAILED_INSIDE) or syntax_mutants.NOT_THERE.match(tally):
        return True
    in_batch = statement.startswith("BEGIN") and tally.startswith("Invalid: ")
    return in_batch and (LISTS_ARE_READ in cassandra or (cassandra == "rows" and " IF " in statement))


def compare(addresses, statements, found):
    clients = [connect(address) for address in addresses]
    for statement, undo in statements:
        tally, cassandra = (answer(client, statement) for client in clients)
        outcome = "passed" if syntax_mutants.same_answer(tally, cassandra) else "explained" if is_explained(statement, tally, cassandra) else "failed"
        found[outcome].append((statement, tally, cassandra))
        if "schema" in (tally, cassandra):
            for client in clients:
                for cure in undo:
                    client.query(cure)
    for client in clients:
        client.close()


def write_cases(path, faults, each):
    """One case for each kind of statement; outcomes are recorded by cqlt."""
    def named(text):
        return text.replace(KEYSPACE, "{ks}")
    out = [f"# Of two faults in a statement, which is told: every {each}th statement of fault_pairs.py, which says how they are made, without those "
           "whose outcome differs (README.md)."]
    for name, kind in faults["kinds"].items():
        out += ["", f"== two_faults_{name}"] + [f"> {named(s)}" for s in faults["schema"]]
        undo = [f"> {named(s)}" for s in kind.get("undo", [])]
        for statement in [*statements_of(kind, True), *itertools.islice(statements_of(kind, False), 0, None, each)]:
            out += [f"> {named(statement)}"] + undo
    path.write_text("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tally")
    parser.add_argument("--cassandra")
    parser.add_argument("--only", default="")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--examples", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cases", type=pathlib.Path)
    parser.add_argument("--each", type=int, default=4)
    o = parser.parse_args()
    faults = json.loads((HERE / "fault_pairs.json").read_text())
    if o.cases:
        return write_cases(o.cases, faults, o.each)
    if not (o.tally and o.cassandra):
        parser.error("--tally and --cassandra are needed")
    addresses = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in (o.tally, o.cassandra))]
    statements = all_statements(faults["kinds"], o.only, o.single)
    found = {"passed": [], "explained": [], "failed": []}
    syntax_mutants.make_schema(addresses, KEYSPACE, faults["schema"])
    threads = [threading.Thread(target=compare, args=(addresses, statements[i::o.jobs], found)) for i in range(o.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    syntax_mutants.drop_schema(addresses, KEYSPACE)
    syntax_mutants.report(sorted(found["failed"]), o.examples)
    print(f"{len(found['passed'])} passed, {len(found['explained'])} explained, {len(found['failed'])} failed")
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
