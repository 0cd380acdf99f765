#!/usr/bin/env bash
# Builds everything and runs every test; ends with one line of totals.
#   tools/test.sh [--preset PRESET] [STEP...]    all steps but the last one when none is named:
#     layers       the #include arrows between rooms go one way, and those inside a room; no path of one machine; C is laid out as .clang-format says; docs/compatibility.md is what the tables of
#                  rules say, and every rule has a test
#     unit         unit tests and fuzzer corpora under AddressSanitizer and UndefinedBehaviorSanitizer
#     threads      the tests of what threads share, under ThreadSanitizer
#     replay       byte scripts against a sanitised server
#     conformance  statements recorded from Apache Cassandra, replayed in both modes, on the release and the sanitised server
#     integration  the server with the drivers of Python, Node, Go, Java, Rust and C++, AWS's SDKs, cqlsh, and kill -9; integration:tls is one file of them
#     source       the programs as packages and images ship them, with a RocksDB of their own (-DTALLY_ROCKSDB=source, which is built first, twenty minutes of
#                  processor time): unit tests, conformance, models, crashes, damaged and full disks, backups, memory, the package
# --preset asan or tsan: the server of the integration and conformance steps is that one, and every report of its sanitizer is a failure.
# A driver whose toolchain this machine lacks is named as not run; with CI=true that is a failure.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
set +e
cd "$tally_root" || exit 1

preset=release
[ "${1:-}" != --preset ] || { preset=${2:?a preset}; shift 2; }
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(layers unit threads replay conformance integration)
passed=0 failed=0 skipped=0 rows=()
work=build/test
reports=$tally_root/$work/sanitizer # files of what sanitizers found, in servers that were killed, too
mkdir -p "$work"
rm -rf "$reports" && mkdir "$reports"
export TALLY_PRESET=$preset
[[ $preset = release* ]] || export ASAN_OPTIONS=log_path=$reports/asan UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/ubsan TSAN_OPTIONS="log_path=$reports/tsan history_size=7 suppressions=$tally_root/tests/tsan.supp"

# count NAME PASSED FAILED SKIPPED SECONDS: adds a step to the table.
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    rows+=("$(printf '%-30s %8d %8d %8d %7ds' "$1" "$2" "$3" "$4" "$5")")
}

