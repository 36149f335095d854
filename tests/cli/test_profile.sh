#!/bin/sh
# tessera profile computes and fits curves of files: tables, JSON, files and pictures
# agree with data whose truth is known, and inputs that make no sense are refused.
. tests/cli/expect.sh
data=$source/data
demo=$demo/two_domain.pdb

# The reference, unless a device is tested: it has no kernel to build.
profile() { tessera profile --device reference "$@"; }
# shellcheck disable=SC2086
on_device() { tessera profile $without "$@"; }
without=
tessera devices --no-test >out.txt 2>err.txt ||
    without="--device reference" # all but the device is tested
# record NAME RESIDUE CHAIN NUMBER X ELEMENT [ATOM|HETATM]
record() {
    printf '%-6s    1 %-4s %3s %s%4d    %8.3f   0.000   0.000  1.00  0.00          %2s\n' \
        "${7:-ATOM}" "$1" "$2" "$3" "$4" "$5" "$6"
}
rows() { awk "/^#/ {print; next} $1" "${2:-data.dat}"; } # AWK [FILE]: a curve changed

cp "$demo" one.pdb
sed 's/ SC / CG /' one.pdb >atoms.pdb
# The second domain 40 Angstrom farther out: another structure.
awk '/^ATOM/ && substr($0, 23, 4) + 0 > 57 {
    printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + 40, substr($0, 39)
    next} {print}' atoms.pdb >far_atoms.pdb
mkdir copy inputs
cp atoms.pdb copy

# ---- curves ----
cases <<'END'
help has live defaults | 0> 0.95:1.05 | profile --help
a curve | 0 [0-9]+ atoms, [0-9]+ hydrogens added | profile atoms.pdb --q-max 0.3 --n-q 31
    goes to standard output, with its unit | out ^# q \(1/Angstrom\) I\(q\)
    as many points as asked for | test "$(grep -vc '^#' out.txt)" -eq 31
$ cp out.txt exact.txt # in double precision
with its parts | 0 | profile atoms.pdb --n-q 5 --partials --c2 1
    in five columns | awk '!/^#/ {m++} !/^#/ && NF != 5 {exit 1}' out.txt
a file | 0 wrote curve.dat | profile atoms.pdb -o curve.dat --q-max 0.3
    written, and no picture without data | test "$(grep -vc '^#' curve.dat)" -eq 501 -a ! -e curve.svg
two structures make a table | 0> ^far_atoms.pdb | profile atoms.pdb far_atoms.pdb
json of a curve | 0 | profile atoms.pdb --json
    has no chi2 | json 'chi2' not in s[0] and s[0].rg_model > 10
    the reference sums pairs, as it says | json s[0].method == 'direct' and s[0].predicted_seconds > 0
no such method | 64 expected one of direct, fft, quadrature, auto | profile atoms.pdb --method fmm
bodies on a grid | 64 not smooth enough | profile one.pdb --bodies two --method fft
# a device that cannot be had is not asked for where the host is faster
a small molecule without any device | 0 | env OCL_ICD_VENDORS=/dev/null/none tessera profile atoms.pdb --json
    by plane waves | json s[0].method == 'quadrature' and d.engine.startswith('plane waves') \
        and s[0].engine_seconds > 0
one by name is | 74 | env OCL_ICD_VENDORS=/dev/null/none tessera profile atoms.pdb --device gpu
END
for method in auto direct fft quadrature; do
    cases <<'END'
and by ${method} | 0 | on_device atoms.pdb --q-max 0.3 --n-q 31 --method $method
    agree to 1e-5 | paste out.txt exact.txt | \
        awk '!/^#/ {n++; e = $2 / $4 - 1; bad += e > 1e-5 || e < -1e-5} END {exit bad || n != 31}'
END
done

# ---- fits: data from the structure itself, with c1 = 1.02 and c2 = 2 ----
profile atoms.pdb --c1 1.02 --c2 2 --q-max 0.3 --n-q 121 -q |
    awk 'BEGIN {print "# q [1/Angstrom] I sigma"} !/^#/ && $1 > 0.008 {
        n++; i = $2 * 1e-6
        printf "%s %.9g %.9g\n", $1, i * (1 + 0.01 * sin(37 * n)), 0.01 * i}' \
        >data.dat
rows '{print $1, $2 + 0.05, $3}' >raised.dat
awk '/^#/ {next} {print 10 * $1, $2, $3}' data.dat >nm.dat
promised="chi2 reduced_chi2 n_points scale background c1 c2 rg_model rg_guinier d_max i0 cormap_p
    engine_seconds method predicted_seconds"
