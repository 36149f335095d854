#!/bin/sh
# One flipped bit somewhere in a file of a run: every command says that the file
# is damaged, by its name, or answers as without it. A structure that can be no
# molecule: every command that reads it says so in one line. One line a test.
. tests/cli/expect.sh
samples=$shared/damaged

cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 10, draws: 12, thin: 2, temperatures: 1}
device: {use: reference}
output: {directory: run, trajectory_every: 3}
simulate: {points: 40, q_range: [0.01, 0.2], steps: 50}
contrast: {c2: 0}
END
"$program" simulate run.yaml --output good.dat --quiet >sim.txt &&
    "$program" run run.yaml --quiet >run.txt 2>run.err
check "a run" test -s run/trace.h5

# flip FILE BYTE BIT
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %03o $((byte ^ (1 << $3))))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# ask FOLDER COMMAND...: its answer, without what the clock says, to answer.txt
ask() {
    folder=$1
    shift
    "$program" "$@" "$folder" >out.txt 2>err.txt </dev/null
    got=$?
    sed "s/$folder/run/g; / ago/d" out.txt >answer.txt
}

# damaged FILE COUNT COMMAND...: seeded places, the same in every test.
damaged() {
    file=$1 count=$2 wrong=0 told=0
    shift 2
    ask run "$@"
    mv answer.txt good.txt
    check "$1, before" test $got -eq 0
    size=$(wc -c <"run/$file")
    for place in $(awk -v n="$count" -v size="$size" 'BEGIN { srand(7)
        for (i = 0; i < n; i++)
            print int(size * rand()) ":" int(8 * rand()) }'); do
        rm -rf bad
        cp -r run bad
        flip "bad/$file" "${place%:*}" "${place#*:}"
        ask bad "$@"
        if grep -qE "$file'.*(is damaged|cut short, damaged)" out.txt err.txt &&
            { [ $got -eq 65 ] || [ $got -eq "$else_status" ]; }; then
            told=$((told + 1))
        elif [ $got -ne 0 ] || ! cmp -s answer.txt good.txt; then
            echo "    $*: bit ${place#*:} of byte ${place%:*}: status $got"
            wrong=1
        fi
    done
    check "$1, $count flipped bits in $file, $told of them told" \
        test $wrong -eq 0 -a $told -ge $((count - 1))
}

else_status=65
damaged trace.h5 12 status
damaged trace.h5 12 summary --json
damaged trace.h5 5 report --output page.html
else_status=0 # the other chain's frames, the checkpoint before it
damaged trajectory-000.h5 8 export --draws all --format xyz
damaged checkpoint.h5 8 status
cp -r run unharmed
else_status=65
damaged trajectory-000.h5 5 resume --draws 14

# Files of tessera 0.1, which have no checksum, that crash HDF5 1.10; and a
# journal with a page 4 TiB into its file.
if [ -d "$samples" ]; then
    for sample in status_segv scales_crash; do
        rm -rf bad
        cp -r unharmed bad
        gunzip -c "$samples/${sample}_trace.h5.gz" >bad/trace.h5
        for command in status summary 'resume --draws 14' report; do
            expect "$command, $sample" 65 "bad/trace.h5'.*damaged" \
                "$program" $command bad
        done
    done
    cp unharmed/trace.h5 bad
    cp "$samples/trace.h5.journal_at_2e42" bad/trace.h5.journal
    expect "a journal with a page far away" 65 "trace.h5.journal.*damaged" \
        "$program" summary bad
else
    echo "skip files that crash HDF5 1.10: no ../shared/data/damaged"
fi

