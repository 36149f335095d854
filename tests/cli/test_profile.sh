#!/bin/sh
# tessera profile as a user runs it: tables, JSON, files, bad input. Prints one
# line a test (tests/run.sh).
. tests/cli/expect.sh
data=$source/data
demo=$demo/two_domain.pdb

json() { # NAME EXPRESSION: of d, the object in out.txt, and s, its structures
    check "$1" "$python" -c "
import json, math
d = json.load(open('out.txt'))
s = d['structures']
assert $2, d"
}
# The reference, where a device is not the matter: it has no kernel to build.
profile() { "$program" profile --device reference "$@"; }
on_device() { "$program" profile $without "$@"; }
without=
"$program" devices --no-test >out.txt 2>err.txt ||
    without="--device reference" # all but the device is tested
# record NAME RESIDUE CHAIN NUMBER X ELEMENT [ATOM|HETATM]
record() {
    printf '%-6s    1 %-4s %3s %s%4d    %8.3f   0.000   0.000  1.00  0.00          %2s\n' \
        "${7:-ATOM}" "$1" "$2" "$3" "$4" "$5" "$6"
}

cp "$demo" one.pdb
# The second domain 12 Angstrom farther out: another structure.
awk '/^ATOM/ && substr($0, 23, 4) + 0 > 57 {
    printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + 40, substr($0, 39)
    next} {print}' one.pdb >far.pdb

# ---- curves ----
expect "help" 0 "" profile --help
check "help has live defaults" grep -q "0.95:1.05" out.txt
sed 's/ SC / CG /' one.pdb >atoms.pdb
sed 's/ SC / CG /' far.pdb >far_atoms.pdb
expect "a curve" 0 "[0-9]+ atoms, [0-9]+ hydrogens added" \
    profile atoms.pdb --q-max 0.3 --n-q 31
check "goes to standard output, with its unit" \
    grep -q "^# q (1/Angstrom) I(q)" out.txt
check "as many points as asked for" test "$(grep -vc '^#' out.txt)" -eq 31
expect "with its parts" 0 "" profile atoms.pdb --n-q 5 --partials --c2 1
check "in five columns" awk '!/^#/ && NF != 5 {exit 1}' out.txt
expect "a file" 0 "wrote curve.dat" profile atoms.pdb -o curve.dat --q-max 0.3
check "written" test "$(grep -vc '^#' curve.dat)" -eq 501
check "no picture without data" test ! -e curve.svg
expect "two structures" 0 "" profile atoms.pdb far_atoms.pdb
check "make a table" grep -q "^far_atoms.pdb" out.txt
expect "json of a curve" 0 "" profile atoms.pdb --json
json "has no chi2" "'chi2' not in s[0] and s[0]['rg_model'] > 10"
expect "the reference, double precision" 0 "" profile atoms.pdb --q-max 0.3 \
    --n-q 31
cp out.txt exact.txt
for method in auto direct fft quadrature; do
    expect "and by $method" 0 "" on_device atoms.pdb --q-max 0.3 --n-q 31 \
        --method $method
    check "agree to 1e-5" sh -c "paste out.txt exact.txt | awk '!/^#/ {n++} !/^#/ &&
        (\$2 / \$4 - 1 > 1e-5 || \$2 / \$4 - 1 < -1e-5) {exit 1}
        END {if (n != 31) exit 1}'"
done
expect "no such method" 64 "expected one of direct, fft, quadrature, auto" \
    profile atoms.pdb --method fmm
expect "the reference sums pairs" 0 "" profile atoms.pdb --json
json "as it says" "s[0]['method'] == 'direct' and s[0]['predicted_seconds'] > 0"
expect "bodies on a grid" 64 "not smooth enough" \
    profile one.pdb --bodies two --method fft
# A device that cannot be had is not asked for where the host is faster.
expect "a small molecule without any device" 0 "" \
    env OCL_ICD_VENDORS=/dev/null/none "$program" profile atoms.pdb --json
