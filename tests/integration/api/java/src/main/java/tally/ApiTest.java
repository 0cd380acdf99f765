package tally;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.retry.AwsRetryStrategy;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.keyspaces.KeyspacesClient;
import software.amazon.awssdk.services.keyspaces.model.ConflictException;
import software.amazon.awssdk.services.keyspaces.model.FieldDefinition;
import software.amazon.awssdk.services.keyspaces.model.GetTableResponse;
import software.amazon.awssdk.services.keyspaces.model.GetTypeResponse;
import software.amazon.awssdk.services.keyspaces.model.KeyspacesException;
import software.amazon.awssdk.services.keyspaces.model.ListTablesResponse;
import software.amazon.awssdk.services.keyspaces.model.PointInTimeRecoveryStatus;
import software.amazon.awssdk.services.keyspaces.model.ResourceNotFoundException;
import software.amazon.awssdk.services.keyspaces.model.SchemaDefinition;
import software.amazon.awssdk.services.keyspaces.model.SortOrder;
import software.amazon.awssdk.services.keyspaces.model.TableSummary;
import software.amazon.awssdk.services.keyspaces.model.Tag;
import software.amazon.awssdk.services.keyspaces.model.ThroughputMode;
import software.amazon.awssdk.services.keyspaces.model.TypeStatus;
import software.amazon.awssdk.services.keyspaces.model.UpdateTableRequest;

/** Tally's AWS API through the AWS SDK for Java 2.x: ApiTest URL SIGNED-URL. Prints what it sees, a JSON array [what, value] a line; test_sdks.py says what is right. */
public final class ApiTest {
  private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
  private static final String KS = "Shop", TABLE = "orders", AGAIN = "again";
  private final KeyspacesClient client;

  private ApiTest(KeyspacesClient client) {
    this.client = client;
  }

  private static String json(Object value) {
    if (value instanceof List<?> list) return list.stream().map(ApiTest::json).collect(Collectors.joining(", ", "[", "]"));
    if (value instanceof Number) return value.toString();
    return '"' + String.valueOf(value).replaceAll("[\"\\\\]", "\\\\$0").replaceAll("\\p{Cntrl}", " ") + '"';
  }

  private static void show(String what, Object... value) {
    System.out.println(json(List.of(what, value.length == 1 ? value[0] : Arrays.asList(value))));
  }

  private static void moment() throws InterruptedException {
    Thread.sleep(20);
  }

  private static KeyspacesClient client(String url, String region, String key, String secret, String token) {
    AwsCredentials keys = token.isEmpty() ? AwsBasicCredentials.create(key, secret) : AwsSessionCredentials.create(key, secret, token);
    return KeyspacesClient.builder().endpointOverride(URI.create(url)).region(Region.of(region)).credentialsProvider(StaticCredentialsProvider.create(keys))
        .overrideConfiguration(c -> c.retryStrategy(AwsRetryStrategy.doNotRetry())).build();
  }

  /** The class that a caller would catch, or "untyped" and the code. */
  private static List<Object> refusal(Runnable call) {
    try {
      call.run();
      return List.of("ok");
    } catch (KeyspacesException e) {
      String name = e.getClass() == KeyspacesException.class ? "untyped " + e.awsErrorDetails().errorCode() : e.getClass().getSimpleName();
      String arn = e instanceof ResourceNotFoundException missing ? missing.resourceArn() : "";
      return List.of(name, e.statusCode(), e.awsErrorDetails().errorMessage(), arn);
    }
  }

  /** As the SDK's examples wait: until it has the status, or is gone. Tells the statuses that it sees, if asked to. */
  private void await(String table, String status, boolean tell) throws InterruptedException {
    String seen = null;
    for (int i = 0; i < 3000 && !status.equals(seen); i++) {
      if (i > 0) moment();
      String now = "gone";
      try {
        now = client.getTable(r -> r.keyspaceName(KS).tableName(table)).statusAsString();
      } catch (ResourceNotFoundException e) {
        // gone
      }
      if (tell && !now.equals(seen)) show(table, now);
      seen = now;
    }
  }

  /** A keyspace is a moment in coming; until then what is made in it is a conflict. */
  private static <T> T whenKeyspaceIsThere(Supplier<T> call) throws InterruptedException {
    for (int i = 0; ; i++) {
      try {
        return call.get();
      } catch (ConflictException e) {
        if (i == 3000) throw e;
      }
      moment();
    }
  }

  private GetTableResponse get() {
    return client.getTable(r -> r.keyspaceName(KS).tableName(TABLE));
  }

  private GetTableResponse update(Consumer<UpdateTableRequest.Builder> change) throws InterruptedException {
    client.updateTable(r -> change.accept(r.keyspaceName(KS).tableName(TABLE)));
    await(TABLE, "ACTIVE", false);
    return get();
  }

  /** By CQL, while this waits for a line. */
  private static void use(String table) throws IOException {
    show("use", table);
    INPUT.readLine();
  }

  private static List<String> columns(GetTableResponse t) {
    return t.schemaDefinition().allColumns().stream().map(c -> c.name() + " " + c.type()).toList();
  }

  private List<String> tags(String arn) throws InterruptedException {
    await(TABLE, "ACTIVE", false);
    return client.listTagsForResourcePaginator(r -> r.resourceArn(arn).maxResults(1)).tags().stream().map(t -> t.key() + "=" + t.value()).toList();
  }

