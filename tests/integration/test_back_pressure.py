"""Bursts of large inserts are slowed down, not refused, and a client that reads beside them is served."""
import os
import threading
import time

from cassandra.cluster import NoHostAvailable

from tally_server import create_keyspace, create_table, let_pass

WRITERS = 8
SECONDS, SECONDS_AT_MOST = 10, 120
WRITTEN, READ = 50, 20  # at least, which a slow machine has more time for
ROW_BYTES = 1 << 20


class Load:
    def __init__(self):
        self.written, self.refused, self.reads = 0, [], []
        self.lock = threading.Lock()
        self.begun = time.monotonic()

    def goes_on(self):
        lasted = time.monotonic() - self.begun
        enough = self.written > WRITTEN and len(self.reads) > READ
        return lasted < (SECONDS if enough or self.refused else SECONDS_AT_MOST)

    def write(self, server, number):
        """A connection of its own each. ConnectionBusy is the driver's word for a socket that takes nothing more at the moment: it waits."""
        value = os.urandom(ROW_BYTES)
        with server.cluster() as cluster:
            session = cluster.connect()
            insert = session.prepare("INSERT INTO burst.t (pk, v) VALUES (?, ?)")
            row = number * 1_000_000
            while self.goes_on():
                futures = [session.execute_async(insert, (row + i, value)) for i in range(4)]
                row += 4
                for f in futures:
                    try:
                        f.result()
                        with self.lock:
                            self.written += 1
                    except NoHostAvailable as e:
                        if "ConnectionBusy" not in str(e):
                            self.refused.append(str(e))
                    except Exception as e:
                        self.refused.append(str(e))

    def read(self, server):
        with server.cluster() as cluster:
            session = cluster.connect()
            select = session.prepare("SELECT pk FROM burst.t WHERE pk = ?")
            while self.goes_on():
                begun = time.monotonic()
                session.execute(select, (-1,))
                self.reads.append(time.monotonic() - begun)
                let_pass(0.02)


def test_bursts_of_large_inserts_are_slowed_down_not_refused(new_server):
    server = new_server("--ddl-delay", "none", "--threads", "1", "--memtables", "1", "--background-jobs", "1")
    with server.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, "burst")
        create_table(session, "burst", "t", "pk int PRIMARY KEY, v blob")
    load = Load()
    threads = [threading.Thread(target=load.write, args=(server, n)) for n in range(WRITERS)] + [threading.Thread(target=load.read, args=(server,))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not load.refused, f"{len(load.refused)} of {len(load.refused) + load.written}: {load.refused[0]}"
    assert load.written > WRITTEN
    assert len(load.reads) > READ, "the reader beside the writers was not served"
    server.stop()
