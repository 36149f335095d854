#!/bin/sh
# Strands of nucleotides that move: alone and beside a protein, through a run,
# its files, exports and the report. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

# one of its phosphates has a sulphur, the O2' of another nucleotide a methyl
"$build/tests/oracle/write_strand" 8 rna |
    sed "s/OP1\(   A S   6.*\)O/S2P\1S/; s/  A S   7/OMG S   7/" |
    awk 'function put(to) {
            for (k = 1; k < 4; k++) to[k] = substr($0, 23 + 8 * k, 8)
        }
        {print}
        /OMG/ && $3 == "C2\047" {put(c)}
        /OMG/ && $3 == "O2\047" {put(o); line = $0}
        line && /OMG/ && $3 == "N6" {
            printf "%sCM2%s%8.3f%8.3f%8.3f%s C\n", substr(line, 1, 13),
                substr(line, 17, 14), 2 * o[1] - c[1], 2 * o[2] - c[2],
                2 * o[3] - c[3], substr(line, 55, 22)
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
expect "simulate" 0 "" "$program" simulate strand.yaml --output curve.dat
expect "a strand alone" 0 "8 nucleotides belong to flexible strands" \
    "$program" run strand.yaml
for bodies in atoms two; do
    "$program" profile strand.pdb --bodies $bodies --device reference --json
done 2>/dev/null | grep -o '"mass": *[0-9.]*' >masses
check "bodies weigh what atoms do" awk '{m[NR] = $2}
    END {exit !(NR == 2 && m[1] > 2000 && (m[1] - m[2])^2 < 1)}' masses
expect "all its atoms" 0 "24 models of 161 atoms" "$program" export whole \
    --draws all --raw --atoms all --output all.pdb
# largest - least distance between two atoms over the models
spread() { # RESIDUE NAME RESIDUE NAME
    awk -v a="$1" -v m="$2" -v b="$3" -v n="$4" '
        function is(at, name) {
            return substr($0, 23, 4) + 0 == at && $3 == name
        }
        function put(to) {
            to[1] = substr($0, 31, 8); to[2] = substr($0, 39, 8)
            to[3] = substr($0, 47, 8)
        }
        /^(ATOM|HETATM)/ {if (is(a, m)) put(p); if (is(b, n)) put(q)}
        /^ENDMDL/ {d = sqrt((p[1] - q[1])^2 + (p[2] - q[2])^2 + (p[3] - q[3])^2)
            if (!k++) low = high = d
            if (d < low) low = d; if (d > high) high = d}
        END {print high - low}' all.pdb
}
holds() { # NAME MORE|LESS LIMIT RESIDUE NAME RESIDUE NAME
    check "$1" test "$(spread "$4" "$5" "$6" "$7" |
        awk -v limit="$3" -v want="$2" '{
            print (want == "less" ? $1 < limit : $1 > limit)}')" -eq 1
}
holds "bonds stay" less 0.004 5 "O3'" 6 P
holds "angles stay" less 0.006 5 "C3'" 6 P
holds "sugars stay" less 0.006 6 "O4'" 6 "O3'"
holds "sulphur stays" less 0.006 6 P 6 S2P
holds "the methyl of a sugar stays" less 0.006 7 "C2'" 7 CM2
holds "what is rigid stays" less 0.006 1 P 3 N6
holds "backbones turn" more 1 1 P 8 P
holds "bases turn" more 0.1 6 "O4'" 6 C8

expect "draws of all atoms" 0 "1[0-9]* of them in rigid parts" "$program" run \
    strand.yaml --set structure.bodies=atoms --set sampler.draws=8 --output atoms
sed 's/draws: 24/draws: 12/; s/whole/half/' strand.yaml >half.yaml
expect "half of the draws" 0 "" "$program" run half.yaml
expect "and the others" 0 "" "$program" resume half --draws 24
if [ -e "$source/.venv/done" ]; then
    echo "a resumed run is the same|whole half" |
        "$source/.venv/bin/python" "$source/tests/cli/compare_runs.py" || bad=1
fi
expect "superposed" 0 "" "$program" export whole --output mean.pdb
check "by atoms of the sugar" grep -q "posterior, superposed by C3'" mean.pdb
expect "a curve of bodies" 0 "8 nucleotides belong to flexible strands" "$program" profile \
    strand.pdb --bodies two
expect "a report" 0 "" "$program" report whole

expect "what is fixed is not" 0 "by bases that pair: S:4-8 " "$program" check \
    strand.yaml --set 'structure.flexible=[]' --set 'structure.fixed=["S:1-3"]'
