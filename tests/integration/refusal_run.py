"""Runs a case of refusals.txt through the Python driver; refusals.py reads them, without it."""
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from tally_server import await_active


class Run:
    """A case on a keyspace: its types and its table are there, and what comes before has been done."""

    def __init__(self, session, keyspace, case, number):
        self.session, self.keyspace, self.case = session, keyspace, case
        self.table = f"{keyspace}.t{number}"
        types = [s for s in case.given if s.startswith("CREATE TYPE")]
        for statement in types:
            session.execute(self.named(statement))
        if case.table:
            columns, _, options = case.table.partition(" WITH ")
            session.execute(f"CREATE TABLE {self.table} ({columns})" + (f" WITH {options}" if options else ""))
            await_active(session, keyspace, f"t{number}")
        for statement in case.given:
            if statement not in types:
                session.execute(self.named(statement))

    def named(self, text):
        return text.replace("{ks}", self.keyspace).replace("{t}", self.table)

    def refused(self):
        """Sends what is refused, as the case says."""
        statement = self.named(self.case.refused)
        if self.case.prepare:
            return self.session.prepare(statement)
        return self.session.execute(SimpleStatement(statement, consistency_level=getattr(ConsistencyLevel, self.case.level)))
