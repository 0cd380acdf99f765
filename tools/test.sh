#!/usr/bin/env bash
# Builds what is needed and runs the tests; ends with one line of totals.
#   tools/test.sh [--preset PRESET] [quick|all|STEP...]    without a step: all that must hold before a merge
#     quick        layers, unit, one mode of conformance, the Python driver
#     all          every step, with both sanitised servers and RocksDB from source: hours
#     layers       the #include arrows between rooms go one way, and those inside a room; no path of one machine; C is laid out as
#                  .clang-format says; docs/compatibility.md, docs/settings.md and docs/table_settings.md are what their tables say, and every
#                  rule has a test; every numbered invariant has an assert or a mutant
#     mutants      (in all) small changes that break an invariant, each of which a unit test must notice
#     unit         unit tests and fuzzer corpora under AddressSanitizer and UndefinedBehaviorSanitizer
#     threads      the tests of what threads share, under ThreadSanitizer
#     replay       byte scripts against a sanitised server
#     conformance  statements recorded from Apache Cassandra, replayed in both modes on the release-test server, and in one on the sanitised
#     integration  the server with the drivers of Python, Node, Go, Java, Rust and C++, AWS's SDKs, clients of other projects, cqlsh, and kill -9;
#                  integration:tls is one file of them
#     rados        the store on Ceph: on one OSD in memory, with the conformance cases and the integration suite, and under models while OSDs and
#                  servers, three each, are killed; installs Ceph's packages; rados:integration is one part
#     source       the programs as packages and images ship them, with a RocksDB of their own (-DTALLY_ROCKSDB=source, which is built first,
#                  twenty minutes of processor time): unit tests, conformance, models, crashes, damaged and full disks, backups, memory, the package
# The server of the integration and conformance steps is that of the preset release-test, or of --preset: release is optimised across files, as it
# ships; every report of the sanitizer of asan or tsan is a failure.
# Independent parts run two at a time, files of the integration step six at a time. No result depends on time: time-outs are for what hangs.
# A driver whose toolchain this machine lacks is named as not run; with CI=true that is a failure.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
set +e
cd "$tally_root" || exit 1

preset=release-test
[ "${1:-}" != --preset ] || { preset=${2:?a preset}; shift 2; }
merge=(layers unit threads replay conformance integration)
case "${*:-merge}" in
    merge) steps=("${merge[@]}") ;;
    quick) steps=(layers unit conformance:keyspaces integration:python_driver) ;;
    all) steps=("${merge[@]}" mutants rados conformance:sanitised integration_asan integration_tsan source) ;;
    *) steps=("$@") ;;
esac
hang=3600 # seconds after which a part is said to hang
passed=0 failed=0 skipped=0 rows=()
work=build/test
mkdir -p "$work"
export TALLYTEST_PRESET=$preset

# count NAME PASSED FAILED SKIPPED SECONDS [CPU]: adds a step to the table. CPU: seconds of processor time, which a busy machine changes little.
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    rows+=("$(printf '%-30s %8d %8d %8d %7ds %7ds' "$1" "$2" "$3" "$4" "$5" "${6:-0}")")
}

