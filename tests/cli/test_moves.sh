#!/bin/sh
# What may move, as a user says it: bad ranges, breaks, D residues, clashes and
# restraints are named and refused, or repaired on request. Prints one line a
# test (tests/run.sh).
. tests/cli/expect.sh
structures=$shared/structures
with() { # FILE, sed expression: a variant of good.yaml
    sed "$2" good.yaml >"$1"
}

cp "$demo/two_domain.pdb" model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
sampler: {chains: 2, warmup: 200, draws: 6, thin: 20}
output: {directory: out}
device: {use: reference}
END
expect "good" 0 "" "$program" check good.yaml

# ---- ranges ----
with bad.yaml 's/A:51-64/A:51-640/'
expect "a range that leaves the chain" 78 \
    "bad.yaml:1:41: structure.flexible.0: .*'A:51-640': the chain has residues 1 to 114 only" \
    "$program" run bad.yaml
with bad.yaml 's/A:51-64/A:500-600/'
expect "a range outside the chain" 78 \
    "bad.yaml:1:41: structure.flexible.0: .*'A:500-600': contains no residue; the chain has residues 1 to 114" \
    "$program" run bad.yaml
with bad.yaml 's/\["A:51-64"\]/&, fixed: ["A:1-9", "A:60-70"]/'
expect "fixed and flexible" 78 \
    "bad.yaml:1:70: structure.fixed.1: .*'A:60-70': A:60 [A-Z]+ is in structure.flexible too; take" \
    "$program" run bad.yaml
with bad.yaml 's/flexible: .*/rigid: ["A"]}/'
expect "nothing may move" 78 "bad.yaml:1:12: structure: nothing can move: .*structure.rigid" \
    "$program" run bad.yaml
with bad.yaml 's/\["A:51-64"\]/&, mobile: ["B"]/'
expect "a mobile chain that is not there" 78 \
    "bad.yaml:1:62: structure.mobile.0: there is no chain 'B'; chains: A" \
    "$program" run bad.yaml
awk '/^ATOM/ {printf "%sB%s%8.3f%s\n", substr($0, 1, 21), substr($0, 23, 8),
    substr($0, 31, 8) + 90, substr($0, 39)}' model.pdb |
    cat model.pdb - | grep "^ATOM" >pair.pdb
with pair.yaml 's/model.pdb/pair.pdb/; s/\["A:51-64"\]/&, mobile: ["B"]/'
expect "a mobile chain has no farthest place" 0 \
    "zero for distances above d_max [0-9]+ A \(without it parts could drift apart" \
    "$program" check pair.yaml
with bad.yaml 's/\["A:51-64"\]/&, mobile: ["A"]/'
expect "every chain is mobile" 78 "bad.yaml:1:61: structure.mobile: every chain" \
    "$program" run bad.yaml
with bad.yaml 's/\["A:51-64"\]/&, rigid: ["A:1-9"]/'
expect "flexible and rigid" 78 "bad.yaml:1:12: structure: give flexible or rigid" \
    "$program" run bad.yaml

# ---- what the structure is ----
awk '!(/^ATOM/ && substr($0, 23, 4) + 0 >= 55 && substr($0, 23, 4) + 0 <= 57)' \
    model.pdb >gap.pdb
with bad.yaml 's/model.pdb/gap.pdb/'
expect "a break in a flexible range" 78 \
    "bad.yaml:1:39: structure.flexible.0: .*'A:51-64': chain A of '.*gap.pdb' is broken between A:54 [A-Z]{3} and A:58 [A-Z]{3} .*MODELLER.*two ranges" \
    "$program" run bad.yaml
with parts.yaml 's/model.pdb/gap.pdb/; s/"A:51-64"/"A:51-54", "A:58-64"/'
expect "the parts on both sides of it" 0 "1 chain breaks.*before A:58" \
    "$program" run parts.yaml --output parts
with all.yaml 's/model.pdb/gap.pdb/; s/flexible: .*/flexible: all}/'
expect "a break where all is flexible" 0 "1 chain breaks.*keep" \
    "$program" run all.yaml --output all