cases <<'END'
a fit | 0 | profile atoms.pdb far_atoms.pdb --data data.dat
    the best first | grep -n pdb out.txt | head -1 | grep -q ' *atoms'
    the table has units, too | out ^r0: .* A; layer: .* e/A
json of a fit | 0 | profile far_atoms.pdb atoms.pdb --data data.dat --json
    best first | json s[0].structure == 'atoms.pdb' and s[0].chi2 < 0.6 and s[1].chi2 > 5
    c1, c2, scale | json abs(s[0].c1 - 1.02) < 0.005 and abs(s[0].c2 - 2) < 0.3 and abs(s[0].scale / 1e-6 - 1) < 0.1
    all that is promised | json all(k in s[0] for k in '''${promised}'''.split())
    reduced chi2 is over N less four | json abs(s[0].reduced_chi2 * (s[0].n_points - 4) \
        - s[0].chi2 * s[0].n_points) < 1e-6
    nothing at a bound | json s[0].c1_at_bound is None and s[0].c2_at_bound is None
    radius, volume and contrast, in units of their own | json abs(s[0].displaced_radius / s[0].c1 - 1.58) < 0.03 \
        and abs(s[0].layer_contrast - 0.01 * s[0].c2) < 1e-9 and 1.1 < s[0].displaced_volume / s[0].mass < 1.4
files of a fit | 0 wrote best.fit and best.svg | profile far_atoms.pdb atoms.pdb --data data.dat --output best
    three comment lines, four columns | awk 'FNR == NR {n += !/^#/; next} (FNR <= 3) != /^#/ || \
        (FNR > 3 && NF != 4) {bad = 1} END {exit bad || FNR != n + 3}' data.dat best.fit
    of the best one | awk '!/^#/ && ($2 - $4) ^ 2 > 9 * $3 ^ 2 {exit 1}' best.fit
    the picture is XML with every point twice | "$python" -c "
> import xml.etree.ElementTree as e
> r = e.parse('best.svg').getroot()
> tag = '{http://www.w3.org/2000/svg}'
> n = sum(not x.startswith('#') for x in open('data.dat'))
> assert r.tag == tag + 'svg' and len(r.findall('.//' + tag + 'circle')) == 2 * n + 1
> assert any('atoms.pdb' in (t.text or '') for t in r.iter(tag + 'text'))"
a folder | 0 | profile far_atoms.pdb atoms.pdb --data data.dat -o fits/
    gets a fit of each | test -s fits/atoms.fit -a -s fits/far_atoms.svg
two of one name | 64 same file | profile atoms.pdb copy/atoms.pdb -o fits/
END

# ---- curves that are not q, I, sigma ----
odd() { # AWK: a profile of data so changed
    rows "$1" >odd.dat
    profile atoms.pdb --data odd.dat
}
cases <<'END'
I and sigma swapped | 65 sigma is more than three times I at 29 of the 29 | odd '{print $1, $3, $2}'
a logarithm | 0 warning: odd.dat: I is some .*itself if the file has its logar | odd '{print $1, log($2 * 1e8), 0.1}'
sigma in another unit | 0 times too small.* .in another unit than I | \
        odd '{srand(n++); print $1, $2 * (1 + 0.02 * rand()), $3 * 1e-4}'
no number in I | 65 line 2, I = nan, sigma = .*; give q, I, sigma as num | odd '{print $1, "nan", $3}'
a percentage | 65 line 2: one of the first three.*give sigma in units of I | odd '{print $1, $2, "1%"}'
a header of numbers | 0 1 other lines of numbers are not used .first: line 2 | \
        odd 'n++ == 0 {print 119, 0.01, 0.3} {print}'
rows left out | 0 3 rows dropped, .*.line 3, 5, 7. | odd '{n++; print $1, $2, n % 2 == 0 && n < 7 ? 0 : $3}'
q far too small | 65 q ends at 3e-14 1/Angstrom | odd '{print $1 * 1e-13, $2, $3}'
END

# ---- bounds, backgrounds, units, solvents ----
profile atoms.pdb --c2 -1 --solvent-model foxs --q-max 0.3 --n-q 121 -q |
    awk '!/^#/ && $1 > 0.008 {print $1, $2, 0.01 * $2}' >thin.dat
cases <<'END'
a bound is told | 0 warning: .*c2 at its upper bound.*aggregates | profile atoms.pdb --data data.dat --c2 -1:1 -o bound.fit
    in the table, and in the .fit | out ^atoms.pdb .*1\.000\* && in bound.fit c2 at its upper bound
