#!/bin/sh
# tessera export: which models, under which names, in which file. Prints one
# line a test (tests/run.sh).
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 200, draws: 40, thin: 8, temperatures: 1}
device: {use: reference}
output: {directory: run, trajectory_every: 1}
simulate: {points: 30, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
END
expect "data" 0 "" "$program" simulate run.yaml --output good.dat
expect "two states" 0 "" "$program" run run.yaml

# ---- which ----
labels() { grep "^REMARK 999 chain" "$1"; }
expect "ten draws" 0 "20 models" "$program" export run --draws even:10 \
    --output even.pdb
check "are ten of each state" test \
    "$(labels even.pdb | grep -c 'state 1')" -eq 10
check "of the same draws" test \
    "$(labels even.pdb | cut -d' ' -f3-6 | sort | uniq -d | wc -l)" -eq 10
check "whose weights are 1 together" sh -c "grep '^REMARK 999 chain' even.pdb |
    awk '{sum[\$4, \$6] += \$10} END {for (d in sum)
        if ((sum[d] - 1) ^ 2 > 1e-6) exit 1}'"
expect "the best draw" 0 "2 models" "$program" export run --draws best
check "with both states" test "$(labels out.txt | cut -d' ' -f3-6 |
    uniq | wc -l)" -eq 1
expect "one state" 0 "3 models" "$program" export run --draws even:3 --state 1
check "which is the first" test "$(labels out.txt | grep -c 'state 1')" -eq 3
expect "a state that is none" 64 "states are 1 to 2" \
    "$program" export run --state 3

# ---- by weight ----
awk 'BEGIN {print "chain,draw,weight"
    for (c = 0; c < 2; c++) for (d = 0; d < 40; d++)
        print c "," d "," (c == 1 && d == 7 ? 3 : c == 0 && d == 30 ? 1 : 0)}' \
    >weights.csv
expect "draws by weight" 0 "16 models" "$program" export run \
    --weights weights.csv --draws even:8 --output heavy.pdb
check "come in proportion, with both states" test \
    "$(labels heavy.pdb | cut -d' ' -f3-8 | sort | uniq -c | tr -s ' ' |
    tr '\n' ';')" = " 2 chain 0 draw 30 state 1; 2 chain 0 draw 30 state 2;\
 6 chain 1 draw 7 state 1; 6 chain 1 draw 7 state 2;"
expect "weights of reweight" 0 "" "$program" reweight run --maxent \
    --output maxent.csv
expect "make an ensemble" 0 "10 models" "$program" export run \
    --weights maxent.csv --draws even:5
for draws in all best arrangements 3 even:5,best; do
    expect "weights and $draws" 64 "needs conformations and --draws even" \
        "$program" export run --weights weights.csv --draws $draws
done
expect "weights for a table" 64 "needs conformations" \
    "$program" export run --weights weights.csv --format csv
expect "weights that are none" 65 "begins with '# tessera.*not with chain,draw" \
    "$program" export run --weights good.dat
echo "chain,draw,weight
0,900,1" >beyond.csv
expect "weights of draws that are not there" 65 "none of the 80 draws" \
    "$program" export run --weights beyond.csv

# ---- superposed ----
# off FILE FIRST LAST: how far CA FIRST to LAST of any model are from the start's.
off() {
    awk -v a="$2" -v b="$3" 'FNR == 1 {file++}
        /^ATOM/ && substr($0, 13, 4) == " CA " {
            n = substr($0, 23, 4) + 0
            for (d = 0; d < 3; d++) {
                x = substr($0, 31 + 8 * d, 8) + 0
                if (file == 1) start[n, d] = x
                else if (n >= a && n <= b) {
                    e = (x - start[n, d]) ^ 2
                    if (e > worst) worst = e
                }
            }
        } END {print sqrt(worst)}' run/model.pdb "$1"
}
near() { awk -v x="$1" 'BEGIN {exit !(x < 0.01)}'; }
expect "aligned by a range" 0 "10 models" "$program" export run --draws even:5 \
    --align A:1-50 -o aligned.pdb
check "which is where it was, in both states" near "$(off aligned.pdb 1 50)"
check "and the rest is not" sh -c "! [ $(off aligned.pdb 65 114 | cut -d. -f1) -lt 1 ]"
check "B is 0 where nothing moves, and large elsewhere" awk \
    '/^ATOM/ && substr($0, 13, 4) == " CA " {n = substr($0, 23, 4) + 0
        b = substr($0, 61, 6) + 0
        if (n <= 50 && b > 0.01) exit 1
        if (n == 114 && b < 1) exit 1}' aligned.pdb
expect "aligned by a domain" 0 "" "$program" export run --draws even:5 \
    --align domain:2 -o aligned.pdb
check "the second one" near "$(off aligned.pdb 66 114)"
expect "a domain that is none" 64 "domain:3: the draws have 2 domains" \
    "$program" export run --align domain:3