json "by plane waves" "s[0]['method'] == 'quadrature' \
    and d['engine'].startswith('plane waves') and s[0]['engine_seconds'] > 0"
expect "one by name is" 74 "" \
    env OCL_ICD_VENDORS=/dev/null/none "$program" profile atoms.pdb --device gpu

# ---- fits: data from the structure itself, with c1 = 1.02 and c2 = 2 ----
profile atoms.pdb --c1 1.02 --c2 2 --q-max 0.3 --n-q 121 -q |
    awk 'BEGIN {print "# q [1/Angstrom] I sigma"} !/^#/ && $1 > 0.008 {
        n++; i = $2 * 1e-6
        printf "%s %.9g %.9g\n", $1, i * (1 + 0.01 * sin(37 * n)), 0.01 * i}' \
        >data.dat
expect "a fit" 0 "" profile atoms.pdb far_atoms.pdb --data data.dat
check "the best first" sh -c "grep -n pdb out.txt | head -1 | grep -q ' *atoms'"
expect "json of a fit" 0 "" profile far_atoms.pdb atoms.pdb --data data.dat \
    --json
json "best first" "s[0]['structure'] == 'atoms.pdb' and s[0]['chi2'] < 0.6 \
    and s[1]['chi2'] > 5"
json "c1, c2, scale" "abs(s[0]['c1'] - 1.02) < 0.005 \
    and abs(s[0]['c2'] - 2) < 0.3 and abs(s[0]['scale'] / 1e-6 - 1) < 0.1"
json "all that is promised" "all(k in s[0] for k in ('chi2', 'reduced_chi2', \
    'n_points', 'scale', 'background', 'c1', 'c2', 'rg_model', 'rg_guinier', \
    'd_max', 'i0', 'cormap_p', 'engine_seconds', 'method', \
    'predicted_seconds'))"
json "reduced chi2 is over N less four" "abs(s[0]['reduced_chi2'] * \
    (s[0]['n_points'] - 4) - s[0]['chi2'] * s[0]['n_points']) < 1e-6"
json "nothing at a bound" "s[0]['c1_at_bound'] is None \
    and s[0]['c2_at_bound'] is None"
expect "files of a fit" 0 "wrote best.fit and best.svg" \
    profile far_atoms.pdb atoms.pdb --data data.dat --output best
check "three comment lines, four columns" "$python" -c "
l = open('best.fit').read().splitlines()
n = sum(not x.startswith('#') for x in open('data.dat'))
assert [x[0] for x in l[:3]] == ['#'] * 3 and len(l) == 3 + n
assert all(len(x.split()) == 4 for x in l[3:])"
check "of the best one" awk '!/^#/ && ($2 - $4) ^ 2 > 9 * $3 ^ 2 {exit 1}' \
    best.fit
check "the picture is XML with every point twice" "$python" -c "
import xml.etree.ElementTree as e
r = e.parse('best.svg').getroot()
tag = '{http://www.w3.org/2000/svg}'
n = sum(not x.startswith('#') for x in open('data.dat'))
assert r.tag == tag + 'svg'
assert len(r.findall('.//' + tag + 'circle')) == 2 * n + 1
assert any('atoms.pdb' in (t.text or '') for t in r.iter(tag + 'text'))"
expect "a folder" 0 "" profile far_atoms.pdb atoms.pdb --data data.dat -o fits/
check "gets a fit of each" test -s fits/atoms.fit -a -s fits/far_atoms.svg
mkdir copy && cp atoms.pdb copy
# ---- curves that are not q, I, sigma ----
odd() { # NAME STATUS PATTERN AWK
    name=$1 want=$2 pattern=$3
    awk "/^#/ {print; next} $4" data.dat >odd.dat
    expect "$name" "$want" "$pattern" profile atoms.pdb --data odd.dat
}
odd "I and sigma swapped" 65 "sigma is more than three times I at 29 of the 29" \
    '{print $1, $3, $2}'
odd "a logarithm" 0 "warning: odd.dat: I is some .*itself if the file has its logar" \
    '{print $1, log($2 * 1e8), 0.1}'
