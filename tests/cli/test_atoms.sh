#!/bin/sh
# Draws of all atoms (structure.bodies: atoms): what is stored is of the curve of
# all atoms, goes on to the bit, and is refused where there are none. First
# without hydration, where nothing is left of the model's error, then with water
# that rides along.
. tests/cli/expect.sh
needs_venv "draws of all atoms"
lar=$shared/saxs/lar_fn3_1_2/model.pdb
if [ ! -e "$lar" ]; then
    echo "skip draws of all atoms: no $lar"
    exit 0
fi
# the linker of two domains with some of both
awk '/^ATOM/ && substr($0, 23, 4) + 0 >= 82 && substr($0, 23, 4) + 0 <= 122' \
    "$lar" >model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:97-103"], bodies: atoms}
contrast: {c2: 0}
data: [{file: curve.dat, noise: {model: measured, scale: 1}, background: 0}]
sampler: {chains: 4, warmup: 400, draws: 20, thin: 10, temperatures: 4, evidence: true, start: file}
device: {use: cpu, threads: 2}
output: {directory: out, trajectory_every: 1}
simulate: {points: 60, q_range: [0.01, 0.25], error: 0.03, c2: 0}
END
expect "simulate" 0 "" "$program" simulate run.yaml --output curve.dat
expect "run" 0 "bodies propose all-atom draws" "$program" run run.yaml
check "the bodies learn from the chains" \
    test "$(grep -c 'near the posterior' out/run.log)" -eq 2
check "how often they gave a draw is told" grep -q 'the bodies. chains gave' \
    out/run.log

# ---- what is stored ----
expect "a draw with its atoms" 0 "" "$program" export out --draws 2/17 \
    --atoms all --raw -o draw.pdb
expect "their curve" 0 "" "$program" profile draw.pdb --data curve.dat --c1 1 \
    --c2 0 --background 0 --json
cat >look.py <<'END'
import json, sys
import h5py
import numpy as np
what, *path = sys.argv[1:]
trace = [h5py.File(p, "r") for p in path]
stats = [f["sample_stats"] for f in trace]
if what.startswith("chi2"):  # of a draw, and of its atoms in a file of 0.001 A
    chi2 = json.load(open("out.txt"))["structures"][0]["chi2"]
    assert abs(trace[0]["posterior/" + what][2, 17] / chi2 - 1) < 2e-3
elif what == "places":
    gain, taken = stats[0]["all_atom_log_ratio"][:], stats[0]["all_atom_exchange"][:]
    assert taken.mean() > 0.02
    for c in range(taken.shape[0]):
        for i in range(1, taken.shape[1]):
            # a draw is the state that was offered, or the one before
            same = gain[c, i, 0] == gain[c, i - 1, 0]
            offered = gain[c, i, 0] == gain[c, i, 1]
            assert offered if taken[c, i] else same
elif what == "same":
    for group in ("posterior", "sample_stats", "warmup_posterior"):
        for name in trace[0][group]:
            a, b = (f[group][name][:] for f in trace)
            if a.dtype.kind == "f":
                assert a.tobytes() == b.tobytes(), name
END
check "chi2 is that of the draw's atoms" "$python" look.py chi2 out/trace.h5
check "draws are what was offered, or stay" "$python" look.py places out/trace.h5
expect "evidence reaches the atoms" 0 "" "$program" summary out --json
check "as a number" grep -q '"evidence": *{"log": *-*[0-9]' out.txt

# ---- to the bit ----
expect "the same in parts" 0 "" "$program" run run.yaml --output part \
    --set sampler.draws=7 --threads 1
expect "the rest" 0 "resumed" "$program" resume part --draws 20 --threads 1
check "the same draws" "$python" look.py same out/trace.h5 part/trace.h5

# ---- an offer that atoms rule out ----
cat >rule_out.py <<'END'
import h5py
with h5py.File("part/trace.h5", "r+") as f:
    f["sample_stats/all_atom_log_ratio"][1, 4, 1] = float("-inf")
END
"$python" rule_out.py
expect "evidence without it" 0 "" "$program" summary part --json
check "is a number" grep -q '"evidence": *{"log": *-*[0-9]' out.txt

