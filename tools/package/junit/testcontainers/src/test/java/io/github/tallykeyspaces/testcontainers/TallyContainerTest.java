package io.github.tallykeyspaces.testcontainers;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.testcontainers.utility.DockerImageName;

/** What can be tested without Docker: the settings of the container that it would start. */
class TallyContainerTest {
  @Test
  void theContainerExposesThePortsOfTheImageAndPassesSettings() {
    TallyContainer container = new TallyContainer().withMode("cassandra").withFlags("--limits", "enforce");
    assertEquals(List.of(9042, 9180, 9181), container.getExposedPorts());
    assertEquals(Map.of("TALLY_MODE", "cassandra"), container.getEnvMap());
    assertArrayEquals(new String[] {"--limits", "enforce"}, container.getCommandParts());
  }

  @Test
  void anotherImageMustBeDeclaredAsASubstitute() {
    assertThrows(IllegalStateException.class, () -> new TallyContainer(DockerImageName.parse("redis")));
    new TallyContainer(DockerImageName.parse("example.org/tally:1").asCompatibleSubstituteFor("tally"));
  }
}