expect "what moves is found" 0 "by bases that pair: S:1-8 " \
    "$program" check strand.yaml --set 'structure.flexible=[]'

expect "init" 0 "wrote found.yaml; next" "$program" init strand.pdb curve.dat \
    --output found.yaml
check "says what is single-stranded" grep -q '"S:1-8" # single-stranded' found.yaml
check "and by what" grep -q '^#   bases that pair' found.yaml
expect "nothing moves" 0 "the structures do not move" "$program" run strand.yaml --output still \
    --set 'structure.flexible=[]' --set structure.frozen=true

# beside it an ion
{ cat strand.pdb
  echo "HETATM  161 MG    MG M   1      10.000  20.000   5.000  1.00 10.00          MG"
} >ion.pdb
expect "beside an ion" 0 "" "$program" run strand.yaml --output ion \
    --set structure.file=ion.pdb --set sampler.draws=2
expect "the ion's atom" 0 "2 models of 162 atoms" "$program" export ion \
    --draws all --raw --atoms all --output ion_all.pdb

# nucleotides that no table knows; a ligand on a base, another on a phosphate
sed "s/  A S   1/GTP S   1/; s/  A S   3/A2M S   3/" strand.pdb >head.pdb
awk '($3 == "N6" && / S   4/) || ($3 == "OP1" && / S   8/) {
    for (k = 1; k < 4; k++) x[k] = substr($0, 23 + 8 * k, 8)
    for (i = 1; i < 3; i++)
        printf "HETATM  161  C1%d LIG L%4d    %8.3f%8.3f%8.3f%s C\n", i,
            substr($0, 23, 4), x[1] + 0.8 * i, x[2] + 0.8 * i, x[3] + 0.8 * i,
            substr($0, 55, 22)
}' strand.pdb >>head.pdb
expect "ligands on a strand" 0 "LIG L:4: rigid with S:4" "$program" run \
    strand.yaml --output head --set structure.file=head.pdb \
    --set 'structure.flexible=["S:1-8"]' --set prior.relax=true
check "all are nucleotides" grep -q "8 nucleotides belong to flexible strands" err.txt
expect "their atoms" 0 "24 models of 165 atoms" "$program" export head \
    --draws all --raw --atoms all --output all.pdb
holds "the strand keeps its head" less 0.004 1 "O3'" 2 P
holds "its angle, too" less 0.006 1 "O3'" 2 "O5'"
holds "a base keeps its ligand" less 0.004 4 N6 4 C12
holds "which turns with it" more 0.1 4 "O4'" 4 C11
holds "a phosphate keeps its own" less 0.006 8 P 8 C12
holds "and beside O5'" less 0.006 8 "O5'" 8 C11

# a strand with a gap
grep -v " A S   4" strand.pdb >gap.pdb
expect "a gap" 0 "by bases that pair: S:1-3 S:5-8 " "$program" check \
    strand.yaml --set structure.file=gap.pdb --set structure.flexible=[]

# beside it its copy
pair() { # APART
    cat strand.pdb
    awk -v d="$1" '/^ATOM/ {printf "%sT%s%8.3f%s\n", substr($0, 1, 21),
        substr($0, 23, 24), substr($0, 47, 8) + d, substr($0, 55)}' strand.pdb
}
pair 4 >two.pdb
expect "what pairs rides" 0 "A T:1 and 7 more residues: rigid with S:" \
    "$program" check strand.yaml --set structure.file=two.pdb \
    --set prior.relax=true
pair 3 >paired.pdb
expect "all pair" 0 "by bases that pair nothing is flexible" "$program" check \
    strand.yaml --set structure.file=paired.pdb --set structure.flexible=[]
check "nothing turns" grep -q " 0 free torsions" err.txt
expect "but as a whole" 0 "16 nucleotides belong to flexible strands" "$program" check \
    strand.yaml --set structure.file=paired.pdb --set structure.flexible=[] \
    --set 'structure.mobile=["T"]' --set prior.clash=none
check "all of it" grep -q " 0 free torsions" err.txt
expect "held at one part alone" 0 "chain T is attached by its part at T:.*separates" \
    "$program" check strand.yaml --set structure.file=two.pdb \
    --set 'structure.flexible=["S:4-5", "T:4-5"]' --set prior.clash=none

# a blank chain id becomes a letter, here and in what is written
sed 's/^\(.\{21\}\)S/\1 /' strand.pdb >blank.pdb
expect "a blank chain" 0 "" "$program" run strand.yaml --output blank \
    --set structure.file=blank.pdb --set 'structure.flexible=["A:4-8"]' \
    --set sampler.draws=2