# ---- structures that can be no molecule ----
# put FILE FIRST LAST X Y Z [ATOM]: residues (their atom) are there.
put() {
    awk -v first="$2" -v last="$3" -v at="$(printf '%8s%8s%8s' "$4" "$5" "$6")" \
        -v atom="$7" '/^ATOM/ && substr($0, 23, 4) + 0 >= first &&
        substr($0, 23, 4) + 0 <= last && (atom == "" || $3 == atom) {
            $0 = substr($0, 1, 30) at substr($0, 55)} {print}' \
        model.pdb >"$1"
}
# far FILE X: CA of residue 30 is there; mmCIF has room for any number.
far() {
    awk -v x="$2" '/^ATOM/ {
        if (!n++) {
            print "data_x\nloop_"
            split("group_PDB id type_symbol label_atom_id label_alt_id " \
                "label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y " \
                "Cartn_z", item, " ")
            for (i = 1; i in item; i++)
                print "_atom_site." item[i]
        }
        print "ATOM", n, substr($3, 1, 1), $3, ".", $4, "A", $6,
            $6 == 30 && $3 == "CA" ? x : $7, $8, $9
    }' model.pdb >"$1"
}
put zero.pdb 30 30 0.000 0.000 0.000
put charmm.pdb 30 30 9999.000 9999.000 9999.000
put nan.pdb 30 30 nan 1.000 2.000 CA
put same.pdb 1 114 1.000 2.000 3.000
grep ' CA ' same.pdb >one_place.pdb
for x in 1e6 1e300 -1.7e308 inf; do far "far$x.cif" $x; done
awk '/^ATOM/ {printf "%s%8.3f%8.3f%8.3f%s\n", substr($0, 1, 30),
    substr($0, 31, 8) / 10, substr($0, 39, 8) / 10, substr($0, 47, 8) / 10,
    substr($0, 55)}' model.pdb >nm.pdb
{
    grep ^ATOM model.pdb
    sed -n 's/^\(ATOM.\{17\}\)A/\1B/p' model.pdb
} >copies.pdb
{
    echo "object 1 class gridpositions counts 4 4 4"
    printf "origin 0 0 0\ndelta 9 0 0\ndelta 0 9 0\ndelta 0 0 9\n"
    echo "object 3 class array type double rank 0 items 64 data follows"
    yes 0 | head -n 64
} >zero.dx
# nothing PATTERN FILE: no command takes long, or crashes.
nothing() {
    for command in "init $2" "solve $2 good.dat -o solved" \
        "check run.yaml --set structure.file=$2" \
        "run run.yaml --output no --set structure.file=$2" \
        "simulate run.yaml --output no.dat --set structure.file=$2" \
        "profile $2 --device reference" \
        "profile $2 --device reference --bodies two" \
        "map simulate $2 --like zero.dx -r 9 -o no.mrc --device reference" \
        "train priors $2 -o no.dat"; do
        expect "${command%% *}, $2" 65 "'[^']*$2'.*$1" \
            timeout 60 "$program" $command
    done
    rm -rf bad
    cp -r unharmed bad
    rm bad/input/model.pdb
    cp "$2" bad/input/model.pdb
    expect "export, $2" 65 "model.pdb'.*$1" \
        timeout 60 "$program" export bad --atoms all
}
nothing "GLU A:30 has 6 atoms in one place .0, 0, 0.: build" zero.pdb
nothing "N of residue GLU A:30 is nowhere near .*9999.*: build" charmm.pdb
nothing "CA of residue GLU A:30 is nowhere near .*nan" nan.pdb
nothing "SER A:1 has 6 atoms in one place" same.pdb
nothing "SER A:1 and PRO A:2 are in one place, and 112" one_place.pdb
for x in 1e6 1e300 -1.7e308 inf; do
    nothing "CA of residue GLU A:30 is nowhere near" "far$x.cif"
done
nothing "the coordinates are in nm; multiply them by 10" nm.pdb
nothing "SER A:1 and SER B:1 are in one place.*copies.*MODEL" copies.pdb
check "nothing was written" test ! -e solved -a ! -e no -a ! -e no.dat -a \
    ! -e no.mrc

# What lies in line or is torn apart has no frame; its atoms scatter all the same.
put torn.pdb 30 30 0.000 0.000 0.000 N
for command in "init torn.pdb" "check run.yaml --set structure.file=torn.pdb" \
    "profile torn.pdb --device reference --bodies two"; do
    expect "${command%% *}, torn.pdb" 65 "GLU A:30: its N, CA and C.*apart" \
        timeout 60 "$program" $command
done
exit $bad
