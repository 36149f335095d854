#!/bin/sh
# A run ends like one that never stopped after fifty kills, fifty damaged checkpoints and a
# hundred faults of the file system.
. tests/cli/expect.sh
needs_venv "the soak"
cp "$demo/two_domain.pdb" model.pdb
cat >soak.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat, noise: {model: student}}]
contrast: {c1: infer, c2: infer}
sampler: {chains: 3, warmup: 4000, draws: 2000, thin: 20, temperatures: 3}
output: {trajectory_every: 4, checkpoint_every: 0}
simulate: {points: 40, q_range: [0.01, 0.2], steps: 50}
END
tessera simulate soak.yaml --output good.dat --quiet || exit 1
soak soak.yaml kills 50
soak soak.yaml damage 50
soak soak.yaml faults 100 "$build/tests/support/fault.so"
exit $bad
