#!/bin/sh
# tessera export writes the models that were asked for, superposed as asked, under the
# input's names, in the format of the file's name, with scripts that open them.
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
labels() { grep "^REMARK 999 chain" "$1"; }
count() { test "$(labels "$1" | grep -c 'state 1')" -eq "$2"; } # FILE N, of state 1

# ---- which ----
cases <<'END'
data | 0 | tessera simulate run.yaml --output good.dat
two states | 0 | tessera run run.yaml
ten draws | 0 20 models | tessera export run --draws even:10 --output even.pdb
    are ten of each state | count even.pdb 10
    of the same draws | test "$(labels even.pdb | cut -d' ' -f3-6 | sort | uniq -d | wc -l)" -eq 10
    whose weights are 1 together | labels even.pdb | awk '{sum[$4, $6] += $10}
>         END {for (d in sum) if ((sum[d] - 1) ^ 2 > 1e-6) exit 1}'
the best draw | 0 2 models | tessera export run --draws best
    with both states | test "$(labels out.txt | cut -d' ' -f3-6 | uniq | wc -l)" -eq 1
one state | 0 3 models | tessera export run --draws even:3 --state 1
    which is the first | count out.txt 3
a state that is none | 64 states 1 to 2 | tessera export run --state 3

END

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
cases <<'END'
aligned by a range | 0 10 models | tessera export run --draws even:5 --align A:1-50 -o aligned.pdb
    which is where it was, in both states | near "$(off aligned.pdb 1 50)"
    and the rest is not | ! [ "$(off aligned.pdb 65 114 | cut -d. -f1)" -lt 1 ]
    B is 0 where nothing moves, and large elsewhere | awk '/^ATOM/ && substr($0, 13, 4) == " CA " {
>         n = substr($0, 23, 4) + 0; b = substr($0, 61, 6) + 0
>         if (n <= 50 && b > 0.01) exit 1
>         if (n == 114 && b < 1) exit 1}' aligned.pdb
aligned by a domain | 0 | tessera export run --draws even:5 --align domain:2 -o aligned.pdb
    the second one | near "$(off aligned.pdb 66 114)"
a domain that is none | 64 domain:3: the draws have 2 domains | tessera export run --align domain:3
a range that is none | 64 --align: .*'C:1-5': there is no chain 'C' | tessera export run --align C:1-5
two residues | 64 A:3-4: 2 residues; superposition needs 3 | tessera export run --align A:3-4
aligned and raw | 64 --align and --raw | tessera export run --align A:3-40 --raw
END

# ---- names and files ----
atoms() { awk '/^ATOM/ {print substr($0, 13, 14)} /^END/ {exit}' "$1"; }
atoms model.pdb >want.txt
atoms even.pdb >got.txt
check "names and order are the input's" cmp want.txt got.txt
cases <<'END'
many models, more than four columns can count | 0 | \
        tessera export run --draws all --format pdb --atoms model --output all.pdb
    are all numbered | test "$(grep '^MODEL' all.pdb | sort -u | wc -l)" -eq 160
    B beyond 999.99 is cut | awk '/^ATOM/ {b = substr($0, 61, 6); cut += b == "999.99"
>     if (b !~ /^ *[0-9]+[.][0-9][0-9]$/ || length($0) != 78) wide++} END {exit !cut || wide}' even.pdb
the name tells the format | 0 | tessera export run --output two.cif
    mmCIF, which says where its models are from | in two.cif ^_atom_site.Cartn_x \
        && in two.cif ^# model 1: chain 0 draw [0-9]* state 1 weight 0
unless it is said | 0 | tessera export run --output odd.cif --format pdb
    PDB | in odd.cif ^MODEL
whose B is not cut | 0 | tessera export run --draws even:10 --output even.cif
    beyond 1000 | awk '/^ATOM/ && $15 > 1000 {n++} END {exit !n}' even.cif
whatever its letters | 0 | tessera export run --draws best --output best.CIF
    mmCIF, too | in best.CIF ^_atom_site.Cartn_x
an ending of no format, x.docx | 64 'x.docx': expected .*pdb, cif, ihm, mvsj or csv | tessera export run --output x.docx
an ending of no format, x.sdf | 64 'x.sdf': expected .*pdb, cif, ihm, mvsj or csv | tessera export run --output x.sdf
an ending of no format, x.pdb.gz | 64 'x.pdb.gz': expected .*pdb, cif, ihm, mvsj or csv | tessera export run --output x.pdb.gz
    none is written | test -z "$(ls x.* 2>/dev/null)"
variables | 0 | tessera export run --output draws.csv
    are CSV | in draws.csv ^chain,draw,rg
$ mkfifo pipe; timeout 20 cat pipe >piped.txt & piped=$!
into a pipe | 0 | tessera export run --draws best --output pipe
$ wait $piped
    which stays one, passes on | test -p pipe && in piped.txt ^ENDMDL
into a folder | 74 cannot write 'run' | tessera export run --output run

# ---- a damaged trace ----
$ cp -r run hurt; head -c 20000 run/trace.h5 >hurt/trace.h5
conformations without a trace | 0 only conformations can be written.*trace.h5 | \
        tessera export hurt --draws even:4 --output hurt.pdb
    are all there | test "$(grep -c ^MODEL hurt.pdb)" -eq 8
the best needs one | 65 no column lp | tessera export hurt --draws best
END

# ---- longer chain ids of mmCIF ----
awk '/^ATOM/ {
    if (!n++) {
        print "data_x\nloop_"
        split("group_PDB id type_symbol label_atom_id label_alt_id " \
            "label_comp_id label_asym_id label_entity_id label_seq_id " \
            "Cartn_x Cartn_y Cartn_z auth_seq_id auth_asym_id pdbx_PDB_model_num", item, " ")
        for (i = 1; i in item; i++)
            print "_atom_site." item[i]
    }
    print "ATOM", n, substr($3, 1, 1), $3, ".", $4, "LNK", 1, $6, $7, $8, $9, $6, "LNK", 1
}' model.pdb >long.cif
cases <<'END'
a chain id of three letters | 0 | tessera run run.yaml --prior-only --output long --set structure.file=long.cif \
        --set 'structure.flexible=["LNK:51-64"]' --set sampler.draws=4
stays in mmCIF | 0 | tessera export long --output back.cif
    as it was | test "$(awk '/^ATOM/ {print $18}' back.cif | sort -u)" = LNK
END
exit $bad