# run_job FILE NAME COMMAND...: runs a command whose last lines hold "N passed, N failed[, N skipped]"; a command that counts nothing has
# failed. FILE.count gets the numbers, FILE.log the command's output, FILE.told what a person is shown of it.
run_job() {
    local file=$1 t0=$SECONDS rc p f s line cpu reports=$tally_root/$1.sanitizer # what sanitizers found, in servers that were killed, too
    shift 2
    rm -rf "$reports" && mkdir "$reports"
    if [[ $TALLYTEST_PRESET != release* ]]; then
        export ASAN_OPTIONS=log_path=$reports/asan UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/ubsan
        export TSAN_OPTIONS="log_path=$reports/tsan history_size=7 suppressions=$tally_root/tests/tsan.supp"
    fi
    "$@" >"$file.log" 2>&1
    rc=$?
    times >"$file.cpu" # the second line: user and system time of the processes that this shell has waited for
    cpu=$(awk -F'[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$file.cpu")
    rm "$file.cpu"
    line=$(grep -E '[0-9]+ (passed|failed|skipped)' "$file.log" | tail -1)
    p=$(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    f=$(grep -oE '[0-9]+ failed' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    s=$(grep -oE '[0-9]+ skipped' <<<"$line" | grep -oE '[0-9]+' || echo 0)
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ $((p + f + s)) -eq 0 ] || { [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; }; then f=$((f + 1)); fi
    if [ -n "$(ls "$reports")" ]; then
        cat "$reports"/* >>"$file.log"
        f=$((f + 1))
    fi
    rmdir "$reports" 2>/dev/null
    if [ "${CI:-}" = true ] && [ "$s" -gt 0 ]; then f=$((f + s)) s=0; fi
    {
        [ "$f" -eq 0 ] || tail -n 120 "$file.log"
        grep -oE 'not run: .*' "$file.log" | sort -u
    } >"$file.told"
    echo "$p $f $s $((SECONDS - t0)) $cpu" >"$file.count"
}

# Jobs that do not depend on each other run jobs_at_once at a time: begin NAME COMMAND... starts one, finish waits for all and counts them
# in order. Neither waits by id for a job that has ended: the shell may have forgotten it, or the system may have given the id to another process.
jobs_at_once=2
begun=()
running=() # the ids of the jobs' processes
find_running() {
    jobs -rp >"$work/running" # in a pipeline or a subshell of one the shell may list none
    mapfile -t running < <(grep -vxF "${downloads:-none}" "$work/running")
}
begin() {
    local name=$1 file
    file=$work/$(printf '%s' "$name" | tr -c 'a-z0-9\n' '-')
    while find_running && [ ${#running[@]} -ge "$jobs_at_once" ]; do wait -n; done
    say "$name"
    rm -f "$file.count"
    run_job "$file" "$@" &
    begun+=("$name:$file")
}
finish() {
    local pid job name file p f s t cpu
    find_running
    for pid in "${running[@]}"; do wait "$pid"; done
    for job in "${begun[@]}"; do
        name=${job%%:*} file=${job#*:}
        read -r p f s t cpu <"$file.count" || { p=0 f=1 s=0 t=0 cpu=0; }
        cat "$file.told"
        count "$name" "$p" "$f" "$s" "$t" "$cpu"
    done
    begun=()
}
counted() {
    begin "$@"
    finish
}

# ctests PRESET [ctest options]: runs the preset's tests and counts the cmocka tests in them, or the program where it has none.
ctests() {
    local preset=$1 log
    shift
    log=build/$preset/ctest.log
    ctest --test-dir "build/$preset" --output-on-failure -j3 --timeout $hang --verbose "$@" >"$log" 2>&1
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
    counted rules python3 tools/docs/rules.py --check
    counted settings python3 tools/docs/settings.py --check
    counted table_settings python3 tools/docs/table_settings.py --check
    counted invariants python3 tests/layer/invariants.py
}
step_mutants() {
    build_preset asan || { count "mutants (build)" 0 1 0 0; return; }
    counted mutants python3 tests/layer/invariants.py --mutants
}
step_unit() {
    build_preset asan || { count "unit (build)" 0 1 0 0; return; }
    counted unit ctests asan
}
step_threads() {
    build_preset tsan thread_tests || { count "threads (build)" 0 1 0 0; return; }
    counted threads ctests tsan -L threads
}
step_replay() {
    build_preset asan || { count "replay (build)" 0 1 0 0; return; }
    counted replay timeout $hang python3 tests/replay/replay.py build/asan/bin/tallyd
}
# conformance PRESET MODE [NAME]
conformance() {
    begin "${3:-conformance} $2 $1" timeout $hang build/venv/bin/python tests/conformance/cqlt replay --server "build/$1/bin/tallyd" --mode "$2"
}
# step_conformance [keyspaces|cassandra|sanitised]: the server of the preset in both modes and the sanitised one in
# cassandra mode, which knows more statements; or one of them.
step_conformance() {
    python_env venv tests/integration/requirements.txt
    case ${1:-} in
        keyspaces | cassandra) build_preset "$preset" tallyd && conformance "$preset" "$1" ;;
        sanitised) build_preset asan tallyd && conformance asan keyspaces && conformance asan cassandra ;;
        *)
            build_preset "$preset" tallyd && build_preset asan tallyd &&
                conformance asan cassandra && conformance "$preset" keyspaces && conformance "$preset" cassandra
            ;;
    esac || count "conformance (build)" 0 1 0 0
    finish
}
# integration_file FILE [NAME]: on the server of the preset that TALLYTEST_PRESET names.
integration_file() {
    begin "${2:-integration} $(basename "$1" .py | sed 's/^test_//')" timeout $hang build/venv/bin/python -m pytest -q -rsfE -p no:cacheprovider "$1"
}
# step_integration [NAME]: all files, or one.
step_integration() {
    build_preset "$preset" tallyd tally tally-bench || { count "integration (build)" 0 1 0 0; return; }
    python_env venv tests/integration/requirements.txt
    local file
    jobs_at_once=6 # on two processors: two thirds of their time these tests wait, for disks, timers and programs that start
    for file in tests/integration/test_${1:-*}.py; do integration_file "$file"; done
    finish
    jobs_at_once=2
}
step_integration_asan() { "$0" --preset asan integration && count "integration asan" 1 0 0 0 || count "integration asan" 0 1 0 0; }
step_integration_tsan() { "$0" --preset tsan integration && count "integration tsan" 1 0 0 0 || count "integration tsan" 0 1 0 0; }
# step_rados [function|conformance|integration|failures|servers]: all parts, or one.
step_rados() {
    python3 tests/rados/cluster.py install &&
        build_preset "$preset" tallyd tally tally-bench rados_tests unit_engine_test_model ||
        { count "rados (build)" 0 1 0 0; return; }
    python_env venv tests/integration/requirements.txt
    local part
    for part in ${1:-function conformance integration failures servers}; do
        counted "rados $part" timeout $hang /usr/bin/python3 tests/rados/run.py --build "build/$preset" --only "$part"
    done
}
step_source() {
    install_packages_of release-source && build_preset release-source && build_preset release tallyd tally || { count "source (build)" 0 1 0 0; return; }
    python_env venv tests/integration/requirements.txt
    counted "source unit" ctests release-source
    local mode name
    for mode in keyspaces cassandra; do conformance release-source $mode "source conformance"; done
    for name in model linearizability kill9 crash storage damaged_store file_faults disk_full verify backup restore snapshots memory_limit hostile package; do
        TALLYTEST_PRESET=release-source integration_file tests/integration/test_$name.py source
    done
    finish
}

install_packages || exit 1
case " ${steps[*]} " in *" integration "*) # what the tests' programs download comes while other steps run
    (python_env venv tests/integration/requirements.txt && exec build/venv/bin/python tests/integration/programs.py) >$work/programs.log 2>&1 &
    downloads=$!
    trap 'kill $downloads 2>/dev/null' EXIT
    ;;
esac
for step in "${steps[@]}"; do
    name=${step%%:*} only=${step#"${step%%:*}"}
    declare -F "step_$name" >/dev/null || { echo "unknown step: $step" >&2; sed -n '2,23p' "$0" >&2; exit 2; }
    "step_$name" ${only:+"${only#:}"}
done

printf '\n%-30s %8s %8s %8s %8s %8s\n' step passed failed skipped time cpu
printf '%s\n' "${rows[@]}"
printf '\n'
if [ "$skipped" -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
