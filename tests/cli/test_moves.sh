#!/bin/sh
# What may move, as a user says it: bad ranges, breaks, D residues, clashes and
# restraints are refused by name, or repaired on request; benchmarks know all moves.
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
sampler: {chains: 2, warmup: 200, draws: 6, thin: 20}
output: {directory: out}
device: {use: reference}
END
edit() { # SED WORD...: tessera with bad.yaml, a variant of good.yaml
    sed "$1" good.yaml >bad.yaml
    shift
    tessera "$@"
}
also() { # TEXT WORD...: the same with more keys of the structure
    more_keys=$1
    shift
    edit "s/\\[\"A:51-64\"\\]/&, $more_keys/" "$@"
}
docked() { # CONTACTS WORD...: two chains that are apart in the file
    contacts=$1
    shift
    edit "s/model.pdb/pair.pdb/; s/\\[\"A:51-64\"\\]/&, mobile: [\"B\"], contacts: $contacts/" "$@"
}
shift_x 90 "" B <model.pdb | cat model.pdb - | grep "^ATOM" >pair.pdb
half_turn() { # chain B of a PDB file, turned by 180 degrees about x = 45, y = 0
    awk '/^ATOM/ {printf "%sB%s%8.3f%8.3f%s\n", substr($0, 1, 21), substr($0, 23, 8),
        90 - substr($0, 31, 8), -substr($0, 39, 8), substr($0, 47)}'
}
half_turn <model.pdb | cat model.pdb - | grep "^ATOM" >dimer.pdb
{ # a second chain of one residue, 40 Angstrom aside
    grep "^ATOM" model.pdb
    echo TER
    awk '/^ATOM/ && substr($0, 23, 4) + 0 == 10' model.pdb | shift_x 40 "" B
} >single.pdb
awk '!(/^ATOM/ && substr($0, 23, 4) + 0 >= 55 && substr($0, 23, 4) + 0 <= 57)' model.pdb >gap.pdb
cat >bend.py <<'END'
"""bend.py: mirror.pdb with residue 52 reflected in its plane N-CA-C, and overlap.pdb with two
torsions of the linker turned until the domains lie in each other."""
import math
lines = [l for l in open("model.pdb") if l.startswith("ATOM")]
keys = [(int(l[22:26]), l[12:16].strip()) for l in lines]
at = {k: [float(l[c:c + 8]) for c in (30, 38, 46)] for k, l in zip(keys, lines)}
def dot(a, b):
    return sum(p * q for p, q in zip(a, b))
def less(a, b, by=1):
    return [p - by * q for p, q in zip(a, b)]
def cross(a, b):
    return [a[k - 2] * b[k - 1] - a[k - 1] * b[k - 2] for k in range(3)]
def unit(a):
    return [p / math.sqrt(dot(a, a)) for p in a]
def write(path, at):
    with open(path, "w") as out:
        for k, l in zip(keys, lines):
            out.write(l[:30] + "%8.3f%8.3f%8.3f" % tuple(at[k]) + l[54:])
        out.write("END\n")
def turn(at, number, axis, beyond, angle):
    """The atoms `beyond` of the residue and all residues after it, about a bond."""
    a, b = (at[number, name] for name in axis)
    u, c, s = unit(less(b, a)), math.cos(angle), math.sin(angle)
    def turned(x):
        v = less(x, a)
        return [o + c * p + s * q + (1 - c) * dot(u, v) * w for o, p, q, w in zip(a, v, cross(u, v), u)]
    return {(r, n): turned(x) if r > number or r == number and n in beyond else x
            for (r, n), x in at.items()}
ca = at[52, "CA"]
z = unit(cross(less(at[52, "N"], ca), less(at[52, "C"], ca)))
write("mirror.pdb", {k: less(x, z, 2 * dot(less(x, ca), z)) if k in ((52, "CB"), (52, "SC")) else x
                     for k, x in at.items()})
write("overlap.pdb", turn(turn(at, 55, ("CA", "C"), ("O",), math.pi),
                          58, ("N", "CA"), ("C", "O", "CB", "SC"), 7 * math.pi / 6))
END
"$python" bend.py

