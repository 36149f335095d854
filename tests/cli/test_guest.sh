#!/bin/sh
# Nucleotides and an ion beside a protein move with the domain that they touch, through
# a run, its files, exports and the report.
. tests/cli/expect.sh

# Glycine and alanine have no pseudo atoms, so that model.pdb has all of theirs.
cat >protein.yaml <<END
structure: {sequence: AGAGAGAGAGAGAGAGAGAGAGAGAGAGAG, flexible: ["A:1"]}
sampler: {chains: 1, warmup: 1, draws: 1, temperatures: 1}
device: {use: reference}
output: {directory: protein}
END
expect "a chain" 0 "" tessera run protein.yaml
# beside A:5 two nucleotides, beside A:25 zinc
awk '/^ATOM/ && / CA / {x[$6] = $7; y[$6] = $8; z[$6] = $9}
    function put(record, name, residue, chain, number, at, a, b, c, element) {
        printf "%-6s99999 %-4s %3s %s%4d    %8.3f%8.3f%8.3f%22s  %2s\n", record, name, residue,
            chain, number, x[at] + a, y[at] + b, z[at] + c, "", element
    }
    /^ATOM/ {print}
    END {for (k = 0; k < 2; k++) {
            put("ATOM", " P  ", "DT", "D", k + 1, 5, 5 * k, 0, 4.5, "P")
            put("ATOM", " OP1", "DT", "D", k + 1, 5, 5 * k + 1, 1, 4.5, "O")
            put("ATOM", " O5\047", "DT", "D", k + 1, 5, 5 * k, 1, 5.5, "O")
            put("ATOM", " C5\047", "DT", "D", k + 1, 5, 5 * k, 1, 7, "C")
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
cases <<'END'
nucleotides ride on what they touch | 0 DT D:1 and 1 more residue: rigid with A: | tessera run complex.yaml
all atoms | 0 12 models of 146 atoms | tessera export run --atoms all --output all.pdb
    they stay with their domain, so does zinc | spread all.pdb "DT D 2" N1 "GLY A 4" CA "< 0.01" \
        && spread all.pdb "ZN A 99" ZN "ALA A 23" CA "< 0.01"
    and leave the other | spread all.pdb "DT D 2" N1 "ALA A 23" CA "> 2"
    ions are HETATM | test "$(grep -c '^HETATM.* ZN ' all.pdb)" -eq 12
those of the model | 0 12 models of 146 atoms | tessera export run --atoms model --output model.pdb
    they stay with their domain, so does zinc | spread model.pdb "DT D 2" N1 "GLY A 4" CA "< 0.01" \
        && spread model.pdb "ZN A 99" ZN "ALA A 23" CA "< 0.01"
    and leave the other | spread model.pdb "DT D 2" N1 "ALA A 23" CA "> 2"
mmCIF has them | 0 | tessera export run --format cif --output all.cif
    with their names | in all.cif ^ATOM .* P P . DT D && in all.cif ^HETATM .* ZN ZN . ZN A
a report | 0 | tessera report run
    shows them | in run/report.html "D:2 DT" && in run/report.html "name": *"DNA D"
the run goes on | 0 | tessera resume run --draws 14
told where to ride | 0 DT D:1 and 1 more residue: rigid with A:28 | \
        tessera check complex.yaml --set 'structure.attach=["D = A:28"]'
left out | 0 warning: .*left out: ligands 1, nucleotides 2 | \
        tessera check complex.yaml --set structure.ligands=none
nobody there | 78 structure.attach.0: 'E' matches no nucleotide | \
        tessera check complex.yaml --set 'structure.attach=["E = A:28"]'
END
exit $bad
