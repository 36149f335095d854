#!/bin/sh
# Runs whose chains walk by a surrogate on the device, and draw linkers anew by
# it: the same draws whatever the threads, stopped and gone on with, by either
# engine of the device, and a run that goes on where nothing walks and comes
# back. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

short_model model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-57"]}
data: [{file: truth.dat}]
sampler: {chains: 4, temperatures: 2, warmup: 24, draws: 8, thin: 4, start: file}
moves: {surrogate: {devices: all, steps: 12}, redraw: 200}
output: {directory: run}
device: {use: cpu}
END
expect "data" 0 "" "$program" simulate good.yaml --output truth.dat
expect "a run with walks" 0 "surrogate walks: [0-9]* torsions, [0-9]* beads" \
    "$program" run good.yaml --output whole -v --threads 2
check "some are accepted" grep -Eq "surrogate +[0-9]+ proposed, [1-9]" err.txt
check "and redraws" grep -Eq "redraw +[0-9]+ proposed, [1-9]" err.txt
needs_venv "draws of runs with walks"
expect "one thread" 0 "" "$program" run good.yaml --output one --threads 1
same "threads do not matter" one whole
expect "a part" 0 "" "$program" run good.yaml --output part \
    --set sampler.draws=3 --threads 2
cp -r part other
expect "the rest" 0 "resumed" "$program" resume part --draws 8 --threads 1
same "stopped and gone on with" part whole
expect "on where nothing walks" 0 "resumed" "$program" resume other --draws 5 \
    --device reference
check "walks are over" sh -c '! grep -q "surrogate walks" err.txt'
expect "and back" 0 "surrogate walks" "$program" resume other --draws 8 \
    --device cpu
expect "off" 0 "" "$program" run good.yaml --output off -v \
    --set moves.surrogate=0 --set moves.redraw=0
check "nothing is drawn anew" sh -c '! grep -q "surrogate redraws\|^redraw" err.txt'
check "nothing walks" sh -c '! grep -q "surrogate walks\|^surrogate" err.txt'
expect "by default not on processors where it is small" 0 "" "$program" run good.yaml \
    --output default -v --set moves.surrogate.devices=auto
check "nothing walks there" sh -c '! grep -q "surrogate walks\|^surrogate" err.txt'

# ---- curves by plane waves ----
expect "plane waves" 0 "engine: plane waves, [0-9]+ directions, 1 rigid unit;" \
    "$program" run good.yaml --output waves --threads 2 -v \
    --set device.engine=waves
check "walks are accepted by them" grep -Eq "surrogate +[0-9]+ proposed, [1-9]" err.txt
expect "a part by them" 0 "" "$program" run good.yaml --output waves-part \
    --set device.engine=waves --set sampler.draws=3 --threads 1
expect "the rest by them" 0 "resumed" "$program" resume waves-part --draws 8 \
    --threads 2
same "by plane waves: the same draws" waves-part waves
expect "another engine" 78 "'waves'|auto, tiles" "$program" check good.yaml \
    --set device.engine=wave

compared
exit $bad
