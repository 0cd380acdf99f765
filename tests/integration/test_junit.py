"""The extension of JUnit as Maven gets it: into an empty project, from a repository in a folder, to the first charge.

The artefacts are made of package_tree. Their build
runs the unit tests of TallyContainer: containers themselves need Docker."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from programs import maven
from tally_server import HANG, ROOT, SLOWER, TALLYD, eventually

pytestmark = pytest.mark.skipif(SLOWER > 1, reason="what is packaged is no sanitizer's build")
JUNIT = ROOT / "tools" / "package" / "junit"
OURS = Path("io/github/tally-keyspaces")
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId>
  <artifactId>shop</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>11</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <repositories><repository><id>dist</id><url>file:{repository}</url></repository></repositories>
  <dependencies>
    {dependency}
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.14.4</version>
      <scope>test</scope>
    </dependency>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>java-driver-core</artifactId>
      <version>4.19.3</version>
    </dependency>
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.15.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.5.6</version></plugin>
  </plugins></build>
</project>
"""
MORE = """import static org.junit.jupiter.api.Assertions.*;

import com.datastax.oss.driver.api.core.CqlSession;
import io.github.tallykeyspaces.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.*;

@Tally(mode = "cassandra", flags = {"--cluster-name", "A name"})
class MoreTest {
  @RepeatedTest(2)
  void testsHaveOneServerAndOneKeyspaceEach(CqlSession session, TallyServer server, InetSocketAddress address) {
    assertEquals(server.address(), address);
    assertEquals("A name", session.execute("SELECT cluster_name FROM system.local").one().getString(0));
    var keyspaces = session.execute("SELECT keyspace_name FROM system_schema.keyspaces").all();
    assertEquals(1, keyspaces.stream().filter(k -> k.getString(0).startsWith("test_")).count());
  }

  @Test
  void aServerThatDoesNotStartSaysWhy() {
    var e = assertThrows(IOException.class, () -> TallyServer.start("keyspaces", "--limits", "maybe"));
    assertTrue(e.getMessage().startsWith("tallyd did not start (status 2). Command: "), e.getMessage());
    assertTrue(e.getMessage().contains("--limits must be"), e.getMessage());
  }
}
"""


def local_repository(folder):
    """This machine's, except for the artefacts under test, which other runs may have put there."""
    mirrored = Path.home() / ".m2" / "repository"
    for part in (Path(), *reversed(OURS.parents[:-1])):
        (folder / part).mkdir(parents=True, exist_ok=True)
        (mirrored / part).mkdir(parents=True, exist_ok=True)
        for entry in (mirrored / part).iterdir():
            if entry.name not in OURS.parts:
                (folder / part / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="module")
def repository(package_tree, tmp_path_factory):
    """A folder with the artefacts, as a Maven repository."""
    if shutil.which("mvn") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not run: no mvn on this machine")
    folder = tmp_path_factory.mktemp("junit")
    built = subprocess.run([JUNIT / "build.sh", package_tree, folder / "dist"], capture_output=True, text=True, timeout=10 * HANG, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "dist" / "maven"


def test_the_first_test_of_its_page_passes_in_an_empty_project(repository, tmp_path):
    page = (JUNIT / "README.md").read_text()
    version = subprocess.run([TALLYD, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    dependency = re.search(r"^```xml\n(.*?)^```$", page, re.M | re.S)[1]
    assert f"<version>{version}</version>" in dependency
    tests = tmp_path / "shop" / "src" / "test" / "java"
    tests.mkdir(parents=True)
    (tmp_path / "shop" / "pom.xml").write_text(POM.format(repository=repository, dependency=dependency))
    (tests / "OrdersTest.java").write_text(re.search(r"^```java\n(.*?)^```$", page, re.M | re.S)[1])
    (tests / "MoreTest.java").write_text(MORE)
    command = maven(f"-Dmaven.repo.local={local_repository(tmp_path / 'repository')}", "test")
    done = subprocess.run(command, cwd=tmp_path / "shop", capture_output=True, text=True, timeout=10 * HANG, check=False)
    passed = "Tests run: 4, Failures: 0, Errors: 0, Skipped: 0" in done.stdout
    assert done.returncode == 0 and passed, done.stdout + done.stderr


def test_the_server_ends_with_a_killed_jvm(repository, tmp_path):
    (tmp_path / "Main.java").write_text("""
        public class Main {
          public static void main(String[] arguments) throws Exception {
            System.out.println(io.github.tallykeyspaces.TallyServer.start("keyspaces").pid());
            Thread.currentThread().join();
          }
        }""")
    jars = ":".join(str(jar) for jar in repository.rglob("*.jar"))
    with subprocess.Popen(["java", f"-Djava.io.tmpdir={tmp_path}", "-cp", jars, tmp_path / "Main.java"], stdout=subprocess.PIPE, text=True) as jvm:
        server = Path("/proc") / jvm.stdout.readline().strip() / "cmdline"
        assert b"tallyd" in server.read_bytes()
        jvm.kill()
    eventually(lambda: not server.exists() or not server.read_bytes(), "the server still runs")
