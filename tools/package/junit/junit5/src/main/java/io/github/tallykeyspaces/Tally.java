package io.github.tallykeyspaces;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Tests of this class use a Tally. Classes with the same mode and flags share a server, which runs until all tests are done.
 * Parameters of type {@link TallyServer}, {@link java.net.InetSocketAddress} and CqlSession are injected.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(TallyExtension.class)
public @interface Tally {
  /** Service to emulate: keyspaces or cassandra. */
  String mode() default "keyspaces";

  /** Further settings of tallyd, such as {"--limits", "enforce"}. */
  String[] flags() default {};
}
