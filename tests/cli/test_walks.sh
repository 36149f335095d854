#!/bin/sh
# Runs whose chains walk by a surrogate on the device, and draw linkers anew by it: the
# same draws for any number of threads, stopped and continued, by either engine.
. tests/cli/expect.sh

short_model model.pdb
cat >good.yaml <<END
seed: 3
structure: {file: model.pdb, flexible: ["A:51-57"]}
data: [{file: truth.dat}]
sampler: {chains: 4, temperatures: 2, warmup: 24, draws: 8, thin: 8, start: file}
moves: {surrogate: {devices: all, steps: 12}, redraw: 600}
output: {directory: run}
device: {use: cpu}
END
run() { # DIR OPTION...
    into=$1
    shift
    tessera run good.yaml --output "$into" "$@"
}
cases <<'END'
data | 0 | tessera simulate good.yaml --output truth.dat
a run with walks | 0 surrogate walks: [0-9]* torsions, [0-9]* beads | run whole -v --threads 2
    some are accepted, and redraws | err surrogate +[0-9]+ proposed, [1-9] && err redraw +[0-9]+ proposed, [1-9]
END
needs_venv "draws of runs with walks"
cases <<'END'
one thread | 0 | run one --threads 1
$ same "threads do not matter" one whole
a part | 0 | run part --set sampler.draws=3 --threads 2
$ cp -r part other
the rest | 0 resumed | tessera resume part --draws 8 --threads 1
$ same "stopped and continued" part whole
on where nothing walks | 0 resumed | tessera resume other --draws 5 --device reference
    walks are over | no err walks by
and back | 0 surrogate walks | tessera resume other --draws 8 --device cpu
off | 0 | run off -v --set moves.surrogate=0 --set moves.redraw=0
    nothing is drawn anew, nothing walks | no err redraws by|^redraw && no err surrogate walks:|^surrogate +[0-9]
by default not on processors where it is small | 0 | run default -v --set moves.surrogate.devices=auto
    nothing walks there | no err surrogate walks:|^surrogate +[0-9]

# ---- curves by plane waves ----
plane waves | 0 engine: plane waves, [0-9]+ directions, 1 rigid unit; | \
        run waves --threads 2 -v --set device.engine=waves
    walks are accepted by them | err surrogate +[0-9]+ proposed, [1-9]
a part by them | 0 | run waves-part --set device.engine=waves --set sampler.draws=3 --threads 1
the rest by them | 0 resumed | tessera resume waves-part --draws 8 --threads 2
$ same "by plane waves: the same draws" waves-part waves
another engine | 78 'waves'|auto, tiles | tessera check good.yaml --set device.engine=wave
END
compared
exit $bad
