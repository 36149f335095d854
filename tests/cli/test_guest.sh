#!/bin/sh
# A protein with nucleotides and an ion: they move with the domain that they
# touch, through a run, its files, exports and the report. Prints one line a
# test (tests/run.sh).
. tests/cli/expect.sh

# Glycine and alanine have no pseudo atoms, so that model.pdb has all of theirs.
cat >protein.yaml <<END
structure: {sequence: AGAGAGAGAGAGAGAGAGAGAGAGAGAGAG, flexible: ["A:1"]}
sampler: {chains: 1, warmup: 1, draws: 1, temperatures: 1}
device: {use: reference}
output: {directory: protein}
END
expect "a chain" 0 "" "$program" run protein.yaml
# beside A:5 two nucleotides, beside A:25 zinc
awk '/^ATOM/ && / CA / {x[$6] = $7; y[$6] = $8; z[$6] = $9}
    function put(record, name, residue, chain, number, at, a, b, c, element) {
        printf "%-6s99999 %-4s %3s %s%4d    %8.3f%8.3f%8.3f%22s  %2s\n",
            record, name, residue, chain, number, x[at] + a, y[at] + b,
            z[at] + c, "", element
    }
    /^ATOM/ {print}
    END {for (k = 0; k < 2; k++) {
            put("ATOM", " P  ", "DT", "D", k + 1, 5, 5 * k, 0, 4.5, "P")
            put("ATOM", " OP1", "DT", "D", k + 1, 5, 5 * k + 1, 1, 4.5, "O")
            put("ATOM", " O5'"'"'", "DT", "D", k + 1, 5, 5 * k, 1, 5.5, "O")
            put("ATOM", " C5'"'"'", "DT", "D", k + 1, 5, 5 * k, 1, 7, "C")
            put("ATOM", " N1 ", "DT", "D", k + 1, 5, 5 * k, 2, 9, "N")
        }
        put("HETATM", "ZN  ", "ZN", "A", 99, 25, 0, 0, 3.2, "ZN")
    }' protein/model.pdb >complex.pdb
cat >complex.yaml <<END
structure: {file: complex.pdb, flexible: ["A:13-17"]}
sampler: {chains: 1, warmup: 200, draws: 12, thin: 20, temperatures: 1}
device: {use: reference}
output: {directory: run, trajectory_every: 1}
END
expect "nucleotides ride on what they touch" 0 \
    "DT D:1 and 1 more residue: rigid with A:" "$program" run complex.yaml
expect "all atoms" 0 "12 models of 146 atoms" "$program" export run --atoms all \
    --output all.pdb
expect "those of the model" 0 "12 models of 146 atoms" "$program" export run \
    --atoms model --output model.pdb
# largest - least distance between two atoms over the models
spread() { # FILE COLUMNS-18-26-OF-ONE NAME OTHER NAME
    awk -v a="$2" -v m="$3" -v b="$4" -v n="$5" '
        function is(who, name) {
            return substr($0, 18, 9) == who && $3 == name
        }
        function put(to) {
            to[1] = substr($0, 31, 8); to[2] = substr($0, 39, 8)
            to[3] = substr($0, 47, 8)
        }
        /^ATOM|^HETATM/ {if (is(a, m)) put(p); if (is(b, n)) put(q)}
        /^ENDMDL/ {d = sqrt((p[1] - q[1])^2 + (p[2] - q[2])^2 + (p[3] - q[3])^2)
            if (!k++) low = high = d
            if (d < low) low = d; if (d > high) high = d}
        END {print high - low}' "$1"
}
for file in all model; do
    check "$file: they stay with their domain" test \
        "$(spread $file.pdb ' DT D   2' N1 'GLY A   4' CA | cut -c1-4 |
            awk '{print ($1 < 0.01)}')" -eq 1
    check "$file: so does zinc" test \
        "$(spread $file.pdb ' ZN A  99' ZN 'ALA A  23' CA |
            awk '{print ($1 < 0.01)}')" -eq 1
    check "$file: and leave the other" test \
        "$(spread $file.pdb ' DT D   2' N1 'ALA A  23' CA |
            awk '{print ($1 > 2)}')" -eq 1
done
check "ions are HETATM" test "$(grep -c '^HETATM.* ZN ' all.pdb)" -eq 12
expect "mmCIF has them" 0 "" "$program" export run --format cif --output all.cif
check "with their names" sh -c "grep -q \"^ATOM .* P P . DT D\" all.cif &&
    grep -q '^HETATM .* ZN ZN . ZN A' all.cif"
expect "a report" 0 "" "$program" report run
check "shows them" sh -c 'grep -q "\"D:2 DT\"" run/report.html &&
    grep -q "\"name\": *\"DNA D\"" run/report.html'
expect "the run goes on" 0 "" "$program" resume run --draws 14

expect "told where to ride" 0 "DT D:1 and 1 more residue: rigid with A:28" \
    "$program" check complex.yaml --set 'structure.attach=["D = A:28"]'
expect "left out" 0 "warning: .*left out: ligands 1, nucleotides 2" \
    "$program" check complex.yaml --set structure.ligands=none
expect "nobody there" 78 "structure.attach.0: 'E' matches no nucleotide" \
    "$program" check complex.yaml --set 'structure.attach=["E = A:28"]'
exit $bad
