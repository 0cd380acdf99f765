"""Under a limit of address space the server takes less, or refuses to start with words; it never ends by an uncaught exception."""
import os

import pytest
from cassandra.cluster import NoHostAvailable

from tally_server import SLOWER, TALLYD, Server


def limited(folder, mb):
    script = folder / "limited"
    script.write_text(f'#!/bin/bash\nulimit -v {mb * 1024}\nexec "{TALLYD}" "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.skipif(SLOWER > 1, reason="a sanitizer reserves terabytes")
@pytest.mark.parametrize("mb", [100, 300, 500])
def test_too_low_a_limit_is_refused_with_words(tmp_path, mb):
    server = Server(tmp_path, binary=limited(tmp_path, mb))
    with pytest.raises(AssertionError, match="did not become ready"):
        server.start()
    assert server.process.wait(timeout=300) in (1, 2, 127), server.log_tail()
    if mb > 100:  # below, not even the libraries can be loaded
        assert "ulimit -v" in server.log_tail(), server.log_tail()


@pytest.mark.skipif(SLOWER > 1, reason="a sanitizer reserves terabytes")
@pytest.mark.parametrize("mb", [900, 1500])
def test_many_large_writes_and_reads_under_a_limit(tmp_path, mb):
    """Requests may be refused; what was acknowledged is there, and the server lives or says why not."""
    server = Server(tmp_path, "--mode", "cassandra", binary=limited(tmp_path, mb)).start()
    acknowledged = []
    try:
        with server.cluster() as cluster:
            session = cluster.connect()
            session.execute("CREATE KEYSPACE m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            session.execute("CREATE TABLE m.t (pk int PRIMARY KEY, v blob)")
            insert = session.prepare("INSERT INTO m.t (pk, v) VALUES (?, ?)")
            for first in range(0, 800, 16):
                futures = [(row, session.execute_async(insert, (row, os.urandom(500_000)))) for row in range(first, first + 16)]
                for row, future in futures:
                    try:
                        future.result()
                        acknowledged.append(row)
                    except NoHostAvailable:
                        pass
            reads = [session.execute_async("SELECT v FROM m.t LIMIT 200") for _ in range(12)]
            for read in reads:
                try:
                    read.result()
                except Exception:  # too large for what memory there is
                    pass
            assert server.alive(), server.log_tail()
            for row in acknowledged[::40]:
                assert len(session.execute(f"SELECT v FROM m.t WHERE pk = {row}").one().v) == 500_000
        assert len(acknowledged) > 500
        assert "terminate called" not in server.log_tail()
        server.stop()
    finally:
        server.kill9()
