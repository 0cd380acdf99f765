"""Errors of DDL in keyspaces mode: ddl_errors.txt has the cases, keyspaces/ddl_error.def the texts."""
import re
from pathlib import Path

from refusals import ROOT, expand
from tally_server import Server, create_keyspace
from test_refusals import code_of, words_of

FILE = Path(__file__).with_name("ddl_errors.txt")
STRING = r'"((?:[^"\\]|\\.)*)"'


def cases():
    """(statement, code, words); a statement that succeeds has neither."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    for line, following in zip(lines, lines[1:] + [""]):
        word, _, statement = line.partition(" ")
        if word == "given":
            yield expand(statement), None, None
        elif word == "refused":
            says, code, words = following.split(" ", 2)
            assert says == "says", following
            yield expand(statement), int(code, 16), expand(words)


def test_errors_have_the_words_of_the_service(tmp_path):
    s = Server(tmp_path, "--ddl-delay", "none").start()
    wrong = []
    with s.cluster(schema_metadata_enabled=False) as cluster:
        session = cluster.connect()
        create_keyspace(session, "k")
        for statement, code, words in cases():
            try:
                session.execute(statement)
                got = None, None
            except Exception as e:  # pylint: disable=broad-except
                got = code_of(e), words_of(e)
            if got != (code, words):
                wrong.append((statement, (code, words), got))
    s.stop()
    assert wrong == []


def test_every_text_that_was_seen_has_a_case():
    text = (ROOT / "keyspaces" / "ddl_error.def").read_text(encoding="utf-8")
    text = re.sub(rf'^DDL_SAME\((\w+), (\w+),\s+{STRING}, ', r'DDL_ERROR(\1, \2, "\3", \2, "\3", ', text, flags=re.M)
    rows = re.findall(rf'^DDL_ERROR\((\w+), \w+, {STRING},\s+\w+, {STRING}, {STRING}\)', text, re.M)
    assert len(rows) == text.count("\nDDL_ERROR(")
    assert {known for *_, known in rows} == {"seen", "3.11", "ours"}
    seen = [words for _, _, words in cases() if words]
    of_the_api = {"TYPE_CHARACTERS"}  # test_control_plane.py
    for name, _, words, known in rows:
        pattern = re.sub(r"%(?:\\d\\\$)?(?:\\\.0)?[a-z]+", ".*", re.escape(words.replace('\\"', '"')))
        if known == "seen" and name not in of_the_api:
            assert any(re.fullmatch(pattern, w) for w in seen), (name, pattern)
