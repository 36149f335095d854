#!/bin/sh
# Flexible fitting by the commands of docs/density.md: all of 8 chains of closed adenylate
# kinase in the 5 Angstrom map of the open form come to a correlation of 0.98, of all
# atoms, and to 2 Angstrom of the open form (CA, in place). Nine minutes of processor time.
. tests/cli/expect.sh

maps=$shared/maps
if [ ! -d "$maps" ]; then
    echo "skip flexible fitting: no $maps"
    exit 0
fi
cases <<'END'
a configuration | 0 wrote fit.yaml | tessera init "$maps/adk_1ake-docked.pdb" --map "$maps/adk_4ake_5A.mrc.gz" \
        --resolution 5 -o fit.yaml
a run | 0 | tessera run fit.yaml --set output.directory=fit
the last draws | 0 | tessera export fit --raw --format pdb \
        --draws 0/90,1/90,2/90,3/90,4/90,5/90,6/90,7/90 -o last.pdb
their correlations | 0 | tessera map cc last.pdb --map "$maps/adk_4ake_5A.mrc.gz" -r 5 --sigma-over-r best
    8 of 8 chains at 0.98 | awk '/^last.pdb, model/ {good += $4 >= 0.98} END {exit good != 8}' out.txt
    8 of 8 chains at 2 A | awk '
>   function end() {if (n) good += s / n <= 4; s = n = 0}
>   FNR == NR {if (/^ATOM.* CA /) for (c = 0; c < 3; c++)
>       x[substr($0, 23, 4) + 0, c] = substr($0, 31 + 8 * c, 8); next}
>   /^MODEL/ {end()}
>   /^(ATOM|HETATM).* CA / {n++; for (c = 0; c < 3; c++)
>       s += (substr($0, 31 + 8 * c, 8) - x[substr($0, 23, 4) + 0, c]) ^ 2}
>   END {end(); exit good != 8}' "$maps/adk_4ake-target.pdb" last.pdb
END
exit $bad
