package tally;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.*;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.servererrors.*;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import com.datastax.oss.driver.api.core.uuid.Uuids;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.*;
import java.util.*;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Tally through the Java driver: DriverTest HOST PORT [strict]. Prints "ok NAME" or "FAILED NAME: why" for every check and a line of
 * totals; exits non-zero when a check failed.
 */
public final class DriverTest {
  private static final String KS = System.getProperty("keyspace", "java_driver"); // one for each driver on the same server
  private static boolean strict; // what Amazon Keyspaces refuses is refused
  private static boolean inCassandraMode;
  private static int passed;
  private static int failed;

  private interface Body {
    void run() throws Exception;
  }

  private static void check(String name, Body body) {
    try {
      body.run();
      passed++;
      System.out.println("ok " + name);
    } catch (Exception | AssertionError e) {
      failed++;
      System.out.println("FAILED " + name + ": " + e);
    }
  }

  private static void same(String what, Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError(what + ": got " + got + ", want " + want);
  }

  private static void awaitActive(CqlSession s, String table) throws InterruptedException {
    PreparedStatement query = s.prepare("SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ? AND table_name = ?");
    for (int i = 0; i < 600; i++) {
      Row row = s.execute(query.bind(KS, table)).one();
      if (row != null && "ACTIVE".equals(row.getString(0))) return;
      Thread.sleep(50);
    }
    throw new AssertionError(table + " did not become ACTIVE");
  }

  private static void createKeyspace(CqlSession s) throws InterruptedException {
    s.execute("CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for (int i = 0; i < 600; i++) {
      if (s.execute("SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = '" + KS + "'").one() != null) return;
      Thread.sleep(50);
    }
    throw new AssertionError("the keyspace was not created");
  }

  private static void createTable(CqlSession s, String name, String definition) throws InterruptedException {
    s.execute("CREATE TABLE " + KS + "." + name + " (" + definition + ")");
    awaitActive(s, name);
  }

  private static Map<String, Object> scalars() throws Exception {
    Map<String, Object> m = new LinkedHashMap<>();
    m.put("ascii", "plain");
    m.put("bigint", Long.MIN_VALUE);
    m.put("blob", ByteBuffer.wrap(new byte[] {0, -1, 16}));
    m.put("boolean", true);
    m.put("date", LocalDate.of(2026, 11, 21));
    m.put("decimal", new BigDecimal("-12345.678900"));
    m.put("double", -1.5e300);
    m.put("float", 0.5f);
    m.put("inet", InetAddress.getByName("2001:db8::1"));
    m.put("int", Integer.MIN_VALUE);
    m.put("smallint", Short.MIN_VALUE);
    m.put("text", "naïve ☃ 𝄞");
    m.put("time", LocalTime.of(23, 59, 59, 999_999_999));
    m.put("timestamp", Instant.ofEpochMilli(1763700000123L));
    m.put("timeuuid", Uuids.timeBased());
    m.put("tinyint", Byte.MIN_VALUE);
    m.put("uuid", UUID.randomUUID());
    m.put("varint", BigInteger.TEN.pow(38).negate());
    if (!strict) m.put("duration", CqlDuration.newInstance(14, 3, 7));
    return m;
  }

  private static void scalarRoundTrip(CqlSession s) throws Exception {
    Map<String, Object> all = scalars();
    StringJoiner definition = new StringJoiner(", "), columns = new StringJoiner(", "), marks = new StringJoiner(", ");
    List<Object> values = new ArrayList<>(List.of(1)), nulls = new ArrayList<>(List.of(2));
    all.forEach(
        (type, value) -> {
          definition.add("v_" + type + " " + type);
          columns.add("v_" + type);
          marks.add("?");
          values.add(value);
          nulls.add(null);
        });
    createTable(s, "scalars", "id int PRIMARY KEY, " + definition);
    PreparedStatement insert = s.prepare("INSERT INTO " + KS + ".scalars (id, " + columns + ") VALUES (?, " + marks + ")");
    s.execute(insert.bind(values.toArray()));
    s.execute(insert.bind(nulls.toArray()));
    PreparedStatement select = s.prepare("SELECT * FROM " + KS + ".scalars WHERE id = ?");
    Row full = s.execute(select.bind(1)).one(), empty = s.execute(select.bind(2)).one();
    all.forEach(
        (type, value) -> {
          same(type, full.getObject("v_" + type), value);
          same(type + " null", empty.getObject("v_" + type), null);
        });
  }

