#!/bin/sh
# Ensembles from given structures: states that start from files, and states that
# stay there, whose weights are found again. Prints one line a test
# (tests/run.sh).
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" one.pdb
cat >base.yaml <<END
structure: {file: one.pdb, flexible: ["A:51-64"]}
simulate: {points: 10, steps: 3000}
END
expect "another conformation" 0 "" "$program" simulate base.yaml --output two.dat
for k in one two; do
    expect "the curve of $k" 0 "" "$program" profile $k.pdb --bodies two \
        --q-max 0.3 --n-q 121 --c1 1 --c2 0 --output $k.curve
done

# 30 % of one, 70 % of two, errors of 1 %.
awk -v pi=3.14159265358979 'BEGIN {srand(4)}
    /^#/ {next}
    FNR == NR {one[FNR] = $2; next}
    $1 > 0.008 {
        mean = 0.3 * one[FNR] + 0.7 * $2
        z = sqrt(-2 * log(1 - rand())) * cos(2 * pi * rand())
        print $1, mean * (1 + 0.01 * z) / 1e5, mean * 0.01 / 1e5}
' one.curve two.curve >mixture.dat

cat >still.yaml <<END
structure: {file: one.pdb, states: 2, frozen: true, starts: [one.pdb, two.pdb]}
data: [{file: mixture.dat, q_unit: 1/A}]
sampler: {chains: 4, warmup: 1000, draws: 2000, thin: 10, temperatures: 1}
output: {directory: still}
contrast: {c2: 0}
END
expect "weights of structures that stay" 0 "" "$program" run still.yaml
check "which is no cause for a warning" sh -c '! grep -q "no proposal was accepted" err.txt'
"$program" summary still --json >still.json
expect "and has converged, though nothing moves" 0 "" "$program" \
    diagnose still
cat >judge.py <<'END'
import json, sys
def find(name, tree):
    for v in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(v, dict) and v.get("name") == name:
            return v
        if isinstance(v, (dict, list)):
            found = find(name, v)
            if found:
                return found
    if isinstance(tree, dict) and isinstance(tree.get(name), dict):
        return tree[name]
tree = json.load(open("still.json"))
w = [find("weight_%d" % k, tree) for k in (1, 2)]
rg = [find("rg_%d" % k, tree) for k in (1, 2)]
# states are in the order of Rg, and stay
assert all(r["sd"] < 1e-9 for r in rg) and rg[0]["mean"] < rg[1]["mean"], rg
first = float(sys.argv[1])
is_first = abs(rg[0]["mean"] - first) < abs(rg[1]["mean"] - first)
truth = 0.3 if is_first else 0.7
assert abs(w[0]["mean"] - truth) < 3.5 * w[0]["sd"], (truth, w)
assert w[0]["sd"] < 0.08 and w[0]["rhat"] < 1.02, w
END
"$program" profile one.pdb --bodies two --json >one.json
one_rg=$("$python" -c 'import json, re
print(re.search(r"\"rg_model\": *([0-9.]+)", open("one.json").read()).group(1))')
check "the weights are found" "$python" judge.py "$one_rg"

# ---- weights of part of the q range, and a run with that part ----
expect "a run with most of q" 0 "" "$program" run still.yaml \
    --output half --set data.0.q_range=[0.07,0.3]
"$program" summary half --json >half.json
expect "most of q from the draws of all" 0 "" "$program" reweight still \
    --q-range 0.07,0.3 --json
cat >same.py <<'END'
import json
direct = json.load(open("half.json"))
found = json.load(open("out.txt"))
error = 1 / found["worth"] ** 0.5  # of a mean by its sd
for name in ("weight_1", "scale", "background", "noise_scale"):
    d, w = direct[name], found["variables"][name]["now"]
    assert abs(d["mean"] - w["mean"]) < 5 * error * d["sd"], (name, d, w)
    assert abs(d["sd"] / w["sd"] - 1) < 5 * error, (name, d, w)
    assert abs(d["q95"] - w["q95"]) < 10 * error * d["sd"], (name, d, w)
was, now = (found["variables"]["scale"][k]["sd"] for k in ("run", "now"))
assert now > 1.05 * was, (was, now)
END
check "is the same" "$python" same.py
expect "the lower half, far wider" 1 "(spread of .* grows|the weights concentrate on).*run with these data" \
    "$program" reweight still --q-range 0.008,0.1

expect "one state that stays" 0 "" "$program" run still.yaml --output alone \
    --set structure.states=1 --set structure.starts=[] --set sampler.draws=20
expect "c2 alone, and tempered" 0 "" "$program" run still.yaml --output c2 \
    --set contrast.c2=infer --set sampler.temperatures=3 --set sampler.draws=20

# ---- states that move ----
cat >moving.yaml <<END
structure:
  file: one.pdb
  states: 2
  flexible: ["A:51-64"]
  starts: [one.pdb, {file: two.pdb}]
data: [{file: mixture.dat, q_unit: 1/A}]
sampler: {chains: 2, warmup: 0, draws: 4, thin: 1, temperatures: 1}
output: {directory: moving}
device: {use: reference}
contrast: {c2: 0}
END
expect "two states, drawn" 0 "" "$program" run moving.yaml --output drawn \
    --device auto \
    --set "structure.flexible=[A:56-59]" --set sampler.warmup=40 \
    --set sampler.draws=60 --set sampler.thin=30
expect "their report" 0 "" "$program" report drawn
check "says what weighs" grep -q "weighted by the populations of the states" \
    drawn/report.html
check "has a line of mobility for each" sh -c "
    grep -q '>state 1<' drawn/report/mobility.svg &&
    grep -q '>state 2<' drawn/report/mobility.svg"
check "numbers the states as the trace does" test \
    "$(cut -d, -f3 drawn/report/conformations.csv | sort -u | tr '\n' ' ')" = \
    "1 2 state "

expect "states start from files" 0 "" "$program" run moving.yaml \
    --set moves.pivot=0 --set moves.pose=0 --set moves.regrow=0
"$program" summary moving --json >still.json
cat >apart.py <<'END'
import json, sys
exec(open("judge.py").read().split("tree =")[0])
tree, first = json.load(open("still.json")), float(sys.argv[1])
rg = [find("rg_%d" % k, tree)["mean"] for k in (1, 2)]
# four steps do not lead far
assert min(abs(r - first) for r in rg) < 0.5 and rg[1] - rg[0] > 0.5, rg
END
check "and are where the files are" "$python" apart.py "$one_rg"
check "the config names the files" grep -q 'two.pdb' moving/config.yaml

# ---- refusals ----
states() { # NAME STATUS PATTERN OPTION...
    name=$1 want=$2 pattern=$3
    shift 3
    expect "$name" "$want" "$pattern" "$program" check moving.yaml "$@"
}
states "more files than states" 78 "structure.starts: 2 files for 1 state" \
    --set structure.states=1
states "nothing moves, and yet" 78 "structure.frozen.*leave.*flexible" \
    --set structure.frozen=true
sed '/ A  64 /d' two.pdb >short.pdb
states "another molecule" 65 "short.pdb.*residues, but structure.file has" \
    --set structure.starts.1.file=short.pdb
sed 's/\(ATOM.\{13\}\)... A   9/\1TRP A   9/' two.pdb >mutant.pdb
states "another residue" 65 "mutant.pdb.*is TRP where structure.file has" \
    --set structure.starts.1.file=mutant.pdb
states "a file that is not there" 66 "none.pdb" \
    --set structure.starts.1.file=none.pdb
exit $bad