expect "its atoms" 0 "2 models of 161 atoms" "$program" export blank \
    --draws all --raw --atoms all --output blank_all.pdb
check "its letter" grep -q "^ATOM.* P  *A A   8" blank_all.pdb

# ---- what cannot be ----
grep -v " C5'   A S   5" strand.pdb >cut.pdb
expect "a hole" 65 "nucleotide S:5 \(A\) has no atom C5'" "$program" check \
    strand.yaml --set structure.file=cut.pdb
expect "no such nucleotide" 78 "the chain has residues 1 to 8" "$program" check \
    strand.yaml --set 'structure.flexible=["S:4-9"]'
expect "left out" 78 "structure.ligands: none removes everything from '.*strand.pdb'" \
    "$program" check strand.yaml --set structure.ligands=none
expect "no such chain" 78 "flexible.0: 'Q:1-3' is not a chain.*; chains: S, T" \
    "$program" check strand.yaml --set structure.file=two.pdb \
    --set 'structure.flexible=["Q:1-3"]'
expect "no chain, of two" 78 "'4-6' is not a chain of '.*two.pdb'; chains: S, T" \
    "$program" check strand.yaml --set structure.file=two.pdb \
    --set 'structure.flexible=["4-6"]'
sed '70s/^\(.\{30\}\).\{8\}/\1     nan/' strand.pdb >nan.pdb
expect "a coordinate that is none" 65 "atom .* S:4 is nowhere near the others .*nan" \
    "$program" check strand.yaml --set structure.file=nan.pdb

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
expect "it rides on its domain" 0 "chain B rides with the rigid part of A:2" \
    "$program" run dna.yaml
expect "its atoms" 0 "10 models of 2047 atoms" "$program" export dna \
    --draws all --raw --atoms all --output all.pdb
expect "all of the protein" 0 "chain B: its nucleotides do not turn; flexible" \
    "$program" check dna.yaml --set structure.flexible=all
expect "a rigid range of the strand" 0 "8 nucleotides belong to flexible strands" "$program" \
    check dna.yaml --set structure.flexible=[] \
    --set 'structure.rigid=["A:183-297", "A:304-420", "B:11-14"]'
expect "but not of it" 0 "B: its nucleotides do not turn; structure.rigid" \
    "$program" check dna.yaml --set structure.flexible=[] \
    --set 'structure.rigid=["A:183-297", "A:304-420"]'
sed 's/^device.*/data: [{file: dna.dat}]/; s/dna,/dna_data,/' dna.yaml >dna_data.yaml
expect "a curve of it" 0 "" "$program" simulate dna_data.yaml --output dna.dat \
    --set device.use=cpu
short="--device cpu --set sampler.warmup=2 --set sampler.draws=1"
expect "bound as a guest it goes by a surrogate" 0 "surrogate redraws" \
    "$program" run dna_data.yaml -v $short --output bound \
    --set 'structure.flexible=["A:298-303"]'
expect "but not where a chain rides" 0 "chain B rides" "$program" run \
    dna_data.yaml -v $short --set structure.flexible=[] \
    --set 'structure.rigid=["A:183-297", "A:304-420", "B:11-18"]' \
    --set 'structure.fixed=["A:183-297"]'
check "which would stay behind" sh -c '! grep -q "by a surrogate" err.txt'
expect "fixed, but rigid" 78 "fixed.0: 'B:15-18': the nucleotides of chain B" \
    "$program" check dna.yaml --set 'structure.flexible=["A:298-303"]' \
    --set 'structure.fixed=["B:15-18"]'
sed '/ B  16/s/^\(.\{30\}\).\{8\}/\1     nan/' "$model" >nan.pdb
expect "a strand that cannot be read" 65 "DC B:16 is nowhere near the others .*nan" \
    "$program" check dna.yaml --set structure.file=nan.pdb

# ---- in a map ----
expect "a map of it" 0 "" "$program" map simulate strand.pdb --output map.mrc \
    --like "$shared/maps/adk_4ake_5A.mrc.gz" --resolution 8
expect "its correlation" 0 "" "$program" map cc whole --map map.mrc \
    --resolution 8
check "of every draw" test "$(grep -c "^whole, chain" out.txt)" -eq 24
expect "its timeline" 0 "" "$program" map timeline whole --map map.mrc \
    --resolution 8 --output line.csv
check "of every nucleotide" grep -q '^"S:8 A"' line.csv
exit $bad
