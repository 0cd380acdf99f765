"""Keyspaces' refusals through a real driver, table by table: refusals.txt has the cases."""
import itertools

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from refusals import cases, rules
from tally_server import Server, await_active, create_keyspace

KEYSPACE = "refusals"
CASES = cases()
numbers = itertools.count()


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """Keyspaces mode as a newcomer meets it: nothing said of compatibility but what is the default."""
    s = Server(tmp_path_factory.mktemp("strict"), "--compatibility", "strict", "--ddl-delay", "none").start()
    yield s
    assert s.alive(), f"tallyd died:\n{s.log_tail()}"
    s.stop()


@pytest.fixture(scope="module")
def session(strict):
    with strict.cluster() as cluster:
        s = cluster.connect()
        create_keyspace(s, KEYSPACE)
        yield s


def make_table(session, case):
    name = f"t{next(numbers)}"
    columns, _, options = case.table.partition(" WITH ")
    session.execute(f"CREATE TABLE {KEYSPACE}.{name} ({columns})" + (f" WITH {options}" if options else ""))
    await_active(session, KEYSPACE, name)
    return f"{KEYSPACE}.{name}"


def code_of(error):
    """The protocol's code: the driver keeps it in the text of what it raises."""
    return int(str(error).split("code=")[1][:4], 16)


def words_of(error):
    return str(error).split('message="', 1)[1].rsplit('"', 1)[0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_refused(session, case):
    table = make_table(session, case) if case.table else ""

    def named(text):
        return text.replace("{ks}", KEYSPACE).replace("{t}", table)

    for statement in case.given:
        session.execute(named(statement))
    statement = named(case.refused)
    with pytest.raises(Exception) as caught:
        if case.prepare:
            session.prepare(statement)
        else:
            session.execute(SimpleStatement(statement, consistency_level=getattr(ConsistencyLevel, case.level)))
    assert code_of(caught.value) == case.code, caught.value
    if case.words.endswith("..."):
        assert words_of(caught.value).startswith(case.words[:-3])
    else:
        assert words_of(caught.value) == case.words
    for query, rows in case.after:
        assert str([tuple(r) for r in session.execute(named(query))]) == rows


def test_every_rule_has_a_case():
    assert sorted(set(rules()) - {c.rule for c in CASES}) == []


def test_every_case_has_a_rule():
    assert sorted({c.rule for c in CASES} - set(rules())) == []
