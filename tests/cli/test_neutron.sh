#!/bin/sh
# Neutrons as a user asks for them: curves, contrast and fits in any share of D2O, the
# resolution in the fourth column, runs beside X-rays; wrong requests are refused.
. tests/cli/expect.sh

sed 's/ SC / CG /' "$demo/two_domain.pdb" >model.pdb
neutron() { # OPTION...
    tessera profile model.pdb --device reference --radiation neutron "$@"
}
fit() { neutron --d2o 1 --data data.dat --background fit --c1 1 --c2 0 --json "$@"; }
cat >smear.py <<'END' # a curve of its own, smeared, with a flat background
import math
q, i = zip(*[map(float, l.split()) for l in open("out.txt") if l[0] != "#"])
with open("data.dat", "w") as out:
    for k in range(30, 240, 3):
        s = 0.01
        w = [math.exp(-0.5 * ((x - q[k]) / s) ** 2) for x in q]
        y = 3e-8 * sum(a * b for a, b in zip(w, i)) / sum(w) + 0.02
        out.write("%g %.9g %.9g %g\n" % (q[k], y, 0.002 * y, s))
END
cat >sequence.yaml <<YAML
structure: {sequence: GAGAGAGAGA}
data: [{kind: sans, file: data.dat}]
YAML
cases <<'END'
help | 0 | neutron --help
    names the share that exchanges | text exchange .*\(default 0.9\)
a curve | 0 neutrons, 42 % D2O .2.3.* contrast match point at | neutron --d2o 0.42 --n-q 21
    in its own unit | out fm\^2 of neutrons; 1 fm\^2 is
json | 0 | neutron --json --d2o 1
    has the match point | json 0.3 < s[0].match_d2o < 0.6 and s[0].i0 > 0
no exchange | 0 | neutron --json --exchange 0
    matches earlier | json s[0].match_d2o < 0.45
a deuterated chain | 0 | neutron --json --deuterated A=0.9
    matches later | json s[0].match_d2o > 0.9
X-rays | 0 | tessera profile model.pdb --device reference --json
    have no match point | json 'match_d2o' not in s[0]
a finer curve | 0 | neutron --d2o 1 --n-q 301 --q-max 0.3
$ "$python" smear.py
a fit | 0 smeared: sigma of q 0.01 1/A .column 4 | fit
    finds scale and background | json s[0].chi2 < 0.01 and abs(s[0].background - 0.02) < 2e-4 \
        and abs(s[0].scale / 3e-8 - 1) < 0.01
without the resolution | 0 | fit --resolution none
    is worse | json s[0].chi2 > 1

# ---- refusals ----
D2O of X-rays | 64 d2o needs --radiation neutron | tessera profile model.pdb --d2o 0.4
too much D2O | 64 d2o | neutron --d2o 1.2
a density | 64 solvent-density is for X-rays | neutron --solvent-density 0.34
bodies | 64 needs atoms | neutron --bodies two
a chain that is not there | 65 no chain Z | neutron --deuterated Z=0.5
more than a chain | 64 expected CHAIN=X | neutron --deuterated A=2
a chain twice | 64 A=0.2.*each chain once | neutron --deuterated A --deuterated A=0.2
a sequence | 78 sans needs the atoms | tessera check sequence.yaml
a simulated one | 78 : simulate.radiation: neutron needs | \
        tessera simulate sequence.yaml --set simulate.radiation=neutron
END

# ---- a run ----
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
simulate: {points: 40, q_range: [0.012, 0.25], error: 0.03, background: 2, resolution: 0.004}
YAML
few="--set sampler.warmup=20 --set sampler.chains=1 --set sampler.thin=1
    --set sampler.temperatures=4 --set sampler.draws=20
    --set model_error.conformations=3 --set device.use=reference"
solve() { # OPTION...
    # shellcheck disable=SC2086
    tessera solve $complex --sans "$@" --states 1 -o solved --sample $few
}
still() { # OPTION...
    tessera run run.yaml --set "structure.flexible=[]" --set "structure.mobile=[]" \
        --set structure.frozen=true --set structure.states=1 --set sampler.draws=2 --json "$@"
}
cases <<'END'
X-rays are simulated | 0 | tessera simulate run.yaml -o xray.dat
neutrons are simulated | 0 | tessera simulate run.yaml -o sans.dat --set simulate.radiation=neutron \
        --set simulate.d2o=0.42 --set "simulate.deuterated=[A]" --set simulate.c1=1.1
    the file says so | in sans.dat c1 1, .*neutrons, 42 % D2O, deuterated
