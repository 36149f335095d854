#!/bin/sh
# Strands of nucleotides that move: bonds and rigid parts stay, backbones turn, alone and
# beside a protein, through a run, its files, exports and the report.
. tests/cli/expect.sh

# one of its phosphates has a sulphur, the O2' of another nucleotide a methyl
"$build/tests/oracle/write_strand" 8 rna |
    sed "s/OP1\(   A S   6.*\)O/S2P\1S/; s/  A S   7/OMG S   7/" |
    awk 'function put(to) {for (k = 1; k < 4; k++) to[k] = substr($0, 23 + 8 * k, 8)}
        {print}
        /OMG/ && $3 == "C2\047" {put(c)}
        /OMG/ && $3 == "O2\047" {put(o); line = $0}
        line && /OMG/ && $3 == "N6" {
            printf "%sCM2%s%8.3f%8.3f%8.3f%s C\n", substr(line, 1, 13), substr(line, 17, 14),
                2 * o[1] - c[1], 2 * o[2] - c[2], 2 * o[3] - c[3], substr(line, 55, 22)
        }' >strand.pdb
cat >strand.yaml <<END
seed: 2
structure: {file: strand.pdb, flexible: ["S:4-8"]}
data: [{file: curve.dat}]
sampler: {chains: 2, warmup: 200, draws: 24, thin: 10, temperatures: 1}
device: {use: reference}
output: {directory: whole, trajectory_every: 2}
simulate: {points: 40, q_range: [0.01, 0.3], steps: 300, error: 0.03}
END
atoms="--draws all --raw --atoms all --output"
# holds LIMIT, turns LIMIT: how far the distance of two atoms varies over the models
holds() { spread all.pdb "$2" "$3" "$4" "$5" "< $1"; }
turns() { spread all.pdb "$2" "$3" "$4" "$5" "> $1"; }
cases <<'END'
simulate | 0 | tessera simulate strand.yaml --output curve.dat
a strand alone | 0 8 nucleotides belong to flexible strands | tessera run strand.yaml
the mass of its atoms | 0 | tessera profile strand.pdb --bodies atoms --device reference --json
$ cp out.txt atoms.json
the mass of its bodies | 0 8 nucleotides belong to flexible strands | tessera profile strand.pdb --bodies two --device reference --json
    is the same | json s[0].mass > 2000 and abs(s[0].mass - load('atoms.json').structures[0].mass) < 1
all its atoms | 0 24 models of 161 atoms | tessera export whole $atoms all.pdb
    bonds stay, angles stay, sugars stay | holds 0.004 5 "O3'" 6 P && holds 0.006 5 "C3'" 6 P \
        && holds 0.006 6 "O4'" 6 "O3'"
    sulphur, the methyl of a sugar and what is rigid stay | holds 0.006 6 P 6 S2P \
        && holds 0.006 7 "C2'" 7 CM2 && holds 0.006 1 P 3 N6
    backbones turn, bases turn | turns 1 1 P 8 P && turns 0.1 6 "O4'" 6 C8
draws of all atoms | 0 accepted by its all-atom curve | \
        tessera run strand.yaml --set structure.bodies=atoms --set sampler.draws=8 --output atoms
half of the draws | 0 | tessera run strand.yaml --set sampler.draws=12 --output half
and the others | 0 | tessera resume half --draws 24
END
if [ -e "$source/.venv/done" ]; then
    echo "a resumed run is the same|whole half" |
        "$source/.venv/bin/python" "$source/tests/cli/compare_runs.py" || bad=1
fi