odd "sigma in another unit" 0 "times too small.* .in another unit than I" \
    '{srand(n++); print $1, $2 * (1 + 0.02 * rand()), $3 * 1e-4}'
odd "no number in I" 65 "line 2, I = nan, sigma = .*; give q, I, sigma as num" \
    '{print $1, "nan", $3}'
odd "a percentage" 65 "line 2: one of the first three.*give sigma in units of I" \
    '{print $1, $2, "1%"}'
odd "a header of numbers" 0 "1 other lines of numbers not used .first: line 2" \
    'n++ == 0 {print 119, 0.01, 0.3} {print}'
odd "rows left out" 0 "3 rows dropped, .*.line 3, 5, 7." \
    '{n++; print $1, $2, n % 2 == 0 && n < 7 ? 0 : $3}'
odd "q far too small" 65 "q ends at 3e-14 1/Angstrom" '{print $1 * 1e-13, $2, $3}'

expect "two of one name" 64 "same file" profile atoms.pdb copy/atoms.pdb -o fits/
expect "a bound is told" 0 "warning: .*c2 at its upper bound" \
    profile atoms.pdb --data data.dat --c2 -1:1 -o bound.fit
check "in the table" grep -qE "^atoms.pdb .*1\.000\*" out.txt
check "and in the .fit" grep -q "c2 at its upper bound" bound.fit
expect "and in JSON" 0 "" profile atoms.pdb --data data.dat --c2 -1:1 --json
json "as upper, on the reference" "d['engine'].startswith('reference')"
json "as upper" "s[0]['c2_at_bound'] == 'upper'"
expect "fixed c1, c2" 0 "" profile atoms.pdb --data data.dat --c1 1 --c2 0 --json
json "cost no parameter" "s[0]['n_parameters'] == 2 and s[0]['c2'] == 0"
awk '/^#/ {print; next} {print $1, $2 + 0.05, $3}' data.dat >raised.dat
expect "a background" 0 "" profile atoms.pdb --data raised.dat --json
json "is found, as runs infer it" "abs(s[0]['background'] - 0.05) < 0.005"
cp out.txt fitted.txt
expect "the same by its word" 0 "" profile atoms.pdb --data raised.dat \
    --background fit --json
json "is the default" "s[0]['chi2'] == json.load(open('fitted.txt'))\
['structures'][0]['chi2']"
expect "none" 0 "" profile atoms.pdb --data raised.dat --background none --json
json "is left out, and costs no parameter" "s[0]['background'] == 0 \
    and s[0]['n_parameters'] == 3 and s[0]['chi2'] > 1"
awk '/^#/ {next} {print 10 * $1, $2, $3}' data.dat >nm.dat
expect "1/nm by q_max" 0 "1/nm" profile atoms.pdb --data nm.dat --json
json "is the same fit" "s[0]['chi2'] < 0.6"
expect "q-max leaves points out" 0 "" profile atoms.pdb --data data.dat \
    --q-max 0.2 --json
json "and says how many are left" "s[0]['n_points'] == 77"

# ---- units, solvents, hydrogens ----
expect "c1 and c2 in units of their own" 0 "" profile atoms.pdb \
    --data data.dat --json
json "radius, volume and contrast" "abs(s[0]['displaced_radius'] / s[0]['c1'] \
    - 1.58) < 0.03 and abs(s[0]['layer_contrast'] - 0.01 * s[0]['c2']) < 1e-9 \
    and 1.1 < s[0]['displaced_volume'] / s[0]['mass'] < 1.4"
expect "a table" 0 "" profile atoms.pdb --data data.dat
check "has them, too" grep -q "^r0: .* A; layer: .* e/A" out.txt
expect "the absolute scale" 0 "" profile atoms.pdb --json
json "of a protein: some 1e-6 of its mass" \
    "0.6e-6 < s[0]['i0'] * s[0]['cm_per_mg_ml'] / s[0]['mass'] < 1e-6"
