#!/usr/bin/env bash
# Builds tallyd and tally into build/release/bin, and starts tallyd on 127.0.0.1:9042.
#   tools/run.sh [--background | --demo] [tallyd options]
#     --background  returns when the server is ready; the server goes on
#     --demo        a scratch folder and a free port; runs the founding examples through the Python driver and prints what each cost;
#                   at a terminal the server and its page stay until Ctrl-C
#     options       go to tallyd as they are (tools/run.sh --help lists them); data is kept in ./data unless --data-dir says otherwise
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

start_in_background() {
    local log=$tally_root/build/tallyd.log out server ready
    exec {out}< <(exec "$tallyd" "$@" 2>>"$log" </dev/null)
    server=$!
    read -r ready <&"$out" || { tail -1 "$log" >&2; exit 1; }
    echo "$ready"
    echo "Stop it with: kill $server. Its log: $log"
}

install_packages
build_preset release tallyd tally
tallyd=$tally_root/build/release/bin/tallyd
mode=${1:-}
case $mode in
    --demo)
        python_env venv "$tally_root/tests/integration/requirements.txt"
        exec "$tally_root/build/venv/bin/python" "$tally_root/tools/demo/demo.py" "$tallyd" "${@:2}"
        ;;
    --background) shift ;;
esac

for arg in "$@"; do
    case $arg in --help | --version) exec "$tallyd" "$@" ;; esac
done
has_data_dir=
for arg in "$@"; do case $arg in --data-dir*) has_data_dir=1 ;; esac; done
[ -n "$has_data_dir" ] || set -- --data-dir "$tally_root/data" "$@"

if [ "$mode" = --background ]; then
    start_in_background "$@"
    exit
fi
cat <<'TXT'

Connect, when the line "tallyd ready" has appeared:
  a browser: http://127.0.0.1:9180/ shows tables, throttles and hot partitions (docs/page.md)
  build/release/bin/tally cql                                            a shell that shows what each statement is charged (docs/tally/cql.md)
  pip install cqlsh-expansion && cqlsh-expansion 127.0.0.1 9042          (keyspaces mode, the default)
  pip install cqlsh && cqlsh 127.0.0.1 9042                              (with --mode cassandra)
  python: Cluster(["127.0.0.1"], port=9042).connect()
In keyspaces mode writes are taken at LOCAL_QUORUM only, as on Amazon Keyspaces: tally cql uses it; in cqlsh say CONSISTENCY LOCAL_QUORUM first, and tell the driver (README).
Stop it with Ctrl-C; the data stays. What each statement costs: tools/run.sh --demo

TXT
exec "$tallyd" "$@"