and in JSON | 0 | profile atoms.pdb --data data.dat --c2 -1:1 --json
    as upper, on the reference | json d.engine.startswith('reference') and s[0].c2_at_bound == 'upper'
fixed c1, c2 | 0 | profile atoms.pdb --data data.dat --c1 1 --c2 0 --json
    cost no parameter | json s[0].n_parameters == 2 and s[0].c2 == 0
a background | 0 | profile atoms.pdb --data raised.dat --json
    is found, as runs infer it | json abs(s[0].background - 0.05) < 0.005
$ cp out.txt fitted.json
the same by its word | 0 | profile atoms.pdb --data raised.dat --background fit --json
    is the default | json s[0].chi2 == load('fitted.json').structures[0].chi2
none | 0 | profile atoms.pdb --data raised.dat --background none --json
    is left out, and costs no parameter | json s[0].background == 0 and s[0].n_parameters == 3 and s[0].chi2 > 1
1/nm by q_max | 0 1/nm | profile atoms.pdb --data nm.dat --json
    is the same fit | json s[0].chi2 < 0.6
q-max leaves points out | 0 | profile atoms.pdb --data data.dat --q-max 0.2 --json
    and says how many are left | json s[0].n_points == 77
the absolute scale | 0 | profile atoms.pdb --json
    of a protein: some 1e-6 of its mass | json 0.6e-6 < s[0].i0 * s[0].cm_per_mg_ml / s[0].mass < 1e-6
solvent model layer | 0 | profile atoms.pdb --n-q 11 --q-max 0.3 --c2 1 --solvent-model layer -o layer.dat
solvent model atoms | 0 | profile atoms.pdb --n-q 11 --q-max 0.3 --c2 1 --solvent-model atoms -o atom.dat
solvent model foxs | 0 | profile atoms.pdb --n-q 11 --q-max 0.3 --c2 1 --solvent-model foxs -o foxs.dat
$ for f in layer atom foxs; do grep -v '^#' $f.dat >$f.txt; done
    are three | ! cmp -s layer.txt foxs.txt && ! cmp -s atom.txt foxs.txt && ! cmp -s layer.txt atom.txt
FoXS's range of c2 | 0 | profile atoms.pdb --data thin.dat --solvent-model foxs --json
    goes below 0 | json abs(s[0].c2 + 1) < 0.02
no contrast of the wrong sign | 0 c2 at its lower bound.*repel | profile atoms.pdb --data thin.dat --json
    by default | json s[0].c2 >= 0
bodies have that of their table | 64 solvent-model is for atoms | \
        profile atoms.pdb --bodies two --solvent-model foxs
an unknown solvent | 64 layer, atoms, foxs | profile atoms.pdb --solvent-model wet
END
# Without hydration the amplitude at q = 0 is linear in the solvent's density.
for bodies in atoms two one; do
    for density in 0.30 0.34 0.38; do
        expect "density $density, $bodies" 0 "" profile atoms.pdb --n-q 2 \
            --bodies $bodies --solvent-density $density
        awk '!/^#/ && $1 == 0 {print sqrt($2)}' out.txt >>$bodies.density
    done
    check "the law of contrast, $bodies" awk '{a[NR] = $1} END {d = a[1] - a[2]; e = a[2] - a[3]
        exit !(d > 0 && (d - e) ^ 2 < 1e-8 * d ^ 2)}' $bodies.density
done
# A hydrogen that the file has is part of what carries it, as one it lacks.
sed 's/^\(ATOM.\{13\}\).../\1LEU/' atoms.pdb >bare.pdb
awk '{print} /^ATOM/ && substr($0, 13, 4) == " N  " {
    printf "%s HN %s%8.3f%8.3f%8.3f%s           H\n", substr($0, 1, 12),
        substr($0, 17, 14), substr($0, 31, 8) + 0.6, substr($0, 39, 8) + 0.6,
        substr($0, 47, 8) + 0.5, substr($0, 55, 12)}' bare.pdb >polar.pdb
profile bare.pdb --data data.dat --json >without.json 2>err.txt
cases <<'END'
hydrogens in the file | 0 are merged with the atoms | profile polar.pdb --data data.dat --json
    change nothing | json all(s[0][k] == load('without.json').structures[0][k] \
        for k in ('c1', 'c2', 'chi2', 'i0', 'n_bodies'))
END

# ---- bodies ----
# Data from the bodies themselves, so that c1 and c2 must come back.
for bodies in two one; do
    profile atoms.pdb --c1 1.02 --c2 2 --q-max 0.3 --n-q 121 -q --bodies $bodies |
        awk '!/^#/ && $1 > 0.008 {print $1, $2, 0.01 * $2}' >$bodies.dat
    table=$data/form_factors_${bodies}_body.dat
    cases <<'END'
