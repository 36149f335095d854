#!/bin/sh
# sasCIF, the format of SASBDB: its curve is that of the same numbers as text, its
# results are compared, and what tessera writes it reads back as the same curve.
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 20, draws: 8, thin: 1, temperatures: 1}
device: {use: reference}
output: {directory: run}
simulate: {points: 60, q_range: [0.01, 0.25], steps: 5}
END

# entry NAME FACTOR UNIT RG BEAM: an entry with the curve of good.dat, q times FACTOR,
# in the style of SASBDB: text fields, quotes, several blocks, values that are missing.
entry() {
    cat <<END
# an entry
data_$1_MAIN
_entry.id $1
_sas_sample.name 'the "two domains", in buffer'
_sas_beam.type_of_source '$5'
_sas_scan.unit $3
_sas_result.comments
;
free text with loop_ and data_ and 0.1 0.2 0.3
;
_sas_result.Rg_from_Guinier $4
_sas_result.Rg_from_Guinier_error 0.02
_sas_result.Rg_from_PR .
_sas_result.D_max 9.9
_sas_result.MW_standard 25.0
_sas_result.MW_Porod ?
loop_
_sas_scan_intensity.id
_sas_scan_intensity.momentum_transfer
_sas_scan_intensity.intensity
_sas_scan_intensity.intensity_su_counting
_sas_scan_intensity.scan_id
END
    awk -v f="$2" '/^[0-9]/ {printf "%d %.12g %s %s 1\n", ++n, f * $1, $2, $3}' good.dat
    for k in 1 2; do
        printf 'data_%s_FIT_%d\n_sas_model_fitting_details.id %d\n' "$1" $k $k
        printf '_sas_model_fitting_details.CHI_square %s\nloop_\n_sas_model_fitting.id\n' 1.$k
        printf '_sas_model_fitting.momentum_transfer\n1 0.1\n1 0.2\n'
    done
}
# same CURVE CURVE: q, I, sigma are equal in the digits of a .fit file, the fit in four.
same() {
    for f in "$1" "$2"; do
        tessera profile model.pdb -d "$f" --bodies one --device reference -o "$f.fit" \
            --force >log.txt 2>&1 || cat log.txt
        awk '!/^#/ {printf "%s %s %s %.4g\n", $1, $2, $3, $4}' "$f.fit" >"$f.rows"
    done
    test -s "$1.rows" && cmp "$1.rows" "$2.rows"
}
cases <<'END'
data | 0 | tessera simulate run.yaml --output good.dat
END
entry SASDZZ9 10 1/nm 2.5 'X-ray synchrotron' >nm.sascif
entry SASDZZ9 1 1/A 2.5 'X-ray synchrotron' >a.cif
entry SASDZZ9 10 nanometer 2.5 'Neutron source' >neutron.sascif
entry SASDZZ9 10 furlong 2.5 x >unit.sascif
sed '/^_sas_scan.unit/d' nm.sascif >none.sascif
printf '\357\273\277' | cat - nm.sascif >mark.sascif
gzip -c nm.sascif >nm.sascif.gz
# two scans in one loop; errors that are missing; a point without q; other damage
awk '/^[0-9]+ / && NF == 5 {a[++n] = $0} /FIT_1/ && !m++ {for (i = 1; i <= n; i++) {
    $0 = a[i]; $5 = 2; print}; print "data_X_FIT_1"; next} 1' nm.sascif >scans.sascif
awk '/^[0-9]+ / && NF == 5 {$4 = "."} 1' nm.sascif >errors.sascif
awk 'NR == 40 {$2 = "?"} 1' nm.sascif >q.sascif
head -n 30 nm.sascif | sed '$s/ 1$//' >cut.sascif
sed 's/_sas_scan_intensity.intensity$/_sas_scan_intensity.x/' nm.sascif >column.sascif
head -n 22 nm.sascif >empty.sascif
printf "data_x\n_atom_site.id 1\n" >structure.cif
printf 'data_from_P12, I(q)\n' | cat - good.dat >words.dat
cases <<'END'
an entry in nm | 0 header says 1/nm | tessera profile model.pdb -d nm.sascif --bodies one --device reference
    is compared: Rg, D_max, mass and fits | text The entry SASDZZ9 states: Guinier's Rg 25 Angstrom \([0-9.]* here\), \
        D_max 99 Angstrom \([0-9.]* in the model\), mass 25 kDa \([0-9.]* in the model: another oligomer, or missing \
        parts\?\), chi2 of a fit 1\.1, chi2 of a fit 1\.2 \([0-9.]* per point here\)\.
    and is the curve as text | same nm.sascif good.dat