of a chain that is not there | 65 simulate: .*no chain Z | \
        tessera simulate run.yaml -o no.dat --set simulate.radiation=neutron --set "simulate.deuterated=[Z]"
X-rays in D2O | 78 simulate.d2o.* belongs to neutron | tessera simulate run.yaml -o no.dat --set simulate.d2o=0.42
check | 0 sans.dat.*smeared: sigma of q 0.004 1/A .column 4 | tessera check run.yaml
    one sample in two solvents | err data.1 and other curves of its sample: neutrons
a chain that is not there | 65 no chain Z | tessera check run.yaml --set "data.1.deuterated=[Z]"
nor in another solvent | 65 data.2: .*no chain Z | tessera check run.yaml --set "data.2.deuterated=[A, Z=0]"
half a chain | 78 data.1: deuterated.*CHAIN=X | tessera check run.yaml --set "data.1.deuterated=[A=x]"

# ---- what is doubtful is said ----
no D2O is said | 0 data.1.d2o is not given: the solvent is taken as H2O | tessera check run.yaml --set data.1.d2o=none
q in the wrong unit | 0 sans.dat.*Rg of .* is unusual for .*check q_unit | \
        tessera check run.yaml --set data.1.q_unit=1/nm
next to no contrast | 0 42 % D2O have little contrast.*limited to 0.5 to 2 | \
        tessera run run.yaml --dry-run --set "data.1.deuterated=[]" --set model_error.conformations=3
    where there is some nothing is held, nor are units doubted | no err 20 % D2O have little contrast \
        && no err check q_unit

# ---- from a model and curves ----
a configuration | 0 | tessera init $complex xray.dat --sans sans.dat=0.42 --sans ./sans.dat=0.2 \
        --deuterated A=0.9 --exchange 0.8 -o first.yaml
$ sample='exchange: 0.8 deuterated: ["A=0.9"]'
    has a solvent for each curve of neutrons | sed -n '/^data:/,$p' first.yaml | grep -v '^ *#' | tr -s ' \n' ' ' | \
        grep -qF "data: - file: \"xray.dat\" - file: \"sans.dat\" kind: sans d2o: 0.42 $sample - file: \"./sans.dat\" \
        kind: sans d2o: 0.2 $sample"
it runs | 0 of its sample: neutrons | tessera check first.yaml
no share of D2O | 64 sans 'sans.dat': expected FILE=X | tessera init $complex --sans sans.dat
more than all | 64 expected FILE=X | tessera init $complex --sans sans.dat=1.2
exchange of X-rays | 64 exchange needs --sans | tessera init $complex xray.dat --exchange 0.8
solve | 0 | solve sans.dat=0.42 --deuterated A
    fits neutrons by neutrons, and the run is of them | text rigid model fits sans.dat.* c1 1.000 \
        && in solved/1/run.log 42 % D2O
the same goes on | 0 solved/1 is finished | solve sans.dat=0.42 --deuterated A
not in another solvent | 64 'sans.dat' in another solvent | solve sans.dat=0.2 --deuterated A
nor of another sample | 64 in another solvent, of another kind or | solve sans.dat=0.42
nor of X-rays | 64 of another kind | tessera solve $complex sans.dat -o solved --states 1

# ---- runs of both ----
a run | 0 of neutrons in 42 % D2O over 6 | tessera run run.yaml -o whole --json
    curves of X-rays and neutrons do not contradict each other | json all('cannot come from one structure' not in x \
        for x in d.verdict)
half of it | 0 | tessera run run.yaml -o half --set sampler.draws=6
and the rest | 0 | tessera resume half --draws 12
draws of the whole | 0 | tessera export whole --format csv -o whole.csv
draws of both halves | 0 | tessera export half --format csv -o half.csv
    are the same draws, of both kinds of curves | cmp whole.csv half.csv && in whole.csv chi2_3
the truth | 0 | still -o still
    fits its own curve, not that of other water | json d.chi2.mean < 1.6 and d.chi2_2.mean < 1.6 and d.chi2_3.mean > 2
a report | 0 | tessera report still
    tells of neutrons | in still/report.html of neutrons in 42 % D2O
END
exit $bad
