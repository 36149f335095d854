#!/bin/sh
# c1 and c2 as a user asks for them: keys and refusals, and a run finds the truth of
# simulated data again and says where a prior ends before it.
. tests/cli/expect.sh
data=$source/data

cp "$demo/two_domain.pdb" model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c1: infer, c2: infer}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 600, draws: 150, thin: 20, temperatures: 1}
output: {directory: out}
simulate: {points: 100, q_range: [0.01, 0.3], error: 0.003, c1: 1.02, c2: 2}
END
cat >peptide.yaml <<END
structure: {sequence: EKEKDEKEDKEK, flexible: ["A:5-6"]}
contrast: {c1: infer, c2: infer, c2_range: [-10, 20], c2_width: 10}
data: [{file: peptide.dat, intensity_scale: 1000}]
sampler: {chains: 2, warmup: 20, draws: 5}
output: {directory: peptide}
simulate: {points: 40, q_range: [0.01, 0.5], steps: 50}
END
auto="--set simulate.c1=auto --set simulate.c2=auto"
plain="--set simulate.c1=1 --set simulate.c2=0"
table="--set structure.form_factors=$data"
simulate() { tessera simulate good.yaml "$@"; }
with() { # CONTRAST [OPTION...]
    contrast=$1
    shift
    tessera check good.yaml --set "contrast={$contrast}" "$@"
}
cases <<'END'
simulate | 0 | simulate --output good.dat
    the curve says c1 and c2 | in good.dat ^# c1 1.02, c2 2$
auto: of the config | 0 | simulate --set contrast.c1=0.97 $auto --output other.dat
    numbers, or the prior's mean | in other.dat ^# c1 0.97, c2 1$
a plain curve | 0 | simulate $plain --output plain.dat
the same by default | 0 | simulate --set "contrast={c1: 1, c2: 0}" $auto --output plain_too.dat
    without hydration the table does not matter | cmp -s plain.dat plain_too.dat
a denser buffer | 0 | simulate --set solvent.density=0.36 $plain --output dense.dat
    is another curve | ! cmp -s dense.dat plain.dat
water by its number | 0 | simulate --set solvent.density=0.334 $plain --output water.dat
    is the same | cmp -s water.dat plain.dat
$ awk '/^#/ {print; next} {print $1 * 4, $2, $3}' good.dat >wide.dat

# ---- refusals ----
fixed | 0 | with "c1: 1.01, c2: 1.5"
unknown word | 78 contrast.c2.*expected.*infer | with "c2: fit"
out of range | 78 contrast.c1.*0.8, 1.2 | with "c1: 1.5"
prior without room | 78 contrast.c2_range.*not ascending | with "c2: infer, c2_range: [1, 1]"
prior upside down | 78 contrast.c2_range.* | with "c2: infer, c2_range: [3, 1]"
mean beyond the range | 78 contrast.c1_mean: 1.1 is outside of | with "c1: infer, c1_mean: 1.1"
one component | 78 contrast.c2.*table of one component | \
        with "c1: 1, c2: infer" $table/form_factors_two_body.dat
one component, c1 | 78 contrast.c1.*table of one component | \
        with "c1: 1.02, c2: 0" $table/form_factors_two_body.dat
own components | 0 | with "c2: infer" $table/components_two_body.dat
own components, folded | 0 | with "c1: 1, c2: 0" $table/components_two_body.dat
components for other bodies | 78 table for one bodies | with "c2: infer" $table/components_one_body.dat
one body | 0 | with "c2: infer" --set structure.bodies=one
q beyond the tables | 65 form factors end at 1; narrow q_range | \
        with "c2: infer" --set data.0.file=wide.dat --set "data.0.q_range=[0, 2]" --set data.0.q_unit=1/A
one component in a buffer | 78 solvent.density.*one component | \
        with "c1: 1, c2: 0" --set solvent.density=0.35 $table/form_factors_two_body.dat
END

