#!/bin/sh
# A configuration from a model and curves: what tessera init writes runs as it is,
# says what decided, and replaces nothing. Then what a configuration that does not
# say what moves becomes. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
has() { check "$1" grep -qE -e "$2" "$3"; }
cp "$demo/two_domain.pdb" model.pdb
echo "device: {use: reference}" >device.yaml
cat >truth.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 60, q_range: [0.01, 0.4]}
END
expect "a curve" 0 "" "$program" simulate truth.yaml --output exp.dat

# ---- what it writes runs ----
expect "init" 0 "by contacts and secondary structure" "$program" init model.pdb
cp out.txt plain.yaml
has "the linker" '^    - "A:51-64" # linker, 14 residues' plain.yaml
has "drawn along the chain" '^# A +1 1+~+2+ 114$' plain.yaml
expect "checks" 0 " 28 free torsions" "$program" check plain.yaml
expect "init with a curve" 0 "wrote a.yaml and a.svg" \
    "$program" init model.pdb exp.dat -o a.yaml
has "the drawing on standard output" 'part 2, 50 residues' out.txt
has "the part of the curve that bodies are fine for" 'q_range: \[0, 0.35\]' a.yaml
has "a picture" '<!-- tessera -->' a.svg
check "which is XML" "$python" -c "import xml.dom.minidom as m; m.parse('a.svg')"
{
    grep "^ATOM" model.pdb | grep -v " SC "
    "$build/tests/oracle/write_strand" 8 rna
} >bound.pdb
expect "init with a strand" 0 "wrote bound.yaml" "$program" init bound.pdb \
    -o bound.yaml
has "which has a bar of its own" '>S</text>' bound.svg
has "with its name" 'RNA, 8 nucleotides' bound.svg
cat a.yaml device.yaml >b.yaml
expect "checks, too" 0 "hydration c2: inferred" "$program" check b.yaml
expect "and runs" 0 "" "$program" run b.yaml --dry-run
mkdir -p below/deep
cp model.pdb exp.dat below/deep
expect "a configuration elsewhere" 0 "" \
    "$program" init below/deep/model.pdb exp.dat -o below/c.yaml
has "a file below it" 'file: "deep/model.pdb"' below/c.yaml
expect "finds its files" 0 "" "$program" check below/c.yaml
cp model.pdb 'a "b" \c.pdb'
expect "an odd name" 0 "" "$program" init 'a "b" \c.pdb' -o odd.yaml
expect "is read" 0 "" "$program" check odd.yaml
# The next command, typed as it is proposed.
odd="it's; touch \$odd.yaml"
expect "a name that a shell would take apart" 0 "next: tessera check" \
    "$program" init model.pdb exp.dat -o "$odd"
sed -n 's/.*next: tessera/"$0"/p' err.txt >next.sh
expect "the next command can be typed" 0 "free torsions" \
    sh -c "$(cat next.sh)" "$program"
check "and is no other command" test ! -e '$odd.yaml'
awk '/^ATOM/ && substr($0, 23, 4) + 0 <= 50 || /^END/' model.pdb >one.pdb
expect "one compact domain" 0 "" "$program" init one.pdb exp.dat -o one.yaml
has "does not move" '^  frozen: true' one.yaml
expect "and checks" 0 "" "$program" check one.yaml

# ---- a map ----
grep -v "^ATOM.* SC " model.pdb >atoms.pdb
{
    echo "object 1 class gridpositions counts 60 60 60"
    awk '/^ATOM/ {n++; for (c = 0; c < 3; c++) x[c] += substr($0, 31 + 8 * c, 8)}
        END {print "origin", x[0] / n - 88.5, x[1] / n - 88.5, x[2] / n - 88.5}' \
        model.pdb
    printf "delta 3 0 0\ndelta 0 3 0\ndelta 0 0 3\n"
    echo "object 3 class array type double rank 0 items 216000 data follows"
    awk 'BEGIN {for (i = 0; i < 216000; i++) print 0}'
} >zero.dx
expect "a map of the model" 0 "" "$program" map simulate atoms.pdb --like zero.dx \
    -r 5 -o m.mrc --device reference
