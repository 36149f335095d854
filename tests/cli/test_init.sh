#!/bin/sh
# What tessera init writes from a model, curves and maps runs as it is, says what
# decided, and replaces nothing; a configuration that does not say what moves gets the
# same answer.
. tests/cli/expect.sh
cp "$demo/two_domain.pdb" model.pdb
echo "device: {use: reference}" >device.yaml
cat >truth.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 60, q_range: [0.01, 0.4]}
END
mkdir -p below/deep
{
    without_side_chains | grep "^ATOM"
    "$build/tests/oracle/write_strand" 8 rna
} >bound.pdb
awk '/^ATOM/ && substr($0, 23, 4) + 0 <= 50 || /^END/' model.pdb >one.pdb
awk '/^ATOM/ {printf "%sB%s%8.3f%8.3f%s\n", substr($0, 1, 21), substr($0, 23, 8),
    90 - substr($0, 31, 8), -substr($0, 39, 8), substr($0, 47)}' model.pdb | cat model.pdb - | grep "^ATOM" >dimer.pdb
odd="it's; touch \$odd.yaml" # the next command, typed as it is proposed

# ---- what it writes runs ----
cases <<'END'
a curve | 0 | tessera simulate truth.yaml --output exp.dat
$ cp model.pdb exp.dat below/deep; cp model.pdb 'a "b" \c.pdb'
init | 0 by contacts and secondary structure | tessera init model.pdb
    the linker, drawn along the chain | out ^    - "A:51-64" # linker, 14 residues && out ^# A +1 1+~+2+ 114$
$ cp out.txt plain.yaml
checks | 0  28 free torsions | tessera check plain.yaml
init with a curve | 0 wrote a.yaml and a.svg | tessera init model.pdb exp.dat -o a.yaml
    the drawing on standard output | out part 2, 50 residues
    the part of the curve that bodies are fine for | in a.yaml q_range: \[0, 0.35\]
    a picture, which is XML | in a.svg <!-- tessera --> \
        && "$python" -c "import xml.dom.minidom as m; m.parse('a.svg')"
a chain to be docked that is not there | 64 --dock Z: there is no such chain; chains of 'dimer.pdb': A B | \
        tessera init dimer.pdb exp.dat --dock Z -o no.yaml
chains to be docked | 0 wrote dock.yaml | tessera init dimer.pdb exp.dat --dock B -o dock.yaml
    move as a whole, in contact | in dock.yaml ^  mobile: \["B"\].* && in dock.yaml ^  contacts: 5
    without symmetry | no in dock.yaml symmetry
which can run | 0 chains are not in contact | tessera run dock.yaml --dry-run \
        --device reference --set structure.bodies=two
as JSON | 0> "flexible": ."A:51-64"., | tessera init --json model.pdb exp.dat -o json.yaml
    one object | "$python" -m json.tool out.txt /dev/null && no out ^Numbers
    with the same configuration | cmp -s a.yaml json.yaml
    the linker is no part | "$python" -c "import json; s = json.load(open('out.txt'))['stretches']; \
        assert [(x['first'], x['last'], x.get('part')) for x in s] == [(1, 50, 1), (51, 64, None), (65, 114, 2)]"
JSON alone | 0> ^."evidence": "contacts | tessera init --json model.pdb
init with a strand | 0 wrote bound.yaml | tessera init bound.pdb -o bound.yaml
    which has a bar of its own, with its name | in bound.svg >S</text> && in bound.svg RNA, 8 nucleotides
$ cat a.yaml device.yaml >b.yaml
checks, too | 0 hydration c2: inferred | tessera check b.yaml
and runs | 0 | tessera run b.yaml --dry-run
a configuration elsewhere | 0 | tessera init below/deep/model.pdb exp.dat -o below/c.yaml
    a file below it | in below/c.yaml file: "deep/model.pdb"