for model in layer atoms foxs; do
    expect "solvent model $model" 0 "" profile atoms.pdb --n-q 11 --q-max 0.3 \
        --c2 1 --solvent-model $model
    cp out.txt $model.txt
done
check "are three" sh -c "! cmp -s layer.txt foxs.txt && ! cmp -s atoms.txt foxs.txt"
profile atoms.pdb --c2 -1 --solvent-model foxs --q-max 0.3 --n-q 121 -q |
    awk '!/^#/ && $1 > 0.008 {print $1, $2, 0.01 * $2}' >thin.dat
expect "FoXS's range of c2" 0 "" profile atoms.pdb --data thin.dat \
    --solvent-model foxs --json
json "goes below 0" "abs(s[0]['c2'] + 1) < 0.02"
expect "no contrast of the wrong sign" 0 "c2 at its lower bound" profile \
    atoms.pdb --data thin.dat --json
json "by default" "s[0]['c2'] >= 0"
expect "bodies have that of their table" 64 "solvent-model is for atoms" \
    profile atoms.pdb --bodies two --solvent-model foxs
expect "an unknown solvent" 64 "layer, atoms, foxs" \
    profile atoms.pdb --solvent-model wet
# Without hydration the amplitude at q = 0 is linear in the solvent's density.
for bodies in atoms two one; do
    for density in 0.30 0.34 0.38; do
        expect "density $density, $bodies" 0 "" profile atoms.pdb --n-q 2 \
            --bodies $bodies --solvent-density $density
        awk '!/^#/ && $1 == 0 {print sqrt($2)}' out.txt >>$bodies.density
    done
    check "the law of contrast, $bodies" awk '{a[NR] = $1}
        END {d = a[1] - a[2]; e = a[2] - a[3]
            exit !(d > 0 && (d - e) ^ 2 < 1e-8 * d ^ 2)}' $bodies.density
done
# A hydrogen that the file has is part of what carries it, as one it lacks.
sed 's/^\(ATOM.\{13\}\).../\1LEU/' atoms.pdb >bare.pdb
awk '/^ATOM/ && substr($0, 13, 4) == " N  " {print
    printf "%s HN %s%8.3f%8.3f%8.3f%s           H\n", substr($0, 1, 12),
        substr($0, 17, 14), substr($0, 31, 8) + 0.6, substr($0, 39, 8) + 0.6,
        substr($0, 47, 8) + 0.5, substr($0, 55, 12)
    next} {print}' bare.pdb >polar.pdb
profile bare.pdb --data data.dat --json >without.json 2>err.txt
expect "hydrogens in the file" 0 "are merged with the atoms" \
    profile polar.pdb --data data.dat --json
check "change nothing" "$python" -c "
import json
a, b = (json.load(open(f))['structures'][0] for f in ('without.json', 'out.txt'))
assert all(a[k] == b[k] for k in ('c1', 'c2', 'chi2', 'i0', 'n_bodies')), (a, b)"

# ---- bodies ----
# Data from the bodies themselves, so that c1 and c2 must come back.
for bodies in two one; do
    profile atoms.pdb --c1 1.02 --c2 2 --q-max 0.3 --n-q 121 -q \
        --bodies $bodies | awk 'BEGIN {print "# q [1/Angstrom] I sigma"}
        !/^#/ && $1 > 0.008 {print $1, $2, 0.01 * $2}' >$bodies.dat
    expect "bodies $bodies" 0 "" on_device atoms.pdb --data $bodies.dat \
        --bodies $bodies --json
    json "c1 and c2 of bodies $bodies" "s[0]['n_parameters'] == 4 \
        and abs(s[0]['c1'] - 1.02) < 1e-3 and abs(s[0]['c2'] - 2) < 0.02 \
        and s[0]['c1_at_bound'] is None and s[0]['rg_model'] > 10"
    expect "bodies $bodies, parts" 0 "" profile atoms.pdb --bodies $bodies \
        --n-q 5 --partials --c2 1
    check "in five columns, none of them zero" awk \
        '!/^#/ && (NF != 5 || $3 * $4 * $5 <= 0) {exit 1}' out.txt
    table=$data/form_factors_${bodies}_body.dat
    expect "bodies $bodies, one component" 0 "" profile atoms.pdb \
        --data data.dat --bodies $bodies --form-factors "$table" --json
    json "has scale and background" "s[0]['n_parameters'] == 2 \
        and s[0]['c1'] is None and s[0]['c2'] is None"
    expect "and no background" 0 "" profile atoms.pdb --data data.dat --json \
        --bodies $bodies --form-factors "$table" --background none
    json "where asked for" "s[0]['n_parameters'] == 1"