expect "a range that is none" 64 "--align: .*'C:1-5': there is no chain 'C'" \
    "$program" export run --align C:1-5
expect "two residues" 64 "A:3-4: 2 residues; a rotation needs 3" \
    "$program" export run --align A:3-4
expect "aligned and raw" 64 "--align and --raw" \
    "$program" export run --align A:3-40 --raw

# ---- names ----
atoms() { awk '/^ATOM/ {print substr($0, 13, 14)} /^END/ {exit}' "$1"; }
atoms model.pdb >want.txt
atoms even.pdb >got.txt
check "names and order are the input's" cmp want.txt got.txt
check "B beyond 999.99 is cut" sh -c "awk '/^ATOM/ {b = substr(\$0, 61, 6)
    cut += b == \"999.99\"
    if (b !~ /^ *[0-9]+[.][0-9][0-9]\$/ || length(\$0) != 78) wide++}
    END {exit !cut || wide}' even.pdb"
# more models than four columns can count
expect "many models" 0 "" "$program" export run --draws all --format pdb \
    --atoms model --output all.pdb
check "are all numbered" test "$(grep '^MODEL' all.pdb | sort -u | wc -l)" -eq 160

# ---- files ----
expect "the name tells the format" 0 "" "$program" export run --output two.cif
check "mmCIF" grep -q "^_atom_site.Cartn_x" two.cif
check "which says where its models are from" grep -q \
    "^# model 1: chain 0 draw [0-9]* state 1 weight 0" two.cif
expect "unless it is said" 0 "" "$program" export run --output odd.cif \
    --format pdb
check "PDB" grep -q "^MODEL" odd.cif
check "and the script says so" grep -q 'cmd.load("odd.cif".*format="pdb")' \
    odd.cif.pml
expect "whose B is not cut" 0 "" "$program" export run --draws even:10 \
    --output even.cif
check "beyond 1000" awk '/^ATOM/ && $15 > 1000 {n++} END {exit !n}' even.cif
expect "whatever its letters" 0 "" "$program" export run --draws best \
    --output best.CIF
check "mmCIF, too" grep -q "^_atom_site.Cartn_x" best.CIF
for odd in x.docx x.sdf x.pdb.gz; do
    expect "an ending of no format, $odd" 64 \
        "'$odd': expected .*pdb, cif, xyz or csv" \
        "$program" export run --output $odd
    check "is not written" test ! -e $odd
done
expect "variables" 0 "" "$program" export run --output draws.csv
check "are CSV" grep -q "^chain,draw,rg" draws.csv
expect "a name with quotes and a comma" 0 "" "$program" export run \
    --draws best --output 'my "best", of all.pdb'
check "is quoted in scripts" grep -qF 'open "my \"best\", of all.pdb" format pdb' \
    'my "best", of all.pdb.cxc'
mkfifo pipe
timeout 20 cat pipe >piped.txt &
expect "into a pipe" 0 "" "$program" export run --draws best --output pipe
wait $!
check "which stays one" test -p pipe
check "and passes on" grep -q "^ENDMDL" piped.txt
check "without scripts" test ! -e pipe.pml
expect "into a folder" 74 "cannot write 'run'" "$program" export run \
    --output run

# ---- a damaged trace ----
cp -r run hurt
head -c 20000 run/trace.h5 >hurt/trace.h5
expect "conformations without a trace" 0 \
    "only conformations can be written.*trace.h5" "$program" export hurt \
    --draws even:4 --output hurt.pdb
check "are all there" test "$(grep -c ^MODEL hurt.pdb)" -eq 8
expect "the best needs one" 65 "no column lp" "$program" export hurt \
    --draws best

# ---- longer chain ids of mmCIF ----
awk '/^ATOM/ {
    if (!n++) {
        print "data_x\nloop_"
        split("group_PDB id type_symbol label_atom_id label_alt_id " \
            "label_comp_id label_asym_id label_entity_id label_seq_id " \
            "Cartn_x Cartn_y Cartn_z auth_seq_id auth_asym_id " \
            "pdbx_PDB_model_num", item, " ")
        for (i = 1; i in item; i++)
            print "_atom_site." item[i]
    }
    print "ATOM", n, substr($3, 1, 1), $3, ".", $4, "LNK", 1, $6, $7, $8, $9,
        $6, "LNK", 1
}' "$demo/two_domain.pdb" >long.cif
expect "a chain id of three letters" 0 "" "$program" run run.yaml \
    --prior-only --output long --set structure.file=long.cif \
    --set 'structure.flexible=["LNK:51-64"]' --set sampler.draws=4
expect "stays in mmCIF" 0 "" "$program" export long --output back.cif
check "as it was" test "$(awk '/^ATOM/ {print $18}' back.cif | sort -u)" = LNK
exit $bad
