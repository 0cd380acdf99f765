package io.github.tallykeyspaces.testcontainers;

import java.net.InetSocketAddress;
import java.time.Duration;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/** A container of Tally's image. It is started when the server answers /ready, which the image's health check requests too. */
public class TallyContainer extends GenericContainer<TallyContainer> {
  public static final DockerImageName IMAGE = DockerImageName.parse("tally");
  public static final int CQL_PORT = 9042;
  public static final int ADMIN_PORT = 9180;
  public static final int API_PORT = 9181;

  public TallyContainer() {
    this(IMAGE);
  }

  /** Another image must be declared as a compatible substitute for "tally". */
  public TallyContainer(DockerImageName image) {
    super(image);
    image.assertCompatibleWith(IMAGE);
    withExposedPorts(CQL_PORT, ADMIN_PORT, API_PORT);
    // Docker runs the health check every ten seconds only, so this does not wait for it.
    waitingFor(Wait.forHttp("/ready").forPort(ADMIN_PORT).withStartupTimeout(Duration.ofMinutes(1)));
  }

  /** mode: keyspaces (default) or cassandra. */
  public TallyContainer withMode(String mode) {
    return withEnv("TALLY_MODE", mode);
  }

  /** Settings of tallyd, such as "--limits", "enforce". */
  public TallyContainer withFlags(String... flags) {
    return withCommand(flags);
  }

  public InetSocketAddress getContactPoint() {
    return new InetSocketAddress(getHost(), getMappedPort(CQL_PORT));
  }

  /** URL of the live page. */
  public String getPageUrl() {
    return "http://" + getHost() + ":" + getMappedPort(ADMIN_PORT) + "/";
  }

  /** Endpoint of the AWS API, for SDKs. */
  public String getApiUrl() {
    return "http://" + getHost() + ":" + getMappedPort(API_PORT);
  }
}