  private static void collectionRoundTrip(CqlSession s) throws Exception {
    createTable(
        s,
        "collections",
        "id int PRIMARY KEY, l list<text>, s set<int>, m map<text, int>, fl frozen<list<int>>, fs frozen<set<text>>, fm frozen<map<int, text>>,"
            + " nested map<int, frozen<list<text>>>");
    PreparedStatement insert = s.prepare("INSERT INTO " + KS + ".collections (id, l, s, m, fl, fs, fm, nested) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    s.execute(
        insert.bind(1, List.of("b", "a", "b"), Set.of(3, 1, 2), Map.of("x", 1, "y", 2), List.of(9, 8), Set.of("p", "q"), Map.of(1, "one"),
            Map.of(7, List.of("u", "v"))));
    PreparedStatement update = s.prepare("UPDATE " + KS + ".collections SET l = l + ?, s = s - ?, m['z'] = ? WHERE id = 1");
    s.execute(update.bind(List.of("c"), Set.of(3), 26));
    Row r = s.execute("SELECT * FROM " + KS + ".collections WHERE id = 1").one();
    same("l", r.getList("l", String.class), List.of("b", "a", "b", "c"));
    same("s", r.getSet("s", Integer.class), Set.of(1, 2));
    same("m", r.getMap("m", String.class, Integer.class), Map.of("x", 1, "y", 2, "z", 26));
    same("fl", r.getList("fl", Integer.class), List.of(9, 8));
    same("fs", r.getSet("fs", String.class), Set.of("p", "q"));
    same("fm", r.getMap("fm", Integer.class, String.class), Map.of(1, "one"));
    same("nested", r.getObject("nested"), Map.of(7, List.of("u", "v")));
  }

  private static void createType(CqlSession s, String name, String definition) throws InterruptedException {
    s.execute("CREATE TYPE " + KS + "." + name + " (" + definition + ")");
    PreparedStatement status = s.prepare("SELECT status FROM system_schema_mcs.types WHERE keyspace_name = ? AND type_name = ?");
    for (int i = 0; i < 600; i++) {
      Row r = s.execute(status.bind(KS, name)).one();
      if (r != null && "ACTIVE".equals(r.getString(0))) return;
      Thread.sleep(50);
    }
    throw new IllegalStateException(name + " did not become ACTIVE");
  }

  private static void userTypes(CqlSession s) throws Exception {
    createType(s, "address", "street text, zip int");
    createType(s, "person", "name text, homes list<frozen<address>>");
    createTable(s, "people", "id int PRIMARY KEY, who frozen<person>, home address, places map<text, frozen<address>>");
    s.refreshSchema();
    UserDefinedType person = s.getMetadata().getKeyspace(KS).get().getUserDefinedType("person").get();
    UserDefinedType address = s.getMetadata().getKeyspace(KS).get().getUserDefinedType("address").get();
    same("fields", person.getFieldNames().toString(), "[name, homes]");
    UdtValue here = address.newValue("here", 1), there = address.newValue().setString("street", "there");
    PreparedStatement insert = s.prepare("INSERT INTO " + KS + ".people (id, who, home, places) VALUES (?, ?, ?, ?)");
    s.execute(insert.bind(1, person.newValue("Ada", List.of(here, there)), address.newValue().setInt("zip", 7), Map.of("x", here)));
    s.execute(s.prepare("UPDATE " + KS + ".people SET home.street = ? WHERE id = 1").bind("new"));
    Row r = s.execute("SELECT who, home, places, who.name AS name FROM " + KS + ".people WHERE id = 1").one();
    same("name", r.getString("name"), "Ada");
    UdtValue who = r.getUdtValue("who"), home = r.getUdtValue("home");
    same("homes", who.getList("homes", UdtValue.class).get(0).getInt("zip"), 1);
    same("a null field", who.getList("homes", UdtValue.class).get(1).isNull("zip"), true);
    same("home", home.getString("street") + home.getInt("zip"), "new7");
    same("places", r.getMap("places", String.class, UdtValue.class).get("x").getString("street"), "here");
  }

  private static KeyspaceMetadata metadataOf(CqlSession s) {
    return s.getMetadata().getKeyspace(KS).orElseThrow();
  }

  private static String columnsOf(CqlSession s, String table) {
    StringJoiner names = new StringJoiner(",");
    metadataOf(s).getTable(table).ifPresent(t -> t.getColumns().keySet().stream().map(CqlIdentifier::asInternal).sorted().forEach(names::add));
    return names.toString();
  }

  private static String fieldsOf(CqlSession s, String type) {
    return metadataOf(s).getUserDefinedType(type).map(t -> t.getFieldNames().toString()).orElse("");
  }

