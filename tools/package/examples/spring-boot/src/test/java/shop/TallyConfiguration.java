package shop;

import java.io.IOException;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.test.context.DynamicPropertyRegistrar;

/** Starts a server for the tests and connects the application to it. */
@TestConfiguration(proxyBeanMethods = false)
class TallyConfiguration {
  /** The program to start is TALLYD, or tallyd in the PATH. */
  @Bean
  TallyServer tally() throws IOException {
    return new TallyServer(System.getenv().getOrDefault("TALLYD", "tallyd"));
  }

  @Bean
  DynamicPropertyRegistrar contactPoints(TallyServer tally) {
    return registry -> registry.add("spring.cassandra.contact-points", tally::address);
  }
}
