#!/usr/bin/env bash
# Builds what is needed and runs the tests; ends with one line of totals. tools/test.sh --help lists the steps.
command -v python3 >/dev/null || "$(dirname "${BASH_SOURCE[0]}")/setup.sh" packages || exit 1
exec python3 "$(dirname "${BASH_SOURCE[0]}")/test.py" "$@"
