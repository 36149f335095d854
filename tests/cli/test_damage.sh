#!/bin/sh
# One flipped bit somewhere in a file of a run: every command says that the file
# is damaged, by its name, or answers as without it. One line a test.
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
exit $bad