# A second chain of one residue, 40 Angstrom aside.
single() {
    awk '/^ATOM/ && substr($0, 23, 4) + 0 == 10 {
        line[++n] = sprintf("%sB%s%8.3f%s", substr($0, 1, 21), substr($0, 23, 8),
                            substr($0, 31, 8) + 40, substr($0, 39))}
        /^END/ {print "TER"; for (i = 1; i <= n; i++) print line[i]}
        !/^TER/' model.pdb
}
single >single.pdb
with bad.yaml 's/model.pdb/single.pdb/; s/A:51-64/&", "B/'
expect "a chain of one residue that is to be flexible" 78 \
    "bad.yaml:1:53: structure.flexible.1: .*'B': chain B of '.*single.pdb' is a single residue, B:10 [A-Z]{3}, .*leave it out" \
    "$program" run bad.yaml
with lone.yaml 's/model.pdb/single.pdb/'
expect "one that is not" 0 "chain B: its residues 10 to 10 keep" \
    "$program" run lone.yaml --output lone
# Residue $1 reflected in its plane N-CA-C.
mirror() {
    awk -v number="$1" '
    function take(v) {
        v[1] = substr($0, 31, 8) + 0
        v[2] = substr($0, 39, 8) + 0
        v[3] = substr($0, 47, 8) + 0
    }
    /^ATOM/ && substr($0, 23, 4) + 0 == number {
        name = $3
        take(x)
        if (name == "N") take(n)
        if (name == "CA") take(ca)
        if (name == "C") take(c)
        if (name == "CB" || name == "SC") {
            for (i = 1; i <= 3; i++) {
                j = i % 3 + 1
                k = j % 3 + 1
                z[i] = (n[j] - ca[j]) * (c[k] - ca[k])
                z[i] -= (n[k] - ca[k]) * (c[j] - ca[j])
            }
            size = sqrt(z[1] ^ 2 + z[2] ^ 2 + z[3] ^ 2)
            h = 0
            for (i = 1; i <= 3; i++) h += (x[i] - ca[i]) * z[i] / size
            for (i = 1; i <= 3; i++) x[i] -= 2 * h * z[i] / size
            $0 = sprintf("%s%8.3f%8.3f%8.3f%s", substr($0, 1, 30), x[1], x[2],
                x[3], substr($0, 55))
        }
    }
    {print}' model.pdb
}
mirror 52 >mirror.pdb
check "a residue was mirrored" sh -c '! cmp -s mirror.pdb model.pdb'
with bad.yaml 's/model.pdb/mirror.pdb/'
expect "a D residue that is to be flexible" 78 \
    "bad.yaml:1:42: structure.flexible.0: residue A:52 SER of '.*mirror.pdb' is a D residue.*leave it rigid .structure.flexible, structure.rigid" \
    "$program" run bad.yaml
with bad.yaml 's/model.pdb/mirror.pdb/; s/flexible: .*/flexible: all}/'
expect "a D residue where all is flexible" 78 \
    "bad.yaml:1:19: structure.file: residue A:52 SER of '.*mirror.pdb' is a D" \
    "$program" run bad.yaml
with fine.yaml 's/model.pdb/mirror.pdb/; s/flexible: .*/rigid: ["A:52"]}/'
expect "a D residue that is rigid" 0 "" "$program" run fine.yaml --output fine

# ---- clashes ----
# Three torsions of the linker turned until the domains lie in each other.
cat >overlap.py <<'END'
import math
import sys

lines = [l for l in open("model.pdb") if l.startswith("ATOM")]
atoms = [(int(l[22:26]), l[12:16].strip(),
          [float(l[30:38]), float(l[38:46]), float(l[46:54])]) for l in lines]
at = {(r, n): x for r, n, x in atoms}

def turned(x, a, b, angle):
    u = [p - q for p, q in zip(b, a)]
    size = math.sqrt(sum(p * p for p in u))
    u = [p / size for p in u]
    v = [p - q for p, q in zip(x, a)]
    dot = sum(p * q for p, q in zip(u, v))
    cross = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
             u[0] * v[1] - u[1] * v[0]]
    c, s = math.cos(angle), math.sin(angle)
    return [o + c * p + s * q + (1 - c) * dot * w
            for o, p, q, w in zip(a, v, cross, u)]

def after(residue, name, number, what):
    """Does it move when phi (N-CA) or psi (CA-C) of `number` turns?"""
    if residue != number:
        return residue > number
    return name in (("C", "O", "CB", "SC") if what == "phi" else ("O",))