done
expect "three components by name" 0 "" profile atoms.pdb --data two.dat \
    --bodies two --form-factors "$data/components_two_body.dat" --json
json "are as the shipped ones" "abs(s[0]['c1'] - 1.02) < 1e-3"
for kind in components form_factors; do
    expect "$kind of other bodies" 64 "for one bodies.*says two" profile \
        atoms.pdb --bodies two --form-factors "$data/${kind}_one_body.dat"
done
published=$shared/form_factors/form_factors-two_body_model.dat
if [ -r "$published" ]; then
    expect "the tables of 2010" 0 "" profile atoms.pdb --data data.dat \
        --bodies two --form-factors "$published" --json
    json "have scale and background" "s[0]['n_parameters'] == 2 \
        and s[0]['c1'] is None and s[0]['c2'] is None"
else
    echo "skip the tables of 2010: no ../shared/data"
fi

# ---- bad input ----
expect "the unit of q taken wrongly" 0 "warning: .*Rg.*--q-unit" \
    profile atoms.pdb --data data.dat --q-unit 1/nm --q-min 0.0001
awk '/^#/ {print; next} {print $1 / 1.5, $2, $3}' data.dat >large.dat
expect "a particle larger than the model" 0 "warning: .*larger oligomer" \
    profile atoms.pdb --data large.dat
awk '/^#/ {print; next} {print $1 * 1.5, $2, $3}' data.dat >small.dat
expect "a particle smaller than the one chain" 0 "warning: .*more compact" \
    profile atoms.pdb --data small.dat
awk '/^ATOM/ && substr($0, 23, 4) + 0 == 58 {print "TER"}
    /^ATOM/ && substr($0, 23, 4) + 0 > 57 {sub(/ A /, " B ")} {print}' \
    atoms.pdb >chains.pdb
expect "a particle smaller than the chains" 0 "warning: .*more molecules" \
    profile chains.pdb --data small.dat
expect "of bodies, too" 0 "warning: .*more molecules" \
    profile chains.pdb --data small.dat --bodies two
expect "and than the one chain" 0 "warning: .*more compact" \
    profile atoms.pdb --data small.dat --bodies two
# Hydration at its bound would make up for it in the fitted curve.
awk '/^#/ {print; next} {print $1 / 1.17, $2, $3}' data.dat >larger.dat
expect "a mismatch that the fit hides" 0 "warning: .*usual hydration.*oligomer" \
    profile atoms.pdb --data larger.dat
expect "a model that fits" 0 "" profile atoms.pdb --data data.dat
check "has no such warning" sh -c '! grep -q "Rg is" err.txt'
{
    grep ^ATOM atoms.pdb
    record " P" DA B 1 70 P
    record " C1" NAG C 1 75 C HETATM
    record "ZN" ZN D 1 80 ZN HETATM
    record " C1" QQ9 E 1 85 C HETATM
    record " C2" QQ9 E 1 86.5 C HETATM
    record " O" HOH F 1 90 O HETATM
} >mixed.pdb
expect "all atoms take everything" 0 \
    "1 nucleotides, 1 sugars, 1 ions, .*1 other" profile mixed.pdb
check "and say what they assumed" sh -c \
    'grep -q "no table knows the residue QQ9" err.txt &&
     grep -q "left out: 1 waters" err.txt'
