#!/bin/sh
# c1 and c2 as a user asks for them: keys, refusals, data of a known truth, and
# what a run leaves in its folder. Prints one line a test (tests/run.sh).
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
expect "simulate" 0 "" "$program" simulate good.yaml --output good.dat
check "the curve says c1 and c2" grep -q '^# c1 1.02, c2 2$' good.dat
expect "auto: of the config" 0 "" "$program" simulate good.yaml \
    --set contrast.c1=0.97 --set simulate.c1=auto --set simulate.c2=auto \
    --output other.dat
check "numbers, or the prior's mean" grep -q '^# c1 0.97, c2 1$' other.dat
expect "a plain curve" 0 "" "$program" simulate good.yaml \
    --set simulate.c1=1 --set simulate.c2=0 --output plain.dat
expect "the same by default" 0 "" "$program" simulate good.yaml \
    --set "contrast={c1: 1, c2: 0}" --set simulate.c1=auto --set simulate.c2=auto \
    --output plain_too.dat
check "without hydration the table does not matter" \
    cmp -s plain.dat plain_too.dat

# ---- refusals ----
set_contrast() { # NAME STATUS PATTERN CONTRAST [OPTION...]
    name=$1 want=$2 pattern=$3 contrast=$4
    shift 4
    expect "$name" "$want" "$pattern" "$program" check good.yaml \
        --set "contrast={$contrast}" "$@"
}
set_contrast "fixed" 0 "" "c1: 1.01, c2: 1.5"
set_contrast "unknown word" 78 "contrast.c2.*expected.*infer" "c2: fit"
set_contrast "out of range" 78 "contrast.c1.*0.8, 1.2" "c1: 1.5"
set_contrast "prior without room" 78 "contrast.c2_range.*not ascending" \
    "c2: infer, c2_range: [1, 1]"
set_contrast "prior upside down" 78 "contrast.c2_range.*" \
    "c2: infer, c2_range: [3, 1]"
set_contrast "mean beyond the range" 78 "contrast.c1_mean: 1.1 is not in" \
    "c1: infer, c1_mean: 1.1"
set_contrast "one component" 78 "contrast.c2.*table of one component" \
    "c1: 1, c2: infer" --set "structure.form_factors=$data/form_factors_two_body.dat"
set_contrast "one component, c1" 78 "contrast.c1.*table of one component" \
    "c1: 1.02, c2: 0" --set "structure.form_factors=$data/form_factors_two_body.dat"
set_contrast "own components" 0 "" "c2: infer" \
    --set "structure.form_factors=$data/components_two_body.dat"
set_contrast "own components, folded" 0 "" "c1: 1, c2: 0" \
    --set "structure.form_factors=$data/components_two_body.dat"
set_contrast "components for other bodies" 78 "table for one bodies" "c2: infer" \
    --set "structure.form_factors=$data/components_one_body.dat"
set_contrast "one body" 0 "" "c2: infer" --set structure.bodies=one
awk '/^#/ {print; next} {print $1 * 4, $2, $3}' good.dat >wide.dat
set_contrast "q beyond the tables" 65 "form factors end at 1; narrow q_range" "c2: infer" \
    --set data.0.file=wide.dat --set "data.0.q_range=[0, 2]" \
    --set data.0.q_unit=1/A
expect "a denser buffer" 0 "" "$program" simulate good.yaml \
    --set solvent.density=0.36 --set simulate.c1=1 --set simulate.c2=0 \
    --output dense.dat
check "is another curve" sh -c "! cmp -s dense.dat plain.dat"
expect "water by its number" 0 "" "$program" simulate good.yaml \
    --set solvent.density=0.334 --set simulate.c1=1 --set simulate.c2=0 \
    --output water.dat
check "is the same" cmp -s water.dat plain.dat
expect "one component in a buffer" 78 "solvent.density.*one component" \
    "$program" check good.yaml --set "contrast={c1: 1, c2: 0}" \
    --set solvent.density=0.35 \
    --set "structure.form_factors=$data/form_factors_two_body.dat"

# ---- runs ----
if ! "$program" devices --no-test >devices.txt 2>&1; then
    echo "skip runs with c1 and c2: no OpenCL device"
    exit $bad
fi
expect "run" 0 "" "$program" run good.yaml --device cpu
check "the config it used" grep -qE '^ *c2_range: \[0, 4\]' out/config.yaml
"$program" summary out --json >summary.json
check "c1 and c2 are found again" "$python" - <<'END'
import json
def find(name, tree):
    if isinstance(tree, dict):
        for k, v in tree.items():
            if k == name and isinstance(v, dict):
                return v
            f = find(name, v)
            if f: return f
    if isinstance(tree, list):
        for v in tree:
            if isinstance(v, dict) and v.get("name") == name:
                return v
            f = find(name, v)
            if f: return f
tree = json.load(open("summary.json"))
c1, c2 = find("c1", tree), find("c2", tree)
assert abs(c1["mean"] - 1.02) < 4 * c1["sd"] and c1["sd"] < 0.019, c1
assert abs(c2["mean"] - 2.0) < 4 * c2["sd"] and c2["sd"] < 0.7, c2
END
expect "prior only" 0 "" "$program" run good.yaml --prior-only --output prior
check "the prior has c1 and c2" sh -c \
    "'$program' summary prior | grep -q '^ *c2 '"
expect "both fixed" 0 "" "$program" run good.yaml --output fixed \
    --set "contrast={c1: 1.02, c2: 2}" --set sampler.draws=10
check "what is fixed is not in the trace" sh -c \
    "! '$program' summary fixed | grep -qE '^ *c2 +[-0-9.]+ +[-0-9.]+'"

# The truth, 2, lies beyond what is allowed.
expect "c2 at an end of its prior" 0 "" \
    "$program" run good.yaml --output bound --json \
    --set "contrast={c1: 1.02, c2: infer, c2_range: [-2, 1]}" --set sampler.draws=60
check "a run that has not converged says so" "$python" -c "
import json
run = json.load(open('out.txt'))
assert run['converged'] is False and run['ess'] < 400 and run['ess_of'], run
assert run['n_draw'] == 60 and run['rg']['q5'] <= run['rg']['mean'], run
assert run['directory'] == 'bound' and run['chi2']['mean'] > 0, run"
check "its verdict says so" grep -q \
    "c2, which piles up at the upper end of its prior, 1 .*contrast.c2_range" out.txt
expect "summary" 0 "" "$program" summary bound
check "says so, too" sh -c \
    'tr -s " \n" " " <out.txt | grep -q "c2, which piles up at the upper end"'
expect "and not where there is room" 0 "" "$program" summary out
check "says nothing" sh -c '! grep -q "accumulates" out.txt err.txt'

# ---- where the parts of the curve all but cancel ----
cat >peptide.yaml <<END
structure: {sequence: EKEKDEKEDKEK, flexible: ["A:5-6"]}
contrast: {c1: infer, c2: infer, c2_range: [-10, 20], c2_width: 10}
data: [{file: peptide.dat, intensity_scale: 1000}]
sampler: {chains: 2, warmup: 20, draws: 5}
output: {directory: peptide}
simulate: {points: 40, q_range: [0.01, 0.5], steps: 50}
END
expect "a curve of a peptide" 0 "" "$program" simulate peptide.yaml \
    --output peptide.dat
expect "ranges in which no curve can be had" 78 \
    "yaml:2:.*at c1 = .*, c2 = -10, .*narrow contrast.c1_range" \
    "$program" run peptide.yaml
exit $bad
