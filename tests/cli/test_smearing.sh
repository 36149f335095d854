#!/bin/sh
# The instrument's resolution as a user asks for it: simulated data that are
# smeared, fits and runs with and without it. Prints one line a test
# (tests/run.sh).
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >good.yaml <<YAML
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c1: 1, c2: 1}
model_error: none
data: [{file: good.dat, resolution: column}]
sampler: {chains: 2, warmup: 4, draws: 8, temperatures: 1}
device: {use: reference}
output: {directory: out}
simulate: {points: 80, q_range: [0.01, 0.3], error: 0.002, steps: 0,
           resolution: {dq: 0.015, wavelength_spread: 0.1}}
YAML
expect "simulate" 0 "" "$program" simulate good.yaml --output good.dat
check "writes the resolution as the fourth column" \
    awk '!/^#/ && (NF != 4 || $4 < 0.015 || $4 > 0.0197) {exit 1}' good.dat
check "and says so" grep -q '^# resolution: sigma of q 0.015 to 0.0194' good.dat

# ---- profile ----
fit() { # OPTION...
    "$program" profile model.pdb --device reference --bodies two --c1 1 \
        --c2 1 --json --data good.dat "$@"
}
chi2() { # NAME EXPRESSION of x, chi2
    check "$1" "$python" -c "
import json
x = json.load(open('out.txt'))['structures'][0]['chi2']
assert $2, x"
}
expect "profile leaves a fourth column alone" 0 "" fit
chi2 "and does not fit" "x > 3"
expect "profile with the column" 0 "smeared: sigma of q .*column 4" \
    fit --resolution column
chi2 "fits" "x < 1.6"
expect "profile with numbers" 0 "" fit --resolution 0.015 \
    --wavelength-spread 0.1
chi2 "fits as well" "x < 1.6"
expect "profile with a slit" 0 "slit length 0.05" fit --slit-length 0.05
printf '%s\n' "-0.02 0" "-0.01 1" "0 1" "0.01 1" "0.02 0" >beam.txt
expect "profile with a beam" 0 "beam profile of 5 points" \
    fit --beam-profile beam.txt
expect "both lengths" 64 "leave --slit-length out" \
    fit --beam-profile beam.txt --slit-length 0.05
expect "no beam" 66 "nobeam.txt" fit --beam-profile nobeam.txt
expect "not a number" 64 "resolution.*wide" fit --resolution wide
expect "without data" 64 "slit-length goes with --data" \
    "$program" profile model.pdb --slit-length 0.05

# ---- check, run ----
expect "check" 0 "smeared: sigma of q" "$program" check good.yaml
check "the resolved configuration" grep -q "dq: column" out.txt
awk '!/^#/ {print $1, $2, $3}' good.dat >three.dat
expect "no fourth column" 65 "data.0.resolution.*no fourth column" \
    "$program" check good.yaml --set data.0.file=three.dat
expect "run" 0 "" "$program" run good.yaml --set data.0.background=none \
    --set data.0.noise.scale=1
"$program" summary out --json >smeared.json
check "the trace says how its curves were smeared" \
    grep -aq "sigma of q 0.015 to 0.0194 1/A" out/trace.h5
# Nothing moves: the truth, with what is known of the data.
still() { # OPTION...
    "$program" run good.yaml --set "structure.flexible=[]" --set structure.frozen=true \
        --set data.0.background=none --set data.0.noise.scale=1 \
        --set sampler.draws=2 --json "$@"
}
expect "a run at the truth" 0 "" still --output still
check "fits" "$python" -c "
import json
x = json.load(open('out.txt'))['chi2']['mean']
assert x < 1.6, x"
expect "and without the resolution" 0 "" still --output sharp \
    --set data.0.resolution=none
check "does not" "$python" -c "
import json
x = json.load(open('out.txt'))['chi2']['mean']
assert x > 3, x"
expect "reweight gives the same likelihood back" 0 "" \
    "$program" reweight out --output weights.csv
check "so all weights are one" "$python" -c "
import csv
w = [float(r['weight']) for r in csv.DictReader(open('weights.csv'))]
assert max(w) - min(w) < 1e-6 * max(w), w"
expect "reweight to other data" 0 "assumed to be from the same instrument" \
    "$program" reweight out --data good.dat --output again.csv
expect "a run with a beam" 0 "" "$program" run good.yaml --output beam \
    --set "data.0.resolution={beam_profile: beam.txt}" --set sampler.draws=2
check "has a copy of it" test -e beam/input/beam.txt
exit $bad
