#!/bin/sh
# Neutrons as a user asks for them: contrast, the resolution in the fourth
# column, what is refused. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

sed 's/ SC / CG /' "$demo/two_domain.pdb" >model.pdb
neutron() { # OPTION...
    "$program" profile model.pdb --device reference --radiation neutron "$@"
}
is() { # NAME EXPRESSION of s, the structure in out.txt
    check "$1" "$python" -c "
import json
s = json.load(open('out.txt'))['structures'][0]
assert $2, s"
}

expect "help" 0 "" neutron --help
check "names the share that exchanges" \
    sh -c 'tr -s " \n" " " <out.txt | grep -q "exchange .*(default 0.9)"'
expect "a curve" 0 "neutrons, 42 % D2O .2.3.* without contrast at" \
    neutron --d2o 0.42 --n-q 21
check "in its own unit" grep -q "fm^2 of neutrons; 1 fm^2 is" out.txt
expect "json" 0 "" neutron --json --d2o 1
is "has the match point" "0.3 < s['match_d2o'] < 0.6 and s['i0'] > 0"
expect "no exchange" 0 "" neutron --json --exchange 0
is "matches earlier" "s['match_d2o'] < 0.45"
expect "a deuterated chain" 0 "" neutron --json --deuterated A=0.9
is "matches later" "s['match_d2o'] > 0.9"
expect "X-rays" 0 "" "$program" profile model.pdb --device reference --json
is "have no match point" "'match_d2o' not in s"

# ---- a fit: a curve of its own, smeared, with a flat background ----
expect "a finer curve" 0 "" neutron --d2o 1 --n-q 301 --q-max 0.3
"$python" - <<'PY'
import math
q, i = zip(*[map(float, l.split()) for l in open("out.txt") if l[0] != "#"])
with open("data.dat", "w") as out:
    for k in range(30, 240, 3):
        s = 0.01
        w = [math.exp(-0.5 * ((x - q[k]) / s) ** 2) for x in q]
        mean = sum(a * b for a, b in zip(w, i)) / sum(w)
        y = 3e-8 * mean + 0.02
        out.write("%g %.9g %.9g %g\n" % (q[k], y, 0.002 * y, s))
PY
fit() {
    neutron --d2o 1 --data data.dat --background fit --c1 1 --c2 0 --json "$@"
}
expect "a fit" 0 "smeared: sigma of q 0.01 1/A .column 4" fit
is "finds scale and background" \
    "s['chi2'] < 0.01 and abs(s['background'] - 0.02) < 2e-4 and abs(s['scale'] / 3e-8 - 1) < 0.01"
expect "without the resolution" 0 "" fit --resolution none
is "is worse" "s['chi2'] > 1"

# ---- refusals ----
expect "D2O of X-rays" 64 "d2o goes with --radiation neutron" \
    "$program" profile model.pdb --d2o 0.4
expect "too much D2O" 64 "d2o" neutron --d2o 1.2
expect "a density" 64 "solvent-density is of X-rays" \
    neutron --solvent-density 0.34
expect "bodies" 64 "of atoms" neutron --bodies two
expect "a chain that is not there" 65 "no chain Z" neutron --deuterated Z=0.5
expect "more than a chain" 64 "expected CHAIN=X" neutron --deuterated A=2
expect "a chain twice" 64 "A=0.2.*each chain once" \
    neutron --deuterated A --deuterated A=0.2

# ---- a run ----
cat >sequence.yaml <<YAML
structure: {sequence: GAGAGAGAGA}
data: [{kind: sans, file: data.dat}]
YAML
expect "a sequence" 78 "sans needs the atoms" "$program" check sequence.yaml
expect "a simulated one" 78 ": simulate.radiation: neutron needs" "$program" simulate sequence.yaml \
    --set simulate.radiation=neutron
complex=$shared/structures/5zng.pdb.gz
if [ ! -r "$complex" ]; then
    echo "skip runs with neutrons: no $complex"
    exit $bad
fi
cat >run.yaml <<YAML
seed: 3
structure: {file: $complex, flexible: ["A:1060-1069"], mobile: [C], states: 2}
data:
  - {file: xray.dat}
  - {kind: sans, file: sans.dat, d2o: 0.42, deuterated: [A]}
  - {kind: sans, file: sans.dat, d2o: 0.2, deuterated: [A=1], exchange: 0.9}
device: {use: reference}
model_error: {conformations: 6}
sampler: {chains: 1, warmup: 20, draws: 12, thin: 2, temperatures: 2}
simulate: {points: 40, q_range: [0.012, 0.25], error: 0.03, background: 2,
    resolution: 0.004}
YAML
expect "X-rays are simulated" 0 "" "$program" simulate run.yaml -o xray.dat
expect "neutrons are simulated" 0 "" "$program" simulate run.yaml -o sans.dat \
    --set simulate.radiation=neutron --set simulate.d2o=0.42 \
    --set "simulate.deuterated=[A]" --set simulate.c1=1.1
check "the file tells" grep -q "c1 1, .*neutrons, 42 % D2O, deuterated" sans.dat
expect "of a chain that is not there" 65 "simulate: .*no chain Z" \
    "$program" simulate run.yaml -o no.dat --set simulate.radiation=neutron \
    --set "simulate.deuterated=[Z]"
expect "X-rays in D2O" 78 "simulate.d2o.* belongs to neutron" \
    "$program" simulate run.yaml -o no.dat --set simulate.d2o=0.42
expect "check" 0 "sans.dat.*smeared: sigma of q 0.004 1/A .column 4" \
    "$program" check run.yaml
