#!/bin/sh
# Runs test programs and scripts, two more at a time than there are processors
# (or JOBS), since some wait; a script prints lines "ok NAME", "not ok NAME" or
# "skip NAME: reason". Ends with the slowest, what failed once more (the whole
# output is long, and who reads a log begins at its end) and the counts. A test
# that has not ended after LIMIT seconds (900 if not given) is killed with all
# that it has started, and failed.

# run.sh --one FOLDER TEST: a test, whose lines come out together. FOLDER/table
# gets a row of it: processor seconds, seconds, passed, failed, skipped, name.
if [ "$1" = --one ]; then
    log=$(mktemp "$2/log.XXXXXX")
    start=$(date +%s)
    CMOCKA_MESSAGE_OUTPUT=tap timeout -k 5 "${LIMIT:-900}" "$3" >"$log" 2>&1 \
        </dev/null
    status=$?
    seconds=$(($(date +%s) - start))
    times >"$log.times" # in its second line user and system of the test
    cpu=$(awk -F '[ ms]+' 'NR == 2 {print int(60 * ($1 + $3) + $2 + $4 + 0.5)}' \
        "$log.times")
    # cmocka before 2 writes "not ok N # SKIP name" for a test that skips.
    skip=$(grep -ci '^\(not \)*ok .*# skip\|^skip ' "$log")
    ok=$(grep '^ok ' "$log" | grep -civ '# skip')
    bad=$(grep '^not ok ' "$log" | grep -civ '# skip')
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ $((ok + bad + skip)) -eq 0 ]; then bad=1; fi
    echo "$cpu $seconds $ok $bad $skip $3" >>"$2/table"
    if [ "$bad" -ne 0 ]; then
        said="FAIL $3 ($seconds s, exit status $status)
$(sed 's/^/    /' "$log")"
        # A test's own words about a failure follow it, not starting with "ok".
        { echo "$3, exit status $status:"
          awk '/^(ok|skip) /{shown = 0} /^not ok /{shown = 1} shown' "$log" |
              head -n 40
          echo "its last lines:"; tail -n 5 "$log"; } >>"$2/broken"
    else
        said="pass $3: $ok tests, $seconds s
$(grep -i '^skip \|^skipped\|# skip' "$log" | sed 's/^/    /')"
    fi
    printf '%s\n' "$said"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/table"
printf '%s\n' "$@" |
    xargs -P "${JOBS:-$(($(nproc 2>/dev/null || echo 1) + 2))}" -I TEST \
        "$0" --one "$work" TEST
echo "the slowest, in seconds of processor and of time:"
sort -rn "$work/table" | head -n 10 |
    awk '{printf "%5d %5d  %s\n", $1, $2, $6}'
cat "$work/broken" 2>/dev/null
awk -v n=$# '{passed += $3; failed += $4; skipped += $5}
    $4 {broken = broken " " $6}
    END {
        if (NR < n) failed += n - NR
        if (broken) print "failed:" broken
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }' "$work/table"
