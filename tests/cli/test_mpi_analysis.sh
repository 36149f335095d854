#!/bin/sh
# map cc, map timeline and profile print and write the same on any number of ranks, and
# name the first of the items that fail.
. tests/cli/expect.sh
needs_ranks "analysis on several ranks"

# 24 models, each 0.2 Angstrom beside the one before, in one file and in many.
without_side_chains >model.pdb
awk '/^ATOM/ {line[++n] = $0} END {for (k = 0; k < 24; k++) {
    print "MODEL", k + 1
    for (i = 1; i <= n; i++) printf "%s%8.3f%s\n", substr(line[i], 1, 30), \
        substr(line[i], 31, 8) + 0.2 * k, substr(line[i], 39)
    print "ENDMDL"}}' model.pdb >models.pdb
awk '/^MODEL/ {f = "m" $2 ".pdb"} /^ATOM/ {print > f}' models.pdb
flat_map 0.dx model.pdb 2 12 0
tessera map simulate model.pdb --like 0.dx -r 6 -o own.mrc --device reference -q
on="--map own.mrc -r 6 --device reference"
analyse() { # FOLDER COMMAND...: all that is printed and written, but no times
    n=$1
    shift
    mkdir "$n"
    {
        "$@" map cc models.pdb $on --json &&
            "$@" map timeline models.pdb $on -o "$n/line" --by residue &&
            "$@" profile models.pdb --frames all -o "$n/" --device reference &&
            "$@" profile m?.pdb --json --device reference
    } 2>err.txt | sed "s/$n\/line/line/g; s/\"[a-z]*_seconds\": [^,}]*//g" >"$n/out.txt"
}
check "all of it" analyse plain tessera
check "24 curves, 24 frames, 9 structures" test "$(ls plain/*.dat | wc -l)" -eq 24 -a \
    "$(grep -c '"model":\|"structure":' plain/out.txt)" -eq 33
for n in 2 3; do
    check "on $n ranks" analyse $n ranks $n tessera-mpi
    check "the same bits on $n ranks" diff -r plain $n
done
echo bad >m7.pdb
echo bad >m5.pdb
cases <<'END'
the first of two that fail | 65 m5.pdb | ranks 3 tessera-mpi profile m?.pdb --threads 1
a command with nothing to share | 66 cannot open 'none' | ranks 2 tessera-mpi map cc models.pdb --map none -r 6
$ awk '!/^#/ {print $1, $2, 0.01 * $2}' plain/models-1.dat >data.dat
best fits are for one rank | 0 | ranks 2 tessera-mpi profile m1.pdb m2.pdb --data data.dat -o best.fit
    and written once | test "$(grep -c "by tessera" best.fit)" -eq 1
a rank that does not see the files | 66 on rank 1: .*cannot open 'own.mrc' | $mpirun \
    -np 1 tessera-mpi map cc models.pdb $on : -np 1 --wdir / tessera-mpi map cc models.pdb $on
END
exit $bad