def turn(xs, number, what, angle):
    axis = ("N", "CA") if what == "phi" else ("CA", "C")
    where = {(r, n): x for (r, n, _), x in zip(atoms, xs)}
    a, b = where[number, axis[0]], where[number, axis[1]]
    return [turned(x, a, b, angle) if after(r, n, number, what) else x
            for (r, n, _), x in zip(atoms, xs)]

def overlaps(xs):
    one = [x for (r, n, _), x in zip(atoms, xs) if r <= 50 and n == "CA"]
    two = [x for (r, n, _), x in zip(atoms, xs) if r >= 65 and n == "CA"]
    return sum(1 for x in one for y in two
               if (x[0] - y[0])**2 + (x[1] - y[1])**2 + (x[2] - y[2])**2 < 9.0)

def search():
    best, found, step = 0, None, math.pi / 6
    for i in range(12):
        first = turn([x for _, _, x in atoms], 52, "psi", i * step)
        for j in range(12):
            second = turn(first, 55, "psi", j * step)
            for k in range(12):
                third = turn(second, 58, "phi", k * step)
                n = overlaps(third)
                if n > best:
                    best, found = n, third
                if n >= 6:
                    return found
    return found

found = search()
if found is None:
    sys.exit("no overlap found")
for l, x in zip(lines, found):
    print(l[:30] + "%8.3f%8.3f%8.3f" % tuple(x) + l[54:], end="")
print("END")
END
"$python" overlap.py >overlap.pdb
check "the domains overlap" test -s overlap.pdb
with bad.yaml 's/model.pdb/overlap.pdb/'
expect "a start with clashes" 65 \
    "'.*overlap.pdb': [0-9]+ pairs of bodies .*prior.clash_limit \(10 nat\): A:[0-9]+ [A-Z]{3}.* and A:[0-9]+ [A-Z]{3}.* are [0-9.]+ A apart where contact is [0-9.]+ A, [0-9.]+ nat; prior.relax: true" \
    "$program" run bad.yaml
check "writes nothing" test ! -e out
expect "check finds them, too" 65 "prior.relax" "$program" check bad.yaml
expect "relaxed on request" 0 \
    "relaxed: [0-9]+ impossible overlaps went in [0-9]+ steps; CA moved by [0-9.]+ A" \
    "$program" run bad.yaml --output relaxed --set prior.relax=true
check "the log has it" grep -q "relaxed: " relaxed/run.log
check "the run went on" grep -q "posterior\|R-hat" out.txt
with again.yaml 's/model.pdb/relaxed\/model.pdb/'
expect "what was relaxed is a start" 0 "" "$program" check again.yaml
check "that needs no more of it" sh -c '! grep -q "relaxed" err.txt'
expect "a wider limit lets it through" 0 "" "$program" check bad.yaml \
    --set prior.clash_limit=100000
expect "and so does no excluded volume" 0 "" "$program" check bad.yaml \
    --set prior.clash=none
with stuck.yaml 's/model.pdb/overlap.pdb/; s/A:51-64/A:113-114/'
expect "nor do clashes within one rigid part count" 0 "" "$program" check stuck.yaml
# Side chains alone do not part two domains.
with stuck.yaml 's/model.pdb/overlap.pdb/'
echo "moves: {pivot: 0, crankshaft: 0, concerted: 0, rigid_body: 0, regrow: 0, pose: 0}" >>stuck.yaml
expect "what relaxation cannot do is said" 65 \
    "structure: [0-9]+ of [0-9]+ impossible overlaps are left after 200000 steps of relaxation: A:[0-9]+ .*more freedom.*clash_limit" \
    "$program" run stuck.yaml --output stuck --set prior.relax=true
check "and leaves nothing" test ! -e stuck

# ---- restraints ----
cat >>good.yaml <<END
prior:
  restraints:
    - {between: ["A:2", "A:100"], distance: [10, 30], width: 3}
END
expect "a restraint" 0 "" "$program" run good.yaml --output restrained
check "is part of the config" grep -q 'between: \["A:2", "A:100"\]\|A:100' \
    restrained/config.yaml