bodies ${bodies} | 0 | on_device atoms.pdb --data $bodies.dat --bodies $bodies --json
    c1 and c2 of bodies ${bodies} | json s[0].n_parameters == 4 and abs(s[0].c1 - 1.02) < 1e-3 \
        and abs(s[0].c2 - 2) < 0.02 and s[0].c1_at_bound is None and s[0].rg_model > 10
bodies ${bodies}, parts | 0 | profile atoms.pdb --bodies $bodies --n-q 5 --partials --c2 1
    in five columns, none of them zero | awk '!/^#/ && (NF != 5 || $3 * $4 * $5 <= 0) {exit 1}' out.txt
bodies ${bodies}, one component | 0 | \
        profile atoms.pdb --data data.dat --bodies $bodies --form-factors "$table" --json
    has scale and background | json s[0].n_parameters == 2 and s[0].c1 is None and s[0].c2 is None
and no background | 0 | profile atoms.pdb --data data.dat --json --bodies $bodies --form-factors "$table" \
        --background none
    where asked for | json s[0].n_parameters == 1
END
done
cases <<'END'
three components by name | 0 | \
        profile atoms.pdb --data two.dat --bodies two --form-factors "$data/components_two_body.dat" --json
    are as the shipped ones | json abs(s[0].c1 - 1.02) < 1e-3
components of other bodies | 64 for one bodies.*--bodies is two | \
        profile atoms.pdb --bodies two --form-factors "$data/components_one_body.dat"
form factors of other bodies | 64 for one bodies.*--bodies is two | \
        profile atoms.pdb --bodies two --form-factors "$data/form_factors_one_body.dat"
END
published=$shared/form_factors/form_factors-two_body_model.dat
if [ -r "$published" ]; then
    cases <<'END'
the tables of 2010 | 0 | profile atoms.pdb --data data.dat --bodies two --form-factors "$published" --json
    have scale and background | json s[0].n_parameters == 2 and s[0].c1 is None and s[0].c2 is None
END
else
    echo "skip the tables of 2010: no ../shared/data"
fi

# ---- bad input ----
rows '{print $1 / 1.5, $2, $3}' >large.dat
rows '{print $1 * 1.5, $2, $3}' >small.dat
rows '{print $1 / 1.17, $2, $3}' >larger.dat # hydration at its bound would make up for it
rows '{print $1, -$2, $3}' >minus.dat
awk '/^ATOM/ && substr($0, 23, 4) + 0 == 58 {print "TER"}
    /^ATOM/ && substr($0, 23, 4) + 0 > 57 {sub(/ A /, " B ")} {print}' atoms.pdb >chains.pdb
{
    grep ^ATOM atoms.pdb
    record " P" DA B 1 70 P
    record " C1" NAG C 1 75 C HETATM
    record "ZN" ZN D 1 80 ZN HETATM
    record " C1" QQ9 E 1 85 C HETATM
    record " C2" QQ9 E 1 86.5 C HETATM
    record " O" HOH F 1 90 O HETATM
} >mixed.pdb
awk '/^ATOM/ && substr($0, 23, 4) + 0 > 20 && substr($0, 23, 4) + 0 < 25 {next}
    /^ATOM/ && substr($0, 23, 4) + 0 == 40 && / CB / {next} {print}' atoms.pdb >broken.pdb
{ grep ^ATOM atoms.pdb; record " O" LIG Z 1 9999 O HETATM; } >stray.pdb
{ grep ^ATOM atoms.pdb; record " O" LIG Z 1 1700 O HETATM; } >far.pdb
record " CA" ALA A 1 0 C >alone.pdb
cp atoms.pdb inputs/model.svg
cp data.dat inputs/model.dat
cases <<'END'
the unit of q taken wrongly | 0 warning: .*Rg.*--q-unit | \
        profile atoms.pdb --data data.dat --q-unit 1/nm --q-min 0.0001
a particle larger than the model | 0 warning: .*larger oligomer | profile atoms.pdb --data large.dat
a particle smaller than the one chain | 0 warning: .*more compact | profile atoms.pdb --data small.dat
a particle smaller than the chains | 0 warning: .*more molecules | profile chains.pdb --data small.dat
of bodies, too | 0 warning: .*more molecules | profile chains.pdb --data small.dat --bodies two
and than the one chain | 0 warning: .*more compact | profile atoms.pdb --data small.dat --bodies two
a mismatch that the fit hides | 0 warning: .*usual hydration.*oligomer | profile atoms.pdb --data larger.dat
a model that fits | 0 | profile atoms.pdb --data data.dat
    has no such warning | no err Rg is
