#!/usr/bin/env bash
# Fuzzes the decoders with libFuzzer: builds the fuzz preset, gives each fuzzer so many seconds of CPU time (however long that takes on a busy machine), says what came of it.
#   tools/fuzz.sh [SECONDS] [NAME...]           60 seconds each, all of tests/fuzz, when nothing is said; NAME is frame, parse, ...
#   tools/fuzz.sh merge [NAME...]               what was found and reaches more code than the corpora do joins them, in as few files as it takes
# What it finds on the way stays in build/fuzz/corpus/NAME, and the next run goes on from there. What crashes, hangs (10 s) or takes more than 2 GB is in build/fuzz/findings/NAME, and is a
# failure: mend it, and add the file to tests/fuzz/corpus/NAME_fuzzer under a name that says what it is.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
set +e
cd "$tally_root" || exit 1

seconds=60 merge=false
case ${1:-} in
    merge) merge=true; shift ;;
    [0-9]*) seconds=$1; shift ;;
esac
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(basename -a -s _fuzzer.c tests/fuzz/*_fuzzer.c)
for name in "${names[@]}"; do
    [ -e "tests/fuzz/${name}_fuzzer.c" ] || { echo "no fuzzer of that name: $name" >&2; sed -n '2,4p' "$0" >&2; exit 2; }
done

install_packages "${fuzz_packages[@]}" || exit 1
build_preset fuzz "${names[@]/%/_fuzzer}" || exit 1

# fuzz_once NAME SECONDS: goes on for so long by the clock, as libFuzzer counts; sets cpu, what it had of CPU time in milliseconds.
fuzz_once() {
    local found=build/fuzz/corpus/$1 findings=build/fuzz/findings/$1 options=() TIMEFORMAT='%U %S' times
    mkdir -p "$found" "$findings"
    # what many of a thing do to the grammar is shown by the corpus; what comes of texts that are longer still is slower to find
    [ "$1" != parse ] || options=(-dict=build/fuzz/parse_fuzzer.dict -max_len=2048)
    times=$({ time "build/fuzz/bin/$1_fuzzer" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$findings/" "${options[@]}" \
        "$found" "tests/fuzz/corpus/$1_fuzzer" >>"build/fuzz/$1.log" 2>&1; } 2>&1)
    local rc=$? user=${times% *} system=${times#* }
    cpu=$((10#${user/./} + 10#${system/./}))
    return $rc
}

# fuzz NAME: one line of what was run, in as many rounds as the CPU time takes; its log is build/fuzz/NAME.log.
fuzz() {
    local name=$1 log=build/fuzz/$1.log rc=0 cpu had=0 left # in milliseconds
    : >"$log"
    while left=$((seconds - had / 1000)) && [ $rc -eq 0 ] && [ $left -gt 0 ]; do
        fuzz_once "$name" $((left < 30 ? 30 : left))
        rc=$?
        had=$((had + cpu))
    done
    awk -v name="$name" -v rc=$rc -v cpu=$((had / 1000)) '
        /(INITED|NEW|REDUCE|pulse|DONE|RELOAD) +cov:/ { for (i = 1; i < NF; i++) if ($i == "cov:") { if (!first) first = $(i + 1); last = $(i + 1) } }
        /number_of_executed_units/ { runs += $2 }
        END { printf "%-12s %10d runs in %d s of CPU, reached %d places at first and %d in the end: %s\n", name, runs, cpu, first, last, rc ? "A FINDING" : "no finding" }' "$log"
    [ $rc -eq 0 ] || grep -aE 'ERROR|SUMMARY|Assertion|runtime error|Test unit written' "$log" | head -20
    return $rc
}

# merge_one NAME: libFuzzer adds to the first folder what the second has and the first has not.
merge_one() {
    local corpus=tests/fuzz/corpus/$1_fuzzer
    [ -d "build/fuzz/corpus/$1" ] || return 0
    "build/fuzz/bin/$1_fuzzer" -merge=1 "$corpus" "build/fuzz/corpus/$1" >"build/fuzz/$1.merge.log" 2>&1 || { tail -20 "build/fuzz/$1.merge.log"; return 1; }
    echo "$1: $(ls "$corpus" | wc -l) files, $(git status --porcelain "$corpus" | wc -l) of them new"
}

failed=0
for name in "${names[@]}"; do
    if $merge; then merge_one "$name"; else fuzz "$name"; fi || failed=$((failed + 1))
done
[ $failed -eq 0 ]
