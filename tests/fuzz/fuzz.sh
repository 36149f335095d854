#!/bin/sh
# fuzz.sh BINARY FOLDER SECONDS: all targets for SECONDS in all, with libFuzzer.
#   FOLDER/seeds, runs   by seeds.sh
#   FOLDER/corpus        what is found beyond the seeds; kept for the next time
#   FOLDER/found         inputs that crash, leak or take too long
#   FOLDER/log           what libFuzzer prints
# Prints a row a target; the exit status is 1 if there is a finding. On 16
# processors or more the targets run side by side, else one after the other.
binary=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
seconds=$3
cd "$2" || exit 2
cores=$(nproc)
export TESSERA_FUZZ_RUNS="$PWD/runs" TMPDIR="${TMPDIR:-/tmp}/tessera-fuzz.$$"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=allocator_may_return_null=1
mkdir -p "$TMPDIR" corpus found log
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM

one() { # TARGET PROCESSES SECONDS
    mkdir -p "corpus/$1" "found/$1" "seeds/$1"
    cp "$here/found/$1"/* "seeds/$1" 2>/dev/null
    ln -sf "$binary" "fuzz-$1"
    timeout $(($3 + 60)) "./fuzz-$1" "corpus/$1" "seeds/$1" -fork="$2" -ignore_crashes=1 \
        -ignore_ooms=1 -ignore_timeouts=1 -max_total_time="$3" -timeout=60 \
        -rss_limit_mb=4096 -malloc_limit_mb=2048 -len_control=0 \
        -max_len=48000 -dict="$here/dictionary" \
        -artifact_prefix="found/$1/" >"log/$1" 2>&1
    rm "fuzz-$1"
}

# The target `run` is slow and reaches most of the program.
for target in run:9 pdb:2 cif:2 curve:1 config:1 table:1 map:1 dcd:1 pae:1; do
    name=${target%:*} share=${target#*:}
    if [ "$cores" -ge 16 ]; then
        one "$name" $(((cores * share + 3) / 19)) "$seconds" &
    else
        one "$name" "$cores" $((seconds * share / 19 + 1))
    fi
done
wait
printf '%-8s %12s %8s %8s %9s\n' target executions edges corpus findings
for log in log/*; do
    name=${log#log/}
    grep -a '^#[0-9]*: cov:' "$log" | tail -n 1 | tr -d '#:' |
        awk -v name="$name" -v found="$(ls "found/$name" | wc -l)" \
            '{printf "%-8s %12d %8d %8d %9d\n", name, $1, $3, $7, found}'
done
find found -type f
[ -z "$(find found -type f)" ]
