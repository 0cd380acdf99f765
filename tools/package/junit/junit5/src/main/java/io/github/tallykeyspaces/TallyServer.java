package io.github.tallykeyspaces;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** A tallyd on free ports, with its rows in memory. It ends with close(), or when this JVM ends. */
public final class TallyServer implements AutoCloseable {
  // The standard input of this script is a pipe of this JVM. The pipe ends when the JVM ends, even by SIGKILL; then the
  // script stops the server.
  private static final String GUARD = "trap '' INT HUP TERM; read -r _; kill $1";
  private static final int LOG_LINES = 50;
  private static final int START_ATTEMPTS = 5; // another process can take a free port before tallyd listens on it
  private static final int TIMEOUT_SECONDS = 60;

  private final Deque<String> log = new ArrayDeque<>();
  private final Process process;
  private final Process guard;
  private final Thread logReader;
  private final Map<String, String> ready;

  /** Starts a server; the exception of one that does not start ends with its log. */
  public static TallyServer start(String mode, String... flags) throws IOException {
    for (int attempt = 1; ; attempt++) {
      try {
        return new TallyServer(mode, flags);
      } catch (IOException e) {
        if (attempt == START_ATTEMPTS || !e.getMessage().contains("in use")) throw e;
      }
    }
  }

  private TallyServer(String mode, String... flags) throws IOException {
    List<String> command = new ArrayList<>(List.of(NativeTree.program("tallyd").toString(), "--data-dir", ":memory:", "--mode", mode,
        "--listen", "127.0.0.1", "--port", "0", "--admin-port", freePort(), "--api-port", freePort()));
    command.addAll(List.of(flags));
    process = new ProcessBuilder(command).start();
    guard = new ProcessBuilder("/bin/sh", "-c", GUARD, "tally-guard", Long.toString(process.pid())).start();
    logReader = new Thread(this::readLog, "tallyd log");
    logReader.setDaemon(true);
    logReader.start();
    ready = readReady();
    if (ready == null) {
      close();
      throw new IOException("tallyd did not start (status " + process.exitValue() + "). Command: " + String.join(" ", command)
          + "\n" + log());
    }
  }

  private static String freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return Integer.toString(socket.getLocalPort());
    }
  }

  /** Returns the fields of the ready line, or null if the server ended without it or was killed after the timeout. */
  private Map<String, String> readReady() throws IOException {
    Timer late = new Timer("tallyd start", true);
    late.schedule(new TimerTask() {
      @Override
      public void run() {
        process.destroyForcibly();
      }
    }, TimeUnit.SECONDS.toMillis(TIMEOUT_SECONDS));
    try {
      BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      String line = out.readLine();
      while (line != null && !line.startsWith("tallyd ready: ")) line = out.readLine();
      return line == null ? null : Pattern.compile("(\\w+)=(\\S+)").matcher(line).results()
          .collect(Collectors.toMap(field -> field.group(1), field -> field.group(2)));
    } finally {
      late.cancel();
    }
  }

  private void readLog() {
    BufferedReader in = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8));
    try {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        synchronized (log) {
          log.add(line);
          if (log.size() > LOG_LINES) log.remove();
        }
      }
    } catch (IOException e) {
      // The stream closes when the process is destroyed; the log ends there.
    }
  }

  /** The last lines of the server's log. */
  public String log() {
    synchronized (log) {
      return String.join("\n", log);
    }
  }

  /** The address of CQL. */
  public InetSocketAddress address() {
    String address = ready.get("cql").equals("off") ? ready.get("tls") : ready.get("cql");
    int colon = address.lastIndexOf(':');
    return new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
  }

  /** HOST:PORT of the live page, or "off". */
  public String admin() {
    return ready.get("admin");
  }

  /** HOST:PORT of the AWS API, or "off". */
  public String api() {
    return ready.get("api");
  }

  public long pid() {
    return process.pid();
  }

  @Override
  public void close() {
    guard.destroyForcibly();
    process.toHandle().destroy(); // process.destroy() would also close the stream from which the log is read
    try {
      if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) process.destroyForcibly().waitFor();
      logReader.join();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
