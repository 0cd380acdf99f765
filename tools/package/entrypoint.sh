#!/bin/bash
# Entry point of the image: takes the variables and the init scripts that images of Cassandra take, then becomes tallyd.
#
#   docker run tally [--flag value]...      tallyd with these flags
#   docker run tally cassandra [-f]...      the same without flags: the command of Cassandra's image
#   docker run tally COMMAND [ARG]...       another program of the image
#
# CASSANDRA_CLUSTER_NAME, CASSANDRA_DC (or CASSANDRA_DATACENTER) and CASSANDRA_RACK set what system.local shows; other
# CASSANDRA_* variables have no meaning for one server and are ignored.
#
# /docker-entrypoint-initdb.d/*.cql, *.cql.gz and *.sh run once, in the order of their names, on a new data directory. A server that only
# this script can reach runs them, so a client that connects finds them done. Names of files in *.cql (SOURCE) are of that folder. CASSANDRA_USER and CASSANDRA_PASSWORD
# (cassandra, cassandra) log in.
set -euo pipefail

case ${1:-} in
    tallyd) shift ;;
    cassandra) set -- ;; # its flags are of the JVM's process
    "" | -*) ;;
    *) exec "$@" ;;
esac

default_to() { # default_to VARIABLE VALUE: unless the variable has a value
    [ -n "${!1:-}" ] || [ -z "$2" ] || export "$1=$2"
}
default_to TALLY_CLUSTER_NAME "${CASSANDRA_CLUSTER_NAME:-}"
default_to TALLY_DATACENTER "${CASSANDRA_DC:-${CASSANDRA_DATACENTER:-}}"
default_to TALLY_RACK "${CASSANDRA_RACK:-}"

fail() {
    echo "entrypoint: $*" >&2
    exit 1
}

setting() { # setting NAME: as the flags, the environment and the file have it
    tallyd --print-config "${arguments[@]}" | sed -n "s/^$1: '\(.*\)'\$/\1/p"
}

run_cql() { # run_cql FILE: in the folder of the scripts, where SOURCE then finds the files that scripts name
    (cd /docker-entrypoint-initdb.d && exec tally cql --wait -u "$user" -p "$password" -f "$1" 127.0.0.1 "$port")
}

run_script() {
    echo "entrypoint: running $1" >&2
    case $1 in
        *.cql) run_cql "$1" ;;
        *.cql.gz) gunzip -c "$1" | run_cql - ;;
        *.sh) bash "$1" ;;
    esac
}

run_scripts() {
    local user=${CASSANDRA_USER:-cassandra} password=${CASSANDRA_PASSWORD:-cassandra} port=9042 server ready script
    coproc TALLYD { exec tallyd "${arguments[@]}" --listen 127.0.0.1 --port "$port" --tls-only off --admin-port 0 --api-port 0 2>/dev/null; }
    server=$TALLYD_PID
    read -r ready <&"${TALLYD[0]}" || fail "tallyd does not start; its own words: $(tallyd "${arguments[@]}" --check-config 2>&1)"
    for script in "${scripts[@]}"; do
        run_script "$script" || { kill "$server"; fail "$script failed; the next start runs all scripts again"; }
    done
    kill "$server"
    wait "$server" || true
}

shopt -s nullglob
arguments=("$@")
scripts=(/docker-entrypoint-initdb.d/*.cql /docker-entrypoint-initdb.d/*.cql.gz /docker-entrypoint-initdb.d/*.sh)
if [ ${#scripts[@]} -gt 0 ]; then
    mapfile -t scripts < <(printf '%s\n' "${scripts[@]}" | sort)
    data=$(setting data-dir)
    [ "$data" != :memory: ] || fail "init scripts need a data directory on disk; a tmpfs mounted there keeps it in memory"
    pending=${data%/}.init-scripts-pending # is there until all scripts are done
    if [ ! -e "$data" ] || [ -e "$pending" ]; then
        : >"$pending"
        run_scripts
        rm "$pending"
    fi
fi
exec tallyd "$@"
