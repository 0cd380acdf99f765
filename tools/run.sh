#!/usr/bin/env bash
# Builds what is needed and starts tallyd on 127.0.0.1:9042.
#   tools/run.sh [--demo] [tallyd options]
#     --demo     a scratch folder and a free port; runs the founding examples through the Python driver, prints what each cost, stops
#     options    go to tallyd as they are (tools/run.sh --help lists them); data is kept in ./data unless --data-dir says otherwise
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_packages
build_preset release tallyd
tallyd=$tally_root/build/release/bin/tallyd

if [ "${1:-}" = --demo ]; then
    shift
    python_env venv "$tally_root/tests/integration/requirements.txt"
    exec "$tally_root/build/venv/bin/python" "$tally_root/tools/demo/demo.py" "$tallyd" "$@"
fi

for arg in "$@"; do
    case $arg in --help | --version) exec "$tallyd" "$@" ;; esac
done
has_data_dir=
for arg in "$@"; do case $arg in --data-dir*) has_data_dir=1 ;; esac; done
[ -n "$has_data_dir" ] || set -- --data-dir "$tally_root/data" "$@"

cat <<'TXT'

Connect, when the line "tallyd ready" has appeared:
  a browser: http://127.0.0.1:9180/ shows tables, throttles and hot partitions (docs/page.md)
  pip install cqlsh-expansion && cqlsh-expansion 127.0.0.1 9042          (keyspaces mode, the default)
  pip install cqlsh && cqlsh 127.0.0.1 9042                              (with --mode cassandra)
  python: Cluster(["127.0.0.1"], port=9042).connect()
In keyspaces mode writes are taken at LOCAL_QUORUM only, as on Amazon Keyspaces: in cqlsh say CONSISTENCY LOCAL_QUORUM first, and tell the driver (README).
Stop it with Ctrl-C; the data stays. What each statement costs: tools/run.sh --demo

TXT
exec "$tallyd" "$@"
