#!/bin/sh
# Noise models as a user chooses them: keys and refusals, a run with each, and what a run
# says of noise that does not suit its residuals.
. tests/cli/expect.sh

short_model model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 40, draws: 6, thin: 2, temperatures: 3}
output: {directory: out}
device: {use: reference}
simulate: {points: 60, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
END
noise() { # NOISE [OPTION...]
    model=$1
    shift
    tessera check good.yaml --set "data.0.noise={$model}" "$@"
}
run() { # NOISE [OPTION...]
    model=$1
    shift
    rm -rf out
    tessera run good.yaml --set "data.0.noise={$model}" "$@"
}
of() { run "model: measured" --set data.0.file="$1"; } # FILE
cases <<'END'
simulate | 0 | tessera simulate good.yaml --output good.dat
a start far away | 0 | tessera simulate good.yaml --set simulate.steps=2000 --output other.dat
$ awk '/^#/ {print; next} {n++; if (n == 9) $2 = -0.5; print}' good.dat >negative.dat
help of noise | 0> ^ +alpha_width + | tessera run --help data
    has the other keys | out ^ +beta_width + && out ^ +nu + && out ^ +intensity_scale + && out ^ +nuisance +
measured | 0 | noise "model: measured, scale: 1"
relative | 0 | noise "model: relative, alpha: infer, beta: infer"
student resolved | 0> model: student | noise "model: student, nu: 4"
$ cp out.txt resolved.yaml
the resolved config is a config | 0 | tessera check resolved.yaml
    and resolves to itself | cmp -s out.txt resolved.yaml
a model that is none | 78 noise.model.*'gauss' is unknown.*student | noise "model: gauss"
alpha of 0 | 78 noise.alpha': value '0' is out of range | noise "model: relative, alpha: 0"
beta below 0 | 78 noise.beta': value '-1' is out of range | noise "model: relative, beta: -1"
too few degrees of freedom | 78 noise.nu': value '1' is out of range | noise "model: student, nu: 1"
a key of another model | 78 noise.nu': it has no effect with model: measured; it belongs to model: student | \
        noise "nu: 4"
no integral | 78 data.0.nuisance: .*no integral.*noise model student | \
        noise "model: student" --set data.0.nuisance=integrate
a scale below 0 | 78 intensity_scale.*-1.*out of range | noise "" --set data.0.intensity_scale=-1
I < 0 and relative | 65 1 of 60 points have I <= 0.*q_range | \
        noise "model: relative" --set data.0.file=negative.dat
I < 0 and student | 0 | noise "model: student" --set data.0.file=negative.dat
student too hot | 78 sampler.t_max: at temperature 160.*below 120 | \
        noise "model: student" --set sampler.t_max=160
student, hot, by more degrees of freedom | 0 | noise "model: student, nu: 30" --set sampler.t_max=160
one temperature is never too hot | 0 | \
        noise "model: student" --set sampler.t_max=160 --set sampler.temperatures=1

# ---- runs ----
run, relative: chi2 | 0> ^ *chi2 | run "model: relative, alpha: infer, beta: infer"
run, relative, c and b sampled: chi2 | 0> ^ *chi2 | run "model: relative" --set data.0.nuisance=sample
run, student: chi2 | 0> ^ *chi2 | run "model: student" --threads 1
$ grep -v "steps/s" out.txt >first.txt
run, student again: chi2 | 0> ^ *chi2 | run "model: student" --threads 2
    one seed, one table, whatever the threads | grep -v "steps/s" out.txt | cmp -s first.txt -
annealing under student begins no lower than it may | 0 warm-up begins at a higher power of the likelihood | \
        tessera run good.yaml --set "data.0.noise={model: student}" --set structure.file=other.pdb --output cold
run, two data sets: chi2 | 0> ^ *chi2 | \
        run "model: student" --set data.1.file=good.dat --set data.1.noise.model=relative

# ---- the noise by neighbours: what of the residuals is misfit ----
data as they should be | 0 | of good.dat
    their noise is that of sigma, and CorMap counts | text CorMap p [0-9] \
        && text neighbours by (0.[6-9]|1.[0-4])[0-9]* sigma\.
# without noise and with q = 0, as an indirect transform leaves a curve
$ tessera profile model.pdb --bodies two --device reference --q-max 0.25 --n-q 60 -q |
>     awk '!/^#/ {print $1, $2 * 1e-6, 0.02e-6 * $2}' >smooth.dat
a smoothed curve | 0 warning: .*smooth.dat: .*CorMap does not | of smooth.dat
    is called that | text the curve was smoothed or computed, or sigma is too large
    but not as it should be, and CorMap is no evidence | no text should && no text CorMap p
    the log warned | in out/run.log warning: .*smooth.dat: .*CorMap does not apply; with noise.scale: 1
as JSON | 0 | tessera summary out --json
    with its number | json [c.noise_by_neighbours < 0.1 and c.neighbours_share_noise is True and c.cormap_p is None \
        and c.rigid.cormap_p is None for c in d.verdict.curves[:1]] == [True]
# sigma 3.7 times too small: alone, and beside what no structure fits
$ awk '!/^#/ {print $1, $2, $3 / 3.7}' good.dat >small.dat
$ awk '!/^#/ {print $1, $2 * (1 + 0.5 * sin(40 * $1)), $3 / 3.7}' good.dat >off.dat
sigma too small | 0 | of small.dat
    is said with the number | text neighbours by [2-5]\.[0-9]* sigma: sigma is [2-5]
    a chi2 of the noise is a fit, without misfit | text The sampled structures fit small.dat: .* chi2 1[0-9] && no text misfit
and a model that misses something | 0 | of off.dat
    parts noise from misfit | text sigma is [2-5][.0-9]* times too small\. \
        Residuals of the model are [0-9.]+ sigma: the excess over the noise is misfit
END
exit $bad