  private static void becomes(String what, Supplier<String> read, String want) throws InterruptedException {
    for (int i = 0; i < 600 && !read.get().equals(want); i++) Thread.sleep(50);
    same(what, read.get(), want);
  }

  /** What the driver knows of a type and a table follows their changes, told by events alone. */
  private static void changes(CqlSession s) throws Exception {
    createType(s, "changing", "a int");
    createTable(s, "changed", "id int, ck int, v text, u frozen<changing>, PRIMARY KEY (id, ck)");
    becomes("columns", () -> columnsOf(s, "changed"), "ck,id,u,v");
    s.execute("INSERT INTO " + KS + ".changed (id, ck, v, u) VALUES (1, 2, 'three', {a: 4})");
    s.execute("ALTER TABLE " + KS + ".changed ADD (w int, x text)");
    awaitActive(s, "changed");
    becomes("columns with those that were added", () -> columnsOf(s, "changed"), "ck,id,u,v,w,x");
    Row before = s.execute("SELECT * FROM " + KS + ".changed WHERE id = 1").one();
    same("an old row", before.getString("v") + before.isNull("w"), "threetrue");
    if (!inCassandraMode) return;
    s.execute("ALTER TYPE " + KS + ".changing ADD b text");
    s.execute("ALTER TYPE " + KS + ".changing RENAME a TO aa");
    becomes("fields", () -> fieldsOf(s, "changing"), "[aa, b]");
    s.execute("ALTER TABLE " + KS + ".changed DROP v");
    s.execute("ALTER TABLE " + KS + ".changed RENAME ck TO position");
    becomes("columns with another name", () -> columnsOf(s, "changed"), "id,position,u,w,x");
    Row after = s.execute("SELECT * FROM " + KS + ".changed WHERE id = 1").one();
    same("an old row", after.getInt("position") + " " + after.getUdtValue("u").getInt("aa") + after.getUdtValue("u").isNull("b"), "2 4true");
  }

