package tally;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.DriverException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import liquibase.integration.commandline.LiquibaseCommandLine;
import org.cognitor.cassandra.migration.Database;
import org.cognitor.cassandra.migration.MigrationException;
import org.cognitor.cassandra.migration.MigrationRepository;
import org.cognitor.cassandra.migration.MigrationTask;

/**
 * Changes schemas with Liquibase's command line and with cassandra-migration, in one JVM.
 *
 * <p>Each line on stdin is a command, its words separated by tabs: "liquibase ARGUMENT..." or
 * "migrate HOST PORT DATA-CENTER KEYSPACE CONSENSUS". The answer is a line of JSON: Liquibase's
 * exit status and output; ["applied", the number of scripts]; or an exception's class and message.
 * test_java_clients.py says what is right.
 */
public final class SchemaTools {
  private static List<Object> liquibase(String[] arguments) {
    PrintStream out = System.out;
    PrintStream err = System.err;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    PrintStream both = new PrintStream(printed, true);
    System.setOut(both);
    System.setErr(both);
    try {
      int status = new LiquibaseCommandLine().execute(arguments);
      return List.of(status, printed.toString());
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
  }

  private static List<Object> migrate(String host, int port, String dataCenter, String keyspace, boolean consensus) {
    InetSocketAddress address = new InetSocketAddress(host, port);
    try (CqlSession session = CqlSession.builder().addContactPoint(address).withLocalDatacenter(dataCenter).build()) {
      Database database = new Database(session, keyspace).setConsistencyLevel(DefaultConsistencyLevel.LOCAL_QUORUM);
      MigrationRepository scripts = new MigrationRepository();
      int pending = scripts.getMigrationsSinceVersion(database.getVersion()).size();
      new MigrationTask(database, scripts, consensus).migrate();
      return List.of("applied", pending);
    } catch (DriverException | MigrationException e) {
      return List.of(e.getClass().getSimpleName(), e.getMessage());
    }
  }

  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split("\t");
      boolean migrates = words[0].equals("migrate");
      List<Object> answer = migrates
          ? migrate(words[1], Integer.parseInt(words[2]), words[3], words[4], Boolean.parseBoolean(words[5]))
          : liquibase(Arrays.copyOfRange(words, 1, words.length));
      System.out.println(json.writeValueAsString(answer));
    }
    System.exit(0); // threads of closed JDBC connections may still run
  }
}
