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
check "names the share that exchanges" grep -q "default 0.9" out.txt
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
cat >sans.yaml <<YAML
structure: {file: model.pdb}
data: [{kind: sans, file: data.dat}]
YAML
expect "a run" 78 "sans.*saxs, distance, map.*--radiation neutron" \
    "$program" check sans.yaml
exit $bad