# ---- scale, background, interference ----
cases <<'END'
each prior of the background | 0 | tessera check good.yaml --set data.0.background=flat
its width | 0 | tessera check good.yaml --set data.0.background_sd=0.3
no width | 78 background_sd.*expected | tessera check good.yaml --set data.0.background_sd=0
a fixed S(0) | 0 | tessera check good.yaml --set data.0.interparticle=0.9
an impossible S(0) | 78 interparticle.*0.05, 20 | tessera check good.yaml --set data.0.interparticle=0
neutrons have none | 78 interparticle.*belongs to kind: saxs | \
        tessera check good.yaml --set 'data=[{kind: sans, file: good.dat, d2o: 0, interparticle: 0.9}]'
a curve with interference | 0 | simulate --set simulate.interparticle=0.85 --output dense.dat --force
    says so | in dense.dat interparticle 0.85
    its I(0) is that with interference | awk '!/^#/ && $2 > 90 {n++} END {exit n == 0}' dense.dat
END

# ---- runs ----
if ! tessera devices --no-test >devices.txt 2>&1; then
    echo "skip runs with c1 and c2: no OpenCL device"
    exit $bad
fi
cases <<'END'
run | 0 | tessera run good.yaml --device cpu
    the config it used | in out/config.yaml ^ *c2_range: \[0, 4\]
summary says nothing of priors where there is room | 0 | tessera summary out --json
    c1 and c2 are found again | json abs(d.c1.mean - 1.02) < 4 * d.c1.sd and d.c1.sd < 0.019 \
        and abs(d.c2.mean - 2.0) < 4 * d.c2.sd and d.c2.sd < 0.7
    without a word on its prior | no out piles up && no err piles up
prior only | 0 | tessera run good.yaml --prior-only --output prior
the prior has c1 and c2 | 0> ^ *c2  | tessera summary prior
both fixed | 0 | tessera run good.yaml --output fixed --set "contrast={c1: 1.02, c2: 2}" --set sampler.draws=10
summary of it | 0 | tessera summary fixed
    what is fixed is not in the trace | no out ^ *c2 +[-0-9.]+ +[-0-9.]+

a run with interference | 0 | tessera run good.yaml --output dense --set data.0.file=dense.dat \
        --set "contrast={c1: 1.02, c2: 2}" --set data.0.interparticle=infer
its summary | 0 | tessera summary dense --json
    S(0) is found again | json abs(d.interparticle.mean - 0.85) < 0.02
    the curves of draws and of the rigid start have it | json d.chi2.mean < 1.5 and \
        d.verdict.curves[0].rigid.chi2 < 1.5 and d.verdict.curves[0].chi2 < 1.5
a run without | 0 | tessera run good.yaml --output apart --set data.0.file=dense.dat \
        --set "contrast={c1: 1.02, c2: 2}"
its summary | 0 | tessera summary apart --json
    no structure fits | json d.chi2.mean > 5 and d.verdict.curves[0].rigid.chi2 > 5

# the truth, 2, lies beyond what is allowed
c2 at an end of its prior | 0 | tessera run good.yaml --output bound --json \
        --set "contrast={c1: 1.02, c2: infer, c2_range: [-2, 1]}" --set sampler.draws=60
    a run that has not converged says so | json d.converged is False and d.ess < 400 and d.ess_of and d.n_draw == 60 \
        and d.rg.q5 <= d.rg.mean and d.directory == 'bound' and d.chi2.mean > 0
    its verdict says so | out c2, which accumulates at the upper end of its prior, 1 .*contrast.c2_range
summary | 0 | tessera summary bound
    says so, too | text c2, which accumulates at the upper end

# ---- where the parts of the curve all but cancel ----
a curve of a peptide | 0 | tessera simulate peptide.yaml --output peptide.dat
ranges in which no curve can be had | 78 yaml:2:.*at c1 = .*, c2 = -10, .*narrow contrast.c1_range | \
        tessera run peptide.yaml
END
exit $bad
