#!/bin/sh
# Draws of all atoms (structure.bodies: atoms): what is stored is of the curve of all
# atoms, a resumed run has the same draws to the bit, and atoms that are not there are
# refused. First without hydration, then with a layer that is made for each draw.
. tests/cli/expect.sh
needs_venv "draws of all atoms"
lar=$shared/saxs/lar_fn3_1_2/model.pdb
if [ ! -e "$lar" ]; then
    echo "skip draws of all atoms: no $lar"
    exit 0
fi
# the linker of two domains with some of both
awk '/^ATOM/ && substr($0, 23, 4) + 0 >= 82 && substr($0, 23, 4) + 0 <= 122' "$lar" >model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:97-103"], bodies: atoms}
contrast: {c2: 0}
data: [{file: curve.dat, noise: {model: measured, scale: 1}, background: 0}]
sampler: {chains: 4, warmup: 400, draws: 20, thin: 10, temperatures: 4, evidence: true, start: file}
device: {use: cpu, threads: 2}
output: {directory: out, trajectory_every: 1}
simulate: {points: 60, q_range: [0.01, 0.25], error: 0.03, c2: 0}
END
sed 's/^data:.*/data: [{file: curve.dat, noise: {model: measured, scale: 1}, background: 0},\
  {kind: sans, file: sans.dat, d2o: 0.42, deuterated: [A=0.75]},\
  {kind: map, file: own.mrc, resolution: 8}]/
    s/warmup: 400/warmup: 100/
    s/evidence: true, //' run.yaml >beside.yaml
sed 's/^structure:.*/structure: {sequence: GASFGKLE, bodies: atoms}/' run.yaml >sequence.yaml
sed '/ CB \| CG /d' model.pdb >cut.pdb
flat_map zero.dx model.pdb 2 12
cat >look.py <<'END'
"""look.py WHAT TRACE...: chi2 is that of out.txt, places are exchanges, traces are the same."""
import json, sys
import h5py
import numpy as np
what, *path = sys.argv[1:]
# the file of a draw has 0.001 A, and the surface depends on coordinates in steps
tolerance = 5e-3 if "wet" in path[0] else 2e-3
trace = [h5py.File(p, "r+" if what == "rule out" else "r") for p in path]
stats = [f["sample_stats"] for f in trace]
if what.startswith("chi2"):  # of a draw, and of its atoms in a file of 0.001 A
    chi2 = json.load(open("out.txt"))["structures"][0]["chi2"]
    stored = trace[0]["posterior/" + what]
    # of the run in which nothing moves, every draw
    assert abs((stored[:] if "still" in path[0] else stored[2, 17]) / chi2 - 1).max() < tolerance
elif what == "places":
    gain, taken = stats[0]["all_atom_log_ratio"][:], stats[0]["all_atom_exchange"][:]
    assert taken.mean() > 0.02
    for c in range(taken.shape[0]):
        for i in range(1, taken.shape[1]):
            # a draw is the state that was offered, or the one before
            same = gain[c, i, 0] == gain[c, i - 1, 0]
            offered = gain[c, i, 0] == gain[c, i, 1]
            assert offered if taken[c, i] else same
elif what == "rule out":
    stats[0]["all_atom_log_ratio"][1, 4, 1] = float("-inf")
elif what == "same":
    for group in ("posterior", "sample_stats", "warmup_posterior"):
        for name in trace[0][group]:
            a, b = (f[group][name][:] for f in trace)
            if a.dtype.kind == "f":
                assert a.tobytes() == b.tobytes(), name
END
look() { "$python" look.py "$@"; }
draw() { tessera export "$1" --draws "${2:-2/17}" --atoms all --raw -o draw.pdb; } # RUN [DRAW]
curve() { # FILE OPTION...: that of the draw, fitted to data
    data=$1
    shift
    tessera profile draw.pdb --data "$data" --c1 1 --json "$@"
}
cases <<'END'
simulate | 0 | tessera simulate run.yaml --output curve.dat
run | 0 bodies propose all-atom draws | tessera run run.yaml
    the bodies learn from the chains | test "$(grep -c 'near the posterior' out/run.log)" -eq 2
    how often they gave a draw is told | in out/run.log the bodies' chains offered

# ---- what is stored ----
a draw with its atoms | 0 | draw out
their curve | 0 | curve curve.dat --c2 0 --background 0
    chi2 is that of the draw's atoms | look chi2 out/trace.h5
    draws are what was offered, or stay | look places out/trace.h5