# ---- beside neutrons and a map, whose curve and correlation are its own ----
awk 'BEGIN {
    print "object 1 class gridpositions counts 26 26 48\norigin -32 -24 -48"
    print "delta 2 0 0\ndelta 0 2 0\ndelta 0 0 2"
    print "object 2 class gridconnections counts 26 26 48"
    print "object 3 class array type double rank 0 items 32448 data follows"
    for (i = 0; i < 10816; i++) print "0 0 0"
}' >zero.dx
expect "a map" 0 "" "$program" map simulate model.pdb --like zero.dx -r 8 \
    --device reference -o own.mrc
sed 's/^data:.*/data: [{file: curve.dat, noise: {model: measured, scale: 1}, background: 0},\
  {kind: sans, file: sans.dat, d2o: 0.42, deuterated: [A=0.75]},\
  {kind: map, file: own.mrc, resolution: 8}]/
    s/warmup: 400/warmup: 100/
    s/evidence: true, //' run.yaml >beside.yaml
expect "neutrons" 0 "" "$program" simulate beside.yaml --output sans.dat --set \
    simulate.radiation=neutron --set simulate.d2o=0.42 \
    --set "simulate.deuterated=[A=0.75]"
expect "a run of all three" 0 "bodies propose all-atom draws" "$program" run beside.yaml \
    --output beside
expect "a draw of it" 0 "" "$program" export beside --draws 2/17 --atoms all \
    --raw -o draw.pdb
expect "its curve" 0 "" "$program" profile draw.pdb --data curve.dat --c1 1 \
    --c2 0 --background 0 --json
check "chi2 of X-rays" "$python" look.py chi2 beside/trace.h5
expect "as neutrons see it" 0 "" "$program" profile draw.pdb --data sans.dat \
    --radiation neutron --d2o 0.42 --deuterated A=0.75 --c1 1 --c2 0 \
    --background fit --json
check "chi2 of neutrons" "$python" look.py chi2_2 beside/trace.h5
expect "in the map" 0 "" "$program" map cc draw.pdb --map own.mrc -r 8 \
    --device reference --json
check "is where it was" grep -qE '"cc_box": *0\.9[0-9]' out.txt

# ---- asked by solve ----
expect "solve" 0 "1 state: solved/1" "$program" solve model.pdb curve.dat \
    --states 1 --output solved --set structure.bodies=atoms \
    --set structure.frozen=false --set 'structure.flexible=["A:97-103"]' \
    --set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=2 \
    --set sampler.temperatures=4 --set sampler.draws=30 --set device.use=cpu
check "its draws are of atoms" grep -q 'the bodies. chains gave' \
    solved/1/run.log

# ---- where there are none ----
sed 's/^structure:.*/structure: {sequence: GASFGKLE, bodies: atoms}/' run.yaml \
    >sequence.yaml
expect "a sequence" 78 "bodies: atoms needs structure.file" "$program" run \
    sequence.yaml --output none
sed '/ CB \| CG /d' model.pdb >cut.pdb
expect "incomplete residues" 65 "bodies: atoms.*residues lack atoms" "$program" \
    run run.yaml --output none --set structure.file=cut.pdb

expect "several structures" 78 "structure.starts: with structure.bodies" \
    "$program" check run.yaml --set structure.states=2 \
    --set 'structure.starts=[{file: model.pdb}]'
expect "another layer" 78 "'own' is not known: expected one of rides" "$program" check run.yaml \
    --set solvent.layer=own

# ---- water that rides along ----
expect "simulate with water" 0 "" "$program" simulate run.yaml --set simulate.c2=1 \
    --output curve.dat --force
sed 's/^contrast:.*/contrast: {c2: infer}/; s/directory: out/directory: rides/
    s/warmup: 400/warmup: 200/' run.yaml >rides.yaml
# Without OpenCL: curves of all atoms are direct sums there. An option and its
# key pass the same checks.
bare() { # WORD...: on a machine without OpenCL
    env OCL_ICD_VENDORS=/dev/null/none "$program" "$@"
}
sed 's/warmup: 200/warmup: 40/; s/use: [a-z]*, //; s/evidence: true, //' \
    rides.yaml >bare.yaml
sed 's/^data:.*/data: [{kind: sans, file: sans.dat, d2o: 0.42, deuterated: [A=0.75]}]/' \
    bare.yaml >bare_sans.yaml