# counted NAME COMMAND...: runs a command whose last lines hold "N passed, N failed[, N skipped]"; a command that counts nothing has failed.
counted() {
    local name=$1 log t0=$SECONDS rc p f s line
    shift
    log=$work/$(printf '%s' "$name" | tr -c 'a-z0-9\n' '-').log
    say "$name"
    "$@" >"$log" 2>&1
    rc=$?
    line=$(grep -E '[0-9]+ (passed|failed|skipped)' "$log" | tail -1)
    p=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    f=$(grep -oE '[0-9]+ failed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    s=$(grep -oE '[0-9]+ skipped' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ $((p + f + s)) -eq 0 ] || { [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; }; then f=$((f + 1)); fi
    if [ -n "$(ls "$reports")" ]; then
        cat "$reports"/* >>"$log" && rm -f "$reports"/*
        f=$((f + 1))
    fi
    if [ "${CI:-}" = true ] && [ "$s" -gt 0 ]; then f=$((f + s)) s=0; fi
    [ "$f" -eq 0 ] || tail -n 120 "$log"
    grep -oE 'not run: .*' "$log" | sort -u
    count "$name" "$p" "$f" "$s" $((SECONDS - t0))
}

# ctests PRESET [ctest options]: runs the preset's tests and counts the cmocka tests in them, or the program where it has none.
ctests() {
    local preset=$1 log
    shift
    log=build/$preset/ctest.log
    ctest --test-dir "build/$preset" --output-on-failure -j2 --timeout 240 --verbose "$@" >"$log" 2>&1
    local rc=$? ok bad programs
    ok=$(grep -ac '\[       OK \]' "$log")
    bad=$(grep -aoE '\[  FAILED  \] [a-z_0-9]+$' "$log" | sort -u | wc -l) # each is told more than once
    programs=$(grep -acE 'Test +#[0-9]+: fuzz_corpus_.*Passed' "$log")
    [ $rc -eq 0 ] || grep -avE '\[ RUN|\[       OK|UpdateCTestConfiguration|^Test (command|timeout)' "$log"
    [ $rc -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    echo "$((ok + programs)) passed, $bad failed"
    return $rc
}

step_layers() {
    counted layers python3 tests/layer/check_layers.py
    python_env format tests/layer/requirements.txt
    counted layout build/format/bin/python tests/layer/check_format.py
    counted "rules" python3 tools/docs/rules.py --check
}
step_unit() {
    build_preset asan || { count "unit (build)" 0 1 0 0; return; }
    counted unit ctests asan
}
step_threads() {
    build_preset tsan || { count "threads (build)" 0 1 0 0; return; }
    # the tests of crashes fork while threads run, which the thread sanitiser cannot follow
    counted threads ctests tsan -E crash -R 'engine|system_schema|cql_test_(cas|modify|select|stmt)|native_protocol|ledger|limits|access|server'
}
step_replay() {
    build_preset asan || { count "replay (build)" 0 1 0 0; return; }
    counted replay timeout 600 python3 tests/replay/replay.py build/asan/bin/tallyd
}
step_conformance() {
    python_env venv tests/integration/requirements.txt
    local mode built
    for built in $(printf '%s\n' release asan "$preset" | sort -ru); do
        build_preset "$built" tallyd || { count "conformance (build)" 0 1 0 0; return; }
        for mode in keyspaces cassandra; do
            counted "conformance $mode $built" timeout 900 build/venv/bin/python tests/conformance/cqlt replay --server "build/$built/bin/tallyd" --mode $mode
        done
    done
}
# integration_file FILE SECONDS [NAME]: on the server of the preset that TALLY_PRESET names.
integration_file() {
    counted "${3:-integration} $(basename "$1" .py | sed 's/^test_//')" timeout "$2" build/venv/bin/python -m pytest -q -rsfE -p no:cacheprovider "$1"
}
# step_integration [NAME]: all files, or one.
step_integration() {
    build_preset "$preset" || { count "integration (build)" 0 1 0 0; return; }
    python_env venv tests/integration/requirements.txt
    local file limit=1200
    [[ $preset = release* ]] || limit=3600
    for file in tests/integration/test_${1:-*}.py; do integration_file "$file" $limit; done
}
step_source() {
    install_packages_of release-source && build_preset release-source && build_preset release tallyd tally || { count "source (build)" 0 1 0 0; return; }
    python_env venv tests/integration/requirements.txt
    counted "source unit" ctests release-source
    local mode name
    for mode in keyspaces cassandra; do
        counted "source conformance $mode" timeout 900 build/venv/bin/python tests/conformance/cqlt replay --server build/release-source/bin/tallyd --mode $mode
    done
    for name in model linearizability kill9 crash storage damaged_store file_faults disk_full verify backup restore snapshots memory_limit hostile package; do
        TALLY_PRESET=release-source integration_file tests/integration/test_$name.py 1200 source
    done
}

install_packages || exit 1
case " ${steps[*]} " in *" integration "*) # what the tests' programs download comes while other steps run
    python3 tests/integration/programs.py >$work/programs.log 2>&1 &
    trap 'kill '$!' 2>/dev/null' EXIT
    ;;
esac
for step in "${steps[@]}"; do
    name=${step%%:*} only=${step#"${step%%:*}"}
    declare -F "step_$name" >/dev/null || { echo "unknown step: $step" >&2; sed -n '2,13p' "$0" >&2; exit 2; }
    "step_$name" ${only:+"${only#:}"}
done

printf '\n%-30s %8s %8s %8s %8s\n' step passed failed skipped time
printf '%s\n' "${rows[@]}"
printf '\n'
if [ "$skipped" -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