# beside it an ion
{ cat strand.pdb
  echo "HETATM  161 MG    MG M   1      10.000  20.000   5.000  1.00 10.00          MG"
} >ion.pdb
# nucleotides that no table knows; a ligand on a base, another on a phosphate
sed "s/  A S   1/GTP S   1/; s/  A S   3/A2M S   3/" strand.pdb >head.pdb
awk '($3 == "N6" && / S   4/) || ($3 == "OP1" && / S   8/) {
    for (k = 1; k < 4; k++) x[k] = substr($0, 23 + 8 * k, 8)
    for (i = 1; i < 3; i++)
        printf "HETATM  161  C1%d LIG L%4d    %8.3f%8.3f%8.3f%s C\n", i, substr($0, 23, 4),
            x[1] + 0.8 * i, x[2] + 0.8 * i, x[3] + 0.8 * i, substr($0, 55, 22)
}' strand.pdb >>head.pdb
pair() { # APART: beside it its copy
    cat strand.pdb
    awk -v d="$1" '/^ATOM/ {printf "%sT%s%8.3f%s\n", substr($0, 1, 21),
        substr($0, 23, 24), substr($0, 47, 8) + d, substr($0, 55)}' strand.pdb
}
pair 4 >two.pdb
pair 3 >paired.pdb
grep -v " A S   4" strand.pdb >gap.pdb
sed 's/^\(.\{21\}\)S/\1 /' strand.pdb >blank.pdb # which becomes a letter, also in what is written
grep -v " C5'   A S   5" strand.pdb >cut.pdb
sed '70s/^\(.\{30\}\).\{8\}/\1     nan/' strand.pdb >nan.pdb
of() { # FILE RANGES OPTION...: checks another structure
    file=$1 ranges=$2
    shift 2
    tessera check strand.yaml --set "structure.file=$file" --set "structure.flexible=[$ranges]" "$@"
}
cases <<'END'
superposed | 0 | tessera export whole --output mean.pdb
    by atoms of the sugar | in mean.pdb posterior, superposed by C3'
a report | 0 | tessera report whole
what is fixed is not flexible | 0 flexible by base pairs: S:4-8  | of strand.pdb "" --set 'structure.fixed=["S:1-3"]'
what moves is found | 0 flexible by base pairs: S:1-8  | of strand.pdb ""
init | 0 wrote found.yaml; next | tessera init strand.pdb curve.dat --output found.yaml
    says what is single-stranded, and by what | in found.yaml "S:1-8" # single-stranded \
        && in found.yaml ^#   base pairs
nothing moves | 0 the structures do not move | \
        tessera run strand.yaml --output still --set 'structure.flexible=[]' --set structure.frozen=true
beside an ion | 0 | tessera run strand.yaml --output ion --set structure.file=ion.pdb --set sampler.draws=2
the ion's atom | 0 2 models of 162 atoms | tessera export ion $atoms ion_all.pdb
ligands on a strand | 0 LIG L:4: rigid with S:4 | tessera run strand.yaml --output head \
        --set structure.file=head.pdb --set 'structure.flexible=["S:1-8"]' --set prior.relax=true
    all are nucleotides | err 8 nucleotides belong to flexible strands
their atoms | 0 24 models of 165 atoms | tessera export head $atoms all.pdb
    the strand keeps its head, its angle, too | holds 0.004 1 "O3'" 2 P && holds 0.006 1 "O3'" 2 "O5'"
    a base keeps its ligand, which turns with it | holds 0.004 4 N6 4 C12 && turns 0.1 4 "O4'" 4 C11
    a phosphate keeps its own, also beside O5' | holds 0.006 8 P 8 C12 && holds 0.006 8 "O5'" 8 C11
a gap | 0 flexible by base pairs: S:1-3 S:5-8  | of gap.pdb ""
what pairs rides | 0 A T:1 and 7 more residues: rigid with S: | of two.pdb '"S:4-8"' --set prior.relax=true
all pair | 0 by base pairs, no residue is flexible | of paired.pdb ""
    nothing turns | err  0 free torsions
but as a whole | 0 16 nucleotides belong to flexible strands | \
        of paired.pdb "" --set 'structure.mobile=["T"]' --set prior.clash=none
    all of it | err  0 free torsions
held at one part alone | 0 chain T is attached by its part at T:.*separates | \
        of two.pdb '"S:4-5", "T:4-5"' --set prior.clash=none
a blank chain | 0 | tessera run strand.yaml --output blank --set structure.file=blank.pdb \
        --set 'structure.flexible=["A:4-8"]' --set sampler.draws=2
