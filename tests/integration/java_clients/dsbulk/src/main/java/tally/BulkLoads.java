package tally;

import com.datastax.oss.dsbulk.runner.DataStaxBulkLoader;
import com.datastax.oss.dsbulk.url.BulkLoaderURLStreamHandlerFactory;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.List;

/**
 * Runs DSBulk commands in one JVM.
 *
 * <p>Each line on stdin is a command line, its words separated by tabs. The answer is a line of
 * JSON: DSBulk's exit status and output. test_java_clients.py says what is right.
 */
public final class BulkLoads {
  private static List<Object> run(String[] arguments) {
    PrintStream out = System.out;
    PrintStream err = System.err;
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    PrintStream both = new PrintStream(printed, true);
    System.setOut(both);
    System.setErr(both);
    try {
      int status = new DataStaxBulkLoader(arguments).run().exitCode();
      return List.of(status, printed.toString());
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
  }

  public static void main(String[] args) throws Exception {
    BulkLoaderURLStreamHandlerFactory.install();
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(json.writeValueAsString(run(line.split("\t"))));
    }
    System.exit(0); // DSBulk leaves threads behind
  }
}