expect "its resolution" 64 "map needs the resolution of the map" \
    "$program" init model.pdb --map m.mrc
expect "a resolution of nothing" 64 "resolution needs --map" \
    "$program" init model.pdb -r 5
expect "a map that is none" 65 "model.pdb" \
    "$program" init model.pdb --map model.pdb -r 5
expect "init with a map" 0 "" "$program" init model.pdb --map m.mrc -r 5 -o m.yaml
has "all may bend" '^  flexible: all' m.yaml
expect "runs as it is" 0 "" "$program" run m.yaml --dry-run \
    --device reference
expect "checks" 0 "" "$program" check m.yaml
share() { # TEST WEIGHT
    check "$1" awk -v want="$2" '/^  side_chain:/ {here = 1}
        here && /weight:/ {good = $2 == want; exit} END {exit !good}' out.txt
}
share "most proposals are of side chains" 5
expect "checks a choice" 0 "" "$program" check m.yaml --set moves.side_chain=2
share "which stays" 2
expect "checks a part" 0 "" "$program" check m.yaml \
    --set 'structure.flexible=["A:51-64"]'
share "and then they are as in other runs" 0.5
expect "with a coarse one" 0 "" "$program" init model.pdb --map m.mrc -r 12
has "linkers may" '^    - "A:51-64"' out.txt
expect "and where there is none" 0 "" "$program" init one.pdb --map m.mrc -r 12
has "all may" '^  flexible: all' out.txt
expect "with a curve" 0 "" "$program" init model.pdb exp.dat --map m.mrc -r 5
has "both are data" '^  - file: "exp.dat"' out.txt

# ---- predictions ----
errors() { # BETWEEN
    "$python" -c "print([{'predicted_aligned_error':
        [[1 if (i < 57) == (j < 57) else $1 for j in range(114)]
         for i in range(114)]}])" | tr "'" '"'
}
errors 20 >model.json
expect "errors beside the model" 0 "predicted aligned errors.*model.json" \
    "$program" init model.pdb
has "two domains" '"A:51-64" # linker' out.txt
errors 2 >sure.json
expect "errors that are given" 0 "sure.json" \
    "$program" init model.pdb --pae sure.json
has "one part" '^  frozen: true' out.txt
expect "errors of the whole of what was cut" 0 "errors have 114 residues.*has 50" \
    "$program" init one.pdb --pae sure.json
expect "without flexible, too" 0 "predicted aligned errors.*A:51-64" \
    "$program" check truth.yaml --set structure.flexible=[]
echo '{"pae": [[0, 1], [1, 0]]}' >small.json
expect "errors of another model, given" 65 "errors of 2 residues, 'one.pdb' has 50" \
    "$program" init one.pdb --pae small.json --picture no.svg
check "nothing was written" test ! -e no.svg
sed 's/\]\]}\]//' model.json >broken.json
expect "beside it, cut off" 0 "warning: not used: 'z.json' is not a JSON file" \
    sh -c "cp broken.json z.json; cp model.pdb z.pdb; '$program' init z.pdb"
expect "errors that are none" 65 "'model.pdb' is not a JSON file" \
    "$program" init model.pdb --pae model.pdb
printf '\223NUMPY 1' >"it's; touch x.npy"
expect "errors of NumPy" 65 "python3 -c .*' > pae.json" \
    "$program" init model.pdb --pae "it's; touch x.npy"