check "one sample in two solvents" \
    grep -q "data.1 and others of its sample: neutrons" err.txt
expect "a chain that is not there" 65 "no chain Z" \
    "$program" check run.yaml --set "data.1.deuterated=[Z]"
expect "nor in another solvent" 65 "data.2: .*no chain Z" \
    "$program" check run.yaml --set "data.2.deuterated=[A, Z=0]"
expect "half a chain" 78 "data.1: deuterated.*CHAIN=X" \
    "$program" check run.yaml --set "data.1.deuterated=[A=x]"

# ---- what is doubtful is said ----
expect "no D2O is said" 0 "data.1.d2o is not given: the solvent is taken as H2O" \
    "$program" check run.yaml --set "data.1.d2o=none"
expect "q in the wrong unit" 0 "sans.dat.*Rg of .* is unusual for .*check q_unit" \
    "$program" check run.yaml --set "data.1.q_unit=1/nm"
expect "next to no contrast" 0 \
    "42 % D2O have little contrast.*limited to 0.5 to 2" \
    "$program" run run.yaml --dry-run --set "data.1.deuterated=[]" \
    --set model_error.conformations=3
check "where there is some nothing is held" \
    sh -c '! grep -q "20 % D2O have little contrast" err.txt'
check "nor are units doubted" sh -c '! grep -q "check q_unit" err.txt'

# ---- from a model and curves ----
expect "a configuration" 0 "" "$program" init $complex xray.dat \
    --sans sans.dat=0.42 --sans ./sans.dat=0.2 --deuterated A=0.9 \
    --exchange 0.8 -o first.yaml
"$python" - <<'PY'
lines = [l.strip() for l in open("first.yaml")]
at = lines.index("data:")
said = [l for l in lines[at:] if l[:1] != "#"]
sample = ["exchange: 0.8", 'deuterated: ["A=0.9"]']
want = (['data:', '- file: "xray.dat"', '- file: "sans.dat"', "kind: sans",
         "d2o: 0.42"] + sample + ['- file: "./sans.dat"', "kind: sans",
                                 "d2o: 0.2"] + sample)
open("said.txt", "w").write(str(said))
assert said[:len(want)] == want, said
PY
check "has a solvent for each curve of neutrons" test $? -eq 0
expect "it runs" 0 "of its sample: neutrons" "$program" check first.yaml
expect "no share of D2O" 64 "sans 'sans.dat': expected FILE=X" \
    "$program" init $complex --sans sans.dat
expect "more than all" 64 "expected FILE=X" \
    "$program" init $complex --sans sans.dat=1.2
expect "exchange of X-rays" 64 "exchange goes with --sans" \
    "$program" init $complex xray.dat --exchange 0.8
few="--set sampler.warmup=20 --set sampler.chains=1 --set sampler.thin=1"
few="$few --set sampler.temperatures=4 --set sampler.draws=20"
few="$few --set model_error.conformations=3 --set device.use=reference"
solve() { # OPTION...
    "$program" solve $complex --sans "$@" --states 1 -o solved --sample $few
}
expect "solve" 0 "" solve sans.dat=0.42 --deuterated A
check "fits neutrons by neutrons" \
    sh -c 'tr "\n" " " <out.txt | grep -q "rigid, fits sans.dat.* c1 1.000"'
check "and the run is of them" grep -q "42 % D2O" solved/1/run.log
expect "the same goes on" 0 "solved/1 is finished" \
    solve sans.dat=0.42 --deuterated A
expect "not in another solvent" 64 "'sans.dat' in another solvent" \
    solve sans.dat=0.2 --deuterated A
expect "nor of another sample" 64 "in another solvent, of another kind or" \
    solve sans.dat=0.42
expect "nor of X-rays" 64 "of another kind" \
    "$program" solve $complex sans.dat -o solved --states 1

expect "a run" 0 "of neutrons in 42 % D2O over 6" \
    "$program" run run.yaml -o whole --json
"$python" - <<'PY'
import json
run = json.load(open("out.txt"))
with open("verdict.txt", "w") as out:
    print(" ".join(run["verdict"]), file=out)
PY
check "curves of X-rays and neutrons do not contradict each other" \
    sh -c '! grep -q "cannot come from one structure" verdict.txt'
expect "half of it" 0 "" "$program" run run.yaml -o half \
    --set sampler.draws=6
expect "and the rest" 0 "" "$program" resume half --draws 12
for run in whole half; do
    "$program" export $run --format csv -o $run.csv >out.txt 2>&1
done
check "are the same draws" cmp whole.csv half.csv
check "of both kinds of curves" grep -q "chi2_3" whole.csv
still() { # OPTION...
    "$program" run run.yaml --set "structure.flexible=[]" \
        --set "structure.mobile=[]" --set structure.frozen=true \
        --set structure.states=1 --set sampler.draws=2 --json "$@"
}
expect "the truth" 0 "" still -o still
check "fits its own curve, not that of other water" "$python" -c "
import json
run = json.load(open('out.txt'))
x = [run[k]['mean'] for k in ('chi2', 'chi2_2', 'chi2_3')]
assert x[0] < 1.6 and x[1] < 1.6 and x[2] > 2, x"
expect "a report" 0 "" "$program" report still
check "tells of neutrons" grep -q "of neutrons in 42 % D2O" still/report.html
expect "reweight gives the same likelihood back" 0 "" \
    "$program" reweight whole --set-number 2 --output weights.csv
check "so all weights are one" "$python" -c "
import csv
w = [float(r['weight']) for r in csv.DictReader(open('weights.csv'))]
assert max(w) - min(w) < 1e-6 * max(w), w"
exit $bad
