package tally;

import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.aws.mcs.auth.SigV4AuthProvider;

/**
 * Logs in to Tally by AWS's SigV4 plugin for the Java driver: Login HOST PORT TLS-PORT CA
 * A login a line on stdin, a JSON array of transport (plain or tls), region, key, secret and token; a line each of what came of it; test_sigv4.py says what is right.
 */
public final class Login {
  private static final DriverConfigLoader IMPATIENT = DriverConfigLoader.programmaticBuilder() // a session takes four seconds to close otherwise
      .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0).withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0).build();

  private static SSLContext trusting(String ca) throws Exception {
    KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
    trusted.load(null, null);
    try (InputStream in = Files.newInputStream(Path.of(ca))) {
      trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    managers.init(trusted);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, managers.getTrustManagers(), null);
    return context;
  }

  private static String[] login(String[] args, String[] l) throws Exception {
    boolean tls = l[0].equals("tls");
    AwsCredentials keys = l[4].isEmpty() ? AwsBasicCredentials.create(l[2], l[3]) : AwsSessionCredentials.create(l[2], l[3], l[4]);
    CqlSessionBuilder builder = CqlSession.builder().addContactPoint(new InetSocketAddress(args[0], Integer.parseInt(args[tls ? 2 : 1]))).withLocalDatacenter(l[1])
        .withAuthProvider(new SigV4AuthProvider(StaticCredentialsProvider.create(keys), l[1])).withConfigLoader(IMPATIENT);
    if (tls) builder.withSslContext(trusting(args[3]));
    try (CqlSession session = builder.build()) {
      return new String[] {"ok", session.execute("SELECT key FROM system.local").one().getString(0)};
    } catch (AllNodesFailedException e) {
      Throwable cause = e.getAllErrors().values().iterator().next().get(0);
      return new String[] {cause.getClass().getSimpleName(), cause.getMessage()};
    }
  }

  public static void main(String[] args) throws Exception {
    Pattern text = Pattern.compile("\"([^\"]*)\"");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] answer = login(args, text.matcher(line).results().map(m -> m.group(1)).toArray(String[]::new));
      System.out.println("[\"" + answer[0] + "\", \"" + answer[1].replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"]");
    }
  }
}
