#!/bin/sh
# Runs test programs and scripts one after the other; a script prints lines
# "ok NAME", "not ok NAME" or "skip NAME: reason". Ends with the counts.
passed=0 failed=0 skipped=0 broken=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for test in "$@"; do
    start=$(date +%s)
    CMOCKA_MESSAGE_OUTPUT=tap "$test" >"$log" 2>&1
    status=$?
    seconds=$(($(date +%s) - start))
    # cmocka before 2 writes "not ok N # SKIP name" for a test that skips.
    skip=$(grep -ci '^\(not \)*ok .*# skip\|^skip ' "$log")
    ok=$(grep '^ok ' "$log" | grep -civ '# skip')
    bad=$(grep '^not ok ' "$log" | grep -civ '# skip')
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    if [ $((ok + bad + skip)) -eq 0 ]; then bad=1; fi
    passed=$((passed + ok)) failed=$((failed + bad))
    skipped=$((skipped + skip))
    if [ "$bad" -ne 0 ]; then
        broken="$broken $test"
        echo "FAIL $test ($seconds s, exit status $status)"
        sed 's/^/    /' "$log"
    else
        echo "pass $test: $ok tests, $seconds s"
        grep -i '^skip \|^skipped\|# skip' "$log" | sed 's/^/    /'
    fi
done
[ -z "$broken" ] || echo "failed:$broken"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