finds its files | 0 | tessera check below/c.yaml
an odd name | 0 | tessera init 'a "b" \c.pdb' -o odd.yaml
is read | 0 | tessera check odd.yaml
a name that a shell would take apart | 0 next: tessera check | tessera init model.pdb exp.dat -o "$odd"
$ sed -n 's/.*next: //p' err.txt >next.sh
the next command can be typed | 0 free torsions | sh next.sh
    and is no other command | test ! -e '$odd.yaml'
a dimer | 0 | tessera init dimer.pdb -o dimer.yaml
    is symmetric | in dimer.yaml ^  symmetry: C2
    its subunit moves | in dimer.yaml - "A:51-64" && no in dimer.yaml - "B:
and checks | 0 2 copies of chain A in exact C2 | tessera check dimer.yaml
one compact domain | 0 | tessera init one.pdb exp.dat -o one.yaml
    does not move | in one.yaml ^  frozen: true
and checks | 0 | tessera check one.yaml
END

# ---- a map ----
without_side_chains >atoms.pdb
flat_map zero.dx model.pdb 3 50
cases <<'END'
a map of the model | 0 | tessera map simulate atoms.pdb --like zero.dx -r 5 -o m.mrc --device reference
its resolution | 64 map needs the resolution of the map | tessera init model.pdb --map m.mrc
a resolution of nothing | 64 resolution needs --map | tessera init model.pdb -r 5
a map that is none | 65 model.pdb | tessera init model.pdb --map model.pdb -r 5
init with a map | 0 | tessera init model.pdb --map m.mrc -r 5 -o m.yaml
    all may bend | in m.yaml ^  flexible: all
runs as it is | 0 | tessera run m.yaml --dry-run --device reference
END
while IFS='|' read -r name weight option <&4; do
    # shellcheck disable=SC2086
    expect "$name" 0 "" tessera check m.yaml $option
    check "to a weight of $weight" awk -v want="$weight" '/^  side_chain:/ {here = 1}
        here && /weight:/ {good = $2 == want; exit} END {exit !good}' out.txt
done 4<<'END'
side chains have most proposals|5
a choice stays|2|--set moves.side_chain=2
with a part flexible they are as in other runs|0.5|--set structure.flexible=[A:51-64]
END
cases <<'END'
and so in JSON | 0> "flexible": "all" | tessera init --json model.pdb --map m.mrc -r 5
with a coarse map linkers may bend | 0> ^    - "A:51-64" | tessera init model.pdb --map m.mrc -r 12
and where there is none all may | 0> ^  flexible: all | tessera init one.pdb --map m.mrc -r 12
with a curve both are data | 0> ^  - file: "exp.dat" | tessera init model.pdb exp.dat --map m.mrc -r 5
END

# ---- predictions ----
errors() { # BETWEEN
    "$python" -c "import json; print(json.dumps([{'predicted_aligned_error':
        [[1 if (i < 57) == (j < 57) else $1 for j in range(114)] for i in range(114)]}]))"
}
errors 20 >model.json
errors 2 >sure.json
echo '{"pae": [[0, 1], [1, 0]]}' >small.json
sed 's/\]\]}\]//' model.json >z.json
cp model.pdb z.pdb
printf '\223NUMPY 1' >"it's; touch x.npy"
cases <<'END'
errors beside the model | 0 predicted aligned errors.*model.json | tessera init model.pdb
    two domains | out "A:51-64" # linker
errors that are given | 0 sure.json | tessera init model.pdb --pae sure.json
    one part | out ^  frozen: true
errors of the whole of what was cut | 0 errors have 114 residues.*has 50 | tessera init one.pdb --pae sure.json
without flexible, too | 0 predicted aligned errors.*A:51-64 | \
        tessera check truth.yaml --set structure.flexible=[]
errors of another model, given | 65 errors of 2 residues, but 'one.pdb' has 50 | \
        tessera init one.pdb --pae small.json --picture no.svg
    nothing was written | test ! -e no.svg
