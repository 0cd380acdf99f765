"""Random statements where refusals are strict and where they are off: what strict refuses leaves nothing behind, what it accepts has the same answer."""
import itertools
import random
import re
import sys

import pytest
from cassandra import DriverException
from cassandra.protocol import ErrorMessage, ResultMessage, _ProtocolHandler
from cassandra.query import tuple_factory

from refusals import rules_rows
from tally_server import ROOT, Server, create_keyspace

sys.path.insert(0, str(ROOT / "tests" / "conformance"))
from differential_table import Table  # noqa: E402 the generator of the differential runs
from differential_values import as_text  # noqa: E402

ROUNDS, STATEMENTS = 24, 60
SETTINGS = ["", "'ttl': {'status': 'enabled'}", "'client_side_timestamps': {'status': 'enabled'}",
            "'ttl': {'status': 'enabled'}, 'client_side_timestamps': {'status': 'enabled'}"]
# The words of every rule, as the beginning of a text.
REFUSED = re.compile("|".join(re.sub("%[ds]", ".*", re.escape(row[2])) for row in rules_rows()), re.S)
CHANGES_BY_ITSELF = re.compile(r"\b(ttl|writetime|maxwritetime|now|uuid|current\w*)\(", re.I)


class BytesResult(ResultMessage):
    """Values as they were sent: the driver cannot decode all that a server may answer (a null in a list), and drops its connection then."""

    def recv_results_rows(self, f, protocol_version, user_type_map, result_metadata, column_encryption_policy):
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        n = int.from_bytes(f.read(4), "big")
        self.parsed_rows = [self.recv_row(f, len(columns)) for _ in range(n)]
        self.column_names, self.column_types = [c[2] for c in columns], [c[3] for c in columns]


class BytesHandler(_ProtocolHandler):
    message_types_by_opcode = {**_ProtocolHandler.message_types_by_opcode, ResultMessage.opcode: BytesResult}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """(strict, off)"""
    servers = [Server(tmp_path_factory.mktemp(mode), "--compatibility", mode, "--ddl-delay", "none").start() for mode in ("strict", "off")]
    clusters = [s.cluster(schema_metadata_enabled=False) for s in servers]
    made = [c.connect() for c in clusters]
    for s in made:
        create_keyspace(s, "d")
        s.client_protocol_handler = BytesHandler
        s.cluster.profile_manager.default.row_factory = tuple_factory
    yield made
    for c, s in zip(clusters, servers):
        c.shutdown()
        assert s.alive(), f"tallyd died:\n{s.log_tail()}"
        s.stop()


def answer(session, statement):
    """Rows as text, or the words of the error."""
    try:
        return repr([tuple(row) for row in session.execute(statement)])
    except (DriverException, ErrorMessage) as e:
        return str(e).split('message="', 1)[-1].rstrip('">')


def make_table(sessions, rng, name):
    """A random table, and its types, that strict takes, the same on both."""
    strict, off = sessions
    for attempt in itertools.count():
        table = Table(rng, f"{name}_{attempt}")
        setting = rng.choice(SETTINGS)
        *types, ddl = table.ddl()
        if setting and not table.counters:
            ddl += (" AND" if " WITH " in ddl else " WITH") + f" CUSTOM_PROPERTIES = {{{setting}}}"
        if all(answer(strict, statement) == "[]" for statement in [*types, ddl]):
            assert [answer(off, statement) for statement in [*types, ddl]] == ["[]"] * (len(types) + 1)
            return table


def contents(session, name):
    return answer(session, f"SELECT * FROM {name}")


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_strict_accepts_what_off_answers_the_same(sessions, seed):
    strict, off = sessions
    rng = random.Random(seed)
    table = make_table(sessions, rng, f"d.t{seed}")
    name = table.name
    accepted = 0
    for _ in range(STATEMENTS):
        statement = as_text(table.statement())
        if table.of_now in statement:  # the values of now() differ between two servers
            continue
        before = contents(strict, name) if rng.random() < 0.2 else None
        got = answer(strict, statement)
        if REFUSED.match(got):
            assert before is None or contents(strict, name) == before, statement
            continue
        accepted += 1
        want = answer(off, statement)
        assert got == want or CHANGES_BY_ITSELF.search(statement), statement
    assert contents(strict, name) == contents(off, name)
    assert accepted >= STATEMENTS // 6, "most is refused: this shows nothing"
