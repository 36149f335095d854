#!/bin/sh
# Flexible fitting: closed adenylate kinase into the 5 Angstrom map of the open
# form. All of 8 chains come to a correlation of 0.98 and to 2 Angstrom of the
# open form (CA, in place). Two minutes of two cores.
. tests/cli/expect.sh

maps=$shared/maps
if [ ! -d "$maps" ]; then
    echo "skip flexible fitting: no $maps"
    exit 0
fi
cat >fit.yaml <<END2
structure: {file: $maps/adk_1ake-docked.pdb, flexible: all, d_max: 120}
data: [{kind: map, file: $maps/adk_4ake_5A.mrc.gz, resolution: 5,
  independent: 12000}] # as sharp as all of the box: for the fit alone
prior: {relax: true}
sampler: {chains: 8, warmup: 40000, draws: 100, thin: 10, temperatures: 1}
output: {directory: fit}
device: {use: reference}
END2
expect "a run" 0 "" "$program" run fit.yaml
expect "its correlations" 0 "" "$program" export fit --draws all --format csv \
    -o fit.csv
# 1 - CC^2 = 0.0396 at a CC of 0.98; the mean of each chain's draws.
check "8 of 8 chains at 0.98" awk -F, 'NR == 1 {
    for (k = 1; k <= NF; k++) { if ($k == "map_chi2") at = k
                                if ($k == "chain") c = k }
    next }
    {sum[$c] += $at; n[$c]++}
    END {for (k in n) good += sum[k] / n[k] <= 0.0396; exit good != 8}' fit.csv
expect "the last draws" 0 "" "$program" export fit --raw --format pdb \
    --draws 0/90,1/90,2/90,3/90,4/90,5/90,6/90,7/90 -o last.pdb
check "8 of 8 chains at 2 A" awk '
    function end() {if (n) good += s / n <= 4; s = n = 0}
    FNR == NR {if (/^ATOM.* CA /) for (c = 0; c < 3; c++)
        x[substr($0, 23, 4) + 0, c] = substr($0, 31 + 8 * c, 8); next}
    /^MODEL/ {end()}
    /^(ATOM|HETATM).* CA / {n++; for (c = 0; c < 3; c++)
        s += (substr($0, 31 + 8 * c, 8) - x[substr($0, 23, 4) + 0, c]) ^ 2}
    END {end(); exit good != 8}' "$maps/adk_4ake-target.pdb" last.pdb
exit $bad