  private void table() throws IOException, InterruptedException {
    Tag team = Tag.builder().key("team").value("a").build();
    show("create keyspace", client.createKeyspace(r -> r.keyspaceName(KS).tags(team)).resourceArn());
    SchemaDefinition schema = SchemaDefinition.builder()
        .allColumns(c -> c.name("id").type("int"), c -> c.name("at").type("timestamp"), c -> c.name("note").type("text"))
        .partitionKeys(k -> k.name("id")).clusteringKeys(k -> k.name("at").orderBy(SortOrder.DESC)).build();
    String arn = whenKeyspaceIsThere(() -> client.createTable(r -> r.keyspaceName(KS).tableName(TABLE).schemaDefinition(schema).tags(team)
        .comment(c -> c.message("of the shop")).pointInTimeRecovery(p -> p.status(PointInTimeRecoveryStatus.ENABLED)))).resourceArn();
    show("create table", arn);
    await(TABLE, "ACTIVE", true);
    GetTableResponse t = get();
    show("get table", columns(t), t.schemaDefinition().partitionKeys().get(0).name(), t.schemaDefinition().clusteringKeys().get(0).name(),
        t.schemaDefinition().clusteringKeys().get(0).orderBy(), t.capacitySpecification().throughputMode(), t.comment().message(), t.pointInTimeRecovery().status());
    show("age", Duration.between(t.creationTimestamp(), Instant.now()).toMillis() / 1000.0);
    use(TABLE);

    show("add a column", columns(update(r -> r.addColumns(c -> c.name("more").type("list<int>")))));
    var capacity = update(r -> r.capacitySpecification(c -> c.throughputMode(ThroughputMode.PROVISIONED).readCapacityUnits(5L).writeCapacityUnits(6L))).capacitySpecification();
    show("change the capacity mode", capacity.throughputMode(), capacity.readCapacityUnits(), capacity.writeCapacityUnits());
    client.tagResource(r -> r.resourceArn(arn).tags(g -> g.key("cost").value("b")));
    show("tag", tags(arn));
    client.untagResource(r -> r.resourceArn(arn).tags(team));
    show("untag", tags(arn));
  }

  private void type() {
    client.createType(r -> r.keyspaceName(KS).typeName("address")
        .fieldDefinitions(FieldDefinition.builder().name("street").type("text").build(), FieldDefinition.builder().name("no").type("int").build()));
    GetTypeResponse type;
    do type = client.getType(r -> r.keyspaceName(KS).typeName("address")); while (type.status() != TypeStatus.ACTIVE);
    show("type", type.fieldDefinitions().stream().map(f -> f.name() + " " + f.type()).toList(), client.listTypes(r -> r.keyspaceName(KS)).types());
    show("delete type", client.deleteType(r -> r.keyspaceName(KS).typeName("address")).typeName());
  }

  private void restore() throws IOException, InterruptedException {
    String arn = client.restoreTable(r -> r.sourceKeyspaceName(KS).sourceTableName(TABLE).targetKeyspaceName(KS).targetTableName(AGAIN)
        .restoreTimestamp(Instant.now())).restoredTableARN();
    show("restore", arn);
    await(AGAIN, "ACTIVE", true);
    use(AGAIN);
  }

  private static List<String> names(ListTablesResponse page) {
    return page.tables().stream().map(TableSummary::tableName).toList();
  }

  private void pages() {
    List<Object> byPaginator = new ArrayList<>(), byToken = new ArrayList<>();
    for (ListTablesResponse page : client.listTablesPaginator(r -> r.keyspaceName(KS).maxResults(1))) byPaginator.add(names(page));
    String token = null;
    do {
      String from = token;
      ListTablesResponse page = client.listTables(r -> r.keyspaceName(KS).maxResults(1).nextToken(from));
      byToken.add(names(page));
      token = page.nextToken();
    } while (token != null);
    show("list by pages", byPaginator, byToken);
  }

  private void refused() {
    show("refused", refusal(() -> client.getTable(r -> r.keyspaceName(KS).tableName("none"))));
    show("refused", refusal(() -> client.createKeyspace(r -> r.keyspaceName(KS))));
    show("refused", refusal(() -> client.createKeyspace(r -> r.keyspaceName("_x"))));
    show("refused", refusal(() -> { // the server holds four
      for (int i = 0; i < 5; i++) {
        String name = "t" + i;
        client.restoreTable(r -> r.sourceKeyspaceName(KS).sourceTableName(TABLE).targetKeyspaceName("held").targetTableName(name));
      }
    }));
  }

  private void delete() throws InterruptedException {
    for (String name : List.of(AGAIN, TABLE)) {
      client.deleteTable(r -> r.keyspaceName(KS).tableName(name));
      await(name, "gone", true);
    }
    client.deleteKeyspace(r -> r.keyspaceName(KS));
    List<Object> end = List.of("ok");
    for (int i = 0; i < 3000 && end.get(0).equals("ok"); i++) {
      end = refusal(() -> client.getKeyspace(r -> r.keyspaceName(KS)));
      moment();
    }
    show("delete keyspace", end.get(0));
  }

  public static void main(String[] args) throws Exception {
    try (KeyspacesClient client = client(args[0], "us-east-1", "any", "any", "")) {
      ApiTest test = new ApiTest(client);
      test.table();
      test.type();
      test.restore();
      test.pages();
      test.refused();
      test.delete();
    }
    Pattern text = Pattern.compile("\"([^\"]*)\"");
    for (String line = INPUT.readLine(); line != null; line = INPUT.readLine()) { // a login a line: JSON of region, key, secret, token and a keyspace to make
      String[] l = text.matcher(line).results().map(m -> m.group(1)).toArray(String[]::new);
      try (KeyspacesClient client = client(args[1], l[0], l[1], l[2], l[3])) {
        List<Object> listed = refusal(() -> client.listKeyspaces(r -> { }));
        if (!listed.get(0).equals("ok")) show("list keyspaces", listed);
        else show("create keyspace", refusal(() -> client.createKeyspace(r -> r.keyspaceName(l[4]))));
      }
    }
  }
}
