#!/bin/sh
# PyMOL opens exported conformations with all their models.
. tests/cli/expect.sh
if ! command -v pymol >/dev/null; then
    echo "skip exports in PyMOL: pymol is not installed"
    exit 0
fi
conformations=$build/tests/oracle/write_trajectory
cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<YAML
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: []
sampler: {chains: 1, warmup: 0, draws: 2, thin: 1}
device: {use: reference}
output: {directory: run, trajectory: none}
YAML
if ! tessera run run.yaml --prior-only --quiet >run.txt 2>&1 ||
    ! "$conformations" run 1 20; then
    echo "not ok a run to open in PyMOL"
    cat run.txt
    exit 1
fi
residues=$(grep -c "^ATOM.* CA " run/model.pdb)
cat >ask.pml <<PML
print("loaded %d states, %d CA" % (cmd.count_states("draws"), cmd.count_atoms("draws and name CA and state 1")))
PML
for format in pdb cif; do
    tessera export run --draws 0:18:2 --format $format --quiet \
        --output "draws.$format"
    # Debian's pymol asks env for python3, which may be another
    PATH=/usr/bin:$PATH timeout 60 pymol -cq "draws.$format" ask.pml \
        >pymol.txt 2>&1
    if grep -q "^loaded 10 states, $residues CA" pymol.txt &&
        ! grep -qi "error" pymol.txt; then
        echo "ok PyMOL opens $format"
    else
        echo "not ok $format in PyMOL"
        sed 's/^/    /' pymol.txt
    fi
done
