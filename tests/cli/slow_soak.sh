#!/bin/sh
# Fifty kills, fifty damaged checkpoints, a hundred faults of the file system:
# the run ends like one that never stopped. Prints one line a test.
. tests/cli/expect.sh
needs_venv "the soak"
tests=$source/tests/cli
cp "$demo/two_domain.pdb" model.pdb
cat >soak.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat, noise: {model: student}}]
contrast: {c1: infer, c2: infer}
sampler: {chains: 3, warmup: 4000, draws: 2000, thin: 20, temperatures: 3}
output: {trajectory_every: 4, checkpoint_every: 0}
simulate: {points: 40, q_range: [0.01, 0.2], steps: 50}
END
"$build/tessera" simulate soak.yaml --output good.dat --quiet || exit 1
soak() { # MODE STOPS [LIBRARY]
    if "$python" "$tests/soak.py" "$build/tessera" soak soak.yaml "$@" \
        >out.txt 2>&1
    then
        echo "ok $1: $(tail -n 1 out.txt)"
    else
        echo "not ok $1"
        sed 's/^/    /' out.txt
    fi
}
soak kills 50
soak damage 50
soak faults 100 "$build/tests/support/fault.so"
