#!/bin/sh
# Noise models as a user chooses them: keys, refusals, and what a run with each
# leaves in its folder. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
noise() { # NAME STATUS PATTERN NOISE [OPTION...]
    name=$1 want=$2 pattern=$3 model=$4
    shift 4
    expect "$name" "$want" "$pattern" "$program" check good.yaml \
        --set "data.0.noise={$model}" "$@"
}

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
expect "simulate" 0 "" "$program" simulate good.yaml --output good.dat
expect "a start far away" 0 "" "$program" simulate good.yaml \
    --set simulate.steps=2000 --output other.dat

expect "help" 0 "" "$program" run --help data
for key in alpha_width beta_width nu intensity_scale nuisance; do
    check "help of $key" grep -qE "^ +$key +" out.txt
done
noise "measured" 0 "" "model: measured, scale: 1"
noise "relative" 0 "" "model: relative, alpha: infer, beta: infer"
noise "student" 0 "" "model: student, nu: 4"
check "resolved" grep -q "model: student" out.txt
cp out.txt resolved.yaml
expect "the resolved config is a config" 0 "" "$program" check resolved.yaml
check "and resolves to itself" cmp -s out.txt resolved.yaml

noise "a model that is none" 78 "noise.model.*'gauss' is not known.*student" \
    "model: gauss"
noise "alpha of 0" 78 "noise.alpha': value '0' is out of range" \
    "model: relative, alpha: 0"
noise "beta below 0" 78 "noise.beta': value '-1' is out of range" \
    "model: relative, beta: -1"
noise "too few degrees of freedom" 78 "noise.nu': value '1' is out of range" \
    "model: student, nu: 1"
noise "a key of another model" 78 \
    "noise.nu': it has no effect with model: measured; it belongs to model: student" \
    "nu: 4"
noise "no integral" 78 \
    "data.0.nuisance: .*no integral.*noise model student" "model: student" \
    --set data.0.nuisance=integrate
noise "a scale below 0" 78 "intensity_scale.*-1.*out of range" "" \
    --set data.0.intensity_scale=-1
awk '/^#/ {print; next} {n++; if (n == 9) $2 = -0.5; print}' good.dat >negative.dat
noise "I < 0 and relative" 65 "1 of 60 points have I <= 0.*q_range" \
    "model: relative" --set data.0.file=negative.dat
noise "I < 0 and student" 0 "" "model: student" --set data.0.file=negative.dat

noise "student too hot" 78 "sampler.t_max: at temperature 80.*below 60" \
    "model: student" --set sampler.t_max=80
noise "student, hot, by more degrees of freedom" 0 "" "model: student, nu: 30" \
    --set sampler.t_max=80
noise "one temperature is never too hot" 0 "" "model: student" \
    --set sampler.t_max=80 --set sampler.temperatures=1

run() { # NAME NOISE [OPTION...]
    name=$1 model=$2
    shift 2
    rm -rf out
    expect "run, $name" 0 "" "$program" run good.yaml \
        --set "data.0.noise={$model}" "$@"
    check "run, $name: chi2" grep -q "^ *chi2" out.txt
}
run relative "model: relative, alpha: infer, beta: infer"
run "relative, c and b sampled" "model: relative" --set data.0.nuisance=sample
run student "model: student" --threads 1
grep -v "steps/s" out.txt >first.txt
expect "annealing under student begins no lower than it may" 0 \
    "warm-up begins at a higher power of the likelihood" "$program" run good.yaml \
    --set "data.0.noise={model: student}" --set structure.file=other.pdb \
    --output cold
run "student again" "model: student" --threads 2
grep -v "steps/s" out.txt >second.txt
check "one seed, one table, whatever the threads" cmp -s first.txt second.txt
run "two data sets" "model: student" \
    --set data.1.file=good.dat --set data.1.noise.model=relative

# ---- the noise by neighbours: what of the residuals is misfit ----
says() { # NAME PATTERN
    check "$1" sh -c "tr '\n' ' ' <out.txt | tr -s ' ' | grep -qE '$2'"
}
keeps_quiet() { # NAME PATTERN
    check "$1" sh -c "! tr '\n' ' ' <out.txt | tr -s ' ' | grep -qE '$2'"
}
run "data as they should be" "model: measured"
says "their noise is that of sigma" "neighbours by (0.[6-9]|1.[0-4])[0-9]* sigma\."
says "and CorMap counts" "CorMap p [0-9]"

# Without noise and with q = 0, as an indirect transform leaves a curve.
"$program" profile model.pdb --bodies two --device reference --q-max 0.25 \
    --n-q 60 -q | awk '!/^#/ {print $1, $2 * 1e-6, 0.02e-6 * $2}' >smooth.dat
run "a smoothed curve" "model: measured" --set data.0.file=smooth.dat
says "is called that" "the curve was smoothed or computed, or sigma is too large"
keeps_quiet "but not as it should be" "should"
keeps_quiet "and CorMap is no evidence" "CorMap p"
check "the log warned" grep -q "warning: .*smooth.dat: .*CorMap does not" out/run.log
expect "as JSON" 0 "" "$program" summary out --json
check "with its number" "$python" -c 'import json
c = json.load(open("out.txt"))["verdict"]["curves"][0]
assert c["noise_by_neighbours"] < 0.1 and c["neighbours_share_noise"] is True, c
assert c["cormap_p"] is None and c["rigid"]["cormap_p"] is None, c'

# sigma 3.7 times too small: alone, and beside what no structure fits.
awk '!/^#/ {print $1, $2, $3 / 3.7}' good.dat >small.dat
run "sigma too small" "model: measured" --set data.0.file=small.dat
says "is said with the number" "neighbours by [2-5]\.[0-9]* sigma: sigma is [2-5]"
says "a chi2 of the noise is a fit" "that were drawn fit small.dat: .* chi2 1[0-9]"
keeps_quiet "without misfit" "misfit"
awk '!/^#/ {print $1, $2 * (1 + 0.5 * sin(40 * $1)), $3 / 3.7}' good.dat >off.dat
run "and a model that misses something" "model: measured" \
    --set data.0.file=off.dat
says "parts noise from misfit" \
    "sigma is [2-5][.0-9]* times too small\. Residuals of the model are [0-9.]+ sigma: what exceeds the noise is misfit"
exit $bad
