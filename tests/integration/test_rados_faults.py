"""Two or three servers on one pool of a Ceph cluster: conditions stay linearisable over all servers, every read is what a model of CQL allows, and every
acknowledged write, batch and count is there at each server at the end, while tables are truncated, dropped, made again and altered, and objects split. First while
nothing fails; then while servers and OSDs are killed, paused and started again.

TALLYTEST_RADOS_EVENTS=N makes so many failures, on three servers and three OSDs with bluestore (tests/rados/run.py --only servers). Without it a few happen to two
servers and one OSD in memory, which can be paused and not killed. TALLYTEST_RADOS_SEED chooses other statements and failures; servers run in keyspaces mode if it is
odd, and without TALLYTEST_RADOS_EVENTS in one mode after the other."""
import collections
import os
import random

import pytest

import storm_rows
import storm_schema
import storm_values
import test_linearizability
from ceph_cluster import ceph_do, cluster_in
from storm import Front, Work, run_all
from tally_server import create_keyspace, eventually
from test_linearizability import checker  # noqa: F401  a fixture

EVENTS = int(os.environ.get("TALLYTEST_RADOS_EVENTS", "0"))
SEED = int(os.environ.get("TALLYTEST_RADOS_SEED", "30"))
MODES = ["cassandra", "keyspaces"]
FRONTS, OSDS = (3, 3) if EVENTS else (2, 1)
PROGRESS = 40  # effects that must be acknowledged between two steps of a failure, so that each meets clients at work
QUIET_EFFECTS = 3000


@pytest.fixture(scope="module")
def ceph(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp("ceph"), "--osds", OSDS, "--store", "bluestore" if EVENTS else "memstore") as folder:
        yield folder


@pytest.fixture(scope="module", params=[MODES[SEED % 2]] if EVENTS else MODES)
def fronts(request, ceph, tmp_path_factory):
    ceph_do("make-pool", ceph, request.param)
    made = [Front(tmp_path_factory.mktemp("server") / "server", ceph, request.param) for _ in range(FRONTS)]
    yield made
    for f in made:
        f.close()


class Failures:
    """Makes failures, one or two at a time, each between clients that get on with their work."""

    def __init__(self, work, ceph):
        self.work, self.ceph, self.rng, self.events = work, ceph, random.Random(SEED), 0

    def front(self):
        front, how = self.rng.choice(self.work.fronts), self.rng.choice(["kill", "kill", "pause", "stop"])
        print(f"event {self.events + 1}: {how} server {self.work.fronts.index(front)}, {self.work.done()} acknowledged", flush=True)
        getattr(front, how)()
        self.work.await_progress(PROGRESS)
        front.resume() if how == "pause" else front.start()
        self.events += 1

    def osd(self):
        osd, how = self.rng.randrange(OSDS), "pause" if OSDS == 1 or self.rng.random() < 0.4 else "kill"
        print(f"event {self.events + 1}: {how} OSD {osd}, {self.work.done()} acknowledged", flush=True)
        ceph_do(how, self.ceph, osd)
        if OSDS > 1:
            self.work.await_progress(PROGRESS)
            if self.rng.random() < 0.4:  # a server fails meanwhile
                self.front()
        ceph_do("start-osd" if how == "kill" else "resume", self.ceph, osd)
        ceph_do("wait-up", self.ceph)
        self.events += 1

    def run(self, events):
        while self.events < events:
            self.work.await_progress(PROGRESS)
            self.osd() if self.events % 2 else self.front()
            self.work.epoch += 1
        self.work.await_progress(PROGRESS)