# ---- ranges ----
cases <<'END'
good | 0 | tessera check good.yaml
a range that leaves the chain | 78 bad.yaml:1:41: structure.flexible.0: .*'A:51-640': the chain has residues 1 to \
        114 only | edit 's/A:51-64/A:51-640/' run bad.yaml
a range outside the chain | 78 bad.yaml:1:41: structure.flexible.0: .*'A:500-600': contains no residue; the chain \
        has residues 1 to 114 | edit 's/A:51-64/A:500-600/' run bad.yaml
fixed and flexible | 78 bad.yaml:1:70: structure.fixed.1: .*'A:60-70': A:60 [A-Z]+ is also in \
        structure.flexible; remove | also 'fixed: ["A:1-9", "A:60-70"]' run bad.yaml
nothing may move | 78 bad.yaml:1:12: structure: nothing can move: .*structure.rigid | \
        edit 's/flexible: .*/rigid: ["A"]}/' run bad.yaml
a mobile chain that is not there | 78 bad.yaml:1:62: structure.mobile.0: there is no chain 'B'; chains: A | \
        also 'mobile: ["B"]' run bad.yaml
a mobile chain has no farthest place | 0 zero for distances above d_max [0-9]+ A \(without it parts could drift apart | \
        edit 's/model.pdb/pair.pdb/; s/\["A:51-64"\]/&, mobile: ["B"]/' check bad.yaml
every chain is mobile | 78 bad.yaml:1:61: structure.mobile: every chain | also 'mobile: ["A"]' run bad.yaml
flexible and rigid | 78 bad.yaml:1:12: structure: give flexible or rigid | also 'rigid: ["A:1-9"]' run bad.yaml

# ---- docking ----
a chain to be docked | 0 chains are not in contact | docked 3 check bad.yaml
    no pair that is in contact is beyond d_max | in err.txt d_max 2[0-9][0-9] A$
draws of the prior are in contact | 0 place +[0-9]+ proposed, [1-9] | docked 3 run bad.yaml --output docked --set sampler.draws=30
each arrangement has an interface | 0> ^1: [0-9]+ \+- [0-9]+ %.*from the start;* | tessera summary docked
    of both chains | out interface A:[0-9] && out B:[0-9]
also as JSON | 0> "interface": "A:[0-9, AB:-]*" | tessera summary docked --json
more contacts than the chains can have | 78 structure.contacts: no placement .* with 1000 contacts.*ask for fewer | \
        docked 1000 check bad.yaml
every chain in a map | 78 structure.mobile: every chain is named.*where tessera map dock places it | docked 3 check bad.yaml \
        --set 'structure.mobile=[A, B]' --set 'data=[{kind: map, file: pair.pdb, resolution: 9}]'
contacts of no chain | 78 structure.contacts: no chain moves as a whole; name | also 'contacts: 3' run bad.yaml
contacts of a subunit | 78 structure.contacts: the subunit of a symmetric | \
        edit 's/model.pdb/dimer.pdb, symmetry: C2, mobile: [subunit], contacts: 3/' run bad.yaml

# ---- symmetric assemblies ----
a symmetric dimer | 0 2 copies of chain A in exact C2 | edit 's/model.pdb/dimer.pdb, symmetry: C2/' check bad.yaml
    one chain turns | in err.txt 28 free torsions
a range of the copy is one of the subunit | 0 28 free torsions | \
        edit 's/model.pdb/dimer.pdb, symmetry: auto/; s/A:51/B:51/' check bad.yaml
the subunit moves against the axis | 0 | \
        edit 's/model.pdb/dimer.pdb, symmetry: C2, mobile: [subunit]/' run bad.yaml --output axis
states of copies | 0 | edit 's/model.pdb/dimer.pdb, symmetry: C2, states: 2/' run bad.yaml --output states
another group | 65 the chains do not form C3: their symmetry is C2 | \
        edit 's/model.pdb/dimer.pdb, symmetry: C3/' run bad.yaml
one chain alone | 65 no rotation places all chains on others.*the file must hold all chains | \
        edit 's/model.pdb/model.pdb, symmetry: C2/' run bad.yaml
chains of unequal length | 65 chain B has 1 residues .*copies must have the same | \
        edit 's/model.pdb/single.pdb, symmetry: C2/' run bad.yaml
no group | 78 structure.symmetry: expected C2 to C60 | edit 's/model.pdb/dimer.pdb, symmetry: C1/' run bad.yaml

# ---- what the structure is ----
a break in a flexible range | 78 bad.yaml:1:39: structure.flexible.0: .*'A:51-64': chain A of '.*gap.pdb' is \
        broken between A:54 [A-Z]{3} and A:58 [A-Z]{3} .*MODELLER.*separate ranges | \
        edit 's/model.pdb/gap.pdb/' run bad.yaml
the parts on both sides of it | 0 1 chain breaks.*before A:58 | \
        edit 's/model.pdb/gap.pdb/; s/"A:51-64"/"A:51-54", "A:58-64"/' run bad.yaml --output parts
a break where all is flexible | 0 1 chain breaks.*keep | \
        edit 's/model.pdb/gap.pdb/; s/flexible: .*/flexible: all}/' run bad.yaml --output all
a chain of one residue that is to be flexible | 78 bad.yaml:1:53: structure.flexible.1: .*'B': chain B of \
        '.*single.pdb' is a single residue, B:10 [A-Z]{3}, .*leave it out | \
        edit 's/model.pdb/single.pdb/; s/A:51-64/&", "B/' run bad.yaml
one that is not | 0 chain B: its residues 10 to 10 keep | edit 's/model.pdb/single.pdb/' run bad.yaml --output lone
a D residue that is to be flexible | 78 bad.yaml:1:42: structure.flexible.0: residue A:52 SER of '.*mirror.pdb' is \
        a D residue.*keep it rigid .structure.flexible, structure.rigid | edit 's/model.pdb/mirror.pdb/' run bad.yaml
a D residue where all is flexible | 78 bad.yaml:1:19: structure.file: residue A:52 SER of '.*mirror.pdb' is a D | \
        edit 's/model.pdb/mirror.pdb/; s/flexible: .*/flexible: all}/' run bad.yaml
a D residue that is rigid | 0 | \
        edit 's/model.pdb/mirror.pdb/; s/flexible: .*/rigid: ["A:52"]}/' run bad.yaml --output fine

# ---- clashes ----
a start with clashes | 65 '.*overlap.pdb': [0-9]+ pairs of bodies .*prior.clash_limit \(10 nat\): A:[0-9]+ \
        [A-Z]{3}.* and A:[0-9]+ [A-Z]{3}.* are [0-9.]+ A apart, contact is at [0-9.]+ A: [0-9.]+ nat; \
        prior.relax: true | edit 's/model.pdb/overlap.pdb/' run bad.yaml
    writes nothing | test ! -e out
check finds them, too | 65 prior.relax | tessera check bad.yaml
relaxed on request | 0 relaxed: [0-9]+ impossible overlaps were removed in [0-9]+ steps; CA moved by [0-9.]+ A | \
        tessera run bad.yaml --output relaxed --set prior.relax=true
    the log has it, the run went on | in relaxed/run.log relaxed:  && out posterior|R-hat
a wider limit lets it through | 0 | tessera check bad.yaml --set prior.clash_limit=100000
and so does no excluded volume | 0 | tessera check bad.yaml --set prior.clash=none
what was relaxed is a start | 0 | edit 's/model.pdb/relaxed\/model.pdb/' check bad.yaml
    that needs no more of it | no err relaxed
nor do clashes within one rigid part count | 0 | edit 's/model.pdb/overlap.pdb/; s/A:51-64/A:113-114/' check bad.yaml
# side chains alone do not part two domains
what relaxation cannot do is said | 65 structure: [0-9]+ of [0-9]+ impossible overlaps remain after 200000 steps \
        of relaxation: A:[0-9]+ .*more freedom.*clash_limit | edit 's/model.pdb/overlap.pdb/; $a moves: {pivot: 0, \
        crankshaft: 0, concerted: 0, rigid_body: 0, regrow: 0}' run bad.yaml --output stuck \
        --set prior.relax=true
    and leaves nothing | test ! -e stuck
END

# ---- restraints ----
cat >>good.yaml <<END
prior:
  restraints:
    - {between: ["A:2", "A:100"], distance: [10, 30], width: 3}
END
printf 'structure: {sequence: MKTAYIAKQR}\nmoves: {pivots: 1}\n' >move.yaml
printf 'structure: {file: model.pdb, flexible: ["A:51-64"]}\nsampler: {chains: 2, warmup: 100, thin: 5}\n' >poses.yaml
cases <<'END'
a restraint | 0 | tessera run good.yaml --output restrained
    is part of the config | in restrained/config.yaml between: \["A:2", "A:100"\]|A:100
a residue that is not there | 78 bad.yaml:7:7: prior.restraints.0: between: .*'A:200': contains no residue; the chain \
        has residues 1 to 114 | edit 's/"A:2", "A:100"/"A:2", "A:200"/' run bad.yaml
one residue | 78 bad.yaml:7:7: prior.restraints.0: between: names 1 residue; expected two | \
        edit 's/"A:2", "A:100"/"A:2"/' run bad.yaml
two of one rigid part | 78 bad.yaml:7:7: prior.restraints.0: between: 'A:2' and 'A:30' are in one rigid part | \
        edit 's/"A:2", "A:100"/"A:2", "A:30"/' run bad.yaml
a range upside down | 78 bad.yaml:7:45: key 'prior.restraints.0.distance': .*ascending | \
        edit 's/\[10, 30\]/[30, 10]/' run bad.yaml
a negative width | 78 bad.yaml:7:.*prior.restraints.0.width | edit 's/width: 3/width: -3/' run bad.yaml
a key misspelt | 78 bad.yaml:7:.*betwen.*did you mean.*between | edit 's/between/betwen/' run bad.yaml
an anchor that is none | 78 bad.yaml:7:.*restraints.0.at.*ca.*side_chain | edit 's/width: 3/at: cb/' run bad.yaml

# ---- moves, and benchmarks of them ----
a move misspelt | 78 move.yaml:2:.*pivots.*did you mean.*pivot | tessera check move.yaml
bench --moves | 0 | tessera bench --moves --quick
    has a row for each move | out ^coil +pivot +[0-9]+  && out ^coil +crankshaft +[0-9]+  \
        && out ^coil +concerted +[0-9]+  && out ^coil +side_chain +[0-9]+  && out ^coil +regrow +[0-9]+  \
        && out ^linkers +rigid_body +[0-9]+
bench --moves --json | 0 | tessera bench --moves --quick --json
    of rates and shares | json d.version and len(d.moves) >= 10 and {'coil', 'linkers'} == {m.molecule for m in \
        d.moves} and all(m.proposals_per_second > 0 and m.n_residue == 1000 and 0 <= m.acceptance <= 1 \
        and 0 <= m.none <= 1 and 0 <= m.dirty_tiles <= 1 for m in d.moves)
bench --sampling | 0 none.yaml is left out | \
        env TMPDIR="$work" tessera bench --sampling --json --time 2 poses.yaml none.yaml --set seed=3
    counts what poses are worth | json [r.config == 'poses.yaml' and r.chains == 2 and r.variables == 11 and \
        r.draws > 4 and 0 < r.least_ess_bulk_per_second < r.draws and r.seconds < 20 and r.rhat > 0.9 \
        for r in d.sampling] == [True]
    and leaves no folder | ! ls -d tessera-bench-* 2>/dev/null
a CONFIG without --sampling | 64 only --sampling | tessera bench poses.yaml
END

# ---- a real structure ----
# A crystal structure with a gap: all of it may move, not a range over the gap.
real=$shared/structures/1ao6.pdb.gz
if [ -r "$real" ]; then
    printf 'structure: {file: "%s", flexible: all}\ndevice: {use: reference}\n' "$real" >real.yaml
    cases <<'END'
1ao6: atoms that overlap in the file | 65 1ao6.pdb.gz': 1 pairs.* A:536 LYS .side chain. and A:583 LEU | \
        tessera check real.yaml
1ao6: relaxed | 0 relaxed: 1 impossible | tessera check real.yaml --set prior.relax=true
END
else
    echo "skip 1ao6: no structures in ../shared/data"
fi
exit $bad