sed -n 's/.*python3 -c "[^"]*" \(.*\) > pae.json$/ls \1/p' err.txt >next.sh
check "the command names the file" sh next.sh
check "and no other command" test ! -e x.npy
rm ./*.npy
expect "errors that are not there" 66 "cannot open 'no.json'" \
    "$program" init model.pdb --pae no.json
rm ./*.json

# ---- wrong inputs ----
expect "no model" 64 "MODEL" "$program" init
cp exp.dat measured.dat
expect "over a measured curve" 64 "measured.dat" \
    "$program" init model.pdb -o measured.dat
check "which stays" cmp -s exp.dat measured.dat
expect "over an input" 64 "model.pdb" "$program" init model.pdb -o model.pdb --force
expect "over its own" 0 "" "$program" init model.pdb exp.dat -o a.yaml
sed '/CA  LYS/d; /CA  ALA/d' model.pdb >bad.pdb
expect "too many backbones that are not whole" 65 \
    "without a whole backbone: .*LYS A:7 .no CA.*; complete" \
    "$program" init bad.pdb

# ---- a residue without CA ----
awk '!/^ATOM/ || substr($0, 23, 4) + 0 != 57 || $3 != "CA"' model.pdb |
    sed 's/ SC / CG /' >gap.pdb
expect "is left out" 0 "left out of the chains: .*: SER A:57 .no CA.; complete" \
    "$program" init gap.pdb -o gap.yaml
has "and breaks the linker" '^    - "A:51-56" # linker, 6 residues' gap.yaml
expect "runs" 0 "left out of the chains: .*SER A:57 .no CA.; complete" \
    "$program" run gap.yaml --device reference --set output.directory=gap \
    --set sampler.draws=8 --set sampler.warmup=8 --set sampler.chains=2 \
    --set output.trajectory_every=1
has "its atoms ride along" 'SER A:57: rigid with A:5[68]' err.txt
expect "and are exported" 0 "" "$program" export gap --draws best
has "with the rest" '^HETATM.* CB  SER A  57 ' out.txt
expect "a curve of bodies" 0 "left out of the chains: .*SER A:57 .no CA" \
    "$program" profile gap.pdb --bodies two --n-q 5 --device reference

# ---- a configuration that does not say what moves ----
echo "structure: {file: model.pdb}" >bare.yaml
expect "neither flexible nor rigid" 0 \
    "flexible is not given; by contacts and .*: A:51-64 .tessera init" \
    "$program" check bare.yaml
has "the resolved one says it" '^    - "A:51-64"' out.txt
cp out.txt resolved.yaml
expect "which means the same" 0 "28 free torsions" "$program" check resolved.yaml
check "and is said once" sh -c "! grep -q 'not given' err.txt"
expect "all" 0 "226 free torsions" "$program" check bare.yaml \
    --set structure.flexible=all
expect "a fixed domain" 0 "free torsions" "$program" check bare.yaml \
    --set 'structure.fixed=["A:1-55"]'
has "is not flexible" '^    - "A:56-64"' out.txt
expect "nothing is flexible" 0 "by contacts and .* no residue is flexible" \
    "$program" check one.yaml --set structure.frozen=false
has "so nothing moves" '^  frozen: true' out.txt
echo "structure: {sequence: GASFPLGKEW}" >chain.yaml
expect "a sequence is flexible" 0 "18 free torsions" "$program" check chain.yaml
expect "a range within a domain" 0 "warning: structure.flexible: A:20-24 lies" \
    "$program" check bare.yaml --set 'structure.flexible=["A:20-24", "A:51-64"]'
expect "as a loop" 0 "" "$program" check bare.yaml \
    --set 'structure.flexible=["A:20-24"]' --set 'structure.fixed=["A:19", "A:25"]'
check "is no cause for a warning" sh -c "! grep -q 'lies within' err.txt"

# ---- hydration ----
expect "with a curve" 0 "excluded volume c1: fixed at 1" "$program" check b.yaml \
    --set contrast.c2=auto
has "c2 is inferred" '^  c2: infer$' out.txt
expect "without one" 0 "" "$program" check bare.yaml
has "it is 0" '^  c2: 0$' out.txt
exit $bad