for way in "--device reference" "--set device.use=reference"; do
    expect "$way: the plan" 0 "the water beads move with their atoms" bare run bare.yaml \
        --output none --dry-run $way
    expect "$way: not bodies that know nothing" 78 \
        "device.use: reference .*model_error is none" bare run \
        bare.yaml --output none --set model_error.learn=none $way
done
expect "a device that is not there" 74 "or use --device reference" bare run \
    bare.yaml --output bare
expect "the reference instead" 0 "accepted by its all-atom curve" bare \
    run bare.yaml --output bare --device reference
expect "in parts" 0 "" bare run bare.yaml --output bare_part --device reference \
    --set sampler.draws=7 --threads 1
expect "the rest" 0 "resumed" bare resume bare_part --draws 20 --device reference
check "the same draws" "$python" look.py same bare/trace.h5 bare_part/trace.h5
expect "neutrons" 0 "the water beads move with their atoms" bare run bare_sans.yaml --output \
    bare_sans --device reference
expect "a run on a device" 0 "" "$program" run bare.yaml --output bare_cpu \
    --device cpu --set sampler.draws=7
expect "goes on without" 0 "resumed" bare resume bare_cpu --draws 20 \
    --device reference
for way in auto waves; do # bodies propose draws; chains move all atoms
    by="--set device.engine=$way"
    expect "$way: a run" 0 "all-atom draws: .* the water beads move" \
        "$program" run rides.yaml --output $way $by
    check "$way: what the water lacks is known" \
        grep -q 'with the starting water layer deviate' $way/run.log
    expect "$way: the same in parts" 0 "" "$program" run rides.yaml --output \
        part_$way --set sampler.draws=7 --threads 1 $by
    expect "$way: the rest" 0 "resumed" "$program" resume part_$way --draws 20 \
        --threads 1
    check "$way: the same draws" "$python" look.py same $way/trace.h5 \
        part_$way/trace.h5
    # two states, whose other one a surrogate has to know
    expect "$way: two states" 0 "surrogate redraws" "$program" run rides.yaml \
        --output states_$way --set structure.states=2 --set sampler.draws=4 $by
done
expect "bodies of which nothing is known do not" 0 "" "$program" run rides.yaml \
    --output unknown --set model_error.learn=none --set sampler.draws=4
check "atoms move then" grep -q 'engine: plane waves' unknown/run.log
{ echo "0 2 0.05"; grep -v '^#' curve.dat; } >zero.dat
expect "a point at q = 0" 0 "" "$program" run rides.yaml --output zero \
    --set data.0.file=zero.dat --set sampler.draws=2 --set device.engine=waves
# what is left of the bodies' error holds that of the atoms, whose posterior is
# not to be wider than the one that proposes
error_of() { # pattern: the last first number behind an arrow
    grep "$1" auto/run.log | sed 's/^[^>]*-> \([0-9.e-]*\) %.*/\1/' | tail -1
}
atoms_lack=$(error_of 'with the starting water layer deviate')
bodies_lack=$(error_of 'near the posterior')
check "bodies lack what atoms do ($bodies_lack, $atoms_lack)" awk \
    "BEGIN {exit !($bodies_lack >= $atoms_lack && $atoms_lack > 0)}"
check "bodies proposed" grep -q 'the bodies. chains gave' auto/run.log
check "all atoms moved" grep -q 'engine: plane waves' waves/run.log
check "draws are what was offered, or stay" "$python" look.py places auto/trace.h5
# nothing moves: curve and chi2 of the start are those of its atoms
cat >still.py <<'END'
import json
import h5py
chi2 = h5py.File("still/trace.h5", "r")["posterior/chi2"][:]
right = json.load(open("out.txt"))["structures"][0]["chi2"]
assert abs(chi2 / right - 1).max() < 2e-3, (chi2, right)
END
for way in device.engine=waves device.use=reference; do
    rm -rf still
    expect "$way: the start" 0 "" "$program" run run.yaml --output still \
        --set contrast.c2=1 --set structure.flexible=[] --set $way \
        --set structure.frozen=true --set sampler.warmup=0
    expect "its atoms" 0 "" "$program" export still --draws 0/0 --atoms all \
        --raw -o draw.pdb
    expect "their curve" 0 "" "$program" profile draw.pdb --data curve.dat \
        --c1 1 --c2 1 --background 0 --json
    check "chi2 is that of the atoms" "$python" still.py
done
exit $bad
