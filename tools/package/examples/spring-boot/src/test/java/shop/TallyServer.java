package shop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A server on a free port: try (TallyServer s = new TallyServer("tallyd")) { use(s.address()); } */
public final class TallyServer implements AutoCloseable {
  private final Path folder = Files.createTempDirectory("tally");
  private final Process server;
  private final String address;

  public TallyServer(String program, String... flags) throws IOException {
    List<String> command = new ArrayList<>(List.of(program, "--data-dir", folder + "/data"));
    // CQL on a free port, the others closed
    command.addAll(List.of("--port", "0", "--admin-port", "0", "--api-port", "0"));
    command.addAll(List.of(flags));
    server = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    BufferedReader out = new BufferedReader(new InputStreamReader(server.getInputStream()));
    String line = out.readLine();
    while (line != null && !line.startsWith("tallyd ready: ")) line = out.readLine();
    if (line == null) throw new IOException("tallyd has not started");
    address = line.replaceAll(".* cql=(\\S+) .*", "$1");
  }

  /** host:port */
  public String address() {
    return address;
  }

  @Override
  public void close() throws IOException, InterruptedException {
    server.destroy();
    server.waitFor(60, TimeUnit.SECONDS);
    try (var files = Files.walk(folder)) {
      for (Path p : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(p);
    }
  }
}
