#!/bin/bash
# The Apache Cassandra that the case files are recorded from: one node on loopback, built from the jars of Maven Central.
#   cassandra.sh start [PORT]   starts it on PORT or a free one; prints, as its last word, the port it answers on
#   cassandra.sh stop           ends it and removes its data
# Needs Maven and a JDK 17 (11 will not do). Environment:
#   CASSANDRA_VERSION  5.0.8
#   TALLY_CACHE        folder for the jars, default ~/.cache/tally
#   CASSANDRA_DIR      folder for data and logs, default build/cassandra
#   HEAP               1G
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=${CASSANDRA_VERSION:-5.0.8}
lib=${TALLY_CACHE:-$HOME/.cache/tally}/cassandra-$version
dir=${CASSANDRA_DIR:-$here/../../build/cassandra}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

stop() {
    [ -f "$dir/pid" ] || return 0
    pid=$(cat "$dir/pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    rm -rf "$dir"
}

fetch() {
    ls "$lib"/cassandra-all-*.jar >/dev/null 2>&1 && return 0
    echo "fetching Cassandra $version into $lib" >&2
    mvn -q -B -f "$here/pom.xml" -Dcassandra.version="$version" \
        dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$lib" >&2
}

configure() {
    mkdir -p "$dir"/conf "$dir"/logs "$dir"/tmp
    cat > "$dir/conf/cassandra.yaml" <<Y
cluster_name: conformance
num_tokens: 1
initial_token: 0
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:$storage"
listen_address: 127.0.0.1
storage_port: $storage
ssl_storage_port: $(free_port)
rpc_address: 127.0.0.1
start_native_transport: true
native_transport_port: $port
data_file_directories: ["$dir/data"]
commitlog_directory: $dir/commitlog
hints_directory: $dir/hints
saved_caches_directory: $dir/saved_caches
cdc_raw_directory: $dir/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 10000ms
auto_snapshot: false
authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
storage_compatibility_mode: CASSANDRA_4
Y
    cat > "$dir/conf/logback.xml" <<Y
<configuration>
  <appender name="F" class="ch.qos.logback.core.FileAppender">
    <file>$dir/logs/system.log</file>
    <encoder><pattern>%-5level %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="F"/></root>
</configuration>
Y
}

# What Cassandra 5.0 needs opened in a JDK 17.
opened() {
    for p in jdk.internal.misc jdk.internal.ref; do echo "--add-exports=java.base/$p=ALL-UNNAMED"; done
    echo --add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED
    echo --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED
    echo --add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED
    echo --add-exports=java.sql/java.sql=ALL-UNNAMED
    echo --add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED
    echo --add-exports=jdk.attach/sun.tools.attach=ALL-UNNAMED
    for p in java.lang.module jdk.internal.loader jdk.internal.ref jdk.internal.reflect jdk.internal.math \
             jdk.internal.module jdk.internal.util.jar sun.nio.ch java.io java.lang.reflect java.lang java.util java.nio; do
        echo "--add-opens=java.base/$p=ALL-UNNAMED"
    done
    echo --add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED
    echo --add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED
    echo --add-opens=jdk.compiler/com.sun.tools.javac=ALL-UNNAMED
}

answers() {
    python3 - "$port" <<'P'
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2) as s:
    s.settimeout(5)
    s.sendall(bytes([4, 0, 0, 1, 5, 0, 0, 0, 0]))
    sys.exit(0 if s.recv(9)[4:5] == b"\x06" else 1)
P
}

start() {
    fetch
    mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
    storage=$(free_port); port=${1:-$(free_port)}
    configure
    mapfile -t opens < <(opened)
    setsid java -javaagent:"$(ls "$lib"/jamm-*.jar)" -Xms"${HEAP:-1G}" -Xmx"${HEAP:-1G}" -Xss512k \
        "${opens[@]}" -Djdk.attach.allowAttachSelf=true -Dio.netty.tryReflectionSetAccessible=true \
        -Djava.net.preferIPv4Stack=true -Dchronicle.analytics.disable=true \
        -Djava.security.manager=allow -Djava.io.tmpdir="$dir/tmp" -Dcassandra.config="file://$dir/conf/cassandra.yaml" \
        -Dlogback.configurationFile="$dir/conf/logback.xml" -Dcassandra.logdir="$dir/logs" -Dcassandra.storagedir="$dir" \
        -Dcassandra-foreground=yes -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.jmx.local.port="$(free_port)" \
        -cp "$dir/conf:$lib/*" org.apache.cassandra.service.CassandraDaemon >"$dir/logs/out" 2>&1 </dev/null &
    echo $! > "$dir/pid"
    for _ in $(seq 240); do
        if answers 2>/dev/null; then echo "Cassandra $version is ready on port $port"; return 0; fi
        kill -0 "$(cat "$dir/pid")" 2>/dev/null || break
        sleep 0.5
    done
    echo "Cassandra did not start; the end of $dir/logs/out:" >&2
    tail -20 "$dir/logs/out" >&2
    return 1
}

case "${1:-}" in
start) start ${2:+"$2"} ;;
stop) stop ;;
*) sed -n 2,8p "$0"; exit 2 ;;
esac
