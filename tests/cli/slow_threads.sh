#!/bin/sh
# No data race in a run of several threads: chains, ladders, engine and writers, on the
# host and with PoCL, whose own threads the sanitizer does not see into. Each run also
# has the draws of one thread.
. tests/cli/expect.sh
program=$source/build/san-thread/tessera
if [ ! -x "$program" ]; then
    echo "skip threads: no $program (make SAN=thread $program)"
    exit 0
fi
needs_venv "threads"
ln -sf "$program" .bin/tessera
export TSAN_OPTIONS="exitcode=99 log_path=$work/race"
short_model model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat, noise: {model: student}}]
contrast: {c1: infer, c2: infer}
sampler: {chains: 8, warmup: 60, draws: 30, thin: 4, temperatures: 3}
output: {trajectory_every: 2, checkpoint_every: 0}
simulate: {points: 30, q_range: [0.01, 0.2], steps: 50}
END
expect "a curve" 0 "" tessera simulate run.yaml --output good.dat
for device in reference cpu; do
    tessera devices --no-test 2>&1 | grep -q "(CPU)" || [ $device = reference ] || continue
    for threads in 1 4; do
        expect "$device, $threads" 0 "" tessera run run.yaml --device $device \
            --threads $threads --output $device-$threads
    done
    same "$device: the same draws" $device-1 $device-4
done
compared
check "no report of a race" test -z "$(cat race.* 2>/dev/null)"
cat race.* 2>/dev/null | head -n 40
exit $bad
