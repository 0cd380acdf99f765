#!/usr/bin/env bash
# Lays out C as .clang-format says, where lines end being the author's choice; tests/layer/check_format.py says what is looked at.
#   tools/format.sh [FILE...]    all sources when none is named
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$tally_root"
python_env format tests/layer/requirements.txt
exec build/format/bin/python tests/layer/check_format.py --fix "$@"