awk '/^ATOM/ && substr($0, 23, 4) + 0 > 20 && substr($0, 23, 4) + 0 < 25 {next}
    /^ATOM/ && substr($0, 23, 4) + 0 == 40 && / CB / {next} {print}' \
    atoms.pdb >broken.pdb
expect "what a model lacks" 0 "warning: .*lack 4 residues.*after A:20" \
    profile broken.pdb --n-q 5
expect "atoms, too" 0 "warning: .*residues lack [0-9]+ atoms" \
    profile broken.pdb --n-q 5
expect "so do bodies" 0 \
    "1 nucleotides, 1 sugars, 1 ions, .* 1 other residues: 4 bodies" \
    profile mixed.pdb --bodies two --n-q 5
expect "centres of side chains are no atoms" 65 "SC.*side chain.*--bodies" \
    profile one.pdb
expect "bodies read them" 0 "" profile one.pdb --bodies two --n-q 5
{ grep ^ATOM atoms.pdb; record " O" LIG Z 1 9999 O HETATM; } >stray.pdb
expect "an atom at 9999" 65 "O of residue LIG Z:1 is nowhere" profile stray.pdb
{ grep ^ATOM atoms.pdb; record " O" LIG Z 1 1700 O HETATM; } >stray.pdb
expect "a molecule too large" 65 "too far for a curve.*lower --q-max" \
    profile stray.pdb --q-max 2
record " CA" ALA A 1 0 C >alone.pdb
expect "one atom" 0 "lacks 4 atoms" profile alone.pdb --data data.dat --json
json "is fitted" "s[0]['chi2'] > 1"
expect "no structure" 64 "" profile --data data.dat
expect "unknown bodies" 64 "atoms, two, one" profile atoms.pdb --bodies three
expect "a range the wrong way round" 64 "LOW:HIGH" profile atoms.pdb --c1 1.1:1
expect "a background that is none" 64 "number, or one of fit, none" \
    profile atoms.pdb --background some
expect "a table for all atoms" 64 "bodies one or two|one or two" \
    profile atoms.pdb --form-factors x.dat
expect "beyond the tables of bodies" 70 "narrow q_range|--q-max" \
    profile atoms.pdb --bodies two --q-max 3
[ -n "$without" ] || expect "a device that is not there" 74 "quantum" \
    on_device atoms.pdb --device quantum
for option in "--partials" "--n-q 5"; do
    expect "$option with data" 64 "is not possible with --data" \
        profile atoms.pdb --data data.dat $option
done
for option in "--background fit" "--q-unit 1/nm"; do
    expect "$option without data" 64 "needs --data" \
        profile atoms.pdb $option
done
mkdir inputs && cp atoms.pdb inputs/model.svg && cp data.dat inputs/model.dat
for output in inputs/model.svg inputs/model inputs/model.dat; do
    expect "the output $output over an input" 64 "replace the input" \
        profile inputs/model.svg --data inputs/model.dat --output $output
done
expect "a measured curve in the folder" 64 "not from tessera profile" \
    profile inputs/model.svg --output inputs/
check "are kept" sh -c \
    'cmp -s atoms.pdb inputs/model.svg && cmp -s data.dat inputs/model.dat'
expect "a fit over an older one" 0 "wrote best.fit" \
    profile atoms.pdb --data data.dat --output best
expect "a curve over an older one" 0 "wrote curve.dat" \
    profile atoms.pdb --n-q 5 --output curve.dat
expect "an output below a file" 74 "atoms.pdb" \
    profile atoms.pdb --output atoms.pdb/x.dat
awk '/^#/ {print; next} {print $1, -$2, $3}' data.dat >minus.dat
expect "data that nothing fits" 70 "no positive scale" \
    profile atoms.pdb --data minus.dat

# ---- a real one ----
if is_sanitized; then
    echo "skip nup133: a sanitizer has seen what it does on small ones"