its atoms | 0 2 models of 161 atoms | tessera export blank $atoms blank_all.pdb
    its letter | in blank_all.pdb ^ATOM.* P  *A A   8

# ---- what cannot be ----
a hole | 65 nucleotide S:5 \(A\) lacks atom C5' | tessera check strand.yaml --set structure.file=cut.pdb
no such nucleotide | 78 the chain has residues 1 to 8 | of strand.pdb '"S:4-9"'
left out | 78 structure.ligands: none removes everything from '.*strand.pdb' | \
        tessera check strand.yaml --set structure.ligands=none
no such chain | 78 flexible.0: 'Q:1-3' is not a chain.*; chains: S, T | of two.pdb '"Q:1-3"'
no chain, of two | 78 '4-6' is not a chain of '.*two.pdb'; chains: S, T | of two.pdb '"4-6"'
a coordinate that is none | 65 atom .* S:4 is nowhere near the others .*nan | \
        tessera check strand.yaml --set structure.file=nan.pdb
END

# ---- a protein with DNA ----
model=$shared/saxs/rpa_multifoxs_synthetic/model_1jmc.pdb
if [ ! -e "$model" ]; then
    echo "skip DNA on a protein: no $model"
    exit $bad
fi
cat >dna.yaml <<END
structure: {file: $model, flexible: ["A:298-303", "B:15-18"]}
sampler: {chains: 1, warmup: 100, draws: 10, thin: 20, temperatures: 1}
device: {use: reference}
output: {directory: dna, trajectory_every: 1}
END
sed 's/^device.*/data: [{file: dna.dat}]/; s/dna,/dna_data,/' dna.yaml >dna_data.yaml
sed '/ B  16/s/^\(.\{30\}\).\{8\}/\1     nan/' "$model" >nan.pdb
short="--device cpu --set sampler.warmup=2 --set sampler.draws=1"
rigid='"A:183-297", "A:304-420"'
cases <<'END'
it rides on its domain | 0 chain B moves with the rigid part of A:2 | tessera run dna.yaml
its atoms | 0 10 models of 2047 atoms | tessera export dna $atoms all.pdb
all of the protein | 0 chain B: its nucleotides do not turn; flexible | \
        tessera check dna.yaml --set structure.flexible=all
a rigid range of the strand | 0 8 nucleotides belong to flexible strands | \
        tessera check dna.yaml --set structure.flexible=[] --set "structure.rigid=[$rigid, \"B:11-14\"]"
but not of it | 0 B: its nucleotides do not turn; naming | \
        tessera check dna.yaml --set structure.flexible=[] --set "structure.rigid=[$rigid]"
a curve of it | 0 | tessera simulate dna_data.yaml --output dna.dat --set device.use=cpu
bound as a guest it goes by a surrogate | 0 surrogate redraws | \
        tessera run dna_data.yaml -v $short --output bound --set 'structure.flexible=["A:298-303"]'
but not where a chain rides | 0 chain B moves with | tessera run dna_data.yaml -v $short --set structure.flexible=[] \
        --set "structure.rigid=[$rigid, \"B:11-18\"]" --set 'structure.fixed=["A:183-297"]'
    which would stay behind | no err by a surrogate
fixed, but rigid | 78 fixed.0: 'B:15-18': the nucleotides of chain B | \
        tessera check dna.yaml --set 'structure.flexible=["A:298-303"]' --set 'structure.fixed=["B:15-18"]'
a strand that cannot be read | 65 DC B:16 is nowhere near the others .*nan | \
        tessera check dna.yaml --set structure.file=nan.pdb

# ---- in a map ----
a map of it | 0 | tessera map simulate strand.pdb --output map.mrc --like "$shared/maps/adk_4ake_5A.mrc.gz" \
        --resolution 8
its correlation | 0 | tessera map cc whole --map map.mrc --resolution 8
    of every draw | test "$(grep -c "^whole, chain" out.txt)" -eq 24
its timeline | 0 | tessera map timeline whole --map map.mrc --resolution 8 --output line.csv
    of every nucleotide | in line.csv ^"S:8 A"
END
exit $bad