beside it, cut off | 0 warning: not used: 'z.json' is not a JSON file | tessera init z.pdb
errors that are none | 65 'model.pdb' is not a JSON file | tessera init model.pdb --pae model.pdb
errors of NumPy | 65 python3 -c .*' > pae.json | tessera init model.pdb --pae "it's; touch x.npy"
$ sed -n 's/.*python3 -c "[^"]*" \(.*\) > pae.json$/ls \1/p' err.txt >next.sh
    the command names the file, and no other command | sh next.sh && test ! -e x.npy
errors that are not there | 66 cannot open 'no.json' | tessera init model.pdb --pae no.json
END
rm ./*.json ./*.npy

# ---- wrong inputs ----
cp exp.dat measured.dat
sed '/CA  LYS/d; /CA  ALA/d' model.pdb >bad.pdb
awk '!/^ATOM/ || substr($0, 23, 4) + 0 != 57 || $3 != "CA"' model.pdb | sed 's/ SC / CG /' >gap.pdb
echo "structure: {file: model.pdb}" >bare.yaml
echo "structure: {sequence: GASFPLGKEW}" >chain.yaml
cases <<'END'
no model | 64 MODEL | tessera init
over a measured curve | 64 measured.dat | tessera init model.pdb -o measured.dat
    which stays | cmp -s exp.dat measured.dat
over an input | 64 model.pdb | tessera init model.pdb -o model.pdb --force
over its own | 0 | tessera init model.pdb exp.dat -o a.yaml
too many backbones that are not whole | 65 without a whole backbone: .*LYS A:7 .no CA.*; complete | \
        tessera init bad.pdb

# ---- a residue without CA ----
is left out | 0 left out of the chains: .*: SER A:57 .no CA.; complete | tessera init gap.pdb -o gap.yaml
    and breaks the linker | in gap.yaml ^    - "A:51-56" # linker, 6 residues
runs | 0 left out of the chains: .*SER A:57 .no CA.; complete | tessera run gap.yaml --device reference \
        --set output.directory=gap --set sampler.draws=8 --set sampler.warmup=8 --set sampler.chains=2 \
        --set output.trajectory_every=1
    its atoms ride along | err SER A:57: rigid with A:5[68]
and are exported with the rest | 0> ^HETATM.* CB  SER A  57  | tessera export gap --draws best
a curve of bodies | 0 left out of the chains: .*SER A:57 .no CA | \
        tessera profile gap.pdb --bodies two --n-q 5 --device reference

# ---- a configuration that does not say what moves ----
neither flexible nor rigid | 0 flexible is not given; flexible by contacts and .*: A:51-64 .tessera init | \
        tessera check bare.yaml
    the resolved one says it | out ^    - "A:51-64"
$ cp out.txt resolved.yaml
which means the same | 0 28 free torsions | tessera check resolved.yaml
    and is said once | no err not given
all | 0 226 free torsions | tessera check bare.yaml --set structure.flexible=all
a fixed domain | 0 free torsions | tessera check bare.yaml --set 'structure.fixed=["A:1-55"]'
    is not flexible | out ^    - "A:56-64"
nothing is flexible | 0 by contacts and .* no residue is flexible | tessera check one.yaml --set structure.frozen=false
    so nothing moves | out ^  frozen: true
a sequence is flexible | 0 18 free torsions | tessera check chain.yaml
a range within a domain | 0 warning: structure.flexible: A:20-24 lies | \
        tessera check bare.yaml --set 'structure.flexible=["A:20-24", "A:51-64"]'
as a loop | 0 | tessera check bare.yaml --set 'structure.flexible=["A:20-24"]' --set 'structure.fixed=["A:19", "A:25"]'
    is no cause for a warning | no err lies within

# ---- hydration ----
with a curve | 0 excluded volume c1: inferred, prior normal 1 | tessera check b.yaml --set contrast.c2=auto
    c2 is inferred | out ^  c2: infer$
without one it is 0 | 0> ^  c2: 0$ | tessera check bare.yaml
END
exit $bad