with bad.yaml 's/"A:2", "A:100"/"A:2", "A:200"/'
expect "a residue that is not there" 78 \
    "bad.yaml:7:7: prior.restraints.0: between: .*'A:200': contains no residue; the chain has residues 1 to 114" \
    "$program" run bad.yaml
with bad.yaml 's/"A:2", "A:100"/"A:2"/'
expect "one residue" 78 \
    "bad.yaml:7:7: prior.restraints.0: between: names 1 residue; expected two" \
    "$program" run bad.yaml
with bad.yaml 's/"A:2", "A:100"/"A:2", "A:30"/'
expect "two of one rigid part" 78 \
    "bad.yaml:7:7: prior.restraints.0: between: 'A:2' and 'A:30' are in one rigid part" \
    "$program" run bad.yaml
with bad.yaml 's/\[10, 30\]/[30, 10]/'
expect "a range upside down" 78 \
    "bad.yaml:7:45: key 'prior.restraints.0.distance': .*ascending" \
    "$program" run bad.yaml
with bad.yaml 's/width: 3/width: -3/'
expect "a negative width" 78 "bad.yaml:7:.*prior.restraints.0.width" \
    "$program" run bad.yaml
with bad.yaml 's/between/betwen/'
expect "a key misspelt" 78 "bad.yaml:7:.*betwen.*did you mean.*between" \
    "$program" run bad.yaml
with bad.yaml 's/width: 3/at: cb/'
expect "an anchor that is none" 78 "bad.yaml:7:.*restraints.0.at.*ca.*side_chain" \
    "$program" run bad.yaml

# ---- moves ----
cat >bad.yaml <<END
structure: {sequence: MKTAYIAKQR}
moves: {pivots: 1}
END
expect "a move misspelt" 78 "bad.yaml:2:.*pivots.*did you mean.*pivot" \
    "$program" check bad.yaml
expect "bench --moves" 0 "" "$program" bench --moves --quick
check "has a row for each move" sh -c '
    for move in pivot crankshaft concerted side_chain regrow; do
        grep -qE "^coil +$move +[0-9]+ " out.txt || exit 1
    done
    grep -qE "^linkers +pose +[0-9]+ " out.txt'
expect "bench --moves --json" 0 "" "$program" bench --moves --quick --json
check "JSON is JSON" "$python" -c '
import json
d = json.load(open("out.txt"))
assert d["version"] and len(d["moves"]) >= 10
for m in d["moves"]:
    assert m["proposals_per_second"] > 0, m
    for key in ("acceptance", "none", "dirty_tiles"):
        assert 0 <= m[key] <= 1, m
    assert m["n_residue"] == 1000
assert {"coil", "linkers"} == {m["molecule"] for m in d["moves"]}
'

# ---- bench --sampling ----
cat >poses.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
sampler: {chains: 2, warmup: 100, thin: 5}
END
expect "bench --sampling" 0 "none.yaml is left out" env TMPDIR="$work" \
    "$program" bench --sampling --json --time 2 poses.yaml none.yaml --set seed=3
check "counts what poses are worth" "$python" -c '
import json
row, = json.load(open("out.txt"))["sampling"]
assert row["config"] == "poses.yaml" and row["chains"] == 2, row
assert row["variables"] == 11 and row["draws"] > 4, row
assert 0 < row["least_ess_bulk_per_second"] < row["draws"], row
assert row["seconds"] < 20 and row["rhat"] > 0.9, row
'
check "and leaves no folder" sh -c '! ls -d tessera-bench-*'
expect "a CONFIG without --sampling" 64 "only --sampling" \
    "$program" bench poses.yaml

# ---- a real structure ----
# A crystal structure with a gap: all of it may move, not a range over the gap.
real=$structures/1ao6.pdb.gz
if [ -r "$real" ]; then
    cat >real.yaml <<END
structure: {file: "$real", flexible: all}
device: {use: reference}
END
    expect "1ao6: atoms that overlap in the file" 65 \
        "1ao6.pdb.gz': 1 pairs.* A:536 LYS .side chain. and A:583 LEU" \
        "$program" check real.yaml
    expect "1ao6: relaxed" 0 "relaxed: 1 impossible" \
        "$program" check real.yaml --set prior.relax=true
else
    echo "skip 1ao6: no structures in ../shared/data"
fi
exit $bad