  private static void pagingAndBatch(CqlSession s) throws Exception {
    createTable(s, "pages", "pk int, ck int, v text, PRIMARY KEY (pk, ck)");
    PreparedStatement insert = s.prepare("INSERT INTO " + KS + ".pages (pk, ck, v) VALUES (?, ?, ?)");
    BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED);
    for (int ck = 0; ck < 25; ck++) batch.addStatement(insert.bind(1, ck, "v" + ck));
    s.execute(batch.build());
    List<Integer> seen = new ArrayList<>();
    int pages = 0;
    ByteBuffer state = null;
    do {
      SimpleStatement query = SimpleStatement.newInstance("SELECT ck FROM " + KS + ".pages WHERE pk = 1 ORDER BY ck DESC").setPageSize(7).setPagingState(state);
      ResultSet rs = s.execute(query);
      for (int left = rs.getAvailableWithoutFetching(); left > 0; left--) seen.add(rs.one().getInt(0));
      state = rs.getExecutionInfo().getPagingState();
      pages++;
    } while (state != null);
    List<Integer> want = new ArrayList<>();
    for (int ck = 24; ck >= 0; ck--) want.add(ck);
    same("rows", seen, want);
    same("pages", pages, 4);
  }

  private static void fails(CqlSession s, String query, Class<?> kind, String text) {
    try {
      s.execute(query);
    } catch (RuntimeException e) {
      if (kind.isInstance(e) && e.getMessage().contains(text)) return;
      throw new AssertionError(query + ": " + e);
    }
    throw new AssertionError(query + " did not fail");
  }

  private static void errors(CqlSession s) {
    fails(s, "SELEC 1", SyntaxError.class, "line 1:0 no viable alternative at input 'SELEC'");
    if (strict) fails(s, "SELECT COUNT(*) FROM system.local", InvalidQueryException.class, "countRows is not yet supported.");
    fails(s, "SELECT * FROM " + KS + ".nowhere", InvalidQueryException.class, "nowhere");
    fails(s, "CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", AlreadyExistsException.class, KS);
  }

  private static void charges(CqlSession s) throws Exception {
    createTable(
        s,
        "mytable",
        "pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static, PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)");
    SimpleStatement insert =
        SimpleStatement.newInstance("INSERT INTO " + KS + ".mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (2, 3, 4, 5, 6, 7)")
            .setCustomPayload(Map.of("capacity", ByteBuffer.allocate(0)));
    Map<String, ByteBuffer> payload = s.execute(insert).getExecutionInfo().getIncomingPayload();
    same("units", payload.get("RequestCharge").duplicate().getDouble(), 4.0);
    String capacity = StandardCharsets.UTF_8.decode(payload.get("capacity").duplicate()).toString().replace(" ", "");
    if (!capacity.contains("\"row_bytes\":134") || !capacity.contains("\"static_bytes\":122")) throw new AssertionError(capacity);
  }

  /** Native-protocol up to 1.5.1 cannot read a payload beside warnings: nobody asked for one here. */
  private static void warnings(CqlSession s) {
    for (int i = 0; i < 3; i++) {
      ResultSet rs = s.execute("SELECT count(*) FROM " + KS + ".pages");
      same("count", rs.one().getLong(0), 25L);
      same("warnings", rs.getExecutionInfo().getWarnings().size(), 1);
    }
  }

  private static void metadata(CqlSession s) {
    var keyspace = s.refreshSchema().getKeyspace(KS).orElseThrow();
    var table = keyspace.getTable("pages").orElseThrow();
    same("clustering", table.getClusteringColumns().keySet().iterator().next().getName().asInternal(), "ck");
  }

  /** The driver reads the trace from system_traces, until it is whole. */
  private static void trace(CqlSession s) {
    String read = "SELECT ck FROM " + KS + ".pages WHERE pk = 1 LIMIT 3";
    QueryTrace traced = s.execute(SimpleStatement.newInstance(read).setTracing(true)).getExecutionInfo().getQueryTrace();
    same("request", traced.getRequestType(), "Execute CQL3 query");
    same("query", traced.getParameters().get("query"), read);
    StringBuilder steps = new StringBuilder();
    int before = 0;
    for (TraceEvent e : traced.getEvents()) {
      if (e.getSourceElapsedMicros() < before) throw new AssertionError(e + " is before the event before it");
      before = e.getSourceElapsedMicros();
      steps.append(e.getActivity()).append('\n');
    }
    for (String step : List.of("Parsing " + read, "returned 3", "Charged", "Admitted by the limits"))
      if (steps.indexOf(step) < 0) throw new AssertionError("no step " + step + " in " + steps);
    if (traced.getDurationMicros() < before) throw new AssertionError("the request took " + traced.getDurationMicros() + ", its last step was at " + before);
    String write = "INSERT INTO " + KS + ".pages (pk, ck, v) VALUES (1, 1, 'traced')";
    List<TraceEvent> events = s.execute(SimpleStatement.newInstance(write).setTracing(true)).getExecutionInfo().getQueryTrace().getEvents();
    String last = events.get(events.size() - 1).getActivity();
    if (!last.startsWith("The log is on disk") && !last.endsWith("the cluster has acknowledged them")) throw new AssertionError("the last step of a write is " + last);
  }

  /** With TALLY_CA the server speaks TLS only, and whoever comes must log in. */
  private static CqlSessionBuilder trusted(CqlSessionBuilder builder) throws Exception {
    String ca = System.getenv("TALLY_CA");
    if (ca == null) return builder;
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null);
    try (var in = Files.newInputStream(Path.of(ca))) {
      trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    return builder.withSslContext(context).withAuthCredentials("cassandra", "cassandra");
  }

  public static void main(String[] args) {
    strict = args.length > 2 && args[2].equals("strict");
    inCassandraMode = args.length > 2 && args[2].equals("cassandra");
    DriverConfigLoader config =
        DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.REQUEST_CONSISTENCY, DefaultConsistencyLevel.LOCAL_QUORUM.name())
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
            .build();
    CqlSession[] opened = new CqlSession[1];
    check(
        "connect",
        () ->
            opened[0] =
                trusted(CqlSession.builder())
                    .addContactPoint(new InetSocketAddress(args[0], Integer.parseInt(args[1])))
                    .withLocalDatacenter("us-east-1")
                    .withConfigLoader(config)
                    .build());
    CqlSession s = opened[0];
    if (s != null) {
      check("create keyspace", () -> createKeyspace(s));
      check("scalar round trip", () -> scalarRoundTrip(s));
      check("collection round trip", () -> collectionRoundTrip(s));
      check("user types", () -> userTypes(s));
      check("changed types and tables", () -> changes(s));
      check("paging and batch", () -> pagingAndBatch(s));
      check("errors", () -> errors(s));
      check("charges", () -> charges(s));
      check("query trace", () -> trace(s));
      if (!strict) check("warnings", () -> warnings(s));
      check("metadata", () -> metadata(s));
      s.close();
    }
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
