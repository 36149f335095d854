#!/bin/sh
# python-ihm reads the entry for PDB-IHM and writes it again, with its checks; MolViewSpec's
# own classes read the scene; gemmi's readers of today find chains, ligands and sequences.
. tests/cli/expect.sh
needs_venv "CIF files"
if ! "$python" -c 'import ihm, molviewspec' 2>/dev/null; then
    echo "skip CIF files: .venv is older than tests/requirements.txt (rm .venv/done)"
    exit 0
fi
# two chains of one sequence, of alanine and glycine; a strand and two ions beside the first
awk '/^ATOM/ && $3 != "SC" {if ($4 != "GLY") $0 = substr($0, 1, 17) "ALA" substr($0, 21); print}' \
    "$demo/two_domain.pdb" >one.pdb
awk '/^ATOM/ {print}
    function put(record, n, name, residue, chain, number, dx, dy, dz, element) {
        printf "%-6s%5d %-4s %3s %s%4d    %8.3f%8.3f%8.3f%22s  %2s\n", record, n, name,
            residue, chain, number, x + dx, y + dy, z + dz, "", element
    }
    /^ATOM/ && / CA / && $6 == 20 {x = $7; y = $8; z = $9}
    /^ATOM/ {a[++n] = $0}
    END {for (i = 1; i <= n; i++)
            printf "%s%s%s%8.3f%s\n", substr(a[i], 1, 21), "B", substr(a[i], 23, 24),
                substr(a[i], 47, 8) + 60, substr(a[i], 55)
        for (k = 0; k < 2; k++) {
            put("ATOM", 9000, " P  ", "DT", "D", k + 1, 5 * k, 0, 6.5, "P")
            put("ATOM", 9001, " O5\047", "DT", "D", k + 1, 5 * k, 1, 7.5, "O")
            put("ATOM", 9002, " C5\047", "DT", "D", k + 1, 5 * k, 1, 9, "C")
        }
        for (k = 0; k < 2; k++)
            put("HETATM", 9003, "ZN  ", "ZN", "A", 999 + k, 4 * k, 0, -6, "ZN")
        }' one.pdb >model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat}, {file: second.dat}]
model_error: none
sampler: {chains: 2, warmup: 20, draws: 10, thin: 2, temperatures: 1}
device: {use: reference}
output: {directory: run, trajectory_every: 1}
simulate: {points: 30, q_range: [0.01, 0.2], steps: 5}
END
cases <<'END'
data | 0 | tessera simulate run.yaml --output good.dat
$ cp good.dat second.dat
a run of two states | 0 | tessera run run.yaml
for PDB-IHM | 0 | tessera export run --draws even:3 --format ihm --output ihm.cif
as PDB | 0 | tessera export run --draws even:3 --output draws.pdb
for Mol* | 0 | tessera export run --draws even:3 --output scene.mvsj
again | 0 | tessera export run --draws even:3 --output scene.mvsj
    are what their readers expect | "$python" "$source/tests/oracle/cif_files.py" run
one state | 0 | tessera export run --draws even:3 --state 2 --format ihm --output one.cif
    is read, too | "$python" -c \
        'import ihm.reader; (s,) = ihm.reader.read(open("one.cif")); assert [len(m) for m in s._all_model_groups()] == [0, 3]'
of the prior, from a sequence | 0 | tessera run run.yaml --prior-only -o prior --set structure.file= \
        --set structure.sequence=AGAGAGAGAGAGAGAG --set structure.flexible=["A:1-16"] --set structure.states=1
    as entry | tessera export prior --draws best --format ihm -o prior.cif && "$python" -c \
        'import ihm.reader; (s,) = ihm.reader.read(open("prior.cif")); assert not s.restraints and not s.state_groups[1:]'
END
exit $bad