evidence reaches the atoms, as a number | 0> "evidence": *\{"log": *-*[0-9] | tessera summary out --json

# ---- to the bit ----
the same in parts | 0 | tessera run run.yaml --output part --set sampler.draws=7 --threads 1
the rest | 0 resumed | tessera resume part --draws 20 --threads 1
    the same draws | look same out/trace.h5 part/trace.h5
$ look "rule out" part/trace.h5 # an offer
evidence without an offer that atoms rule out is a number | 0> "evidence": *\{"log": *-*[0-9] | \
        tessera summary part --json

# ---- beside neutrons and a map, whose curve and correlation are its own ----
a map | 0 | tessera map simulate model.pdb --like zero.dx -r 8 --device reference -o own.mrc
neutrons | 0 | tessera simulate beside.yaml --output sans.dat --set simulate.radiation=neutron \
        --set simulate.d2o=0.42 --set "simulate.deuterated=[A=0.75]"
a run of all three | 0 bodies propose all-atom draws | tessera run beside.yaml --output beside
a draw of it | 0 | draw beside
its curve | 0 | curve curve.dat --c2 0 --background 0
    chi2 of X-rays | look chi2 beside/trace.h5
as neutrons see it | 0 | \
        curve sans.dat --radiation neutron --d2o 0.42 --deuterated A=0.75 --c2 0 --background fit
    chi2 of neutrons | look chi2_2 beside/trace.h5
in the map it is where it was | 0> "cc_box": *0\.9[0-9] | \
        tessera map cc draw.pdb --map own.mrc -r 8 --device reference --json

# ---- asked by solve ----
solve | 0 1 state: solved/1 | tessera solve model.pdb curve.dat --states 1 --output solved \
        --set structure.bodies=atoms --set structure.frozen=false --set 'structure.flexible=["A:97-103"]' \
        --set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=2 --set sampler.temperatures=4 \
        --set sampler.draws=30 --set device.use=cpu
    its draws are of atoms | in solved/1/run.log the bodies' chains offered

# ---- where there are none ----
a sequence | 78 bodies: atoms.*a sequence has no atoms | tessera run sequence.yaml --output none
incomplete residues | 65 bodies: atoms.*residues lack atoms | \
        tessera run run.yaml --output none --set structure.file=cut.pdb
bodies of which nothing is known do not propose | 78 bodies: atoms.*model_error is none | \
        tessera run run.yaml --output none --set model_error.learn=none
END

# ---- with hydration ----
expect "simulate with water" 0 "" tessera simulate run.yaml --set simulate.c2=1 --output curve.dat --force
{ echo "0 2 0.05"; grep -v '^#' curve.dat; } >zero.dat
sed 's/^contrast:.*/contrast: {c2: infer}/; s/directory: out/directory: wet/
    s/warmup: 400/warmup: 200/' run.yaml >wet.yaml
cases <<'END'
a run with a layer | 0 accepted by its all-atom curve | tessera run wet.yaml
the same in parts | 0 | tessera run wet.yaml --output wet_part --set sampler.draws=7 --threads 1
the rest | 0 resumed | tessera resume wet_part --draws 20 --threads 1
    the same draws | look same wet/trace.h5 wet_part/trace.h5
    draws are what was offered, or stay | look places wet/trace.h5
a draw with its atoms | 0 | draw wet
END
c2=$("$python" -c 'import h5py
print(repr(float(h5py.File("wet/trace.h5")["posterior/c2"][2, 17])))')
cases <<'END'
their curve | 0 | curve curve.dat --c2 $c2 --background 0
    chi2 is that of the draw's atoms and their own layer | look chi2 wet/trace.h5
a point at q = 0 | 0 | tessera run wet.yaml --output zero --set data.0.file=zero.dat --set sampler.draws=2
# two states, whose other one a surrogate has to know
two states | 0 surrogate redraws | \
        tessera run wet.yaml --output states --set structure.states=2 --set sampler.draws=4
two starts | 0 | tessera run wet.yaml --output starts --set sampler.draws=2 --set structure.states=2 \
        --set 'structure.starts=[{file: model.pdb}, {file: draw.pdb}]'
END
# Without OpenCL: curves of all atoms are direct sums there.
bare() { env OCL_ICD_VENDORS=/dev/null/none tessera "$@"; }
sed 's/warmup: 200/warmup: 40/; s/use: [a-z]*, //; s/evidence: true, //' wet.yaml >bare.yaml
sed 's/^data:.*/data: [{kind: sans, file: sans.dat, d2o: 0.42, deuterated: [A=0.75]}]/' \
    bare.yaml >bare_sans.yaml
for way in "--device reference" "--set device.use=reference"; do
    cases <<'END'
${way}: the plan | 0 accepted by its all-atom curve | bare run bare.yaml --output none --dry-run $way
END
done
cases <<'END'
a device that is not there | 74 or use --device reference | bare run bare.yaml --output bare
the reference instead | 0 accepted by its all-atom curve | \
        bare run bare.yaml --output bare --device reference
in parts | 0 | bare run bare.yaml --output bare_part --device reference --set sampler.draws=7 --threads 1
the rest | 0 resumed | bare resume bare_part --draws 20 --device reference
    the same draws | look same bare/trace.h5 bare_part/trace.h5
neutrons | 0 accepted by its all-atom curve | bare run bare_sans.yaml --output bare_sans --device reference
a run on a device | 0 | tessera run bare.yaml --output bare_cpu --device cpu --set sampler.draws=7
goes on without | 0 resumed | bare resume bare_cpu --draws 20 --device reference
END
# Nothing moves: curve and chi2 of the start are those of its atoms.
for way in device.use=cpu device.use=reference; do
    rm -rf still
    cases <<'END'
${way}: the start | 0 | tessera run run.yaml --output still --set contrast.c2=1 --set structure.flexible=[] \
        --set $way --set structure.frozen=true --set sampler.warmup=0
its atoms | 0 | draw still 0/0
their curve | 0 | curve curve.dat --c2 1 --background 0
    chi2 is that of the atoms | look chi2 still/trace.h5
END
done
exit $bad