class Storm:
    """All clients at once, on tables of their own."""

    def __init__(self, fronts, seed):
        self.work = Work(fronts)
        session = fronts[0].session
        create_keyspace(session, "storm")
        storm_rows.make_tables(session)
        storm_values.make_tables(session)
        self.models = self.some(storm_rows.Model, 9, 1, seed)
        self.rows = {kind: self.some(kind, n, first, seed) for kind, n, first in
                     ((storm_rows.Conditions, 6, 10), (storm_rows.Writes, 4, 20), (storm_rows.Batches, 2, 30), (storm_rows.Counts, 2, 40))}
        self.values = [*self.some(storm_values.Cells, 3, 50, seed), *self.some(storm_values.Expiring, 2, 60, seed)]
        for f in fronts:  # each knows all tables
            for table in ("storm.expiring", *(m.model.name.replace(".t", ".o") for m in self.models)):
                eventually(lambda: f.attempt(f"SELECT * FROM {table} LIMIT 1") is not None)
        self.changers = [kind(self.work, 70 + i, seed) for i, kind in enumerate((storm_schema.Truncated, storm_schema.Dropped, storm_schema.Altered))]
        self.users = [storm_schema.User(self.work, 80 + i, seed, changer) for i, changer in enumerate(2 * self.changers)]
        self.others = [storm_schema.Keyspaces(self.work, 90, seed)]

    def some(self, kind, n, first, seed):
        return [kind(self.work, first + i, seed) for i in range(n)]

    def workers(self):
        return [*self.models, *sum(self.rows.values(), []), *self.values, *self.changers, *self.users, *self.others]

    def says_enough(self):
        """Whether each client has met what it is there for."""
        return len(test_linearizability.applied(self.work.history.operations)) > 20 and all(w.steps for w in self.workers()) and \
            all(c.changes for c in self.changers) and all(u.seen and u.missed for u in self.users)

    def run(self, meanwhile):
        """Calls the function while the clients work, and ends when they have done enough."""
        def until_enough():
            meanwhile()
            eventually(lambda: self.work.wrong or self.says_enough(), "a client does not get on")
        run_all(self.work, self.workers(), until_enough)

    def verify(self, checker):  # noqa: F811
        writes, batches, counts = (self.rows[k] for k in (storm_rows.Writes, storm_rows.Batches, storm_rows.Counts))
        for f in self.work.fronts:
            storm_rows.verify(f, writes, batches, counts)
        operations, steps = self.work.history.operations, collections.Counter()
        for w in self.workers():
            steps[type(w).__name__] += w.steps
        print(f"{self.work.mode} mode: {self.work.done()} acknowledged, {self.work.counted(self.work.unknown)} unknown, {len(test_linearizability.known(operations))} of "
              f"{len(operations)} operations of conditions known, changes {[c.changes for c in self.changers]}, rows of changed tables seen "
              f"{sum(u.seen for u in self.users)}, gone {sum(u.missed for u in self.users)}, steps {dict(steps)}", flush=True)
        assert checker(operations) == "linearisable"


def splits(fronts):
    for f in fronts:
        f.count_splits()
    return sum(f.splits for f in fronts)


@pytest.mark.skipif(EVENTS, reason="only failures were asked for")
def test_every_read_is_what_the_models_allow_while_tables_change(fronts, checker):  # noqa: F811
    storm = Storm(fronts, SEED)
    storm.run(lambda: storm.work.await_progress(QUIET_EFFECTS))
    storm.verify(checker)
    known = "SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = 'storm'"
    eventually(lambda: fronts[0].attempt("DROP KEYSPACE IF EXISTS storm") is not None and fronts[0].attempt(known) == [], "the keyspace does not go")


def test_nothing_acknowledged_is_lost_and_conditions_hold_whatever_fails(ceph, fronts, checker):  # noqa: F811
    storm = Storm(fronts, SEED + 1)
    failures = Failures(storm.work, ceph)
    storm.run(lambda: failures.run(EVENTS or 4))
    storm.verify(checker)
    n = splits(fronts)
    print(f"{failures.events} failures, {n} splits, {sum(len(m.model.history) for m in storm.models)} statements of the model", flush=True)
    assert n > 3, "the run says too little"
