package io.github.tallykeyspaces;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The programs and libraries of tally-native, unpacked to a temporary folder once for a JVM, which removes it at its end. */
final class NativeTree {
  private static Path folder;

  private NativeTree() {}

  static synchronized Path program(String name) throws IOException {
    if (folder == null) folder = unpack();
    return folder.resolve("bin").resolve(name);
  }

  private static Path unpack() throws IOException {
    String arch = System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
    String root = "META-INF/tally/" + System.getProperty("os.name").toLowerCase() + "-" + arch + "/";
    Path target = Files.createTempDirectory("tally");
    Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(target)));
    for (String file : list(root)) {
      Path path = target.resolve(file);
      Files.createDirectories(path.getParent());
      try (InputStream in = open(root + file)) {
        Files.copy(in, path);
      }
      if (file.startsWith("bin/")) path.toFile().setExecutable(true);
    }
    return target;
  }

  private static List<String> list(String root) throws IOException {
    try (BufferedReader in = new BufferedReader(new InputStreamReader(open(root + "files"), StandardCharsets.UTF_8))) {
      return in.lines().collect(Collectors.toList());
    }
  }

  private static InputStream open(String name) throws IOException {
    InputStream in = NativeTree.class.getClassLoader().getResourceAsStream(name);
    if (in == null) throw new IOException("no " + name + " in the class path: tally-native has no programs for this platform");
    return in;
  }

  private static void remove(Path folder) {
    try (Stream<Path> paths = Files.walk(folder)) {
      paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException e) {
      System.err.println("tally: " + folder + " is left: " + e);
    }
  }
}
