#!/bin/sh
# Runs of bodies, of all atoms and in a map, and a solve, end like ones that never
# stopped after signals, damaged checkpoints and faults of the file system. `make soak`
# gives more stops to each (SOAK_STOPS), SOAK_SEED repeats the choices of one that failed.
. tests/cli/expect.sh
needs_venv "the soak"
[ -d "$shared/saxs" ] || { echo "skip the soak: no $shared/saxs"; exit 0; }
stops=${SOAK_STOPS:-40}
seed=${SOAK_SEED:-$(date +%s)}
short_model model.pdb
lar=$shared/saxs/lar_fn3_1_2/model.pdb # which has all atoms
awk '/^ATOM/ {n = substr($0, 23, 4) + 0} n > 91 && n < 110' "$lar" >linker.pdb || exit 1
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat, noise: {model: student}}]
contrast: {c1: infer, c2: infer}
sampler: {chains: 2, warmup: 300, draws: 200, thin: 8, temperatures: 2}
device: {use: reference, threads: 2}
output: {trajectory_every: 4, checkpoint_every: 0}
simulate: {points: 30, q_range: [0.01, 0.2], steps: 50}
END
cat >atoms.yaml <<END
structure: {file: linker.pdb, flexible: ["A:97-103"], bodies: atoms}
data: [{file: atoms.dat, noise: {model: measured, scale: 1}, background: 0}]
contrast: {c2: 0}
sampler: {chains: 2, warmup: 100, draws: 60, thin: 5, temperatures: 2}
device: {use: reference, threads: 2}
output: {trajectory_every: 1, checkpoint_every: 0}
simulate: {points: 30, q_range: [0.01, 0.25], error: 0.03, c2: 0}
END
sed 's/, bodies: atoms}/}/
    s/background: 0}/background: 0}, {kind: map, file: own.mrc, resolution: 10}/
    s/draws: 60/draws: 100/' atoms.yaml >map.yaml
flat_map zero.dx linker.pdb 4 12
tessera simulate run.yaml --output good.dat --quiet &&
    tessera simulate atoms.yaml --output atoms.dat --quiet &&
    tessera map simulate linker.pdb --like zero.dx -r 10 -o own.mrc \
        --device reference || exit 1
solve="solve $PWD/model.pdb $PWD/good.dat --states 2 --device reference
    --set sampler.warmup=60 --set sampler.draws=20 --set sampler.chains=8
    --set sampler.thin=2 --set sampler.temperatures=4 --set output.checkpoint_every=0"
fault="$build/tests/support/fault.so"
for name in ${SOAK_OF:-run map atoms solve}; do
    eval "command=\${$name:-$name.yaml}"
    soak "$name" "$command" stops "$stops" "$seed" "$fault"
done
[ -n "$SOAK_OF" ] || soak damage run.yaml damage 50 "$seed"
exit $bad