q in Angstrom | 0 header says 1/A | \
        tessera profile model.pdb -d a.cif --bodies one --device reference --json
    and is the curve as text | same a.cif good.dat
    as JSON | json d.entry.name == "SASDZZ9" and abs(d.entry.rg_guinier - 25) < 1e-9 and d.entry.fits_chi2 == [1.1, 1.2] \
        and abs(d.entry.d_max - 99) < 1e-9 and d.entry.rg_pr is None and d.entry.source == "X-ray synchrotron"
neutrons | 0 source is neutrons \(Neutron source\) | \
        tessera profile model.pdb -d neutron.sascif --bodies one --device reference
without a unit | 0 q_max > 1 | tessera profile model.pdb -d none.sascif --bodies one --device reference
a byte order mark | 0 header says 1/nm | \
        tessera profile model.pdb -d mark.sascif --bodies one --device reference
    the same curve | same mark.sascif good.dat
compressed | 0 | tessera profile model.pdb -d nm.sascif.gz --bodies one --device reference
two scans | 0 the first of 2 curves is read | \
        tessera profile model.pdb -d scans.sascif --bodies one --device reference
    the first is read | same scans.sascif good.dat
no errors | 0 two columns, so sigma is stated | \
        tessera profile model.pdb -d errors.sascif --bodies one --device reference
text that begins as CIF | 0 60 points | tessera profile model.pdb -d words.dat --bodies one --device reference
init | 0 | tessera init model.pdb nm.sascif
    names it | out file: "nm.sascif" && out 60 points, q 0.01 to 0.25 1/Angstrom
run | 0 | tessera run run.yaml --set data.0.file=nm.sascif
solve | 0 | tessera solve model.pdb nm.sascif -o solved --set structure.flexible=[] --set structure.frozen=true
    compares in its verdict | text The entry SASDZZ9 states: Guinier's Rg 25
    and its JSON | json solved/verdict.json: d.rigid[0].entry.mass == 25

# ---- damage ----
an unknown unit | 0 the unit of q is neither 1/A nor 1/nm | \
        tessera profile model.pdb -d unit.sascif --bodies one --device reference
a point without q | 65 q.sascif', point 18: q = nan | tessera profile model.pdb -d q.sascif
a short row | 65 cut.sascif:17:1: Wrong number of values | tessera profile model.pdb -d cut.sascif
another column | 65 holds no curve: no data block | tessera profile model.pdb -d column.sascif
no rows | 65 line 17: the loop of the curve has no rows | tessera profile model.pdb -d empty.sascif
a structure | 65 holds no curve | tessera profile model.pdb -d structure.cif

# ---- written ----
a fit | 0 | tessera profile model.pdb -d good.dat --bodies one --device reference -o fit.sascif
    the same curve | same fit.sascif good.dat
    with its chi2 | in fit.sascif ^1 1 1/A .tessera [0-9.]*. [0-9.]+ [0-9.]+$ && \
        test "$(grep -c '^1 [0-9]* [0-9.e-]* ' fit.sascif)" -eq 120
again, of the file itself | 0 | tessera profile model.pdb -d fit.sascif --bodies one --device reference -o again.cif
    changes no number | test "$(grep '^1 ' fit.sascif)" = "$(grep '^1 ' again.cif)"
not over another's file | 64 nm.sascif' | \
        tessera profile model.pdb -d good.dat --bodies one --device reference -o nm.sascif
simulated | 0 | tessera simulate run.yaml --output made.sascif
    the same curve | same made.sascif good.dat
END
exit $bad
