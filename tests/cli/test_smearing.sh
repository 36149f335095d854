#!/bin/sh
# The instrument's resolution: simulated data that are smeared are fitted with it and
# not without it, by tessera profile and by a run.
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
printf '%s\n' "-0.02 0" "-0.01 1" "0 1" "0.01 1" "0.02 0" >beam.txt
fit_to() { # CURVE OPTION...
    tessera profile model.pdb --device reference --bodies two --c1 1 --c2 1 --json --data "$@"
}
fit() { # OPTION...
    fit_to good.dat "$@"
}
known="--set data.0.background=none --set data.0.noise.scale=1"
still() { # OPTION...: nothing moves: the truth, with what is known of the data
    # shellcheck disable=SC2086
    tessera run good.yaml --set "structure.flexible=[]" --set structure.frozen=true $known \
        --set sampler.draws=2 --json "$@"
}
cases <<'END'
simulate | 0 | tessera simulate good.yaml --output good.dat
    writes the resolution as the fourth column | awk '!/^#/ && (NF != 4 || $4 < 0.015 || $4 > 0.0197) {exit 1}' good.dat
    and says so | in good.dat ^# resolution: sigma of q 0.015 to 0.0194
$ awk '!/^#/ {print $1, $2, $3}' good.dat >three.dat
$ awk 'BEGIN {print "<SASroot><SASentry><SASdata>"} !/^#/ {printf "<Idata><Q unit=\"1/A\">%s</Q><I>%s</I><Idev>%s</Idev><Qdev unit=\"1/nm\">%.9g</Qdev></Idata>\n", $1, $2, $3, 10 * $4} END {print "</SASdata></SASentry></SASroot>"}' good.dat >good.xml

# ---- profile ----
profile leaves a fourth column alone | 0 | fit
    and does not fit | json s[0].chi2 > 3
profile with the column | 0 smeared: sigma of q .*column 4 | fit --resolution column
    fits | json s[0].chi2 < 1.6
profile with canSAS XML | 0 states its resolution .Qdev.* not used | fit_to good.xml
    does not fit either | json s[0].chi2 > 3
profile with its Qdev | 0 smeared: sigma of q .*Qdev | fit_to good.xml --resolution auto
    fits | json s[0].chi2 < 1.6
init with canSAS XML | 0> resolution: auto | tessera init model.pdb good.xml
profile with numbers | 0 | fit --resolution 0.015 --wavelength-spread 0.1
    fits as well | json s[0].chi2 < 1.6
profile with a slit | 0 slit length 0.05 | fit --slit-length 0.05
profile with a beam | 0 beam profile of 5 points | fit --beam-profile beam.txt
both lengths | 64 leave --slit-length out | fit --beam-profile beam.txt --slit-length 0.05
no beam | 66 nobeam.txt | fit --beam-profile nobeam.txt
not a number | 64 resolution.*wide | fit --resolution wide
without data | 64 slit-length needs --data | tessera profile model.pdb --slit-length 0.05

# ---- check, run ----
check with canSAS XML | 0 smeared: sigma of q .*Qdev | tessera check good.yaml --set data.0.file=good.xml
check | 0 smeared: sigma of q | tessera check good.yaml
    the resolved configuration | out dq: column
no fourth column | 65 data.0.resolution.*no fourth column | tessera check good.yaml --set data.0.file=three.dat
run | 0 | tessera run good.yaml $known
    the trace says how its curves were smeared | in out/trace.h5 sigma of q 0.015 to 0.0194 1/A
a run at the truth | 0 | still --output still
    fits | json d.chi2.mean < 1.6
and without the resolution | 0 | still --output sharp --set data.0.resolution=none
    does not | json d.chi2.mean > 3
a run with a beam | 0 | tessera run good.yaml --output beam \
        --set "data.0.resolution={beam_profile: beam.txt}" --set sampler.draws=2
    has a copy of it | test -e beam/input/beam.txt
END
exit $bad
