"""Uses LangChain's Cassandra classes on Tally: stores.py HOST PORT KEYSPACE

Reads the name of a step per line on stdin and prints what the step returned as a line of JSON: ["ok", value], or [the exception's class, its words].
test_python_clients.py says what is right."""
import asyncio
import json
import sys
import warnings

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.query import SimpleStatement
from langchain_cassandra import Cassandra as UnindexedStore
from langchain_community.cache import CassandraCache, CassandraSemanticCache
from langchain_community.chat_message_histories.cassandra import CassandraChatMessageHistory
from langchain_community.document_loaders.cassandra import CassandraLoader
from langchain_community.storage.cassandra import CassandraByteStore
from langchain_community.utilities.cassandra import SetupMode
from langchain_community.utilities.cassandra_database import CassandraDatabase
from langchain_community.vectorstores.cassandra import Cassandra as VectorStore
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import Generation

host, port, keyspace = sys.argv[1:]
EMBEDDING = DeterministicFakeEmbedding(size=4)
TALK = [HumanMessage("Where is my order?"), AIMessage("On its way.")]
PATIENCE = 120  # seconds; the driver's default is 2 for the control connection, too little for a busy machine
warnings.simplefilter("ignore")


def contents(messages):
    return [(m.type, m.content) for m in messages]


def chat_history(session):
    history = CassandraChatMessageHistory("a", session, keyspace)
    history.add_messages(TALK)
    return contents(history.messages)


def chat_history_cleared(session):
    history = CassandraChatMessageHistory("a", session, keyspace)
    history.clear()
    return contents(history.messages)


def chat_history_async(session):
    async def talk():
        history = CassandraChatMessageHistory("b", session, keyspace, setup_mode=SetupMode.ASYNC)
        await history.aadd_messages(TALK)
        return contents(await history.aget_messages())

    return asyncio.run(talk())


def byte_store(session):
    store = CassandraByteStore("bytes", session=session, keyspace=keyspace)
    store.mset([("a/1", b"one"), ("a/2", b"two"), ("b/1", b"three")])
    found = [value and value.decode() for value in store.mget(["a/2", "nosuch", "a/1"])]
    return found, sorted(store.yield_keys(prefix="a/"))


def byte_store_delete(session):
    store = CassandraByteStore("bytes", session=session, keyspace=keyspace)
    store.mdelete(["a/1", "a/2"])
    return list(store.yield_keys())


def loader(session):
    query = SimpleStatement(f"SELECT row_id FROM {keyspace}.bytes", fetch_size=1)
    documents = CassandraLoader(query=query, session=session, page_content_mapper=lambda row: row.row_id).load()
    return sorted(d.page_content for d in documents)


def cached(cache):
    cache.update("prompt", "model", [Generation(text="answer")])
    (found,) = cache.lookup("prompt", "model")
    cache.delete("prompt", "model")
    return found.text, cache.lookup("prompt", "model")


def llm_cache(session):
    return cached(CassandraCache(session, keyspace))


def llm_cache_with_ttl(session):
    return cached(CassandraCache(session, keyspace, ttl_seconds=1000))


def llm_cache_clear(session):
    return CassandraCache(session, keyspace).clear()


def database(session):
    shown = CassandraDatabase(session)
    return shown.format_keyspace_to_markdown(keyspace), shown.get_table_data(keyspace, "bytes", "row_id = 'b/1'", 1)


def unindexed_store(_):
    store = UnindexedStore(EMBEDDING, [host], int(port), keyspace, "documents")
    store.add_texts(["red", "green", "blue"], [{"n": n} for n in range(3)], ["1", "2", "3"])
    ((best, _score),) = store.similarity_search_with_score("green", 1)
    store.delete(["2"])
    return best.page_content, best.metadata["n"], len(store.similarity_search("green"))


def vector_store(session):
    VectorStore(EMBEDDING, session, keyspace, "vectors")


def semantic_cache(session):
    CassandraSemanticCache(session, keyspace, EMBEDDING)


def vector_store_documents(session):
    store = VectorStore(EMBEDDING, session, keyspace, "vectors", setup_mode=SetupMode.OFF)
    store.add_texts(["red"], [{"n": "1"}], ["1"])
    return store.get_by_document_id("1").page_content


def vector_store_search(session):
    return str(VectorStore(EMBEDDING, session, keyspace, "vectors", setup_mode=SetupMode.OFF).similarity_search("red"))


def main():
    profile = ExecutionProfile(consistency_level=ConsistencyLevel.LOCAL_QUORUM, request_timeout=PATIENCE)
    with Cluster([host], port=int(port), execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=PATIENCE,
                 control_connection_timeout=PATIENCE) as cluster:
        session = cluster.connect()
        for line in sys.stdin:
            try:
                answer = ["ok", globals()[line.strip()](session)]
            except Exception as e:  # pylint: disable=broad-exception-caught
                answer = [type(e).__name__, str(e)]
            print(json.dumps(answer), flush=True)


main()
