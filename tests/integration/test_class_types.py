"""Types that only a class in quotes names, through a driver: as it hears of them, in their order, over a kill. What they answer is in tests/conformance/cases/class_types.cqlt."""
import pytest

from tally_server import Server, create_keyspace, create_table

# a class, literals of its values in their order, and as what the driver reads them; None: it does not know the class, or (DynamicCompositeType) takes it for another. (No
# literal is a value of EmptyType.)
CLASSES = [
    ("PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)", ["0x", "0x04", "0x02", "0x03", "0x01"], None),
    ("LexicalUUIDType", ["80000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-f000-000000000001",
                         "00000000-0000-0000-0000-000000000001"], None),
    ("LegacyTimeUUIDType", ["00000000-0000-1000-8080-808080808080", "00000001-0000-1000-8080-808080808080", "00000000-0001-1000-8080-808080808080"], None),
    ("CompositeType(Int32Type,UTF8Type)", ["''", "'-1:b'", "'1:a'", "'10:'", "'10:b'"], [None, (-1, "b"), (1, "a"), (10, ""), (10, "b")]),
    ("DynamicCompositeType(i=>Int32Type,t=>UTF8Type)", ["''", "'i@1'", "'i@1:t@a'", "'i@2'", "'t@a'"], None),
]


@pytest.fixture(scope="module")
def cassandra(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("classes"), "--mode", "cassandra").start()
    yield server
    server.stop()


@pytest.mark.parametrize("class_name, literals, values", CLASSES, ids=[c[0].split("(")[0] for c in CLASSES])
def test_values_keep_their_order_and_their_class_over_a_kill(cassandra, class_name, literals, values):
    keyspace, last = "classes_" + class_name.split("(")[0].lower(), len(literals) - 1
    with cassandra.cluster() as cluster:
        session = cluster.connect()
        create_keyspace(session, keyspace)
        create_table(session, keyspace, "t", f"k int, c '{class_name}', n int, PRIMARY KEY (k, c)")
        for n in range(last, -1, -1):
            session.execute(f"INSERT INTO {keyspace}.t (k, c, n) VALUES (1, {literals[n]}, {n})")
        read = session.prepare(f"SELECT c FROM {keyspace}.t WHERE k = 1")
        assert read.result_metadata[0][3].cassname.split(".")[-1] == class_name.split("(")[0]
        if values:
            assert [r.c for r in session.execute(read)] == values
    cassandra.kill9()
    cassandra.start()
    with cassandra.cluster() as cluster:
        session = cluster.connect()
        ask = f"SELECT n FROM {keyspace}.t WHERE k = 1"
        session.execute(f"INSERT INTO {keyspace}.t (k, c, n) VALUES (1, {literals[last]}, {last})")  # where it stood
        assert [r.n for r in session.execute(ask)] == list(range(last + 1))
        assert [r.n for r in session.execute(ask + " ORDER BY c DESC")] == list(range(last, -1, -1))
        assert [session.execute(f"{ask} AND c = {literal}").one().n for literal in literals] == list(range(last + 1))