elif [ -r "$shared/README.md" ]; then
    case=$shared/saxs/nup133_3kfo
    expect "nup133" 0 "" profile "$case/model_crystal.pdb" "$case/model.pdb" \
        --data "$case/exp.dat" --json
    json "the completed model fits, the crystal's does not" \
        "s[0]['structure'].endswith('/model.pdb') and s[0]['chi2'] < 1.35 \
        and s[1]['chi2'] > 1.5 and s[1]['c2_at_bound'] == 'upper'"
    expect "without a background" 0 "" profile "$case/model_crystal.pdb" \
        --data "$case/exp.dat" --background none --json
    json "which hides what it lacks" "s[0]['chi2'] > 5"
    case=$shared/saxs/mpro_sasdjg5
    expect "a monomer where a dimer was measured" 0 "warning: .*oligomer" \
        on_device "$case/model_monomer.pdb" --data "$case/exp.dat"
else
    echo "skip nup133: no ../shared/data"
fi

# ---- ensembles: 0.3 of one conformer, 0.7 of another, c1 = 1.02, c2 = 2 ----
for f in atoms far_atoms; do
    profile $f.pdb --c1 1.02 --c2 2 --q-max 0.3 --n-q 121 -q >$f.txt
done
paste atoms.txt far_atoms.txt | awk 'BEGIN {print "# q [1/Angstrom] I sigma"}
    !/^#/ && $1 > 0.008 {n++; i = (0.3 * $2 + 0.7 * $4) * 1e-6
        printf "%s %.9g %.9g\n", $1, i * (1 + 0.001 * sin(37 * n)), 0.01 * i}' \
        >mixture.dat
{ for f in atoms far_atoms; do
    echo "MODEL 1"; grep ^ATOM $f.pdb; echo ENDMDL; done; echo END; } >both.pdb
expect "an ensemble, models of a file" 0 "" profile both.pdb --ensemble \
    --data mixture.dat --json
json "has both models" "[x['structure'] for x in s] == ['both.pdb:1', \
    'both.pdb:2'] and s[0]['chi2'] > 1 and s[1]['chi2'] > 1"
json "equal weights" "d['ensemble']['equal']['weights'] == [0.5, 0.5] \
    and d['ensemble']['equal']['chi2'] > 0.5"
json "least squares find the mixture" "abs(d['ensemble']['least_squares']\
['weights'][0] - 0.3) < 0.03 and d['ensemble']['least_squares']['chi2'] < 0.1 \
    and abs(d['ensemble']['least_squares']['c2'] - 2) < 0.3"
json "maximum entropy stays between" "0.3 < d['ensemble']['maximum_entropy']\
['weights'][0] < 0.5 and 0 < d['ensemble']['maximum_entropy']['theta']"
cp out.txt models.txt
expect "an ensemble, a list of files" 0 "" profile atoms.pdb far_atoms.pdb \
    --ensemble --data mixture.dat --json
json "is the same" "all(abs(a - b) < 1e-6 for a, b in zip(\
    d['ensemble']['least_squares']['weights'], \
    json.load(open('models.txt'))['ensemble']['least_squares']['weights']))"
expect "a table, and the fit of weights" 0 "wrote mix.fit and mix.svg" profile \
    both.pdb --ensemble --data mixture.dat --weights squares -o mix.fit
check "has a line a model" grep -Eq \
    "^both.pdb:2 +[0-9.]+ +[0-9.]+ +0.7[0-9]+ +0.[56][0-9]+$" out.txt
check "the fit is that of the weights" sh -c 'head -2 mix.fit |
    grep -Eq "Chi\^2 = 0.0"'
expect "the mean curve" 0 "" profile both.pdb --ensemble --c1 1.02 --c2 2 \
    --q-max 0.3 --n-q 121
check "is the mean of the curves" sh -c "paste out.txt atoms.txt far_atoms.txt |
    awk '!/^#/ {m = 2 * \$2 / (\$4 + \$6) - 1
        if (m * m > 1e-9) bad = 1; n++} END {exit bad || n != 121}'"
expect "one model is no ensemble" 64 "has one model" profile atoms.pdb \
    --ensemble
expect "weights need an ensemble" 64 "needs --ensemble" profile atoms.pdb \
    --data mixture.dat --weights squares

exit $bad