all atoms take everything | 0 1 nucleotides, 1 sugars, 1 ions, .*1 other | profile mixed.pdb
    and say what they assumed | err residue QQ9 .*is in no table && err left out: 1 waters
what a model lacks | 0 warning: .*lack 4 residues.*after A:20 | profile broken.pdb --n-q 5
    atoms, too | err warning: .*residues lack [0-9]+ atoms
so do bodies | 0 1 nucleotides, 1 sugars, 1 ions, .* 1 other residues: 4 bodies | \
        profile mixed.pdb --bodies two --n-q 5
centres of side chains are no atoms | 65 SC.*side chain.*--bodies | profile one.pdb
bodies read them | 0 | profile one.pdb --bodies two --n-q 5
an atom at 9999 | 65 O of residue LIG Z:1 is nowhere | profile stray.pdb
a molecule too large | 65 too far for a curve.*lower --q-max | profile far.pdb --q-max 2
one atom | 0 lacks 4 atoms | profile alone.pdb --data data.dat --json
    is fitted | json s[0].chi2 > 1
no structure | 64 | profile --data data.dat
unknown bodies | 64 atoms, two, one | profile atoms.pdb --bodies three
a range the wrong way round | 64 LOW:HIGH | profile atoms.pdb --c1 1.1:1
a background that is none | 64 number, or one of fit, none | profile atoms.pdb --background some
a table for all atoms | 64 bodies one or two|one or two | profile atoms.pdb --form-factors x.dat
beyond the tables of bodies | 70 narrow q_range|--q-max | profile atoms.pdb --bodies two --q-max 3
--partials with data | 64 is not possible with --data | profile atoms.pdb --data data.dat --partials
--n-q with data | 64 is not possible with --data | profile atoms.pdb --data data.dat --n-q 5
--background without data | 64 needs --data | profile atoms.pdb --background fit
--q-unit without data | 64 needs --data | profile atoms.pdb --q-unit 1/nm
an output over its model | 64 replace the input | \
        profile inputs/model.svg --data inputs/model.dat --output inputs/model.svg
a picture over its model | 64 replace the input | \
        profile inputs/model.svg --data inputs/model.dat --output inputs/model
an output over its data | 64 replace the input | \
        profile inputs/model.svg --data inputs/model.dat --output inputs/model.dat
a measured curve in the folder | 64 not from tessera profile | profile inputs/model.svg --output inputs/
    are kept | cmp -s atoms.pdb inputs/model.svg && cmp -s data.dat inputs/model.dat
a fit over an older one | 0 wrote best.fit | profile atoms.pdb --data data.dat --output best
a curve over an older one | 0 wrote curve.dat | profile atoms.pdb --n-q 5 --output curve.dat
an output below a file | 74 atoms.pdb | profile atoms.pdb --output atoms.pdb/x.dat
curves of two structures in one file | 64 'pair.dat' is one file, and there are 2 curves: 'pair.dat/' writes each \
    | profile atoms.pdb far_atoms.pdb --output pair.dat
    leave no file | test ! -e pair.dat
data that nothing fits | 70 no positive scale | profile atoms.pdb --data minus.dat
END
[ -n "$without" ] || expect "a device that is not there" 74 "quantum" \
    on_device atoms.pdb --device quantum

# ---- a real one ----
nup=$shared/saxs/nup133_3kfo
mpro=$shared/saxs/mpro_sasdjg5
if is_sanitized; then
    echo "skip nup133: a sanitizer has seen what it does on small ones"
elif [ -r "$shared/README.md" ]; then
    cases <<'END'
nup133 | 0 | profile "$nup/model_crystal.pdb" "$nup/model.pdb" --data "$nup/exp.dat" --json
    the completed model fits, the crystal's does not | json s[0].structure.endswith('/model.pdb') \
        and s[0].chi2 < 1.25 and s[1].chi2 > s[0].chi2 and s[1].c2 > 5 * s[0].c2
without a background | 0 | profile "$nup/model_crystal.pdb" --data "$nup/exp.dat" --background none --json
    which hides what it lacks | json s[0].chi2 > 5
a monomer where a dimer was measured | 0 warning: .*oligomer | \
        on_device "$mpro/model_monomer.pdb" --data "$mpro/exp.dat"
END
else
    echo "skip nup133: no ../shared/data"
fi

exit $bad
